// Merges the bounds of a row that is left out into the row after it. This header is not installed.
#pragma once

#include <algorithm>

#include "mltcp/lab/experiment/series/series.h"

namespace mltcp::experiment {

/// Extends the bounds of `later` so that they cover both rows.
inline void widen(ConnectionState& later, const ConnectionState& before) {
  later.cwnd_least_bytes = std::min(later.cwnd_least_bytes, before.cwnd_least_bytes);
  later.cwnd_most_bytes = std::max(later.cwnd_most_bytes, before.cwnd_most_bytes);
  later.rtt_max = std::max(later.rtt_max, before.rtt_max);
}
inline void widen(LinkState& later, const LinkState& before) {
  later.queue_most_bytes = std::max(later.queue_most_bytes, before.queue_most_bytes);
}

}  // namespace mltcp::experiment
