// How many packets one acknowledgement need cover.
//
// An acknowledgement costs both ends a packet. At high packet rates a sender asks for fewer: for no more than one in
// 25 us, but for four in what is in flight (after TACK, SIGCOMM 2020, section 4; the Ack Ratio of DCCP's CCID 2, RFC
// 4341 section 6.1, goes down to two in a window). At 1 Gbit/s in packets of 1500 bytes that is one for every second
// packet, as ever.
//
// Connections of a job never ask: what parts jobs is how their windows grow against each other within an iteration, and
// with fewer acknowledgements they part later. Pairs of jobs over a link of 10 Gbit/s (DCTCP marking at 30 kB; 40 seeds
// of 40 iterations) took 1.20 times their time alone with all acknowledgements, 1.26 with 16 of them in flight, 1.24
// with 8.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "mltcp/base/units.h"

namespace mltcp {

/// A power of two from 4 to 32 for the sender to ask for, or 1: the receiver's own choice will do. `packet` is the size
/// of a full packet, above 0.
constexpr std::uint32_t ack_ratio(Rate delivery_rate, Bytes in_flight, Bytes packet) {
  constexpr Nanos time_per_ack{25'000};
  constexpr Bytes acks_in_flight = 4;
  constexpr Bytes least = 4;
  constexpr Bytes most = 32;
  if (in_flight / (acks_in_flight * least) < packet) return 1;  // mostly so, and then this costs nothing
  const Bytes packets = std::min(delivery_rate.bytes_in(time_per_ack), in_flight / acks_in_flight) / packet;
  return packets < least ? 1 : static_cast<std::uint32_t>(std::bit_floor(std::min(packets, most)));
}

}  // namespace mltcp
