// Computes the scores, margins and bounds for given shifts (see problem.h).
//
// Margin. A demand widened by m is at each time the maximum of the demand within m of this time. Jobs deviate
// independently, so at any time all demands can be at these maxima together. Therefore deviations up to m cause no
// excess if and only if the sum of the widened demands is at most the capacity. For two jobs, only the difference of
// their deviations matters, and a sweep (internal/circle.h) gives the tolerated difference. For three or more jobs with
// excess, the excess E is concave in all deviations until a step up meets a step down. So if the gradient of E is 0, no
// deviations up to this meeting increase E.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "mltcp/base/error.h"
#include "mltcp/scheduler/internal/solving.h"

namespace mltcp::scheduler {
namespace {

using namespace internal;

struct Placed {
  Curve curve;
  std::int64_t period = 0;
  std::int64_t shift = 0;
};

class LinkAtShifts {
 public:
  LinkAtShifts(const Problem::Link& link, const Slots& slots, const std::vector<Nanos>& shifts)
      : capacity_(static_cast<std::int64_t>(link.capacity.bits_per_second)) {
    std::vector<std::uint32_t> jobs;
    for (const Problem::Use& use : link.uses) {
      jobs.push_back(use.job);
      const std::int64_t period = slots.periods[use.job].count;
      placed_.push_back({curve_of(use.demand, 0, period), period, shifts[use.job].count});
    }
    perimeter_ = perimeter_of(slots, jobs);
    check_size(link, slots, perimeter_);
    excess_ = excess_within({});
  }

  /// Returns the solution of the link. If `scores_only` is true, does not compute margin and drift_score.
  [[nodiscard]] LinkSolution solution(double drift, bool scores_only) {
    LinkSolution result;
    result.perimeter = Nanos(perimeter_);
    if (placed_.empty()) return result;
    result.score = score(excess_);
    Int128 area = 0;
    for (const Entry& entry : sum_) area += static_cast<Int128>(entry.value) * length(entry);
    const Int128 too_much = area - static_cast<Int128>(capacity_) * perimeter_;
    result.upper_bound = placed_.size() == 1 ? result.score : score(std::max<Int128>(too_much, 0));
    result.optimal = result.score == result.upper_bound;
    if (scores_only) return result;

    std::int64_t max = placed_.front().period;
    std::vector<std::int64_t> by;
    for (const Placed& job : placed_) {
      max = std::min(max, job.period);
      by.push_back(static_cast<std::int64_t>(drift * static_cast<double>(job.period)));
    }
    max /= 2;
    if (placed_.size() == 1) {
      result.margin = Nanos(max);
      result.drift_score = result.score;
    } else if (placed_.size() == 2) {
      pair(result, max, by[0] + by[1]);
    } else {
      result.margin = Nanos(excess_ == 0 ? free_margin(max) : flat_margin(max));
      result.drift_score = score(excess_within(by));
    }
    return result;
  }

 private:
  [[nodiscard]] double score(Int128 excess) const {
    return static_cast<double>(1 - static_cast<long double>(excess) /
                                       (static_cast<long double>(perimeter_) * static_cast<long double>(capacity_)));
  }
  [[nodiscard]] std::int64_t length(const Entry& entry) const {
    const Entry* next = &entry + 1;
    return (next == sum_.data() + sum_.size() ? perimeter_ : next->at) - entry.at;
  }

  /// Returns the excess if the demand of each job i is widened by by[i]. If `by` is empty, demands are not widened.
  Int128 excess_within(std::span<const std::int64_t> by) {
    sum_.assign(1, {});
    for (std::size_t i = 0; i < placed_.size(); ++i) {
      const Placed& job = placed_[i];
      add(sum_, by.empty() ? job.curve : widened(job.curve, job.period, by[i]), job.period, job.shift, 1, perimeter_,
          scratch_);
      sum_.swap(scratch_);
    }
    return internal::excess(sum_, capacity_, perimeter_);
  }

  std::int64_t free_margin(std::int64_t max) {
    std::vector<std::int64_t> by(placed_.size());
    std::int64_t low = 0;
    std::int64_t high = max + 1;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      std::ranges::fill(by, middle);
      (excess_within(by) == 0 ? low : high) = middle;
    }
    return low;
  }

  void sweep_of(std::size_t moved) {
    Profile others{{}};
    for (std::size_t i = 0; i < placed_.size(); ++i) {
      if (i == moved) continue;
      add(others, placed_[i].curve, placed_[i].period, placed_[i].shift, 1, perimeter_, scratch_);
      others.swap(scratch_);
    }
    const std::int64_t still = 0;
    sweep_.run({&placed_[moved].curve, 1}, {&others, 1}, {&capacity_, 1}, {&still, 1}, placed_[moved].period,
               perimeter_);
  }

  /// Computes exact results for a link with two jobs. The excess E depends only on the difference of their deviations
  /// and repeats with the slot period of either job. So it is sufficient to move the job with the shorter slots.
  void pair(LinkSolution& result, std::int64_t max, std::int64_t drift) {
    const std::size_t moved = placed_[0].period <= placed_[1].period ? 0 : 1;
    sweep_of(moved);
    const std::int64_t shift = placed_[moved].shift;
    const std::int64_t period = placed_[moved].period;
    const auto points = sweep_.points();
    const auto count = static_cast<std::int64_t>(points.size());
    const std::int64_t right =
        std::ranges::partition_point(points, [=](const Point& point) { return point.at <= shift; }) - points.begin();
    Int128 worst = excess_;
    // Starts at the shift and goes from kink to kink in one direction, at most once around the circle.
    const auto reach = [&](std::int64_t direction) {
      std::int64_t free = -1;  // distance up to which E is at most its value at the shift; -1 if not known yet
      std::int64_t at = 0;     // current distance from the shift
      Int128 value = excess_;
      std::int64_t i = direction > 0 ? right : right - 1;
      for (std::int64_t steps = 0; steps <= count && (free < 0 || at < drift); ++steps, i += direction) {
        const std::int64_t turn = i >= 0 ? i / count : -((count - 1 - i) / count);
        const Point& point = points[static_cast<std::size_t>(i - turn * count)];
        const std::int64_t next = direction * (point.at + turn * period - shift);
        if (next <= at) continue;  // the shift itself is a kink
        const Int128 slope = (point.excess - value) / (next - at);
        if (free < 0 && point.excess > excess_) free = at + static_cast<std::int64_t>((excess_ - value) / slope);
        if (at < drift) worst = std::max(worst, value + slope * (std::min(next, drift) - at));
        at = next;
        value = point.excess;
      }
      return free < 0 ? period : free;
    };
    const std::int64_t free = std::min(reach(1), reach(-1));
    result.margin = Nanos(std::min(max, free / 2));
    result.drift_score = score(worst);
  }

  /// Returns whether the excess is constant on both sides of the current shift of `job`. `sum_` must be the demand of
  /// all jobs.
  [[nodiscard]] bool is_flat(const Placed& job) const {
    Int128 left = 0;
    Int128 right = 0;
    std::size_t next = 0;
    for (Cursor cursor(job.curve, job.period, job.shift); cursor.at() < perimeter_; cursor.next()) {
      while (next < sum_.size() && sum_[next].at < cursor.at()) ++next;
      const Step& step = cursor.step();
      const std::int64_t before = (next == 0 ? sum_.back() : sum_[next - 1]).value;
      const bool changes = next < sum_.size() && sum_[next].at == cursor.at();
      const std::int64_t after = changes ? sum_[next].value : before;
      // `before` and `after` differ if the sum changes at this step. They are equal if another step cancels this step.
      left += above(before, capacity_) - above(before - step.before + step.after, capacity_);
      right += above(after - step.after + step.before, capacity_) - above(after, capacity_);
    }
    return left == 0 && right == 0;
  }

  std::int64_t flat_margin(std::int64_t max) {
    std::int64_t peaks = 0;
    excess_within({});
    for (const Placed& job : placed_) {
      if (!is_flat(job)) return 0;
      peaks += job.curve.peak;
    }
    std::int64_t min = 2 * max;
    for (std::size_t a = 0; a < placed_.size(); ++a)
      for (std::size_t b = 0; b < placed_.size(); ++b) {
        // Two steps meet again after each multiple of the greatest common divisor of the two periods.
        const std::int64_t period = std::gcd(placed_[a].period, placed_[b].period);
        const std::int64_t others = peaks - placed_[a].curve.peak - placed_[b].curve.peak;
        for (const Step& up : placed_[a].curve.steps)
          for (const Step& down : placed_[b].curve.steps) {
            if (a == b || up.after < up.before || down.after > down.before) continue;
            if (up.before + down.after >= capacity_ || up.after + down.before + others <= capacity_) continue;
            const std::int64_t apart = (up.at + placed_[a].shift - down.at - placed_[b].shift) % period;
            min = std::min({min, std::abs(apart), period - std::abs(apart)});
          }
      }
    return min / 2;
  }

  std::int64_t capacity_;
  std::int64_t perimeter_ = 0;
  std::vector<Placed> placed_;
  Int128 excess_ = 0;
  Profile sum_, scratch_;
  Sweep sweep_;
};

}  // namespace

Solution evaluate(const Problem& problem, const Slots& slots, const std::vector<Nanos>& shifts,
                  const SolveOptions& options) {
  check(problem);
  internal::check(options);
  internal::check(problem, slots);
  if (shifts.size() != problem.jobs.size())
    throw InputError(
        fmt::format("there are {} shifts for {} jobs; give one for each", shifts.size(), problem.jobs.size()));
  for (std::size_t j = 0; j < shifts.size(); ++j)
    if (shifts[j].count < 0 || shifts[j] >= slots.periods[j])
      throw InputError(
          fmt::format("job \"{}\" has a shift of {} ns; give one from 0 to below its slot's period of {} ns",
                      problem.jobs[j].name, shifts[j].count, slots.periods[j].count));
  return internal::evaluated(problem, slots, shifts, options);
}

namespace internal {

void check(const Problem& problem, const Slots& slots) {
  const std::size_t count = problem.jobs.size();
  if (slots.periods.size() != count || slots.repetitions.size() != count)
    throw InputError(fmt::format("the slots are for {} jobs, and there are {}; choose them for these jobs",
                                 slots.periods.size(), count));
  if (count > 0 && (slots.perimeter.count <= 0 || slots.perimeter > kLongestPeriod))
    throw InputError(fmt::format("the slots' perimeter is {} ns; give one above 0 and at most {}",
                                 slots.perimeter.count, to_text(kLongestPeriod)));
  for (std::size_t j = 0; j < count; ++j)
    if (slots.repetitions[j] == 0 || slots.perimeter.count % slots.repetitions[j] != 0 ||
        slots.periods[j] != slots.perimeter / slots.repetitions[j] || slots.periods[j] < problem.jobs[j].period)
      throw InputError(
          fmt::format("job \"{}\" with a period of {} ns has {} slots of {} ns on a perimeter of {} ns; "
                      "slots must fill it and be no shorter than the period",
                      problem.jobs[j].name, problem.jobs[j].period.count, slots.repetitions[j], slots.periods[j].count,
                      slots.perimeter.count));
}

double bursts_on(const Problem::Link& link, const Slots& slots, std::int64_t perimeter) {
  double sum = 0;
  for (const Problem::Use& use : link.uses)
    sum += static_cast<double>(use.demand.bursts.size()) * static_cast<double>(perimeter) /
           static_cast<double>(slots.periods[use.job].count);
  return sum;
}

void check_size(const Problem::Link& link, const Slots& slots, std::int64_t perimeter) {
  if (const double bursts = bursts_on(link, slots, perimeter); bursts > kMaxBursts)
    throw InputError(
        fmt::format("the perimeter of {} of the jobs on link \"{}\" holds {:.0f} bursts, more than {:.0f}; let jobs "
                    "whose periods differ less share links",
                    to_text(Nanos(perimeter)), link.name, bursts, kMaxBursts));
}

Solution evaluated(const Problem& problem, const Slots& slots, const std::vector<Nanos>& shifts,
                   const SolveOptions& options, bool scores_only) {
  Solution solution;
  solution.slots = slots;
  solution.shifts = shifts;
  double score = 0;
  double bound = 0;
  std::size_t shared = 0;
  solution.optimal = true;
  for (const Problem::Link& link : problem.links) {
    solution.links.push_back(LinkAtShifts(link, slots, shifts).solution(options.drift, scores_only));
    if (link.uses.size() < 2) continue;
    score += solution.links.back().score;
    bound += solution.links.back().upper_bound;
    solution.optimal &= solution.links.back().optimal;
    ++shared;
  }
  if (shared > 0) {
    solution.score = score / static_cast<double>(shared);
    solution.upper_bound = solution.optimal ? solution.score : bound / static_cast<double>(shared);
  }
  return solution;
}

}  // namespace internal
}  // namespace mltcp::scheduler
