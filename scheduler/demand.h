// A training job's demand on a link during one iteration: a piecewise-constant rate that repeats with the job's period.
// On a circle, this is the abstraction of the CASSINI paper (Rajasekaran et al., NSDI 2024, arXiv 2308.00852, section
// 3).
//
// Time 0 is the start of the job's iteration. Times are whole nanoseconds and rates bits per second, so that sums over
// a perimeter are exact in 128 bits.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::scheduler {

/// Maximum period of a job, and maximum perimeter of a circle.
inline constexpr Nanos kLongestPeriod(std::int64_t{1} << 53);  // 104 days
inline constexpr Rate kHighestRate(100'000'000'000'000);       // 100 Tbps, maximum of one burst

/// Constant demand from `from` (inclusive) to `to` (exclusive) of an iteration. Between bursts the demand is 0.
struct Burst {
  Nanos from;
  Nanos to;
  Rate rate;
  bool operator==(const Burst&) const = default;
};

struct Demand {
  Nanos period;               ///< time of an iteration; above 0, at most kLongestPeriod
  std::vector<Burst> bursts;  ///< ascending, disjoint, within [0, period), rates above 0
  bool operator==(const Demand&) const = default;
};

/// Throws InputError "cause; cure" if the demand violates the conditions above.
void check(const Demand& demand);

/// Time per iteration during which the demand is above 0.
Nanos busy_time(const Demand& demand);
/// Bits per iteration.
double bits(const Demand& demand);
Rate peak(const Demand& demand);

/// The demand of `times` flows, each with demand `demand`, on one link. Throws InputError for 0 flows, or if together
/// they exceed kHighestRate.
Demand multiplied(const Demand& demand, std::uint32_t times);

/// Options for converting a measured time series into a demand.
struct FoldOptions {
  /// Adjacent bins whose rates differ by at most this share of the peak are merged into one burst of their mean rate.
  double merge = 0.10;
  /// Bins below this share of the peak count as 0 (acknowledgements, retransmissions).
  double silence = 0.02;
};
/// The demand of the iteration of length `period` that began at `start`. `series`: bytes per bin of width `bin`, from
/// time 0; missing bins count as 0. Except for silent bins, the iteration's total is preserved. Throws InputError.
Demand fold(std::span<const Bytes> series, Nanos bin, Nanos start, Nanos period, const FoldOptions& options = {});

}  // namespace mltcp::scheduler
