// The acknowledgement ratio: how many packets one acknowledgement may cover.
//
// An acknowledgement costs both ends a packet. At high packet rates a sender asks for fewer: at most one in 25 us, but
// at least four per congestion window (after TACK, SIGCOMM 2020, section 4; the Ack Ratio of DCCP's CCID 2, RFC 4341
// section 6.1, allows as few as two per window). At 1 Gbit/s with packets of 1500 bytes this gives one for every second
// packet.
//
// Connections of a job never ask. An acknowledgement that comes up to 25 us later acts like a longer round trip:
// windows grow and respond to marks later. MLTCP separates jobs by how their windows grow relative to each other within
// an iteration, so it would have fewer window updates for that. Measured with pairs of jobs over 10 Gbit/s and a round
// trip of 40 us (DCTCP marking at 30 kB; 12 ms of compute with 0.3 ms of jitter, then 12 MB; 24 seeds of 40
// iterations). They took 1.012 times their time in isolation with all acknowledgements, 1.015 with fewer, and 1.017
// with all of them and 16 us more of round trip. With a round trip of 200 us, for which that threshold is too low, the
// ratios were 1.38 and 1.40.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "mltcp/base/units.h"

namespace mltcp::transport {

/// The ratio that the sender asks for, a power of two from 4 to 32; 1: the receiver chooses. `packet`: bytes of a full
/// packet, above 0.
constexpr std::uint32_t ack_ratio(Rate delivery_rate, Bytes in_flight, Bytes packet) {
  constexpr Nanos time_per_ack{25'000};
  constexpr Bytes acks_in_flight = 4;
  constexpr Bytes least = 4;
  constexpr Bytes most = 32;
  if (in_flight / (acks_in_flight * least) < packet) return 1;  // the usual case, tested first as it is cheap
  const Bytes packets = std::min(delivery_rate.bytes_in(time_per_ack), in_flight / acks_in_flight) / packet;
  return packets < least ? 1 : static_cast<std::uint32_t>(std::bit_floor(std::min(packets, most)));
}

}  // namespace mltcp::transport
