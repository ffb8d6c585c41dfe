// Tests clusters: shifts over whole affinity graphs compared with brute force, ranking, joins and leaves.
#include "mltcp/scheduler/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "clusters.h"
#include "mltcp/base/random.h"

namespace mltcp::scheduler::cluster_test {
namespace {

using namespace testing_clusters;

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
  ASSERT_EQ(solution.links.size(), 2U);  // the contended link and the wide link that leads to it
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
  EXPECT_THAT(message_of<InputError>([&] { static_cast<void>(cluster.link_problem(0)); }),
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

/// Checks a theorem: on a graph without loops, shifts composed link by link are optimal.
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
  // Any two of the jobs fit. But each of the three jobs sends half of the time, so no job can avoid both others.
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
  // The same two jobs meet on all three links. Links 0 and 1 are equal, and the score counts both. The capacity of link
  // 2 differs.
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
    std::vector<Topology::Link> path{from};  // the link from a host to its switch has the host's number
    for (const Topology::Link link : over(spine)) path.push_back(link);
    path.push_back(topology.find_link("leaf 1 -> host " + std::to_string(from + 2)));
    return ClusterJob{name, {10_ns, {{0_ns, 5_ns, Rate(10)}}}, {{from, from + 2, 1, path}}};
  };
  EXPECT_TRUE(cluster.schedule({job("a", 0, 0), job("b", 1, 1)}).links.empty());
  const ClusterSolution& solution = cluster.schedule({job("a", 0, 1), job("b", 1, 1)});
  ASSERT_EQ(solution.links.size(), 2U);
  EXPECT_EQ(topology.link_name(solution.links[0].link), "leaf 0 -> spine 1");
  EXPECT_EQ(solution.loops, 0U);  // both links carry the same jobs, so they make no loop
}

TEST(cluster, schedule__bad_input_has_one_clear_error) {
  Cluster cluster(bench_of_links({100}));
  const ClusterJob good = job_on("a", 10_ns, 5_ns, 40, {0});
  const auto error_with = [&](const std::function<void(ClusterJob&)>& change) {
    ClusterJob job = good;
    job.name = "b";
    change(job);
    return refusal_of([&] { cluster.schedule({good, job}); });
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
  // The rejected calls have changed nothing.
  EXPECT_EQ(cluster.jobs(), 2U);
  EXPECT_EQ(refusal_of([&] { cluster.join(good); }), "two jobs are called \"a\"; give every job a name of its own");
  EXPECT_EQ(refusal_of([&] { cluster.leave("x"); }), "no job \"x\" runs; only running jobs can leave");
  EXPECT_EQ(refusal_of([&] { static_cast<void>(cluster.rank(std::vector<Candidate>{{{good}}})); }),
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

/// There are too many jobs and links for a full search. rank() starts from the running jobs, schedule() from scratch.
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
  // rank() has not changed the cluster.
  EXPECT_EQ(cluster.jobs(), 2U);
  EXPECT_EQ(cluster.join(near).moves.size(), 0U);
}

TEST(cluster, constructor__names_the_option_out_of_range) {
  const auto error_with = [](const std::function<void(ClusterOptions&)>& change) {
    ClusterOptions options;
    change(options);
    return refusal_of([&] { const Cluster cluster(bench_of_links({10}), options); });
  };
  EXPECT_EQ(error_with([](ClusterOptions&) {}), "no error");
  for (const double bad : {-0.1, std::nan(""), HUGE_VAL}) {
    EXPECT_THAT(error_with([=](ClusterOptions& options) { options.join_threshold = bad; }),
                HasSubstr("join_threshold is"));
    EXPECT_THAT(error_with([=](ClusterOptions& options) { options.max_slot_stretch = bad; }),
                HasSubstr("max_slot_stretch is"));
    EXPECT_THAT(error_with([=](ClusterOptions& options) { options.min_score = bad; }), HasSubstr("min_score is"));
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

}  // namespace
}  // namespace mltcp::scheduler::cluster_test
