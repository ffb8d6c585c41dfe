// Computes the pacing rate of window-based algorithms. It is somewhat more than a window per round trip, so that pacing
// spaces the packets and the window limits their number (RFC 9002 section 7.7).
#pragma once

#include <algorithm>
#include <cstdint>

#include "mltcp/cc/algorithm.h"

namespace mltcp::cc {

/// Sets out.pacing_rate from out.cwnd_bytes. Does nothing while no RTT has been measured.
inline void pace_window(Nanos smoothed_rtt, bool slow_start, Output& out) {
  constexpr double avoidance_gain = 1.25;
  constexpr double slow_start_gain = 2.0;
  constexpr double highest_rate = 1e18;  // bits per second; keeps every result within the range of Rate
  if (smoothed_rtt.count <= 0) return;
  const double gain = slow_start ? slow_start_gain : avoidance_gain;
  const double rate = gain * out.cwnd_bytes * 8e9 / static_cast<double>(smoothed_rtt.count);
  out.pacing_rate = Rate(static_cast<std::uint64_t>(std::min(rate, highest_rate)));
}

}  // namespace mltcp::cc
