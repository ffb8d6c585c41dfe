// What two pairs say to each other, over one tagged connection of an endpoint.
//
// Why by tag, and why a matching of its own. Gloo matches sends and receives in order by (rank, slot), has receives
// from any of several ranks, and starts no payload before a receive waits for it. An ordered connection would make a
// receive that is late hold up all other slots behind it. The endpoint's own matching by tag sees all contexts of a
// device alike, has no receive from some of the peers, and takes short payloads before they are asked for. So a receive
// is told to its sender ("receive_ready", with an id), the sender matches, and the payload goes by the id as its tag:
// the receive for it has always been posted before, so payloads land in place without a copy in between, are never
// unexpected, and no peer can make another keep more than control messages. The endpoint has granted the buffer by then
// (endpoint/internal/worker_ahead.cpp), so that a receive that is posted in time costs its message no round trip,
// however long it is, as in Gloo's TCP.
//
// Tags, by their two highest bits:
//
//   00  control messages, numbered: each a few records; the receives of the next kControlFrames wait
//   01  payload of an unbound send; the rest is the id of receive_ready
//   10  payload of a bound send; the rest is the id of write
//   11  the hello, which opens the connection
//
// Who is ready to send. A receive from any rank needs to know which ranks have a send that no receive has been told of.
// For each (pair, slot) a receiver counts: +1 for each send_ready, which there is one of for each send, and -1 for each
// receive_ready that it sends. Above 0, a send waits there. Messages that cross each other leave the count too low for
// a moment and never too high. So does a send_ready that goes along with the next control message, since its send has
// had its receive: whatever could wait comes behind it.
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
inline constexpr std::size_t kControlFrames = 8;                ///< under way in each direction of a pair
inline constexpr std::size_t kFrameBytes = 4096;          ///< of a control message, at most; the endpoint's eager limit
inline constexpr std::size_t kMaxInline = 512;            ///< bytes of a bound send that go within their record
inline constexpr std::size_t kMaxIdle = kFrameBytes / 2;  ///< bytes of records that wait for others to go along with
inline constexpr std::size_t kMaxWaiting = 65'536;        ///< bound sends that wait for their buffer, of a pair

struct Record {
  enum class Kind : std::uint32_t {
    receive_ready = 1,  ///< slot, id, length of the buffer
    send_ready = 2,     ///< slot
    withdrawn = 3,      ///< slot: a send that was announced has gone
    write = 4,          ///< slot, id, length, offset: a bound send waits for write_ready
    write_inline = 5,   ///< slot, length, offset; the bytes follow
    write_ready = 6,    ///< id
    failure = 7,        ///< id: a rank that has failed; text follows
  };
  Kind kind = Kind::receive_ready;
  std::uint32_t inline_bytes = 0;  ///< that follow, padded to a multiple of 8
  std::uint64_t slot = 0;
  std::uint64_t id = 0;
  std::uint64_t length = 0;
  std::uint64_t offset = 0;
};
inline constexpr std::size_t kRecordBytes = 40;
static_assert(sizeof(Record) == kRecordBytes);

/// Appends a record in network byte order. `data` is at most kFrameBytes - kRecordBytes long.
void append_record(std::vector<std::byte>& out, Record record, std::span<const std::byte> data = {});
/// Takes the first record, and the bytes that follow it, off `in`. False if there is none, or it can't be.
bool take_record(std::span<const std::byte>& in, Record& record, std::span<const std::byte>& data);
/// Length of as many whole records at the beginning of `records`, as append_record() made them, as fit into a frame.
std::size_t whole_records(std::span<const std::byte> records);

/// The first message on a connection.
struct Hello {
  std::uint64_t to = 0;    ///< id of the pair that is called
  std::uint64_t from = 0;  ///< id of the pair that calls
  std::uint32_t rank = 0;  ///< its context's
};
inline constexpr std::size_t kHelloBytes = 32;
std::array<std::byte, kHelloBytes> to_bytes(const Hello& hello);
/// None if `in` is no hello.
std::optional<Hello> parse_hello(std::span<const std::byte> in);

/// The address of a pair, always kPairAddressBytes long.
struct PairAddress {
  std::uint64_t id = 0;  ///< random: who knows it may connect
  std::uint32_t rank = 0;
  std::uint32_t gloo_version = 0;
  std::vector<std::byte> endpoint;  ///< blob of endpoint/address.h, up to 64 bytes
};
inline constexpr std::size_t kPairAddressBytes = 96;
std::vector<char> to_bytes(const PairAddress& address);
/// Throws InvalidOperationException that says what is wrong with `in`.
PairAddress parse_pair_address(std::span<const char> in);

}  // namespace gloo::transport::mltcp
