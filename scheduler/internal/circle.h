// Step functions on the circle, used by the solver and by the evaluation of shifts.
//
// A job's demand on a link is a piecewise-constant curve over its slot and repeats on the perimeter. The sum of placed
// curves is a profile. With f(x) = max(0, x - C), the excess of a profile D and one more curve d at shift s,
//
//   E(s) = integral over the perimeter of f(D(t) + d(t - s)),
//
// is piecewise linear in s: its slope is the sum of f(D + before) - f(D + after) over the steps of d, and changes only
// at shifts where a step of d meets a step of D. As f is convex, the change is
//
//   up meets up, down meets down:  never positive (a concave kink),
//   up meets down:                 never negative (a convex kink).
//
// So a sweep over the B_D * B_d meetings of one slot gives E at every shift exactly. The minimum is at a convex kink,
// or E is constant. All numbers are integers: times below 2^54 ns, values below 2^62, their products in 128 bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "mltcp/scheduler/demand.h"

namespace mltcp::scheduler::internal {

__extension__ typedef __int128 Int128;  // NOLINT(modernize-use-using): not before `using`

/// A change of demand at a time of the slot.
struct Step {
  std::int64_t at = 0;
  std::int64_t before = 0;
  std::int64_t after = 0;
  bool operator==(const Step&) const = default;
};

/// The demand of one job on one link, over a slot. Without steps it is always `level`.
struct Curve {
  std::uint32_t link = 0;
  std::int64_t level = 0;  ///< at the beginning of the slot
  std::int64_t peak = 0;
  std::vector<Step> steps;  ///< by time, in [0, period)
  bool operator==(const Curve&) const = default;
};

/// Constant from `at` to the next entry's.
struct Entry {
  std::int64_t at = 0;
  std::int64_t value = 0;
};
/// One turn around the circle. The first entry is at 0, and no two neighbours are equal.
using Profile = std::vector<Entry>;

/// A demand in a slot of `period`, its rates multiplied by `times / by`, rounded down.
Curve curve_of(const Demand& demand, std::uint32_t link, std::int64_t period, std::int64_t times = 1,
               std::int64_t by = 1);
/// At each time the highest (`highest`) or lowest demand within a distance of `by`.
Curve widened(const Curve& curve, std::int64_t period, std::int64_t by, bool highest = true);

/// The steps of a curve on the perimeter in order of time, from 0 on without end.
class Cursor {
 public:
  /// 0 <= shift < period.
  Cursor(const Curve& curve, std::int64_t period, std::int64_t shift) : steps_(curve.steps), period_(period) {
    if (steps_.empty()) {
      value_ = curve.level;
      return;
    }
    const auto wraps = std::ranges::partition_point(steps_, [=](const Step& step) { return step.at < period - shift; });
    index_ = static_cast<std::size_t>(wraps - steps_.begin());
    turn_ = shift - period;
    if (wraps == steps_.end()) {
      index_ = 0;
      turn_ = shift;
    }
    at_ = steps_[index_].at + turn_;
    value_ = steps_[index_].before;
  }
  [[nodiscard]] std::int64_t at() const { return at_; }        ///< time of the next step
  [[nodiscard]] std::int64_t value() const { return value_; }  ///< value before the next step
  [[nodiscard]] const Step& step() const { return steps_[index_]; }
  void next() {
    value_ = steps_[index_].after;
    if (++index_ == steps_.size()) {
      index_ = 0;
      turn_ += period_;
    }
    at_ = steps_[index_].at + turn_;
  }

 private:
  std::span<const Step> steps_;
  std::int64_t period_;
  std::size_t index_ = 0;
  std::int64_t turn_ = 0;
  std::int64_t at_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t value_ = 0;
};

inline std::int64_t above(std::int64_t value, std::int64_t capacity) { return value > capacity ? value - capacity : 0; }

/// Sets `out` to `profile` + sign * the curve at `shift`.
void add(const Profile& profile, const Curve& curve, std::int64_t period, std::int64_t shift, std::int64_t sign,
         std::int64_t perimeter, Profile& out);
/// Integral of the profile above the capacity.
Int128 excess(const Profile& profile, std::int64_t capacity, std::int64_t perimeter);

/// E at a shift where its slope changes, or may change when more jobs are placed, and its slope after that shift.
struct Point {
  std::int64_t at = 0;   ///< in (0, period], by time; the last is `period`
  bool meeting = false;  ///< an up-step meets a down-step; with more demand this can be a convex kink
  Int128 excess = 0;
  Int128 slope = 0;
};

/// Sweeps one job over all shifts of its slot.
class Sweep {
 public:
  /// Computes E for the links of the job's `curves`, against their `profiles` (by link). `headroom`, by link, is the
  /// maximum that jobs still to be placed can add. If the profiles repeat after `turn`, a divisor of the perimeter, E
  /// repeats after gcd(turn, period), which then replaces the period in all results of the sweep.
  void run(std::span<const Curve> curves, std::span<const Profile> profiles, std::span<const std::int64_t> capacities,
           std::span<const std::int64_t> headroom, std::int64_t period, std::int64_t perimeter, std::int64_t turn = 0);

  /// Number of meetings examined by the last run.
  [[nodiscard]] std::size_t work() const { return work_; }
  [[nodiscard]] std::span<const Point> points() const { return {points_.data(), point_count_}; }
  [[nodiscard]] Int128 least() const { return min_; }
  [[nodiscard]] Int128 excess_at(std::int64_t shift) const;  ///< 0 <= shift < period

  /// An interval of shifts, [from, to], which may wrap around: 0 <= from < period, to - from <= period.
  struct Run {
    std::int64_t from = 0;
    std::int64_t to = 0;
  };
  /// Calls fun(Run) for each maximal interval on which E is `level`, which must be its minimum.
  template <typename Fun>
  void for_each_run(Int128 level, Fun&& fun) const;
  /// The longest of these intervals.
  [[nodiscard]] Run widest_run(Int128 level) const;

 private:
  struct Event {
    std::int64_t key;  // twice the position, plus 1 for a meeting that counts
    std::int64_t change;
  };
  void find_meetings(const Curve& curve, std::span<const Entry> profile, std::int64_t capacity, std::int64_t room);
  void sort_events();
  /// Starts from level and slope at shift 0. Each meeting counts `times` times.
  void collect_points(Int128 level, Int128 slope, std::int64_t times);

  std::vector<Event> events_, sorted_;  // the first `count_` are in use
  std::size_t count_ = 0;
  std::vector<Step> alike_;
  std::vector<std::uint32_t> places_;
  std::vector<Point> points_;  // the first `point_count_` are in use
  std::size_t point_count_ = 0;
  Int128 min_ = 0;
  std::int64_t period_ = 0;
  std::size_t work_ = 0;
};

template <typename Fun>
void Sweep::for_each_run(Int128 level, Fun&& fun) const {
  // E is linear between adjacent points: it is minimal between two of them exactly if it is at both, with slope 0.
  const std::size_t count = point_count_;
  const auto flat = [&](std::size_t i) { return points_[i].excess == level && points_[i].slope == 0; };
  std::size_t begin = 0;
  while (begin < count && flat(begin)) ++begin;
  if (begin == count) {
    fun(Run{0, period_});
    return;
  }
  // Starts at a point that no run crosses.
  for (std::size_t k = 1; k <= count; ++k) {
    const std::size_t first = (begin + k) % count;
    if (points_[first].excess != level) continue;
    std::size_t last = first;
    std::int64_t length = 0;
    while (flat(last)) {
      const std::size_t after = (last + 1) % count;
      length += points_[after].at - points_[last].at + (after == 0 ? period_ : 0);
      last = after;
      ++k;
    }
    const std::int64_t from = points_[first].at % period_;
    fun(Run{from, from + length});
  }
}

}  // namespace mltcp::scheduler::internal
