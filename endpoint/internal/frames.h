// The messages between two endpoints: hellos, and the control frames of tagged connections. Only this file parses them.
// It checks that they are well formed; the rest is checked where the expected values are known (worker_tagged.cpp).
// Network byte order.
//
// A connection of the transport begins with a hello from each side, its first message:
//
//    0  4  magic "MLEH"          8  8  token: the connections of one tagged connection have the same
//    4  1  version, 2           16 16  random number of the addressed endpoint; in an answer, of the one that asked
//    5  1  ConnectionKind       32  4  eager limit
//    6  1  part: 0 the connection itself, or control; 1 data
//    7  1  verdict: 0 accepted, else the reason for refusal
//   36  4  unexpected messages that the peer may send at first
//   40  1  length of the sender's blob, 7 zeros
//   48 64  the blob, zeros behind it
//
// Then, on the control connection of a tagged connection, frames with a header of 32 bytes each:
//
//    0  1  type
//    1  3  zeros
//    4  4  credit: unexpected messages that the frame's receiver may have sent since the beginning, modulo 2^32
//    8  8  tag            of EAGER, RTS, GRANT, USED
//   16  8  id             RTS: the sender's number of the message; CTS, CANCEL, CANCELLED: the same number;
//                         GRANT: number of EAGER and RTS received since the beginning; WITHDRAW, USED: number of
//                         the GRANT, counted from 1 on each connection
//    24  8  length         EAGER: of the payload that follows; RTS, USED: of the message; CTS: bytes requested of
//                         it; GRANT: of the buffer, not 0
//
// EAGER carries a short message. RTS announces a long one, CTS requests it. CANCEL takes an announced message back
// unless it has been matched; CANCELLED confirms this. CREDIT carries nothing but credit.
//
// GRANT requests a message before it is announced: the oldest receive that can take the message waits for exactly that
// tag. Each tag has at most one open GRANT, each connection kMaxAhead. WITHDRAW asks for a GRANT back. USED says that a
// message was sent for a GRANT; it precedes another message of the same tag, which could overtake the first.
//
// CTS and GRANT define the order of messages: the n-th of them is answered by the n-th message on the data connection.
// A message of no bytes means that nothing is sent. After a CTS, the sender has taken the message back. After a GRANT,
// it is not used: it was withdrawn, a later GRANT or CTS was used first, or its message is announced or sent as EAGER.
// The rules are in worker_ahead.cpp.
//
// Version 2 adds GRANT, WITHDRAW and USED, which version 1 treats as malformed; so each version refuses the other.
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
/// Returns what is wrong with it, or Verdict::fine. A hello with another verdict needs no blob.
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

/// Maximum GRANTs of a connection, in one direction, that are neither used nor given back.
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
/// Tag of a possible frame, as a hint; 0 if it is too short.
std::uint64_t peek_tag(std::span<const std::byte> bytes) noexcept;
/// False if it is malformed: cut off, an unknown type, an EAGER whose length differs from its payload, another frame
/// with a payload, or a length above that of any message.
bool parse(std::span<const std::byte> bytes, Frame& out) noexcept;

}  // namespace mltcp::endpoint
