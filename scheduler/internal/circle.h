// Step functions on the circle, used by the solver and by the evaluation of shifts.
//
// The demand of a job on a link is a piecewise-constant curve over its slot, which repeats on the perimeter. The sum of
// placed curves is a profile. Let f(x) = max(0, x - C). The excess of a profile D and one more curve d at shift s,
//
//   E(s) = integral over the perimeter of f(D(t) + d(t - s)),
//
// is piecewise linear in s. Its slope is the sum of f(D + before) - f(D + after) over the steps of d. The slope changes
// only at shifts where a step of d meets a step of D. Since f is convex, the change is
//
//   up meets up, down meets down:  never positive (a concave kink),
//   up meets down:                 never negative (a convex kink).
//
// So a sweep over the B_D * B_d meetings in one slot gives E at every shift exactly. The minimum is at a convex kink,
// or E is constant. All numbers are integers: times are below 2^54 ns, values are below 2^62, and products have 128
// bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "mltcp/scheduler/demand.h"

namespace mltcp::scheduler::internal {

__extension__ typedef __int128 Int128;  // NOLINT(modernize-use-using): `using` allows no __extension__

/// A change of the demand at time `at` of the slot, from the value `before` to the value `after`.
struct Step {
  std::int64_t at = 0;
  std::int64_t before = 0;
  std::int64_t after = 0;
  bool operator==(const Step&) const = default;
};

/// The demand of one job on one link, over one slot. If there are no steps, the demand is `level` at all times.
struct Curve {
  std::uint32_t link = 0;
  std::int64_t level = 0;  ///< demand at the beginning of the slot
  std::int64_t peak = 0;
  std::vector<Step> steps;  ///< in order of time; times are in [0, period)
  bool operator==(const Curve&) const = default;
};

/// A piece of a profile: the demand is `value` from time `at` until the time of the next entry.
struct Entry {
  std::int64_t at = 0;
  std::int64_t value = 0;
};
/// A demand over one perimeter. The first entry is at time 0, and adjacent entries have different values.
using Profile = std::vector<Entry>;

/// Returns the curve of `demand` in a slot of `period`. Rates are multiplied by `times / by` and rounded down.
Curve curve_of(const Demand& demand, std::uint32_t link, std::int64_t period, std::int64_t times = 1,
               std::int64_t by = 1);
/// Returns a curve whose value at each time is the highest value of `curve` within a distance of `by`, or the lowest
/// value if `highest` is false.
Curve widened(const Curve& curve, std::int64_t period, std::int64_t by, bool highest = true);

/// Iterates over the steps of a curve in order of time, from time 0 on. The curve repeats, so the iteration never ends.
class Cursor {
 public:
  /// `shift` must be in [0, period).
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

/// Sets `out` to the sum of `profile` and `sign` times `curve` at `shift`.
void add(const Profile& profile, const Curve& curve, std::int64_t period, std::int64_t shift, std::int64_t sign,
         std::int64_t perimeter, Profile& out);
/// Returns the integral over the perimeter of the part of the profile above the capacity.
Int128 excess(const Profile& profile, std::int64_t capacity, std::int64_t perimeter);

/// A shift at which the slope of the excess E changes, or may change when more jobs are placed. `excess` is E at this
/// shift, and `slope` is the slope of E just after this shift.
struct Point {
  std::int64_t at = 0;   ///< in (0, period]; points are in ascending order, and the last one is at `period`
  bool meeting = false;  ///< true if a step up meets a step down: more demand can make this a convex kink
  Int128 excess = 0;
  Int128 slope = 0;
};

/// Computes the excess E of one job at all shifts in its slot.
class Sweep {
 public:
  /// Computes the excess E, summed over the links of the job. `curves` are the demands of the job. `profiles`,
  /// `capacities` and `headroom` have one entry for each link. headroom[l] is the maximum demand that jobs not placed
  /// yet can add on link l. If the profiles repeat after `turn`, a divisor of the perimeter, E repeats after gcd(turn,
  /// period). This value then replaces the period in all results. A `turn` of 0 stands for the perimeter.
  void run(std::span<const Curve> curves, std::span<const Profile> profiles, std::span<const std::int64_t> capacities,
           std::span<const std::int64_t> headroom, std::int64_t period, std::int64_t perimeter, std::int64_t turn = 0);

  /// Returns the number of step meetings that the latest call of run() examined.
  [[nodiscard]] std::size_t work() const { return work_; }
  [[nodiscard]] std::span<const Point> points() const { return {points_.data(), point_count_}; }
  [[nodiscard]] Int128 least() const { return min_; }
  [[nodiscard]] Int128 excess_at(std::int64_t shift) const;  ///< returns the excess at `shift`, in [0, period)

  /// An interval of shifts [from, to], which may wrap around. `from` is in [0, period), and to - from is at most the
  /// period.
  struct Run {
    std::int64_t from = 0;
    std::int64_t to = 0;
  };
  /// Calls fun(Run) for each maximal interval on which the excess equals `level`. `level` must be the minimum excess.
  template <typename Fun>
  void for_each_run(Int128 level, Fun&& fun) const;
  /// Returns the longest interval on which the excess equals `level`. `level` must be the minimum excess.
  [[nodiscard]] Run widest_run(Int128 level) const;

 private:
  struct Event {
    std::int64_t key;  // twice the shift, plus 1 if a step up meets a step down
    std::int64_t change;
  };
  void find_meetings(const Curve& curve, std::span<const Entry> profile, std::int64_t capacity, std::int64_t free);
  void sort_events();
  /// Computes the points from the events. `level` and `slope` are E and its slope at shift 0. The slope changes of all
  /// events are multiplied by `times`.
  void collect_points(Int128 level, Int128 slope, std::int64_t times);

  std::vector<Event> events_, sorted_;  // only the first `count_` events are in use
  std::size_t count_ = 0;
  std::vector<Step> alike_;
  std::vector<std::uint32_t> places_;
  std::vector<Point> points_;  // only the first `point_count_` points are in use
  std::size_t point_count_ = 0;
  Int128 min_ = 0;
  std::int64_t period_ = 0;
  std::size_t work_ = 0;
};

template <typename Fun>
void Sweep::for_each_run(Int128 level, Fun&& fun) const {
  // E is linear between adjacent points. So it is minimal between two points exactly if it is minimal at the first and
  // its slope there is 0.
  const std::size_t count = point_count_;
  const auto flat = [&](std::size_t i) { return points_[i].excess == level && points_[i].slope == 0; };
  std::size_t begin = 0;
  while (begin < count && flat(begin)) ++begin;
  if (begin == count) {
    fun(Run{0, period_});
    return;
  }
  // Starts after a point that is not inside a run, so that a run that wraps around is not split.
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
