// The acknowledgement ratio: how many packets one acknowledgement may cover.
//
// An acknowledgement costs both ends as much work as one more packet. At high packet rates a sender therefore requests
// fewer acknowledgements per packet: at most one acknowledgement in 25 us, but at least four per congestion window. At
// 1 Gbit/s with packets of 1500 bytes this gives one acknowledgement for every second packet. The rule follows TACK
// (SIGCOMM 2020, section 4). The Ack Ratio of DCCP's CCID 2 (RFC 4341 section 6.1) allows as few as two
// acknowledgements per window.
//
// Connections of a job never request fewer acknowledgements. A delay of acknowledgements by up to 25 us acts like a
// longer round trip: the window grows later and responds to marks later. MLTCP separates jobs by the difference in
// their window growth within an iteration, and fewer window updates weaken this effect.
//
// The effect was measured with pairs of jobs over a link of 10 Gbit/s, a round trip of 40 us and DCTCP marking at 30
// kB. Each job computed for 12 ms with 0.3 ms of jitter and then sent 12 MB, for 40 iterations with 24 seeds. With all
// acknowledgements, iterations took 1.012 times as long as those of a job in isolation. With fewer acknowledgements
// they took 1.015 times as long. With all acknowledgements and a round trip of 56 us they took 1.017 times as long.
// With a round trip of 200 us, for which the marking threshold is too low, the factors were 1.38 with all
// acknowledgements and 1.40 with fewer.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "mltcp/base/units.h"

namespace mltcp::transport {

/// Returns the ratio that the sender requests: a power of two from 4 to 32, or 1 if the receiver may choose. `packet`
/// is the size of a full packet in bytes, above 0.
constexpr std::uint32_t ack_ratio(Rate delivery_rate, Bytes in_flight, Bytes packet) {
  constexpr Nanos time_per_ack{25'000};
  constexpr Bytes acks_in_flight = 4;
  constexpr Bytes min = 4;
  constexpr Bytes max = 32;
  // true in most calls, and tested first because the test is cheap
  if (in_flight / (acks_in_flight * min) < packet) return 1;
  const Bytes packets = std::min(delivery_rate.bytes_in(time_per_ack), in_flight / acks_in_flight) / packet;
  return packets < min ? 1 : static_cast<std::uint32_t>(std::bit_floor(std::min(packets, max)));
}

}  // namespace mltcp::transport
