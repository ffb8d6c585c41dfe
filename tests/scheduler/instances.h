// Random problems whose periods and steps are whole units, and a search over all shifts of whole units. The search
// shares no code with the solver: it sums demands unit by unit.
//
// The search is exact. Steps coincide only at whole units, so between whole units, the excess is linear in a job's
// shift.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/scheduler/problem.h"

namespace mltcp::scheduler::testing {

/// Computes the score of shifts and searches for the best score. Shifts are whole units; excess is in units times
/// bit/s.
class BruteForce {
 public:
  BruteForce(const Problem& problem, std::int64_t unit) : problem_(problem), unit_(unit) {
    perimeter_ = 1;
    for (const Problem::ProblemJob& job : problem.jobs) {
      periods_.push_back(job.period.count / unit);
      perimeter_ = std::lcm(perimeter_, periods_.back());
    }
    for (const Problem::Link& link : problem.links) {
      auto& demands = demands_.emplace_back(problem.jobs.size());
      for (const Problem::Use& use : link.uses) {
        demands[use.job].assign(static_cast<std::size_t>(periods_[use.job]), 0);
        for (const Burst& burst : use.demand.bursts)
          for (std::int64_t t = burst.from.count / unit; t < burst.to.count / unit; ++t)
            demands[use.job][static_cast<std::size_t>(t)] = static_cast<std::int64_t>(burst.rate.bits_per_second);
      }
    }
  }
  [[nodiscard]] std::int64_t perimeter() const { return perimeter_; }
  [[nodiscard]] const std::vector<std::int64_t>& periods() const { return periods_; }

  /// Returns the best score over all shifts. The score is 1 minus the mean of excess / (perimeter * capacity) over
  /// links with at least two jobs.
  [[nodiscard]] double best_score() {
    best_ = std::numeric_limits<double>::infinity();
    std::vector<std::vector<std::int64_t>> sums(problem_.links.size(),
                                                std::vector<std::int64_t>(static_cast<std::size_t>(perimeter_), 0));
    bool pinned = false;
    for (const Problem::ProblemJob& job : problem_.jobs) pinned |= job.pinned.has_value();
    place(0, !pinned, sums);
    return 1 - best_;
  }

  /// Returns the score of `shifts`, which are in units.
  [[nodiscard]] double score(const std::vector<std::int64_t>& shifts) const {
    std::vector<std::vector<std::int64_t>> sums(problem_.links.size(),
                                                std::vector<std::int64_t>(static_cast<std::size_t>(perimeter_), 0));
    for (std::size_t j = 0; j < shifts.size(); ++j) add(sums, j, shifts[j], 1);
    return 1 - loss(sums);
  }

 private:
  using Sums = std::vector<std::vector<std::int64_t>>;

  void add(Sums& sums, std::size_t job, std::int64_t shift, std::int64_t sign) const {
    for (std::size_t l = 0; l < sums.size(); ++l) {
      const auto& demand = demands_[l][job];
      if (demand.empty()) continue;
      for (std::int64_t t = 0; t < perimeter_; ++t)
        sums[l][static_cast<std::size_t>((t + shift) % perimeter_)] +=
            sign * demand[static_cast<std::size_t>(t % periods_[job])];
    }
  }
  [[nodiscard]] double loss(const Sums& sums) const {
    double lost = 0;
    int shared = 0;
    for (std::size_t l = 0; l < sums.size(); ++l) {
      if (problem_.links[l].uses.size() < 2) continue;
      const auto capacity = static_cast<std::int64_t>(problem_.links[l].capacity.bits_per_second);
      std::int64_t excess = 0;
      for (const std::int64_t sum : sums[l]) excess += std::max<std::int64_t>(0, sum - capacity);
      lost += static_cast<double>(excess) / static_cast<double>(capacity * perimeter_);
      ++shared;
    }
    return shared > 0 ? lost / shared : 0;
  }
  void place(std::size_t job, bool fixed, Sums& sums) {
    if (job == problem_.jobs.size()) {
      best_ = std::min(best_, loss(sums));
      return;
    }
    const auto pinned = problem_.jobs[job].pinned;
    const std::int64_t from = pinned ? pinned->count / unit_ % periods_[job] : 0;
    const std::int64_t to = pinned || fixed ? from + 1 : periods_[job];
    for (std::int64_t shift = from; shift < to; ++shift) {
      add(sums, job, shift, 1);
      place(job + 1, false, sums);
      add(sums, job, shift, -1);
    }
  }

  const Problem& problem_;
  std::int64_t unit_;
  std::int64_t perimeter_ = 1;
  std::vector<std::int64_t> periods_;
  std::vector<std::vector<std::vector<std::int64_t>>> demands_;  // indices: link, job, unit of the job's period
  double best_ = 0;
};

inline Demand random_demand(Random& random, std::int64_t period, std::int64_t unit, std::int64_t highest) {
  Demand demand{Nanos(period * unit), {}};
  const std::uint64_t style = random.below(3);
  auto at = static_cast<std::int64_t>(random.below(3));
  const std::uint64_t bursts = style == 0 ? 1 : 1 + random.below(3);
  for (std::uint64_t b = 0; b < bursts && at < period; ++b) {
    const std::int64_t left = period - at;
    const auto length = static_cast<std::int64_t>(
        1 + random.below(static_cast<std::uint64_t>(style == 0 ? left : std::max<std::int64_t>(1, left / 2))));
    demand.bursts.push_back(
        {Nanos(at * unit), Nanos((at + length) * unit), Rate(1 + random.below(static_cast<std::uint64_t>(highest)))});
    at += length + static_cast<std::int64_t>(random.below(4));
  }
  return demand;
}

/// Returns a problem with one link of random capacity. Its jobs have periods that divide `perimeter` (in units).
inline Problem random_link(Random& random, std::size_t jobs, std::int64_t perimeter, std::int64_t unit) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 3; d <= perimeter; ++d)
    if (perimeter % d == 0) divisors.push_back(d);
  Problem problem;
  Problem::Link link{"link", Rate(), {}};
  const bool alike = random.chance(0.2);
  const std::int64_t highest = random.chance(0.5) ? 3 : 9;
  double load = 0;
  std::int64_t longest = 0;
  for (std::size_t j = 0; j < jobs; ++j) {
    const std::int64_t period = random.chance(0.5) ? perimeter : divisors[random.below(divisors.size())];
    Demand demand = alike && j > 0 ? link.uses[0].demand : random_demand(random, period, unit, highest);
    longest = std::max(longest, demand.period.count);
    load += bits(demand) / demand.period.seconds();
    problem.jobs.push_back({"job" + std::to_string(j), demand.period, {}});
    link.uses.push_back({static_cast<std::uint32_t>(j), std::move(demand)});
  }
  link.capacity = Rate(1 + static_cast<std::uint64_t>(load * (0.3 + 1.5 * random.uniform())));
  problem.links.push_back(std::move(link));
  return problem;
}

/// Returns options that permit no stretch. The perimeter is then the exact common multiple of the periods, unless this
/// multiple is too long.
inline SolveOptions exact_options() {
  SolveOptions options;
  options.max_stretch = 0;
  return options;
}

}  // namespace mltcp::scheduler::testing
