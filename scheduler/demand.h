// What a training job asks of a link during one iteration: a piecewise-constant rate that repeats with the job's
// period. The circle of the CASSINI paper (Rajasekaran et al., NSDI 2024, arXiv 2308.00852, section 3) is this, rolled
// up.
//
// Time 0 is where the job's iteration begins. Times are whole nanoseconds and rates bits per second, so that sums over
// a perimeter are exact in 128 bits.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::scheduler {

/// Longest period of a job, and longest perimeter of a circle.
inline constexpr Nanos kLongestPeriod(std::int64_t{1} << 53);  // 104 days
inline constexpr Rate kHighestRate(100'000'000'000'000);       // 100 Tbps, of one burst

/// Constant demand from `from` (inclusive) to `to` (exclusive) of an iteration; outside of all bursts the demand is 0.
struct Burst {
  Nanos from;
  Nanos to;
  Rate rate;
  bool operator==(const Burst&) const = default;
};

struct Demand {
  Nanos period;               ///< of an iteration, above 0, at most kLongestPeriod
  std::vector<Burst> bursts;  ///< in order, disjoint, within [0, period), rate above 0
  bool operator==(const Demand&) const = default;
};

/// Throws InputError "cause; cure" for a demand that breaks what is said above.
void check(const Demand& demand);

/// How long the demand is above 0 in an iteration.
Nanos busy_time(const Demand& demand);
/// Bits of an iteration.
double bits(const Demand& demand);
Rate peak(const Demand& demand);

/// `times` flows with this demand each, on one link. Throws InputError for none, or for more than kHighestRate
/// together.
Demand multiplied(const Demand& demand, std::uint32_t times);
/// The sum of demands of one period.
Demand sum_of(std::span<const Demand> demands);

/// How a measured series becomes a demand.
struct FoldOptions {
  /// Neighbouring bins whose rates differ by at most this share of the peak become one burst of their mean rate.
  double merge = 0.10;
  /// Bins below this share of the peak count as silence (acknowledgements, stray retransmissions).
  double silence = 0.02;
};
/// The demand of an iteration of `period` that began at `start`, from bytes in bins of width `bin` from time 0 on.
/// Bytes beyond the series count as 0. The bits of the iteration stay, but for those of silent bins. Throws InputError.
Demand fold(std::span<const Bytes> series, Nanos bin, Nanos start, Nanos period, const FoldOptions& options = {});

}  // namespace mltcp::scheduler
