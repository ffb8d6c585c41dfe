// Clusters for tests, and their optimal scores by brute force.
#pragma once

#include "mltcp/scheduler/cluster.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "../message_of.h"
#include "mltcp/base/random.h"

namespace mltcp::scheduler::testing_clusters {

using namespace literals;

/// Returns a network that can represent any affinity graph. Link l leads from switch l to host 2l + 1 and has capacity
/// `capacities[l]`. It is the only link of limited capacity on the path of a flow from host 2l. All other links are so
/// wide that they never matter.
inline Topology bench_of_links(const std::vector<std::uint64_t>& capacities) {
  constexpr Rate wide(1'000'000'000'000);
  Graph graph;
  const auto host = [](std::size_t number) { return "host " + std::to_string(number); };
  const auto node = [](std::size_t number) { return "switch " + std::to_string(number); };
  for (std::size_t i = 0; i < 2 * capacities.size(); ++i) graph.nodes.push_back({host(i), true});
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    graph.nodes.push_back({node(i)});
    graph.links.push_back({node(i), host(2 * i + 1), Rate(capacities[i]), "link " + std::to_string(i)});
  }
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    graph.links.push_back({host(2 * i), node(i), wide});
    graph.links.push_back({node(i), host(2 * i), wide});
    graph.links.push_back({host(2 * i + 1), node(i), wide});
    if (i == 0) continue;
    graph.links.push_back({node(i - 1), node(i), wide});
    graph.links.push_back({node(i), node(i - 1), wide});
  }
  return Topology(graph);
}

/// Returns a job that uses `links` and sends at `rate` for the first `busy` of each period.
inline ClusterJob job_on(const std::string& name, Nanos period, Nanos busy, std::uint64_t rate,
                         const std::vector<std::uint32_t>& links) {
  ClusterJob job{name, {period, {{0_ns, busy, Rate(rate)}}}, {}};
  for (const std::uint32_t link : links) job.flows.push_back({2 * link, 2 * link + 1, 1, {}});
  return job;
}

/// Computes the score without the solver, from the sum of demands in each nanosecond of the common perimeter.
inline double score_by_hand(const std::vector<const ClusterJob*>& jobs, const std::vector<std::uint32_t>& flows,
                            const std::vector<std::int64_t>& periods, const std::vector<std::int64_t>& shifts,
                            std::uint64_t capacity) {
  std::int64_t perimeter = 1;
  for (const std::int64_t period : periods) perimeter = std::lcm(perimeter, period);
  std::uint64_t excess = 0;
  for (std::int64_t now = 0; now < perimeter; ++now) {
    std::uint64_t demand = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const std::int64_t at = ((now - shifts[i]) % periods[i] + periods[i]) % periods[i];
      for (const Burst& burst : jobs[i]->demand.bursts)
        if (burst.from.count <= at && at < burst.to.count) demand += burst.rate.bits_per_second * flows[i];
    }
    if (demand > capacity) excess += demand - capacity;
  }
  return 1 - static_cast<double>(excess) / (static_cast<double>(perimeter) * static_cast<double>(capacity));
}

/// Returns the sum of score_by_hand() over the solution's links for given time shifts of all jobs.
inline double sum_by_hand(const Cluster& cluster, const std::vector<std::int64_t>& shifts) {
  const ClusterSolution& solution = cluster.solution();
  double sum = 0;
  for (const ClusterSolution::Link& link : solution.links) {
    std::vector<const ClusterJob*> jobs;
    std::vector<std::uint32_t> flows;
    std::vector<std::int64_t> periods;
    std::vector<std::int64_t> own;
    for (const LinkUse& use : link.uses) {
      jobs.push_back(&cluster.job(use.job));
      flows.push_back(use.flows);
      periods.push_back(solution.jobs[use.job].slot_period.count);
      own.push_back(shifts[use.job]);
    }
    sum += score_by_hand(jobs, flows, periods, own, link.capacity.bits_per_second);
  }
  return sum;
}

/// Returns the best sum of link scores over all time shifts of whole nanoseconds.
inline double best_by_hand(const Cluster& cluster) {
  const ClusterSolution& solution = cluster.solution();
  std::vector<std::int64_t> shifts(solution.jobs.size());
  double best = -1e9;
  for (bool more = true; more;) {
    best = std::max(best, sum_by_hand(cluster, shifts));
    std::size_t job = 1;  // job 0 stays at shift 0
    while (job < shifts.size() && ++shifts[job] == solution.jobs[job].slot_period.count) shifts[job++] = 0;
    more = job < shifts.size();
  }
  return best;
}

inline std::vector<std::int64_t> shifts_of(const ClusterSolution& solution) {
  std::vector<std::int64_t> shifts;
  for (const ClusterSolution::SolvedJob& job : solution.jobs) shifts.push_back(job.time_shift.count);
  return shifts;
}

inline double sum_of(const ClusterSolution& solution) {
  double sum = 0;
  for (const ClusterSolution::Link& link : solution.links) sum += link.solution.score;
  return sum;
}

/// Checks properties that every solution has: its scores follow from its shifts, and its sums and bounds are
/// consistent.
inline void expect_consistent(const Cluster& cluster) {
  const ClusterSolution& solution = cluster.solution();
  double bound = 0;
  for (std::size_t i = 0; i < solution.links.size(); ++i) {
    const ClusterSolution::Link& link = solution.links[i];
    bound += link.solution.upper_bound;
    EXPECT_GE(link.solution.upper_bound, link.solution.score - 1e-12);
    if (!link.competed) {
      EXPECT_EQ(link.solution.score, 1);
      continue;
    }
    const LinkProblem asked = cluster.link_problem(i);
    EXPECT_EQ(asked.slots.perimeter, link.solution.perimeter);
    EXPECT_NEAR(evaluate(asked.problem, asked.slots, asked.shifts).links.at(0).score, link.solution.score, 1e-9);
  }
  for (const ClusterSolution::SolvedJob& job : solution.jobs) {
    EXPECT_GE(job.time_shift, 0_ns);
    EXPECT_LT(job.time_shift, job.slot_period);
    EXPECT_GE(job.slot_period, job.period);
    EXPECT_EQ(solution.components[job.component].perimeter.count % job.slot_period.count, 0);
  }
  const auto links = static_cast<double>(solution.links.size());
  if (!solution.links.empty()) {
    EXPECT_NEAR(solution.score * links, sum_of(solution), 1e-9);
    EXPECT_LE(solution.upper_bound * links, bound + 1e-9);
  }
  EXPECT_GE(solution.upper_bound, solution.score - 1e-12);
}

inline SolveOptions exact_slots() {
  SolveOptions options;
  options.max_stretch = 0;
  return options;
}

/// Returns small random jobs on `links` links. If `loops` is false, their affinity graph is a tree.
inline std::vector<ClusterJob> random_jobs(Random& random, std::size_t jobs, std::uint32_t links, bool loops) {
  const std::array<std::int64_t, 4> periods{4, 6, 8, 12};
  std::vector<std::set<std::uint32_t>> on(jobs);
  for (std::uint32_t link = 0; link < links; ++link) {
    if (loops) {
      on[random.below(jobs)].insert(link);
      on[random.below(jobs)].insert(link);
    } else {
      // Link l connects job l + 1 with a job of a lower number.
      on[link + 1].insert(link);
      on[random.below(link + 1)].insert(link);
    }
  }
  std::vector<ClusterJob> result;
  for (std::size_t job = 0; job < jobs; ++job) {
    const std::int64_t period = periods[random.below(periods.size())];
    result.push_back(job_on("job " + std::to_string(job), Nanos(period),
                            Nanos(1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(period) - 1))),
                            20 + random.below(80), {on[job].begin(), on[job].end()}));
    if (random.chance(0.3)) {
      Demand& demand = result.back().demand;
      const Nanos end = demand.bursts[0].to;
      if (end < demand.period) demand.bursts.push_back({end, demand.period, Rate(10 + random.below(30))});
    }
  }
  return result;
}

inline std::vector<std::uint64_t> random_capacities(Random& random, std::uint32_t links, std::uint64_t min = 50) {
  std::vector<std::uint64_t> capacities;
  for (std::uint32_t i = 0; i < links; ++i) capacities.push_back(min + random.below(60));
  return capacities;
}

inline std::vector<ClusterJob> mixed_jobs(std::uint32_t hosts, std::size_t count, std::uint64_t seed,
                                          std::uint64_t different_periods = 5) {
  Random random(seed);
  std::vector<ClusterJob> jobs;
  for (std::size_t i = 0; i < count; ++i) {
    const auto period = Nanos(60'000'000 + 20'000'000 * static_cast<std::int64_t>(random.below(different_periods)));
    const Nanos busy = period * static_cast<std::int64_t>(2 + random.below(5)) / 10;
    std::vector<Topology::Host> workers;
    for (std::size_t k = 0; k < 2 + random.below(3); ++k)
      workers.push_back(static_cast<Topology::Host>(random.below(hosts)));
    jobs.push_back({"job " + std::to_string(i), {period, {{0_ns, busy, Rate::from_gbps(10)}}}, ring(workers)});
  }
  return jobs;
}

inline void expect_same(const ClusterSolution& a, const ClusterSolution& b) {
  ASSERT_EQ(a.links.size(), b.links.size());
  for (std::size_t i = 0; i < a.links.size(); ++i) EXPECT_EQ(a.links[i].solution.score, b.links[i].solution.score);
  for (std::size_t i = 0; i < a.jobs.size(); ++i) {
    EXPECT_EQ(a.jobs[i].time_shift, b.jobs[i].time_shift);
    EXPECT_EQ(a.jobs[i].slot_period, b.jobs[i].slot_period);
  }
  EXPECT_EQ(a.score, b.score);
  EXPECT_EQ(a.upper_bound, b.upper_bound);
  EXPECT_EQ(a.lost, b.lost);
}

inline SolveOptions little_work() {
  SolveOptions options;
  options.node_limit = 2'000;
  return options;
}

}  // namespace mltcp::scheduler::testing_clusters
