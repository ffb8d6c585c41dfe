// The messages between two pairs, over one tagged connection of an endpoint.
//
// Why the messages have tags of their own, and why pairs match sends and receives. Gloo matches sends and receives in
// order by (rank, slot), has receives from any of several ranks, and sends no payload before a receive waits for it. On
// an ordered connection a late receive would delay all other slots. The endpoint's own matching mixes all contexts of a
// device, has no receive from any of several peers, and accepts short payloads before they are requested.
//
// So the receiver reports each receive to the sender ("receive_ready", with an id). The sender matches the receive with
// a send, and sends the payload with this id as its tag. The receive is posted before it is reported. So a payload
// arrives in its buffer without a copy and is never unexpected, and a peer can make this end store only control
// messages. When the payload is sent, the endpoint has already granted the buffer (endpoint/internal/worker_ahead.cpp).
// So a receive that is posted in time adds no round trip, whatever the message's length, as in Gloo's TCP transport.
//
// The two highest bits of a tag give the kind of message:
//
//   00  control messages, numbered; each contains some records; receives for the next kControlFrames are posted
//   01  payload of an unbound send; the other bits are the id of receive_ready
//   10  payload of a bound send; the other bits are the id of write
//   11  the hello, which opens the connection
//
// Availability. A receive from any rank must know which ranks have a send for which no receive was reported. For each
// (pair, slot) a receiver keeps a count. Every send causes one send_ready, which adds 1. Each receive_ready that the
// receiver sends subtracts 1. If the count is above 0, a send is available. Messages that cross each other make the
// count too low for a moment, never too high. A delayed send_ready has the same effect: when a send already has its
// receive, its send_ready waits for the next control message. The send_ready of a later send follows this send_ready.
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

inline constexpr std::size_t kMaxBytes = std::size_t{1} << 32;  ///< maximum bytes of a message: the transport's limit
inline constexpr std::size_t kControlFrames = 8;  ///< control messages in progress in each direction of a pair
inline constexpr std::size_t kFrameBytes = 4096;  ///< maximum size of a control message; the endpoint's eager limit
inline constexpr std::size_t kMaxInline = 512;    ///< maximum bytes of a bound send that is sent inside its record
/// maximum bytes of records that wait to be sent together with later records
inline constexpr std::size_t kMaxIdle = kFrameBytes / 2;
/// maximum number of bound sends of a pair that wait for a receive buffer
inline constexpr std::size_t kMaxWaiting = 65'536;

struct Record {
  enum class Kind : std::uint32_t {
    receive_ready = 1,  ///< fields: slot, id, length of the buffer
    send_ready = 2,     ///< field: slot
    withdrawn = 3,      ///< field: slot. An announced send was withdrawn
    write = 4,          ///< fields: slot, id, length, offset. A bound send waits for write_ready
    write_inline = 5,   ///< fields: slot, length, offset. The bytes follow the record
    write_ready = 6,    ///< field: id
    failure = 7,        ///< field: id, the rank that has failed. A text follows the record
  };
  Kind kind = Kind::receive_ready;
  std::uint32_t inline_bytes = 0;  ///< number of bytes that follow the record, padded to a multiple of 8
  std::uint64_t slot = 0;
  std::uint64_t id = 0;
  std::uint64_t length = 0;
  std::uint64_t offset = 0;
};
inline constexpr std::size_t kRecordBytes = 40;
static_assert(sizeof(Record) == kRecordBytes);

/// Appends a record in network byte order. `data` is at most kFrameBytes - kRecordBytes long.
void append_record(std::vector<std::byte>& out, Record record, std::span<const std::byte> data = {});
/// Removes the first record and the bytes that follow it from `in`. Returns false if there is no record or the first
/// record is invalid.
bool take_record(std::span<const std::byte>& in, Record& record, std::span<const std::byte>& data);
/// Returns how many bytes at the beginning of `records` are whole records that fit into one frame. `records` is the
/// output of append_record().
std::size_t whole_records(std::span<const std::byte> records);

/// The first message on a connection.
struct Hello {
  std::uint64_t to = 0;    ///< id of the pair that accepts
  std::uint64_t from = 0;  ///< id of the pair that connects
  std::uint32_t rank = 0;  ///< rank of the connecting pair in its context
};
inline constexpr std::size_t kHelloBytes = 32;
std::array<std::byte, kHelloBytes> to_bytes(const Hello& hello);
/// Returns nothing if `in` is not a hello.
std::optional<Hello> parse_hello(std::span<const std::byte> in);

/// The address of a pair, always kPairAddressBytes long.
struct PairAddress {
  std::uint64_t id = 0;  ///< a random number; a peer that knows it may connect
  std::uint32_t rank = 0;
  std::uint32_t gloo_version = 0;
  std::vector<std::byte> endpoint;  ///< blob of the endpoint's address (endpoint/address.h), up to 64 bytes
};
inline constexpr std::size_t kPairAddressBytes = 96;
std::vector<char> to_bytes(const PairAddress& address);
/// Throws InvalidOperationException, which describes the error, if `in` is not a valid address.
PairAddress parse_pair_address(std::span<const char> in);

}  // namespace gloo::transport::mltcp
