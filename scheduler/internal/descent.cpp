// Implements coordinate descent (see descent.h).
#include "mltcp/scheduler/internal/descent.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <span>

#include "mltcp/scheduler/internal/circle.h"

namespace mltcp::scheduler::internal {
namespace {

constexpr double kMinGain = 1e-9;     // minimum gain of the sum of scores for which a job moves
constexpr double kSameScore = 1e-11;  // smaller differences between sums of scores are rounding errors
constexpr int kMaxCentrings = 2;      // maximum number of times that centre() moves each job

class Descent {
 public:
  Descent(const Problem& problem, const Slots& slots) : slots_(slots), jobs_(problem.jobs.size()) {
    for (const Problem::Link& link : problem.links) {
      if (link.uses.size() < 2) continue;
      const auto index = static_cast<std::uint32_t>(links_.size());
      Link& it = links_.emplace_back();
      it.capacity = static_cast<std::int64_t>(link.capacity.bits_per_second);
      for (const Problem::Use& use : link.uses) it.perimeter = std::lcm(it.perimeter, period(use.job));
      it.profile.assign(1, {});
      it.scale = 1 / (static_cast<double>(it.capacity) * static_cast<double>(it.perimeter));
      for (const Problem::Use& use : link.uses) {
        Curve curve = curve_of(use.demand, 0, period(use.job));
        const std::int64_t repetitions = it.perimeter / period(use.job);
        it.steps += static_cast<double>(curve.steps.size()) * static_cast<double>(repetitions);
        jobs_[use.job].area +=
            bits(use.demand) / static_cast<double>(period(use.job)) / static_cast<double>(it.capacity);
        jobs_[use.job].uses.push_back({index, std::move(curve), {}});
        it.jobs.push_back(use.job);
      }
    }
  }

  std::vector<Nanos> run(const std::vector<Nanos>& start, double max_meetings, bool centred) {
    std::vector<std::uint32_t> order(jobs_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](auto a, auto b) { return jobs_[a].area > jobs_[b].area; });
    std::vector<std::uint32_t> missing;
    for (const std::uint32_t job : order) {
      if (start.empty() || start[job] < Nanos(0))
        missing.push_back(job);
      else
        join(job, start[job].count % period(job));
    }
    bool first = missing.size() == jobs_.size();
    for (const std::uint32_t job : missing) {
      for (Use& use : jobs_[job].uses) use.others = links_[use.link].profile;
      place(job, first ? 0 : best_shift(job).at);
      first = false;
    }
    // The queue begins with the inserted jobs. When a job moves, all jobs that share a link with it join the queue.
    for (const std::uint32_t job : missing) wait_for(job);
    if (missing.size() < jobs_.size()) {
      for (const std::uint32_t job : missing) wait_for_neighbours(job);
    }
    while (!waiting_.empty() && done_ < max_meetings) {
      const std::uint32_t job = waiting_.front();
      waiting_.pop_front();
      jobs_[job].waits = false;
      const std::int64_t old = jobs_[job].shift;
      take_away(job);
      const Best best = best_shift(job, old);
      if (best.excess >= best.excess_before - kMinGain) continue;
      place(job, best.at);
      wait_for_neighbours(job);
    }
    if (centred) {
      const double max = done_ + max_meetings / 4;
      for (int pass = 0; pass < kMaxCentrings; ++pass)
        for (std::size_t i = 0; i < order.size() && done_ < max; ++i) centre(order[i]);
    }
    std::vector<Nanos> shifts;
    for (const MovableJob& job : jobs_) shifts.emplace_back(job.shift);
    return shifts;
  }

 private:
  struct Link {
    std::int64_t capacity = 0;
    std::int64_t perimeter = 1;
    double scale = 0;  ///< factor that converts excess to loss of score
    double steps = 0;  ///< number of steps of all jobs on the perimeter
    Profile profile;
    std::vector<std::uint32_t> jobs;
  };
  struct Use {
    std::uint32_t link = 0;
    Curve curve;
    Profile others;  ///< demand of all other jobs on the link, see take_away()
  };
  struct MovableJob {
    std::vector<Use> uses;
    double area = 0;  ///< mean demand relative to the capacity, summed over the job's links
    std::int64_t shift = 0;
    bool waits = false;
  };
  struct Best {
    std::int64_t at = 0;
    double excess = 0;         ///< excess on the links of the job, as loss of score
    double excess_before = 0;  ///< excess at the shift `old`, as loss of score
  };
  struct Level {
    std::int64_t at;
    double value;
  };
  struct Kink {
    std::int64_t at;
    double change;  ///< change of the slope
  };

  [[nodiscard]] std::int64_t period(std::uint32_t job) const { return slots_.periods[job].count; }

  [[nodiscard]] double meetings(std::uint32_t job) const {
    double sum = 0;
    for (const Use& use : jobs_[job].uses) sum += links_[use.link].steps * static_cast<double>(use.curve.steps.size());
    return sum;
  }

  /// Adds a job that is not placed yet to the profiles of its links.
  void join(std::uint32_t job, std::int64_t shift) {
    jobs_[job].shift = shift;
    for (const Use& use : jobs_[job].uses) {
      Link& link = links_[use.link];
      add(link.profile, use.curve, period(job), shift, 1, link.perimeter, scratch_);
      link.profile.swap(scratch_);
    }
  }
  /// Places or moves a job. Use::others must be set for all uses of the job.
  void place(std::uint32_t job, std::int64_t shift) {
    jobs_[job].shift = shift;
    for (const Use& use : jobs_[job].uses) {
      Link& link = links_[use.link];
      add(use.others, use.curve, period(job), shift, 1, link.perimeter, link.profile);
    }
  }

  /// Sets Use::others for all uses of the job: the profile of the link without this job. Link::profile does not change.
  void take_away(std::uint32_t job) {
    for (Use& use : jobs_[job].uses) {
      const Link& link = links_[use.link];
      add(link.profile, use.curve, period(job), jobs_[job].shift, -1, link.perimeter, use.others);
    }
  }

  void wait_for(std::uint32_t job) {
    if (!jobs_[job].waits) waiting_.push_back(job);
    jobs_[job].waits = true;
  }
  void wait_for_neighbours(std::uint32_t job) {
    for (const Use& use : jobs_[job].uses)
      for (const std::uint32_t other : links_[use.link].jobs)
        if (other != job) wait_for(other);
  }

  /// Computes the excess on the job's links as a function of the job's shift, and stores its kinks in `kinks_`. Returns
  /// the excess at shift 0 and the slope just after shift 0, both as loss of score.
  std::pair<double, double> find_kinks(std::uint32_t job) {
    double value = 0;
    double slope = 0;
    kinks_.clear();
    const std::int64_t no_headroom = 0;
    for (const Use& use : jobs_[job].uses) {
      const Link& link = links_[use.link];
      sweep_.run(std::span(&use.curve, 1), std::span(&use.others, 1), std::span(&link.capacity, 1),
                 std::span(&no_headroom, 1), period(job), link.perimeter);
      const std::span<const Point> points = sweep_.points();
      value += static_cast<double>(points.back().excess) * link.scale;
      slope += static_cast<double>(points.back().slope) * link.scale;
      Int128 last = points.back().slope;
      for (const Point& point : points) {
        if (point.slope != last) kinks_.push_back({point.at, static_cast<double>(point.slope - last) * link.scale});
        last = point.slope;
      }
    }
    done_ += meetings(job);
    std::ranges::sort(kinks_, {}, &Kink::at);
    return {value, slope};
  }

  /// Returns the best shift of the job. Best::excess_before is the excess at the shift `old`, for comparison.
  Best best_shift(std::uint32_t job, std::int64_t old = 0) {
    const auto [value_at_0, slope_at_0] = find_kinks(job);
    double value = value_at_0;
    double slope = slope_at_0;
    Best best{0, value, value};
    std::int64_t at = 0;
    for (const Kink& kink : kinks_) {
      if (at <= old) best.excess_before = value + slope * static_cast<double>(old - at);
      value += slope * static_cast<double>(kink.at - at);
      at = kink.at;
      slope += kink.change;
      if (value < best.excess - kMinGain) {
        best.excess = value;
        best.at = at % period(job);
      }
    }
    if (at <= old) best.excess_before = value + slope * static_cast<double>(old - at);
    return best;
  }

  /// Moves a job to the middle of the interval of shifts that are as good as its current shift.
  void centre(std::uint32_t job) {
    take_away(job);
    const auto [value_at_0, slope_at_0] = find_kinks(job);
    // Computes the excess at each kink. The current shift is inserted as a kink without a change.
    const std::int64_t shift = jobs_[job].shift;
    kinks_.insert(std::upper_bound(kinks_.begin(), kinks_.end(), shift,
                                   [](std::int64_t at, const Kink& kink) { return at < kink.at; }),
                  {shift, 0});
    levels_.clear();
    double value = value_at_0;
    double slope = slope_at_0;
    std::int64_t at = 0;
    std::size_t here = 0;
    for (const Kink& kink : kinks_) {
      value += slope * static_cast<double>(kink.at - at);
      at = kink.at;
      slope += kink.change;
      if (at == shift) here = levels_.size();
      levels_.push_back({at, value});
    }
    const auto count = static_cast<std::int64_t>(levels_.size());
    const auto reach = [&](std::int64_t direction) {
      std::int64_t reached = 0;
      for (std::int64_t i = 1; i <= count; ++i) {
        const std::int64_t k = static_cast<std::int64_t>(here) + direction * i;
        const std::int64_t turns = k < 0 ? -1 : k / count;
        const Level& level = levels_[static_cast<std::size_t>(k - turns * count)];
        if (std::abs(level.value - levels_[here].value) > kSameScore) break;
        reached = direction * (level.at + turns * period(job) - shift);
      }
      return reached;
    };
    const std::int64_t left = reach(-1);
    const std::int64_t right = reach(1);
    if (left + right >= period(job) || left == right) return;
    place(job, (shift + (right - left) / 2 + period(job)) % period(job));
  }

  const Slots& slots_;
  std::vector<Link> links_;
  std::vector<MovableJob> jobs_;
  std::deque<std::uint32_t> waiting_;
  double done_ = 0;  ///< number of step meetings examined so far
  Sweep sweep_;
  Profile scratch_;
  std::vector<Kink> kinks_;
  std::vector<Level> levels_;
};

}  // namespace

std::vector<Nanos> descend(const Problem& problem, const Slots& slots, const std::vector<Nanos>& start,
                           double max_meetings, bool centred) {
  return Descent(problem, slots).run(start, max_meetings, centred);
}

}  // namespace mltcp::scheduler::internal
