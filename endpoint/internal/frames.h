// What two endpoints say to each other within transport messages: hellos, and the control frames of tagged connections.
// The only place that parses them; little is believed here beyond that they are whole, the rest is checked where it is
// known what may come (worker_tagged.cpp). Network byte order.
//
// A connection of the transport begins with a hello from each side, its first message:
//
//    0  4  magic "MLEH"          8  8  token: the connections of one tagged connection have the same
//    4  1  version, 2           16 16  random number of the endpoint that is meant; of an answer, of the one that asked
//    5  1  ConnectionKind       32  4  eager limit
//    6  1  part: 0 the connection itself, or control; 1 data
//    7  1  verdict: 0 fine, else why not
//   36  4  unexpected messages that may be sent to begin with
//   40  1  length of the sender's blob, 7 zeros
//   48 64  the blob, zeros behind it
//
// Then, on the control connection of a tagged one, frames with a header of 32 bytes each:
//
//    0  1  type
//    1  3  zeros
//    4  4  credit: unexpected messages that the receiver of this frame may have sent since the beginning, modulo 2^32
//    8  8  tag            of EAGER, RTS, GRANT, USED
//   16  8  id             of RTS: what the sender calls the message; of CTS, CANCEL, CANCELLED: that of the message;
//                         of GRANT: how many EAGER and RTS have come since the beginning; of WITHDRAW, USED: the number
//                         of the GRANT that is meant, the first of the connection being 1
//   24  8  length         of EAGER: of the payload that follows; of RTS, USED: of the message; of CTS: of what is
//                         wanted of it; of GRANT: of the buffer, not 0
//
// EAGER carries a short message. RTS announces a long one; CTS asks for it. CANCEL takes an announced message back,
// unless it has been matched, and CANCELLED says that it was. CREDIT carries nothing but credit.
//
// GRANT asks for a message before it was announced: a receive waits for the whole of that tag, and no other that could
// take a message of it is older. Of each tag there is one at a time, and kMaxAhead of all. WITHDRAW asks for one back.
// USED says that a message has been sent for one, where another message of that tag, which could overtake it, follows.
//
// CTS and GRANT say in which order messages go: the n-th of both is for the n-th message on the data connection. One of
// no bytes says that nothing comes: for CTS, that the sender has taken the message back; for GRANT, that it is not
// used, because it was withdrawn, because a later one is used or a later CTS obeyed, or because the message that it is
// for is announced or goes as EAGER. worker_ahead.cpp has the rules.
//
// Version 2 has GRANT, WITHDRAW and USED, which version 1 would take for frames that can't be: each refuses the other.
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
/// What is wrong with it, or fine. A hello with a verdict needs no blob.
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

/// GRANTs of a connection, in one direction, that have been neither used nor given back.
inline constexpr std::uint32_t kMaxAhead = 16;

struct Frame {
  static constexpr std::size_t kHeaderBytes = 32;

  FrameType type = FrameType::credit;
  std::uint32_t credit = 0;
  std::uint64_t tag = 0;
  std::uint64_t id = 0;
  Bytes length = 0;
};

/// Writes the header; a payload is the caller's to put behind.
void write(const Frame& frame, std::span<std::byte, Frame::kHeaderBytes> out) noexcept;
/// Of what may be a frame: its tag, as a hint; 0 if it is too short.
std::uint64_t peek_tag(std::span<const std::byte> bytes) noexcept;
/// False if it is none: cut off, of an unknown type, an EAGER whose length is not that of what follows, anything behind
/// another, or a length that no message has.
bool parse(std::span<const std::byte> bytes, Frame& out) noexcept;

}  // namespace mltcp::endpoint
