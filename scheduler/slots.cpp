// Chooses slots: finds one perimeter for periods that have no short common multiple.
//
// A perimeter P contains r_i = floor(P / T_i) slots of job i, which has period T_i. Each slot has length P / r_i. The
// stretch of job i is 0 if P is a multiple of T_i, and largest if P is just below the next multiple. So the candidates
// are the multiples of each period, P = m T_j, from the longest period to the limit. Slots must be whole nanoseconds.
// Therefore P is rounded up to a multiple of the least common multiple of the r_i. This multiple is small compared with
// P if the periods have similar lengths. If it is not small (e.g. periods of 1 s and 10 us), the r_i are rounded down
// to few significant bits.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "mltcp/base/error.h"
#include "mltcp/scheduler/internal/solving.h"

namespace mltcp::scheduler {
namespace {

/// Returns the least common multiple, or 0 if it exceeds `limit`.
std::int64_t common_multiple(const std::vector<std::uint32_t>& numbers, std::int64_t limit) {
  std::uint64_t result = 1;
  for (const std::uint32_t number : numbers) {
    if (__builtin_mul_overflow(result, number / std::gcd(result, std::uint64_t{number}), &result) ||
        result > static_cast<std::uint64_t>(limit))
      return 0;
  }
  return static_cast<std::int64_t>(result);
}

std::uint32_t with_bits(std::uint32_t number, int bits) {
  const int surplus = std::max(0, static_cast<int>(std::bit_width(number)) - bits);
  return number >> surplus << surplus;
}

/// Returns slots on the shortest perimeter of at least `min` nanoseconds on which job i runs `repetitions[i]` times.
/// Returns nothing if the repetitions have no common multiple up to `min`, or if the perimeter exceeds
/// kLongestPeriod.
std::optional<Slots> slots_on(std::int64_t min, std::vector<std::uint32_t> repetitions,
                              const std::vector<Nanos>& periods) {
  const std::int64_t unit = common_multiple(repetitions, min);
  if (unit == 0) return std::nullopt;
  const std::int64_t perimeter = (min + unit - 1) / unit * unit;
  if (perimeter > kLongestPeriod.count) return std::nullopt;
  Slots slots;
  slots.perimeter = Nanos(perimeter);
  slots.exact = true;
  for (std::size_t i = 0; i < periods.size(); ++i) {
    const Nanos slot(perimeter / repetitions[i]);
    slots.exact &= slot == periods[i];
    slots.stretch =
        std::max(slots.stretch, static_cast<double>((slot - periods[i]).count) / static_cast<double>(periods[i].count));
    slots.periods.push_back(slot);
  }
  slots.repetitions = std::move(repetitions);
  return slots;
}

}  // namespace

namespace internal {

std::vector<Slots> slots_front(const std::vector<Nanos>& periods, const SolveOptions& options) {
  check(options);
  if (periods.empty()) throw InputError("there are no periods to choose slots for; give one or more");
  std::vector<std::int64_t> needed;  // period plus slack of each job
  for (const Nanos period : periods) {
    if (period.count <= 0 || period > kLongestPeriod)
      throw InputError(
          fmt::format("a period is {} ns; give one above 0 and at most {}", period.count, to_text(kLongestPeriod)));
    needed.push_back(period.count +
                     static_cast<std::int64_t>(std::ceil(options.slack * static_cast<double>(period.count))));
  }
  std::vector<std::int64_t> distinct = needed;
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  const std::int64_t longest = distinct.back();
  if (longest > kLongestPeriod.count)
    throw InputError(fmt::format("a slot with slack is {} ns; give at most {}", longest, to_text(kLongestPeriod)));
  const auto limit = static_cast<std::int64_t>(
      std::min(static_cast<Uint128>(longest) * options.max_repetitions, static_cast<Uint128>(kLongestPeriod.count)));
  // Limit the number of multiples per period: if many jobs have many multiples, do not try the longest perimeters.
  const auto max =
      static_cast<std::int64_t>(std::clamp<std::size_t>(16'384 / (distinct.size() * distinct.size()), 32, 4'096));
  std::vector<std::int64_t> perimeters;
  for (const std::int64_t period : distinct) {
    const std::int64_t first = (longest + period - 1) / period;
    for (std::int64_t m = first; m < first + max && m <= limit / period; ++m) perimeters.push_back(m * period);
  }
  std::ranges::sort(perimeters);
  perimeters.erase(std::unique(perimeters.begin(), perimeters.end()), perimeters.end());

  // The Pareto front: each longer perimeter has less stretch. Slots are computed only for a candidate that has less
  // stretch than all shorter perimeters.
  std::vector<Slots> front;
  std::vector<std::uint32_t> repetitions(periods.size());
  const auto consider = [&](std::optional<Slots> slots) {
    if (!slots) return;
    if (!front.empty() && slots->stretch >= front.back().stretch) return;
    while (!front.empty() && front.back().perimeter >= slots->perimeter) front.pop_back();
    slots->within_limit = slots->stretch <= options.max_stretch + options.slack;
    front.push_back(std::move(*slots));
  };
  for (const std::int64_t perimeter : perimeters) {
    double stretch = 0;
    std::uint32_t highest = 0;
    for (std::size_t i = 0; i < periods.size(); ++i) {
      const std::int64_t times = std::min<std::int64_t>(perimeter / needed[i], std::int64_t{1} << 31);
      repetitions[i] = static_cast<std::uint32_t>(times);
      highest = std::max(highest, repetitions[i]);
      stretch = std::max(
          stretch,
          static_cast<double>(perimeter) / static_cast<double>(times) / static_cast<double>(periods[i].count) - 1);
    }
    if (!front.empty() && stretch >= front.back().stretch) continue;
    consider(slots_on(perimeter, repetitions, periods));
    if (!front.empty() && front.back().exact) break;
    if (common_multiple(repetitions, perimeter >> 12) != 0) continue;
    for (int bits = 5; bits > 0; --bits) {
      std::vector<std::uint32_t> rounded;
      rounded.reserve(repetitions.size());
      for (const std::uint32_t times : repetitions) rounded.push_back(with_bits(times, bits));
      consider(slots_on(perimeter, std::move(rounded), periods));
    }
  }
  if (front.empty()) consider(slots_on(longest, std::vector<std::uint32_t>(periods.size(), 1), periods));
  return front;
}

}  // namespace internal

Slots choose_slots(const std::vector<Nanos>& periods, const SolveOptions& options) {
  std::vector<Slots> front = internal::slots_front(periods, options);
  const auto first = std::ranges::find_if(front, [](const Slots& slots) { return slots.within_limit; });
  return std::move(first == front.end() ? front.back() : *first);
}

}  // namespace mltcp::scheduler
