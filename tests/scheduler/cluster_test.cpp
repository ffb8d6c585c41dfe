// Clusters: shifts over whole affinity graphs against brute force, ranking, joins and leaves.
#include "mltcp/scheduler/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"

namespace mltcp::scheduler::cluster_test {
namespace {

using namespace literals;
using testing::HasSubstr;

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// A network in which any affinity graph can be drawn: link l of `capacities` leads from switch l to host 2l + 1, and a
/// flow from host 2l crosses it alone. All other links are wide.
Topology bench_of_links(const std::vector<std::uint64_t>& capacities) {
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

/// A job with demand for `rate` from the beginning of its period for `busy`, on those links.
ClusterJob job_on(const std::string& name, Nanos period, Nanos busy, std::uint64_t rate,
                  const std::vector<std::uint32_t>& links) {
  ClusterJob job{name, {period, {{0_ns, busy, Rate(rate)}}}, {}};
  for (const std::uint32_t link : links) job.flows.push_back({2 * link, 2 * link + 1, 1, {}});
  return job;
}

/// Independent of the solver: demand summed nanosecond by nanosecond over the common perimeter.
double score_by_hand(const std::vector<const ClusterJob*>& jobs, const std::vector<std::uint32_t>& flows,
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

/// Sum over the solution's links, by hand, for shifts of all jobs.
double sum_by_hand(const Cluster& cluster, const std::vector<std::int64_t>& shifts) {
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

/// The best sum of link scores over all shifts of whole nanoseconds.
double best_by_hand(const Cluster& cluster) {
  const ClusterSolution& solution = cluster.solution();
  std::vector<std::int64_t> shifts(solution.jobs.size());
  double best = -1e9;
  for (bool more = true; more;) {
    best = std::max(best, sum_by_hand(cluster, shifts));
    std::size_t job = 1;  // the first stays at 0
    while (job < shifts.size() && ++shifts[job] == solution.jobs[job].slot_period.count) shifts[job++] = 0;
    more = job < shifts.size();
  }
  return best;
}

std::vector<std::int64_t> shifts_of(const ClusterSolution& solution) {
  std::vector<std::int64_t> shifts;
  for (const ClusterSolution::Job& job : solution.jobs) shifts.push_back(job.time_shift.count);
  return shifts;
}

double sum_of(const ClusterSolution& solution) {
  double sum = 0;
  for (const ClusterSolution::Link& link : solution.links) sum += link.solution.score;
  return sum;
}

/// What has to hold of every solution: the scores are those of the shifts, and sums and bounds agree with each other.
void expect_consistent(const Cluster& cluster) {
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
  for (const ClusterSolution::Job& job : solution.jobs) {
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

SolveOptions exact_slots() {
  SolveOptions options;
  options.max_stretch = 0;
  return options;
}

/// Small jobs on random links; a tree or not.
std::vector<ClusterJob> random_jobs(Random& random, std::size_t jobs, std::uint32_t links, bool loops) {
  const std::array<std::int64_t, 4> periods{4, 6, 8, 12};
  std::vector<std::set<std::uint32_t>> on(jobs);
  for (std::uint32_t link = 0; link < links; ++link) {
    if (loops) {
      on[random.below(jobs)].insert(link);
      on[random.below(jobs)].insert(link);
    } else {
      // Link l joins job l + 1 to one before it.
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

std::vector<std::uint64_t> random_capacities(Random& random, std::uint32_t links, std::uint64_t least = 50) {
  std::vector<std::uint64_t> capacities;
  for (std::uint32_t i = 0; i < links; ++i) capacities.push_back(least + random.below(60));
  return capacities;
}

TEST(cluster, ring__leaves_out_flows_within_a_host) {
  const std::vector<Topology::Host> workers{4, 4, 7, 9};
  const std::vector<Flow> flows = ring(workers);
  ASSERT_EQ(flows.size(), 3U);
  EXPECT_EQ(flows[0].from, 4U);
  EXPECT_EQ(flows[0].to, 7U);
  EXPECT_EQ(flows[2].to, 4U);
  EXPECT_TRUE(ring(std::vector<Topology::Host>{3, 3}).empty());
  EXPECT_TRUE(ring({}).empty());
}

TEST(cluster, schedule__two_jobs_of_40_and_60_ms_share_a_circle_of_120_ms) {
  Cluster cluster(bench_of_links({100}));
  const ClusterSolution& solution =
      cluster.schedule({job_on("a", 40_ms, 20_ms, 100, {0}), job_on("b", 60_ms, 10_ms, 100, {0})});
  ASSERT_EQ(solution.links.size(), 2U);  // and the wide one that leads there
  EXPECT_FALSE(solution.links[1].competed);
  EXPECT_EQ(solution.links[0].solution.perimeter, 120_ms);
  EXPECT_EQ(solution.components.at(0).perimeter, 120_ms);
  expect_consistent(cluster);
}

TEST(cluster, schedule__jobs_that_never_compete_run_as_they_are) {
  Cluster cluster(bench_of_links({100}));
  const ClusterSolution& solution =
      cluster.schedule({job_on("a", 40_ms, 20_ms, 50, {0}), job_on("b", Nanos(61'234'567), 10_ms, 50, {0})});
  EXPECT_EQ(solution.score, 1);
  EXPECT_TRUE(solution.optimal);
  EXPECT_EQ(solution.components.size(), 2U);
  EXPECT_EQ(solution.jobs[1].slot_period, Nanos(61'234'567));
  EXPECT_EQ(solution.links.at(0).solution.margin, 20_ms);
  EXPECT_THAT(error_of([&] { static_cast<void>(cluster.link_problem(0)); }),
              HasSubstr("no jobs compete on link \"link 0\""));
}

TEST(cluster, schedule__nothing_to_do_for_no_jobs) {
  Cluster cluster(Topology::single_switch(2, Rate(1)));
  EXPECT_EQ(cluster.schedule({}).score, 1);
  EXPECT_TRUE(cluster.solution().optimal);
}

TEST(cluster, schedule__flows_of_a_job_on_one_link_add_up) {
  Cluster cluster(bench_of_links({100}));
  ClusterJob a = job_on("a", 10_ns, 5_ns, 40, {0});
  a.flows[0].multiplicity = 2;
  cluster.schedule({a, job_on("b", 10_ns, 10_ns, 40, {0})});
  EXPECT_EQ(cluster.solution().links.at(0).uses, (std::vector<LinkUse>{{0, 2}, {1, 1}}));
  EXPECT_NEAR(cluster.solution().links.at(0).solution.score, 1 - 0.5 * 0.2, 1e-12);
}

/// The theorem: on a graph without loops, shifts composed link by link are as good as any.
TEST(cluster, schedule__without_loops_equals_brute_force_over_all_shifts) {
  Random random(11);
  for (int round = 0; round < 60; ++round) {
    const auto links = static_cast<std::uint32_t>(1 + random.below(3));
    Cluster cluster(bench_of_links(random_capacities(random, links)), {.solve = exact_slots()});
    const ClusterSolution& solution = cluster.schedule(random_jobs(random, links + 1, links, false));
    ASSERT_EQ(solution.loops, 0U);
    expect_consistent(cluster);
    EXPECT_NEAR(sum_of(solution), sum_by_hand(cluster, shifts_of(solution)), 1e-9) << "round " << round;
    EXPECT_NEAR(sum_of(solution), best_by_hand(cluster), 1e-9) << "round " << round;
    EXPECT_TRUE(solution.optimal);
    EXPECT_EQ(solution.lost, 0);
  }
}

TEST(cluster, schedule__loops_are_solved_jointly_and_what_is_lost_is_said) {
  Random random(12);
  int with_loops = 0;
  int with_loss = 0;
  for (int round = 0; round < 300; ++round) {
    const auto links = static_cast<std::uint32_t>(3 + random.below(3));
    Cluster cluster(bench_of_links(random_capacities(random, links, 30)), {.solve = exact_slots()});
    const ClusterSolution& solution = cluster.schedule(random_jobs(random, 3, links, true));
    expect_consistent(cluster);
    const double best = best_by_hand(cluster);
    EXPECT_NEAR(sum_of(solution), sum_by_hand(cluster, shifts_of(solution)), 1e-9) << "round " << round;
    EXPECT_NEAR(sum_of(solution), best, 1e-9) << "round " << round;
    double alone = 0;
    for (std::size_t i = 0; i < solution.links.size(); ++i)
      alone += solution.links[i].competed
                   ? solve(cluster.link_problem(i).problem, cluster.link_problem(i).slots).links[0].score
                   : 1;
    EXPECT_NEAR(solution.lost, alone - sum_of(solution), 1e-9) << "round " << round;
    with_loops += solution.loops > 0 ? 1 : 0;
    with_loss += solution.lost > 1e-6 ? 1 : 0;
  }
  EXPECT_GT(with_loops, 100);
  EXPECT_GT(with_loss, 5);
}

TEST(cluster, schedule__a_loop_that_no_shifts_satisfy_loses) {
  // Each pair fits, but three jobs that are up half of the time can't each avoid the other two.
  Cluster cluster(bench_of_links({10, 10, 10}));
  const ClusterSolution& solution =
      cluster.schedule({job_on("a", 10_ns, 5_ns, 10, {0, 1}), job_on("b", 10_ns, 5_ns, 10, {1, 2}),
                        job_on("c", 10_ns, 5_ns, 10, {2, 0})});
  EXPECT_EQ(solution.loops, 1U);
  EXPECT_NEAR(solution.lost, 0.5, 1e-12);
  EXPECT_NEAR(solution.score * static_cast<double>(solution.links.size()),
              static_cast<double>(solution.links.size()) - 0.5, 1e-12);
}

TEST(cluster, schedule__links_that_are_alike_count_each) {
  // The jobs meet on links 0 and 1 in the same way, and on link 2 with another weight: two against one.
  Cluster cluster(bench_of_links({10, 10, 12}));
  const std::vector<ClusterJob> jobs{job_on("a", 12_ns, 5_ns, 10, {0, 1, 2}), job_on("b", 12_ns, 9_ns, 10, {0, 1, 2})};
  cluster.schedule(jobs);
  EXPECT_EQ(cluster.solution().loops, 1U);
  EXPECT_NEAR(sum_of(cluster.solution()), best_by_hand(cluster), 1e-9);
  Cluster alike(bench_of_links({10, 10, 10}));
  alike.schedule(jobs);
  EXPECT_EQ(alike.solution().loops, 0U);
  EXPECT_EQ(alike.work().solved, 1U);
}

TEST(cluster, schedule__components_have_perimeters_of_their_own) {
  Cluster cluster(bench_of_links({10, 10}), {.solve = exact_slots()});
  const ClusterSolution& solution =
      cluster.schedule({job_on("a", 4_ns, 2_ns, 10, {0}), job_on("b", 6_ns, 1_ns, 10, {0}),
                        job_on("c", 7_ns, 2_ns, 10, {1}), job_on("d", 5_ns, 1_ns, 10, {1})});
  ASSERT_EQ(solution.components.size(), 2U);
  EXPECT_EQ(solution.components[0].perimeter, 12_ns);
  EXPECT_EQ(solution.components[1].perimeter, 35_ns);
  EXPECT_NEAR(sum_of(solution), best_by_hand(cluster), 1e-9);
}

std::vector<ClusterJob> mixed_jobs(std::uint32_t hosts, std::size_t count, std::uint64_t seed,
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

void expect_same(const ClusterSolution& a, const ClusterSolution& b) {
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

SolveOptions little_work() {
  SolveOptions options;
  options.node_limit = 2'000;
  return options;
}

TEST(cluster, schedule__is_the_same_with_one_thread_and_with_several) {
  const Topology topology = Topology::leaf_spine({4, 2, 4, Rate::from_gbps(10), Rate::from_gbps(10)});
  Cluster one(topology, {.solve = little_work(), .threads = 1});
  Cluster several(topology, {.solve = little_work(), .threads = 4});
  const std::vector<ClusterJob> jobs = mixed_jobs(16, 12, 3);
  one.schedule(jobs);
  several.schedule(jobs);
  EXPECT_GT(one.solution().links.size(), 5U);
  expect_same(one.solution(), several.solution());
  std::vector<Candidate> candidates;
  for (std::uint64_t seed = 10; seed < 16; ++seed) {
    candidates.push_back({mixed_jobs(16, 1, seed)});
    candidates.back().jobs[0].name = "new";
  }
  const auto ranked = one.rank(candidates);
  const auto again = several.rank(candidates);
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    EXPECT_EQ(ranked[i].candidate, again[i].candidate);
    EXPECT_EQ(ranked[i].score, again[i].score);
  }
  one.join(candidates[0].jobs[0]);
  several.join(candidates[0].jobs[0]);
  expect_same(one.solution(), several.solution());
}

TEST(cluster, schedule__scores_do_not_depend_on_the_order_of_the_jobs) {
  const Topology topology = Topology::leaf_spine({4, 2, 4, Rate::from_gbps(10), Rate::from_gbps(10)});
  std::vector<ClusterJob> jobs = mixed_jobs(16, 10, 5);
  Cluster cluster(topology, {.solve = little_work()});
  const ClusterSolution before = cluster.schedule(jobs);
  Random random(1);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = jobs.size(); i > 1; --i) std::swap(jobs[i - 1], jobs[random.below(i)]);
    Cluster other(topology, {.solve = little_work()});
    const ClusterSolution& after = other.schedule(jobs);
    ASSERT_EQ(after.links.size(), before.links.size());
    for (std::size_t i = 0; i < after.links.size(); ++i)
      EXPECT_EQ(after.links[i].solution.score, before.links[i].solution.score);
    EXPECT_NEAR(after.lost, before.lost, 1e-9);
    EXPECT_EQ(after.loops, before.loops);
  }
}

TEST(cluster, schedule__explicit_paths_are_taken) {
  const Topology topology = Topology::leaf_spine({2, 2, 2, Rate(10), Rate(10)});
  Cluster cluster(topology);
  const auto over = [&](int spine) {
    return std::vector{topology.find_link("leaf 0 -> spine " + std::to_string(spine)),
                       topology.find_link("spine " + std::to_string(spine) + " -> leaf 1")};
  };
  const auto job = [&](const std::string& name, Topology::Host from, int spine) {
    std::vector<Topology::Link> path{from};  // a host's link up has its number
    for (const Topology::Link link : over(spine)) path.push_back(link);
    path.push_back(topology.find_link("leaf 1 -> host " + std::to_string(from + 2)));
    return ClusterJob{name, {10_ns, {{0_ns, 5_ns, Rate(10)}}}, {{from, from + 2, 1, path}}};
  };
  EXPECT_TRUE(cluster.schedule({job("a", 0, 0), job("b", 1, 1)}).links.empty());
  const ClusterSolution& solution = cluster.schedule({job("a", 0, 1), job("b", 1, 1)});
  ASSERT_EQ(solution.links.size(), 2U);
  EXPECT_EQ(topology.link_name(solution.links[0].link), "leaf 0 -> spine 1");
  EXPECT_EQ(solution.loops, 0U);  // the two links are alike
}

TEST(cluster, schedule__bad_input_has_one_clear_error) {
  Cluster cluster(bench_of_links({100}));
  const ClusterJob good = job_on("a", 10_ns, 5_ns, 40, {0});
  const auto error_with = [&](const std::function<void(ClusterJob&)>& change) {
    ClusterJob job = good;
    job.name = "b";
    change(job);
    return error_of([&] { cluster.schedule({good, job}); });
  };
  EXPECT_EQ(error_with([](ClusterJob&) {}), "no error");
  EXPECT_EQ(error_with([](ClusterJob& job) { job.name = "a"; }),
            "two jobs are called \"a\"; give every job a name of its own");
  EXPECT_EQ(error_with([](ClusterJob& job) { job.name = ""; }), "a job has no name; give every job one of its own");
  EXPECT_EQ(error_with([](ClusterJob& job) { job.flows[0].to = 17; }),
            "job \"b\": there is no host 17; the network has hosts 0 to 1");
  EXPECT_THAT(error_with([](ClusterJob& job) { job.demand.period = 0_ns; }),
              HasSubstr("job \"b\": the period is 0 ns"));
  EXPECT_THAT(error_with([](ClusterJob& job) { job.flows[0].multiplicity = 0; }), HasSubstr("job \"b\": 0 flows"));
  EXPECT_THAT(error_with([](ClusterJob& job) { job.flows[0].path = {0}; }), HasSubstr("job \"b\": the path from"));
  EXPECT_THAT(error_with([](ClusterJob& job) {
                job.demand.bursts[0].rate = kHighestRate;
                job.flows[0].multiplicity = 2;
              }),
              HasSubstr("job \"b\": its flows ask for more than 100 Tbps of link"));
  // Nothing has changed.
  EXPECT_EQ(cluster.jobs(), 2U);
  EXPECT_EQ(error_of([&] { cluster.join(good); }), "two jobs are called \"a\"; give every job a name of its own");
  EXPECT_EQ(error_of([&] { cluster.leave("x"); }), "no job \"x\" runs; only running jobs can leave");
  EXPECT_EQ(error_of([&] { static_cast<void>(cluster.rank(std::vector<Candidate>{{{good}}})); }),
            "two jobs are called \"a\"; give every job a name of its own");
  EXPECT_EQ(cluster.solution().jobs.size(), 2U);
}

TEST(cluster, rank__gives_the_scores_of_scheduling_each_candidate) {
  const Topology topology = Topology::leaf_spine({4, 2, 4, Rate::from_gbps(10), Rate::from_gbps(10)});
  const std::vector<ClusterJob> jobs = mixed_jobs(16, 6, 8, 1);
  Cluster cluster(topology, {.solve = little_work()});
  cluster.schedule(jobs);
  std::vector<Candidate> candidates;
  for (std::uint64_t seed = 20; seed < 30; ++seed) {
    candidates.push_back({mixed_jobs(16, 1, seed, 1)});
    candidates.back().jobs[0].name = "new";
  }
  const auto ranked = cluster.rank(candidates);
  ASSERT_EQ(ranked.size(), candidates.size());
  std::set<std::uint32_t> seen;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    if (i > 0) {
      EXPECT_GE(ranked[i - 1].score, ranked[i].score);
    }
    seen.insert(ranked[i].candidate);
    std::vector<ClusterJob> all = jobs;
    all.push_back(candidates[ranked[i].candidate].jobs[0]);
    Cluster with(topology, {.solve = little_work()});
    EXPECT_NEAR(with.schedule(all).score, ranked[i].score, 1e-12);
    EXPECT_NEAR(with.solution().upper_bound, ranked[i].upper_bound, 1e-12);
    EXPECT_EQ(with.solution().loops, ranked[i].loops);
    double worst = 1;
    for (const auto& link : with.solution().links) worst = std::min(worst, link.solution.score);
    EXPECT_NEAR(worst, ranked[i].worst, 1e-12);
  }
  EXPECT_EQ(seen.size(), candidates.size());
  EXPECT_EQ(cluster.jobs(), jobs.size());
}

/// Too many jobs and links to be searched: ranking begins where the running jobs are, scheduling from nothing.
TEST(cluster, rank__of_large_components_comes_near_scheduling) {
  const Topology topology = Topology::leaf_spine({4, 2, 4, Rate::from_gbps(10), Rate::from_gbps(10)});
  const std::vector<ClusterJob> jobs = mixed_jobs(16, 24, 8);
  Cluster cluster(topology);
  cluster.schedule(jobs);
  expect_consistent(cluster);
  EXPECT_GT(cluster.solution().loops, 20U);
  EXPECT_GT(cluster.solution().score, -0.251) << "less work gets -0.253";
  std::vector<Candidate> candidates(1);
  candidates[0].jobs = mixed_jobs(16, 1, 20);
  candidates[0].jobs[0].name = "new";
  const RankedCandidate ranked = cluster.rank(candidates).front();
  std::vector<ClusterJob> all = jobs;
  all.push_back(candidates[0].jobs[0]);
  const ClusterSolution& together = cluster.schedule(all);
  EXPECT_NEAR(ranked.score, together.score, 0.02);
  EXPECT_LE(ranked.score, ranked.upper_bound);
}

TEST(cluster, rank__solves_only_what_a_candidate_touches) {
  Cluster cluster(bench_of_links({10, 10, 10}));
  cluster.schedule({job_on("a", 12_ns, 5_ns, 10, {0}), job_on("b", 12_ns, 4_ns, 10, {0}),
                    job_on("c", 12_ns, 3_ns, 10, {1}), job_on("d", 12_ns, 7_ns, 10, {1})});
  EXPECT_EQ(cluster.work().solved, 2U);
  const std::vector<Candidate> candidates{{{job_on("e", 12_ns, 6_ns, 10, {1})}}, {{job_on("e", 12_ns, 6_ns, 10, {2})}}};
  const auto ranked = cluster.rank(candidates);
  EXPECT_EQ(cluster.work().solved, 3U);
  EXPECT_EQ(ranked[0].candidate, 1U);
  EXPECT_NEAR(ranked[0].score, 1, 1e-12);
  EXPECT_EQ(cluster.rank(candidates)[1].score, ranked[1].score);
  EXPECT_EQ(cluster.work().solved, 3U);
}

TEST(cluster, rank__discards_loops_where_asked) {
  const std::vector<ClusterJob> running{job_on("a", 12_ns, 5_ns, 10, {0, 1}), job_on("b", 12_ns, 4_ns, 10, {0})};
  const std::vector<Candidate> candidates{{{job_on("c", 12_ns, 2_ns, 10, {0, 1})}},
                                          {{job_on("c", 12_ns, 9_ns, 10, {0})}}};
  Cluster joint(bench_of_links({10, 11}));
  joint.schedule(running);
  EXPECT_EQ(joint.rank(candidates)[0].candidate, 0U);
  EXPECT_EQ(joint.rank(candidates)[0].loops, 1U);
  Cluster paper(bench_of_links({10, 11}), {.discard_loops = true});
  paper.schedule(running);
  const auto ranked = paper.rank(candidates);
  EXPECT_EQ(ranked[0].candidate, 1U);
  EXPECT_FALSE(ranked[0].discarded);
  EXPECT_EQ(ranked[0].reason, "");
  EXPECT_TRUE(ranked[1].discarded);
  EXPECT_EQ(ranked[1].reason, "1 loop of jobs and links");
}

TEST(cluster, rank__discards_the_one_candidate_whose_periods_differ_too_much) {
  Cluster cluster(bench_of_links({10, 10}));
  cluster.schedule({job_on("tick", 18_us, 9_us, 8, {0}), job_on("other", 1_s, 500_ms, 8, {1})});
  const ClusterJob far = job_on("new", Nanos(73'123'456'701), 1_s, 8, {0});
  const ClusterJob near = job_on("new", 1_s, 500_ms, 8, {1});
  const auto ranked = cluster.rank(std::vector<Candidate>{{{far}}, {{near}}, {{far}}});
  ASSERT_EQ(ranked.size(), 3U);
  EXPECT_EQ(ranked[0].candidate, 1U);
  EXPECT_FALSE(ranked[0].discarded);
  EXPECT_DOUBLE_EQ(ranked[0].score, 1);
  EXPECT_EQ(ranked[1].candidate, 0U);
  EXPECT_TRUE(ranked[1].discarded);
  EXPECT_THAT(ranked[1].reason, HasSubstr("bursts, more than 1000000"));
  EXPECT_TRUE(ranked[2].discarded);
  // The cluster goes on as before.
  EXPECT_EQ(cluster.jobs(), 2U);
  EXPECT_EQ(cluster.join(near).moves.size(), 0U);
}

TEST(cluster, constructor__names_the_option_out_of_range) {
  const auto error_with = [](const std::function<void(ClusterOptions&)>& change) {
    ClusterOptions options;
    change(options);
    return error_of([&] { const Cluster cluster(bench_of_links({10}), options); });
  };
  EXPECT_EQ(error_with([](ClusterOptions&) {}), "no error");
  for (const double bad : {-0.1, std::nan(""), HUGE_VAL}) {
    EXPECT_THAT(error_with([=](ClusterOptions& options) { options.join_threshold = bad; }),
                HasSubstr("join_threshold is"));
    EXPECT_THAT(error_with([=](ClusterOptions& options) { options.most_stretch = bad; }), HasSubstr("most_stretch is"));
    EXPECT_THAT(error_with([=](ClusterOptions& options) { options.least_score = bad; }), HasSubstr("least_score is"));
  }
  EXPECT_EQ(error_with([](ClusterOptions& options) { options.threads = 5'000'000; }),
            "threads is 5000000; give at most 1024, or 0 for as many as there are cores");
  EXPECT_EQ(error_with([](ClusterOptions& options) { options.solve.node_limit = 0; }),
            "solve.node_limit is 0; give 1 or more");
  EXPECT_THAT(error_with([](ClusterOptions& options) { options.solve.angles = 2'000'000; }), HasSubstr("angles is"));
  EXPECT_THAT(error_with([](ClusterOptions& options) { options.solve.max_stretch = std::nan(""); }),
              HasSubstr("max_stretch is"));
  EXPECT_THAT(error_with([](ClusterOptions& options) { options.solve.drift = -1; }), HasSubstr("drift is"));
}

TEST(cluster, join__disturbs_nobody_where_a_slot_is_free) {
  Cluster cluster(bench_of_links({10, 10}));
  cluster.schedule({job_on("a", 12_ns, 4_ns, 10, {0}), job_on("b", 12_ns, 4_ns, 10, {0}),
                    job_on("x", 7_ns, 4_ns, 10, {1}), job_on("y", 7_ns, 2_ns, 10, {1})});
  const ClusterSolution before = cluster.solution();
  // a and b leave one hole of 4 in the circle or two smaller ones.
  const std::int64_t apart = (before.jobs[1].time_shift.count - before.jobs[0].time_shift.count + 12) % 12;
  const Nanos fits = apart == 4 || apart == 8 ? 4_ns : 2_ns;
  const Joined joined = cluster.join(job_on("c", 12_ns, fits, 10, {0}));
  EXPECT_TRUE(joined.moves.empty());
  EXPECT_FALSE(joined.new_slots);
  EXPECT_EQ(joined.score, 1);
  EXPECT_EQ(joined.loss, 0);
  for (std::size_t i = 0; i < before.jobs.size(); ++i) {
    EXPECT_EQ(cluster.solution().jobs[i].time_shift, before.jobs[i].time_shift);
    EXPECT_EQ(cluster.solution().jobs[i].slot_period, before.jobs[i].slot_period);
  }
  expect_consistent(cluster);
  EXPECT_EQ(cluster.solution().score, 1);
}

/// Jobs a and b of the circle lie so that c, which needs what they leave in one piece, doesn't fit.
Cluster with_scattered_holes(const ClusterOptions& options) {
  Cluster cluster(bench_of_links({10, 10}), options);
  cluster.schedule({job_on("a", 12_ns, 3_ns, 10, {0}), job_on("filler", 12_ns, 3_ns, 10, {0}),
                    job_on("b", 12_ns, 3_ns, 10, {0}), job_on("filler 2", 12_ns, 3_ns, 10, {0})});
  // In a full circle of four, leaving opposite ones scatters the holes.
  std::map<std::int64_t, std::string> order;
  for (const auto& job : cluster.solution().jobs) order[job.time_shift.count] = job.name;
  auto leaving = order.begin();
  cluster.leave(leaving->second);
  cluster.leave(std::next(leaving, 2)->second);
  return cluster;
}

TEST(cluster, join__of_a_job_that_competes_with_nobody_says_so) {
  Cluster cluster(bench_of_links({10, 10}));
  cluster.schedule({job_on("a", 12_ns, 4_ns, 10, {0})});
  const Joined joined = cluster.join(job_on("b", 7_ns, 4_ns, 10, {1}));
  EXPECT_FALSE(joined.new_slots);
  EXPECT_TRUE(joined.moves.empty());
  EXPECT_EQ(joined.score, 1);
  EXPECT_EQ(joined.slot_period, 7_ns);
}

TEST(cluster, join__moves_one_job_where_that_is_enough) {
  Cluster cluster = with_scattered_holes({});
  ASSERT_EQ(cluster.jobs(), 2U);
  const ClusterSolution before = cluster.solution();
  const Joined joined = cluster.join(job_on("c", 12_ns, 6_ns, 10, {0}));
  EXPECT_EQ(joined.score, 1);
  ASSERT_EQ(joined.moves.size(), 1U);
  EXPECT_FALSE(joined.new_slots);
  int stayed = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& now = cluster.solution().jobs[i];
    if (now.name == joined.moves[0].job) {
      EXPECT_EQ(joined.moves[0].from, before.jobs[i].time_shift);
      EXPECT_EQ(joined.moves[0].to, now.time_shift);
    } else {
      EXPECT_EQ(now.time_shift, before.jobs[i].time_shift);
      ++stayed;
    }
  }
  EXPECT_EQ(stayed, 1);
  expect_consistent(cluster);
}

TEST(cluster, join__moves_two_jobs_where_one_is_not_enough) {
  Cluster cluster(bench_of_links({10}));
  std::vector<ClusterJob> jobs;
  jobs.reserve(8);
  for (int i = 0; i < 8; ++i) jobs.push_back(job_on("job " + std::to_string(i), 16_ns, 2_ns, 10, {0}));
  cluster.schedule(jobs);
  // Every other of a full circle leaves: four holes of 2 ns, and the new job needs 8 ns in one piece.
  std::map<std::int64_t, std::string> order;
  for (const auto& job : cluster.solution().jobs) order[job.time_shift.count] = job.name;
  int place = 0;
  for (const auto& [shift, name] : order)
    if (++place % 2 == 0) cluster.leave(name);
  const Joined joined = cluster.join(job_on("new", 16_ns, 8_ns, 10, {0}));
  EXPECT_EQ(joined.score, 1);
  EXPECT_EQ(joined.moves.size(), 2U);
  EXPECT_EQ(joined.loss, 0);
  expect_consistent(cluster);
}

TEST(cluster, join__moves_nobody_below_the_threshold_and_says_what_is_lost) {
  Cluster cluster = with_scattered_holes({.join_threshold = 0.5});
  const Joined joined = cluster.join(job_on("c", 12_ns, 6_ns, 10, {0}));
  EXPECT_TRUE(joined.moves.empty());
  EXPECT_NEAR(joined.score, 1 - 3.0 / 12, 1e-12);
  EXPECT_NEAR(joined.loss, 3.0 / 12, 1e-12);
  expect_consistent(cluster);
}

TEST(cluster, join__jobs_of_other_components_never_move) {
  Random random(21);
  for (int round = 0; round < 20; ++round) {
    Cluster cluster(bench_of_links(random_capacities(random, 4)));
    std::vector<ClusterJob> jobs = random_jobs(random, 5, 4, true);
    const ClusterJob last = jobs.back();
    jobs.pop_back();
    cluster.schedule(jobs);
    const ClusterSolution before = cluster.solution();
    const Joined joined = cluster.join(last);
    const ClusterSolution& after = cluster.solution();
    expect_consistent(cluster);
    EXPECT_NEAR(sum_of(after), sum_by_hand(cluster, shifts_of(after)), 1e-9);
    std::set<std::string> moved;
    for (const Move& move : joined.moves) moved.insert(move.job);
    for (std::size_t i = 0; i < before.jobs.size(); ++i) {
      const bool same = after.jobs[i].time_shift == before.jobs[i].time_shift &&
                        after.jobs[i].slot_period == before.jobs[i].slot_period;
      EXPECT_EQ(same, !moved.contains(after.jobs[i].name));
      if (after.jobs[i].component != after.jobs.back().component) {
        EXPECT_TRUE(same) << "round " << round;
      }
    }
    EXPECT_LE(joined.loss, ClusterOptions{}.join_threshold + 1e-12);
  }
}

TEST(cluster, join__running_jobs_keep_their_periods_where_one_goes_with_them) {
  Cluster cluster(bench_of_links({10}));
  cluster.schedule({job_on("a", 120_ms, 40_ms, 10, {0}), job_on("b", 120_ms, 20_ms, 10, {0})});
  // 40.5 ms three times in 120 ms would be shorter than the job's period, and 60 ms is too long; 16 periods of 120 ms
  // hold 47 slots of 40.85 ms.
  const Joined joined = cluster.join(job_on("c", Nanos(40'500'000), 1_ms, 10, {0}));
  EXPECT_FALSE(joined.new_slots);
  EXPECT_GE(joined.slot_period, Nanos(40'500'000));
  EXPECT_LE(joined.slot_period, Nanos(41'310'000));
  EXPECT_EQ(cluster.solution().jobs[0].slot_period, 120_ms);
  expect_consistent(cluster);
}

TEST(cluster, join__without_common_slots_the_component_gets_new_ones) {
  // Two components whose perimeters have no common multiple in sight, and a job that joins them.
  Cluster cluster(bench_of_links({10, 10}));
  cluster.schedule({job_on("a", Nanos(100'000'007), 40_ms, 10, {0}), job_on("b", Nanos(100'000'007), 20_ms, 10, {0}),
                    job_on("c", Nanos(103'000'019), 40_ms, 10, {1}), job_on("d", Nanos(103'000'019), 20_ms, 10, {1})});
  const Joined joined = cluster.join(job_on("e", 100_ms, 20_ms, 10, {0, 1}));
  EXPECT_TRUE(joined.new_slots);
  EXPECT_EQ(cluster.solution().components.size(), 1U);
  for (const auto& job : cluster.solution().jobs) EXPECT_LE(job.slot_period.millis(), 1.1 * job.period.millis());
  expect_consistent(cluster);
}

TEST(cluster, join__one_after_the_other_equals_no_worse_than_the_threshold_allows) {
  const Topology topology = Topology::leaf_spine({4, 2, 4, Rate::from_gbps(10), Rate::from_gbps(10)});
  Cluster cluster(topology, {.solve = little_work()});
  for (const ClusterJob& job : mixed_jobs(16, 8, 9)) {
    cluster.join(job);
    expect_consistent(cluster);
  }
  EXPECT_EQ(cluster.jobs(), 8U);
}

TEST(cluster, join__bounds_hold_on_a_grid_of_shifts) {
  Random random(72);
  for (int i = 0; i < 60; ++i) {
    ClusterOptions options;
    options.solve.angles = 7;
    options.solve.max_stretch = 0.3;
    Cluster cluster(bench_of_links({10, 10}), options);
    for (int j = 0; j < 5; ++j) {
      const auto period = static_cast<std::int64_t>(2 + random.below(12));
      const auto busy = static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(period)));
      const std::vector<std::uint32_t> links =
          random.chance(0.5) ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{j % 2 == 0 ? 0U : 1U};
      cluster.join(job_on("job" + std::to_string(j), Nanos(period), Nanos(busy), 4 + random.below(7), links));
      for (const ClusterSolution::Link& link : cluster.solution().links)
        ASSERT_GE(link.solution.upper_bound, link.solution.score) << i << " " << j;
      ASSERT_GE(cluster.solution().upper_bound, cluster.solution().score) << i << " " << j;
    }
  }
}

TEST(cluster, join__the_perimeter_stays_within_the_longest) {
  // On three of the first one's periods the second would fit five times, but they are longer than 2^53 ns.
  constexpr Nanos unit(std::int64_t{1} << 45);
  for (const std::uint32_t repetitions : {32U, 1'000'000U}) {
    ClusterOptions options;
    options.solve.max_repetitions = repetitions;
    Cluster cluster(bench_of_links({10}), options);
    cluster.join(job_on("a", unit * 105, unit, 8, {0}));
    cluster.join(job_on("b", unit * 63, unit, 8, {0}));
    EXPECT_LE(cluster.solution().components[0].perimeter, kLongestPeriod);
    EXPECT_EQ(cluster.solution().score, 1);
  }
}

TEST(cluster, schedule__refuses_periods_that_are_too_different) {
  Cluster cluster(bench_of_links({10}));
  const auto run = [&] {
    cluster.schedule({job_on("tick", 18_us, 9_us, 8, {0}), job_on("epoch", Nanos(73'123'456'701), 1_s, 8, {0})});
  };
  EXPECT_THAT(error_of(run), HasSubstr("bursts, more than 1000000; let jobs whose periods differ less share links"));
  EXPECT_EQ(cluster.jobs(), 0U);
  // It is bursts that count, not periods.
  ClusterJob often = job_on("tick", 200_us, 10_us, 8, {0});
  for (int i = 1; i < 10; ++i) often.demand.bursts.push_back({Nanos(20'000) * i, Nanos(20'000) * i + 10_us, Rate(8)});
  EXPECT_THAT(error_of([&] {
                cluster.schedule({often, job_on("epoch", Nanos(73'123'456'701), 1_s, 8, {0})});
              }),
              HasSubstr("of jobs that share a link, \"tick\" among them, holds"));
}

TEST(cluster, leave__keeps_the_slots_of_the_others) {
  const Topology topology = Topology::leaf_spine({4, 2, 4, Rate::from_gbps(10), Rate::from_gbps(10)});
  Cluster cluster(topology, {.solve = little_work()});
  cluster.schedule(mixed_jobs(16, 10, 4));
  const ClusterSolution before = cluster.solution();
  cluster.leave("job 3");
  ASSERT_EQ(cluster.solution().jobs.size(), 9U);
  for (const auto& job : cluster.solution().jobs) {
    const auto old =
        std::find_if(before.jobs.begin(), before.jobs.end(), [&](const auto& o) { return o.name == job.name; });
    ASSERT_NE(old, before.jobs.end());
    EXPECT_EQ(old->time_shift, job.time_shift);
    EXPECT_EQ(old->slot_period, job.slot_period);
  }
  expect_consistent(cluster);
  cluster.join(mixed_jobs(16, 10, 4)[3]);
  expect_consistent(cluster);
}

/// Over all jobs.
double mean_stretch(const ClusterSolution& solution) {
  double sum = 0;
  for (const ClusterSolution::Job& job : solution.jobs) sum += job.slot_period.seconds() / job.period.seconds() - 1;
  return sum / static_cast<double>(solution.jobs.size());
}

TEST(cluster, slots__are_stretched_beyond_the_limit_where_collisions_cost_more) {
  // Two fifths of the time each: they meet by chance for a sixth of it, and 8% of one of them is cheaper.
  const ClusterJob a = job_on("a", 100_ms, 40_ms, 10, {0});
  const ClusterJob b = job_on("b", 108_ms, 40_ms, 10, {0});
  Cluster cluster(bench_of_links({10}));
  const ClusterSolution& solution = cluster.schedule({a, b});
  EXPECT_EQ(solution.jobs[0].slot_period, 108_ms);
  EXPECT_EQ(solution.jobs[1].slot_period, 108_ms);
  EXPECT_EQ(solution.score, 1);
  EXPECT_NEAR(solution.components.at(0).stretch, 0.08, 1e-9);
  EXPECT_TRUE(solution.components[0].within_limit);
  EXPECT_TRUE(solution.optimal);
  expect_consistent(cluster);
  Cluster alone(bench_of_links({10}), {.most_stretch = 0});
  EXPECT_LE(alone.schedule({a, b}).components.at(0).stretch, 0.02);
  EXPECT_LT(alone.solution().links.at(0).solution.score, 0.98);
}

TEST(cluster, pair_score__refuses_again_what_it_refused) {
  Cluster cluster(bench_of_links({10}));
  const Demand quick{1_us, {{0_us, 1_us, Rate(10'000'000'000)}}};
  const Demand slow{Nanos(9'000'000'000'007), {{0_us, 1_s, Rate(10'000'000'000)}}};
  for (int i = 0; i < 2; ++i)
    EXPECT_THROW(static_cast<void>(cluster.pair_score(quick, slow, Rate(10'000'000'000))), InputError);
}

// The perimeter on which room helps is the one that stretches the most, three jobs in one rhythm.
TEST(cluster, slots__have_room_also_where_periods_differ) {
  const auto scheduled = [](double most_stretch) {
    Cluster cluster(bench_of_links({10}), {.most_stretch = most_stretch});
    return cluster.schedule(
        {job_on("a", 97_ms, 34_ms, 10, {0}), job_on("b", 99_ms, 35_ms, 10, {0}), job_on("c", 101_ms, 35_ms, 10, {0})});
  };
  for (const double most_stretch : {0.1, 0.25, 0.3}) {
    const ClusterSolution solution = scheduled(most_stretch);
    EXPECT_EQ(solution.links.at(0).solution.score, 1);
    EXPECT_NEAR(solution.components.at(0).perimeter.millis(), 104, 0.3) << "34 ms after 35 after 35";
  }
}

TEST(cluster, slots__are_not_stretched_where_it_brings_nothing) {
  // Bursts of a hundredth hardly ever meet; bursts of nine tenths never fit; and where rates together exceed the link
  // by a little, there is little to lose.
  const auto stretch = [](Nanos busy, std::uint64_t rate) {
    Cluster cluster(bench_of_links({10}));
    return mean_stretch(cluster.schedule({job_on("a", 100_ms, busy, rate, {0}), job_on("b", 108_ms, busy, rate, {0})}));
  };
  EXPECT_GT(stretch(40_ms, 10), 0.03);
  EXPECT_LT(stretch(1_ms, 10), 0.01);
  EXPECT_LT(stretch(90_ms, 10), 0.01);
  EXPECT_LT(stretch(40_ms, 6), 0.015);
}

TEST(cluster, slots__have_room_for_jobs_that_nearly_fit) {
  // 40, 35 and 30 ms in 100 ms.
  Cluster cluster(bench_of_links({10}));
  const ClusterSolution& solution = cluster.schedule(
      {job_on("a", 100_ms, 40_ms, 10, {0}), job_on("b", 100_ms, 35_ms, 10, {0}), job_on("c", 100_ms, 30_ms, 10, {0})});
  EXPECT_EQ(solution.score, 1);
  EXPECT_GE(solution.jobs[0].slot_period, 105_ms);
  EXPECT_LT(solution.jobs[0].slot_period, 106_ms);
  EXPECT_TRUE(solution.components.at(0).within_limit);
  expect_consistent(cluster);
}

TEST(cluster, slots__that_one_link_spoils_are_worth_nothing) {
  // On link 1 no slots help: then a and b, whose link would only need 8%, get none either.
  const ClusterJob a = job_on("a", 100_ms, 40_ms, 10, {0});
  const ClusterJob b = job_on("b", 108_ms, 40_ms, 10, {0, 1});
  const ClusterJob c = job_on("c", 108_ms, 90_ms, 10, {1});
  Cluster cluster(bench_of_links({10, 10}));
  EXPECT_LT(mean_stretch(cluster.schedule({a, b, c})), 0.02);
  Cluster any_score(bench_of_links({10, 10}), {.least_score = 0});
  EXPECT_GT(mean_stretch(any_score.schedule({a, b, c})), 0.02);
}

TEST(cluster, slots__depend_on_what_jobs_ask_for_and_on_nothing_else) {
  // Equal periods on both pairs of links, and other demands: nothing that is remembered of one may serve the other.
  const std::vector<ClusterJob> jobs{job_on("a", 100_ms, 40_ms, 10, {0}), job_on("b", 108_ms, 40_ms, 10, {0}),
                                     job_on("c", 100_ms, 1_ms, 10, {1}), job_on("d", 108_ms, 1_ms, 10, {1})};
  std::map<std::string, Nanos> slots;
  for (const std::vector<std::size_t>& order : {std::vector<std::size_t>{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}}) {
    for (const std::uint32_t threads : {1U, 3U}) {
      std::vector<ClusterJob> ordered;
      ordered.reserve(order.size());
      for (const std::size_t job : order) ordered.push_back(jobs[job]);
      Cluster cluster(bench_of_links({10, 10}), {.threads = threads});
      for (const ClusterSolution::Job& job : cluster.schedule(ordered).jobs)
        EXPECT_EQ(slots.try_emplace(job.name, job.slot_period).first->second, job.slot_period) << job.name;
    }
  }
  EXPECT_EQ(slots["a"], 108_ms);
  EXPECT_LT(slots["c"], 102_ms);
}

TEST(cluster, join__disturbs_nobody_whose_slots_do_for_a_shorter_job) {
  Cluster cluster(bench_of_links({10}));
  cluster.schedule({job_on("b", 108_ms, 20_ms, 10, {0}), job_on("c", 108_ms, 20_ms, 10, {0})});
  const Joined joined = cluster.join(job_on("a", 100_ms, 30_ms, 10, {0}));
  EXPECT_TRUE(joined.moves.empty());
  EXPECT_FALSE(joined.new_slots);
  EXPECT_EQ(joined.slot_period, 108_ms);
  EXPECT_EQ(joined.score, 1);
}

TEST(cluster, join__gives_new_slots_where_the_old_ones_cost_too_much) {
  // The running jobs' 100 ms go with no slots of a job of 108 ms that keep it apart from them.
  Cluster cluster(bench_of_links({10}));
  cluster.schedule({job_on("a", 100_ms, 30_ms, 10, {0}), job_on("c", 100_ms, 30_ms, 10, {0})});
  const Joined joined = cluster.join(job_on("b", 108_ms, 30_ms, 10, {0}));
  EXPECT_TRUE(joined.new_slots);
  EXPECT_EQ(joined.moves.size(), 2U);
  for (const Move& move : joined.moves) {
    EXPECT_EQ(move.from_period, 100_ms);
    EXPECT_EQ(move.to_period, 108_ms);
  }
  EXPECT_EQ(joined.score, 1);
  expect_consistent(cluster);
  // They keep what was made for it only as long as it is there.
  const std::vector<Move> back = cluster.leave("b");
  EXPECT_EQ(back.size(), 2U);
  EXPECT_EQ(cluster.solution().jobs[0].slot_period, 100_ms);
  EXPECT_EQ(cluster.solution().score, 1);
  expect_consistent(cluster);
}

TEST(cluster, leave__keeps_slots_that_are_stretched_a_little) {
  Cluster cluster(bench_of_links({10}));
  cluster.schedule({job_on("a", 100_ms, 30_ms, 10, {0}), job_on("b", Nanos(101'900'000), 30_ms, 10, {0}),
                    job_on("c", 100_ms, 30_ms, 10, {0})});
  ASSERT_EQ(cluster.solution().jobs[0].slot_period, Nanos(101'900'000));
  EXPECT_TRUE(cluster.leave("b").empty());
  EXPECT_EQ(cluster.solution().jobs[0].slot_period, Nanos(101'900'000));
}

TEST(cluster, pair_score__of_jobs_that_fit_and_of_jobs_that_do_not) {
  Cluster cluster(bench_of_links({10}));
  const Demand half{10_ns, {{0_ns, 5_ns, Rate(10)}}};
  const Demand most{10_ns, {{0_ns, 8_ns, Rate(10)}}};
  EXPECT_NEAR(cluster.pair_score(half, half, Rate(10)), 1, 1e-12);
  EXPECT_NEAR(cluster.pair_score(half, most, Rate(10)), 0.7, 1e-12);
  EXPECT_NEAR(cluster.pair_score(half, most, Rate(20)), 1, 1e-12);
}

}  // namespace
}  // namespace mltcp::scheduler::cluster_test
