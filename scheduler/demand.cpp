// Checks demands, and converts measured time series into demands (see demand.h).
#include "mltcp/scheduler/demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
  Rate max;
  for (const Burst& burst : demand.bursts) max = std::max(max, burst.rate);
  return max;
}

Demand multiplied(const Demand& demand, std::uint32_t times) {
  if (times == 0 || static_cast<Uint128>(peak(demand).bits_per_second) * times > kHighestRate.bits_per_second)
    throw InputError(fmt::format("{} flows of {} ask for nothing or for more than {}; give fewer, one at least", times,
                                 to_text(peak(demand)), to_text(kHighestRate)));
  Demand result = demand;
  for (Burst& burst : result.bursts) burst.rate = Rate(burst.rate.bits_per_second * times);
  return result;
}

Demand fold(std::span<const Bytes> series, Nanos bin, Nanos start, Nanos period, const FoldOptions& options) {
  if (bin.count <= 0 || bin > kLongestPeriod)
    throw InputError(
        fmt::format("a bin is {} ns wide; give a width above 0 and at most {}", bin.count, to_text(kLongestPeriod)));
  if (start.count < 0 || start > kLongestPeriod)
    throw InputError(fmt::format("the iteration begins at {} ns; give 0 or more, and at most {}", start.count,
                                 to_text(kLongestPeriod)));
  if (!(options.merge >= 0 && options.merge <= 1) || !(options.silence >= 0 && options.silence <= 1))
    throw InputError(
        fmt::format("merge is {} and silence is {}; give shares from 0 to 1", options.merge, options.silence));
  Demand demand{period, {}};
  check(demand);
  const double per_byte = 8 / bin.seconds();
  const auto first = static_cast<std::size_t>(start.count / bin.count);
  const std::int64_t end = start.count + period.count;
  std::vector<double> rates;
  for (std::size_t i = first; i < series.size() && static_cast<std::int64_t>(i) * bin.count < end; ++i)
    rates.push_back(static_cast<double>(series[i]) * per_byte);
  const double peak = rates.empty() ? 0 : *std::ranges::max_element(rates);
  double seconds = 0;  // duration of the current burst so far
  double bits = 0;
  const auto close = [&] {
    if (demand.bursts.empty() || seconds == 0) return;
    // The clamp leaves rates above kHighestRate, so that check() at the end refuses them.
    demand.bursts.back().rate =
        Rate(static_cast<std::uint64_t>(std::clamp(bits / seconds + 0.5, 1.0, 2.0 * kHighestRate.bits_per_second)));
    seconds = bits = 0;
  };
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(first + i) * bin.count - start.count;
    const Nanos from(std::max<std::int64_t>(at, 0));
    const Nanos to(std::min(at + bin.count, period.count));
    if (rates[i] <= 0 || rates[i] < options.silence * peak) {
      close();
      continue;
    }
    if (seconds == 0 || std::abs(rates[i] - bits / seconds) > options.merge * peak) {
      close();
      demand.bursts.push_back({from, to, Rate(1)});
    }
    demand.bursts.back().to = to;
    seconds += (to - from).seconds();
    bits += rates[i] * (to - from).seconds();
  }
  close();
  check(demand);
  return demand;
}

}  // namespace mltcp::scheduler
