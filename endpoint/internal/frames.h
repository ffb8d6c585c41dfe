// The messages between two endpoints: hellos, and the control frames of tagged connections. Only this file parses these
// messages, and it checks that they are well formed. Code that knows the expected values makes all other checks
// (worker_tagged.cpp). All numbers are in network byte order. The tables contain the offset, the size and the meaning
// of each field.
//
// A connection of the transport begins with a hello from each side, which is its first message:
//
//    0  4  magic "MLEH"          8  8  token: equal for the two connections of one tagged connection
//    4  1  version, 2           16 16  random number of the addressed endpoint; in an answer, of the asking endpoint
//    5  1  ConnectionKind       32  4  eager limit
//    6  1  part: 0 the connection itself, or control; 1 data
//    7  1  verdict: 0 accepted, else the reason for refusal
//   36  4  unexpected messages that the peer may send at first
//   40  1  length of the sender's blob, 7 zeros
//   48 64  the blob, zeros behind it
//
// After the hellos, the control connection of a tagged connection carries frames with a header of 32 bytes each:
//
//    0  1  type
//    1  3  zeros
//    4  4  credit: unexpected messages that the frame's receiver may have sent since the beginning, modulo 2^32
//    8  8  tag            of EAGER, RTS, GRANT, USED
//   16  8  id             RTS: the sender's number of the message; CTS, CANCEL, CANCELLED: the same number;
//                         GRANT: number of EAGER and RTS received since the beginning; WITHDRAW, USED: number of
//                         the GRANT, counted from 1 on each connection
//   24  8  length         EAGER: of the payload that follows; RTS, USED: of the message; CTS: bytes of the message
//                         that are requested; GRANT: of the buffer, not 0
//
// EAGER carries a short message. RTS announces a long message, and CTS requests it. CANCEL takes an announced message
// back unless it has been matched; CANCELLED confirms this. CREDIT carries only credit.
//
// GRANT requests a message of one tag before the message is announced. The receive of a GRANT accepts only this tag,
// and is the oldest receive that can take the message. Each tag has at most one open GRANT, and each connection at most
// kMaxAhead. WITHDRAW asks for a GRANT back. USED reports that a message was sent for a GRANT. USED is sent before the
// next EAGER or RTS of the same tag, which could overtake that message.
//
// CTS and GRANT define the order of messages: the n-th of them is answered by the n-th message on the data connection.
// A message of no bytes means that nothing is sent. As the answer to a CTS, it means that the sender has taken the
// message back. As the answer to a GRANT, it means that the sender does not use the GRANT, for one of three reasons:
// the GRANT was withdrawn, a later GRANT or CTS was used first, or the message is announced or sent as EAGER. The rules
// are in worker_ahead.cpp.
//
// Version 2 adds GRANT, WITHDRAW and USED. Version 1 treats these frames as malformed, so each version refuses the
// other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "mltcp/base/units.h"
#include "mltcp/endpoint/address.h"
#include "mltcp/endpoint/types.h"

namespace mltcp::endpoint {

enum class Verdict : std::uint8_t { fine = 0, wrong_peer = 1, version = 2, no_room = 3, refused = 4, malformed = 5 };

struct Hello {
  static constexpr std::size_t bytes = 112;
  static constexpr std::uint8_t kVersionNow = 2;

  ConnectionKind kind = ConnectionKind::ordered;
  bool is_data = false;
  Verdict verdict = Verdict::fine;
  std::uint64_t token = 0;
  EndpointAddress::Id meant{};
  std::uint32_t eager_limit = 0;
  std::uint32_t unexpected_messages = 0;
  EndpointAddress from;
};
using HelloBuffer = std::array<std::byte, Hello::bytes>;

void write(const Hello& hello, HelloBuffer& out) noexcept;
/// Parses a hello. Returns Verdict::fine, or the reason why the hello is wrong. A hello that contains a verdict other
/// than Verdict::fine needs no blob.
Verdict parse(std::span<const std::byte> bytes, Hello& out);

enum class FrameType : std::uint8_t {
  eager = 1,
  rts = 2,
  cts = 3,
  cancel = 4,
  cancelled = 5,
  credit = 6,
  grant = 7,
  withdraw = 8,
  used = 9,
};

/// Maximum number of GRANTs of a connection, in one direction, that are neither used nor given back.
inline constexpr std::uint32_t kMaxAhead = 16;

struct Frame {
  static constexpr std::size_t kHeaderBytes = 32;

  FrameType type = FrameType::credit;
  std::uint32_t credit = 0;
  std::uint64_t tag = 0;
  std::uint64_t id = 0;
  Bytes length = 0;
};

/// Writes the header; the caller appends the payload.
void write(const Frame& frame, std::span<std::byte, Frame::kHeaderBytes> out) noexcept;
/// Returns the tag of a possible frame, as a hint; 0 if there are too few bytes for a frame.
std::uint64_t peek_tag(std::span<const std::byte> bytes) noexcept;
/// Returns false if the frame is malformed: if it is cut off, has an unknown type, or has a length above that of any
/// message. EAGER must have a payload of its length, and other frames must have no payload.
bool parse(std::span<const std::byte> bytes, Frame& out) noexcept;

}  // namespace mltcp::endpoint
