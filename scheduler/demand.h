// The demand of a training job on a link during one iteration: a piecewise-constant rate that repeats with the period
// of the job. Drawn on a circle, it is the geometric abstraction of the CASSINI paper (Rajasekaran et al., NSDI 2024,
// arXiv 2308.00852, section 3).
//
// Time 0 is the start of the iteration. Times are whole nanoseconds and rates are whole bits per second, so sums over a
// whole circle are exact in 128 bits.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::scheduler {

/// Maximum period of a job, and maximum perimeter of a circle, which is a time.
inline constexpr Nanos kLongestPeriod(std::int64_t{1} << 53);  // 104 days
/// Maximum rate of one burst: 100 Tbps.
inline constexpr Rate kHighestRate(100'000'000'000'000);

/// A constant demand of `rate` from time `from` (inclusive) to time `to` (exclusive). Between bursts the demand is 0.
struct Burst {
  Nanos from;
  Nanos to;
  Rate rate;
  bool operator==(const Burst&) const = default;
};

struct Demand {
  Nanos period;               ///< duration of one iteration; above 0, at most kLongestPeriod
  std::vector<Burst> bursts;  ///< ordered by time, disjoint, within [0, period); rates are above 0
  bool operator==(const Demand&) const = default;
};

/// Throws InputError if `demand` violates a condition that is stated at the members of Demand.
void check(const Demand& demand);

/// Returns the time in each iteration during which the demand is above 0.
Nanos busy_time(const Demand& demand);
/// Returns the number of bits that one iteration sends.
double bits(const Demand& demand);
Rate peak(const Demand& demand);

/// Returns the total demand of `times` flows on one link, each with demand `demand`. Throws InputError if `times` is 0,
/// or if the peak of the total exceeds kHighestRate.
Demand multiplied(const Demand& demand, std::uint32_t times);

/// Options of fold(), which converts a measured time series into a demand.
struct FoldOptions {
  /// Adjacent bins whose rates differ by at most this share of the peak are merged into one burst of their mean rate.
  double merge = 0.10;
  /// Bins below this share of the peak count as 0, because they contain only acknowledgements or retransmissions.
  double silence = 0.02;
};
/// Returns the demand of the iteration that began at `start` and lasted for `period`. `series` holds the number of
/// bytes in each bin of width `bin`, from time 0; bins after its end count as 0. The bursts carry as many bytes as the
/// bins that do not count as 0 together. Throws InputError if an argument is out of range, or if the result is not a
/// valid demand.
Demand fold(std::span<const Bytes> series, Nanos bin, Nanos start, Nanos period, const FoldOptions& options = {});

}  // namespace mltcp::scheduler
