// The messages of two pairs, over one tagged connection of an endpoint.
//
// Reasons for tags and for separate matching. Gloo matches sends and receives in order by (rank, slot), has receives
// from any of several ranks, and sends no payload before a receive waits for it. On an ordered connection a late
// receive would delay all other slots. The endpoint's own matching mixes all contexts of a device, has no receive from
// some of the peers, and accepts short payloads before they are requested. So a receiver reports its receive to the
// sender ("receive_ready", with an id), the sender matches, and the payload is sent with this id as its tag. Its
// receive was always posted before, so a payload arrives in its buffer without a copy and is never unexpected, and a
// peer can make another one store only control messages. By then the endpoint has granted the buffer
// (endpoint/internal/worker_ahead.cpp). So a receive that is posted in time adds no round trip, whatever the message's
// length, as in Gloo's TCP.
//
// Tags, by their two highest bits:
//
//   00  control messages, numbered; each has a few records; the receives of the next kControlFrames are posted
//   01  payload of an unbound send; the other bits are the id of receive_ready
//   10  payload of a bound send; the other bits are the id of write
//   11  the hello, which opens the connection
//
// Availability. A receive from any rank must know which ranks have a send for which no receive was reported. For each
// (pair, slot) a receiver counts: +1 for each send_ready, of which each send has one, and -1 for each receive_ready
// that it sends. Above 0, a send is available. Messages that cross each other make the count too low for a moment,
// never too high. So does a send_ready that waits for the next control message because its send has its receive
// already; a later send's send_ready comes after it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gloo::transport::mltcp {

inline constexpr std::uint64_t kTagKind = std::uint64_t{3} << 62;
inline constexpr std::uint64_t kControlTag = std::uint64_t{0} << 62;
inline constexpr std::uint64_t kPayloadTag = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kWriteTag = std::uint64_t{2} << 62;
inline constexpr std::uint64_t kHelloTag = std::uint64_t{3} << 62;
inline constexpr std::uint64_t kIdMask = ~kTagKind;

inline constexpr std::size_t kMaxBytes = std::size_t{1} << 32;  ///< of a message: the transport's limit
inline constexpr std::size_t kControlFrames = 8;                ///< in progress in each direction of a pair
inline constexpr std::size_t kFrameBytes = 4096;  ///< maximum size of a control message; the endpoint's eager limit
inline constexpr std::size_t kMaxInline = 512;    ///< maximum bytes of a bound send inside its record
inline constexpr std::size_t kMaxIdle = kFrameBytes / 2;  ///< maximum bytes of records that wait for others
inline constexpr std::size_t kMaxWaiting = 65'536;        ///< maximum bound sends of a pair that wait for their buffer

struct Record {
  enum class Kind : std::uint32_t {
    receive_ready = 1,  ///< slot, id, length of the buffer
    send_ready = 2,     ///< slot
    withdrawn = 3,      ///< slot: an announced send was withdrawn
    write = 4,          ///< slot, id, length, offset: a bound send waits for write_ready
    write_inline = 5,   ///< slot, length, offset; the bytes follow
    write_ready = 6,    ///< id
    failure = 7,        ///< id: a rank that has failed; a text follows
  };
  Kind kind = Kind::receive_ready;
  std::uint32_t inline_bytes = 0;  ///< bytes that follow, padded to a multiple of 8
  std::uint64_t slot = 0;
  std::uint64_t id = 0;
  std::uint64_t length = 0;
  std::uint64_t offset = 0;
};
inline constexpr std::size_t kRecordBytes = 40;
static_assert(sizeof(Record) == kRecordBytes);

/// Appends a record in network byte order. `data` is at most kFrameBytes - kRecordBytes long.
void append_record(std::vector<std::byte>& out, Record record, std::span<const std::byte> data = {});
/// Removes the first record and the bytes that follow it from `in`. False if there is none, or it is invalid.
bool take_record(std::span<const std::byte>& in, Record& record, std::span<const std::byte>& data);
/// Bytes of the whole records at the beginning of `records`, as append_record() wrote them, that fit into a frame.
std::size_t whole_records(std::span<const std::byte> records);

/// The first message on a connection.
struct Hello {
  std::uint64_t to = 0;    ///< id of the pair that accepts
  std::uint64_t from = 0;  ///< id of the pair that connects
  std::uint32_t rank = 0;  ///< of its context
};
inline constexpr std::size_t kHelloBytes = 32;
std::array<std::byte, kHelloBytes> to_bytes(const Hello& hello);
/// None if `in` is not a hello.
std::optional<Hello> parse_hello(std::span<const std::byte> in);

/// The address of a pair, always kPairAddressBytes long.
struct PairAddress {
  std::uint64_t id = 0;  ///< random: knowing it permits to connect
  std::uint32_t rank = 0;
  std::uint32_t gloo_version = 0;
  std::vector<std::byte> endpoint;  ///< blob of endpoint/address.h, up to 64 bytes
};
inline constexpr std::size_t kPairAddressBytes = 96;
std::vector<char> to_bytes(const PairAddress& address);
/// Throws InvalidOperationException that describes the error in `in`.
PairAddress parse_pair_address(std::span<const char> in);

}  // namespace gloo::transport::mltcp
