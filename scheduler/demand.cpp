// Demands of jobs on a link (see demand.h).
#include "mltcp/scheduler/demand.h"

#include <fmt/format.h>

#include <algorithm>

#include "mltcp/base/error.h"

namespace mltcp::scheduler {

void check(const Demand& demand) {
  if (demand.period.count <= 0 || demand.period > kLongestPeriod)
    throw InputError(fmt::format("the period is {} ns; give one above 0 and at most {}", demand.period.count,
                                 to_text(kLongestPeriod)));
  Nanos last;
  for (const Burst& burst : demand.bursts) {
    if (burst.from < last || burst.to <= burst.from || burst.to > demand.period)
      throw InputError(fmt::format(
          "the burst from {} to {} ns is empty, before the end of another, or outside of the period of {} ns; give "
          "bursts in order that end within the period",
          burst.from.count, burst.to.count, demand.period.count));
    if (burst.rate.is_zero() || burst.rate > kHighestRate)
      throw InputError(fmt::format("a burst has a rate of {} bit/s; give one above 0 and at most {}",
                                   burst.rate.bits_per_second, to_text(kHighestRate)));
    last = burst.to;
  }
}

Nanos busy_time(const Demand& demand) {
  Nanos sum;
  for (const Burst& burst : demand.bursts) sum += burst.to - burst.from;
  return sum;
}

double bits(const Demand& demand) {
  double sum = 0;
  for (const Burst& burst : demand.bursts)
    sum += (burst.to - burst.from).seconds() * static_cast<double>(burst.rate.bits_per_second);
  return sum;
}

Rate peak(const Demand& demand) {
  Rate most;
  for (const Burst& burst : demand.bursts) most = std::max(most, burst.rate);
  return most;
}

Demand multiplied(const Demand& demand, std::uint32_t times) {
  Demand result = demand;
  for (Burst& burst : result.bursts) burst.rate = Rate(burst.rate.bits_per_second * times);
  return result;
}

}  // namespace mltcp::scheduler
