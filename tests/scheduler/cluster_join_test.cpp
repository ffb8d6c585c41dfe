// Tests how jobs join and leave a cluster, which jobs a join moves, and how slots are stretched.
#include "clusters.h"

namespace mltcp::scheduler {
namespace {

using namespace testing_clusters;

TEST(cluster, join__moves_no_job_if_a_slot_is_free) {
  Cluster cluster(bench_of_links({10, 10}));
  cluster.schedule({job_on("a", 12_ns, 4_ns, 10, {0}), job_on("b", 12_ns, 4_ns, 10, {0}),
                    job_on("x", 7_ns, 4_ns, 10, {1}), job_on("y", 7_ns, 2_ns, 10, {1})});
  const ClusterSolution before = cluster.solution();
  // Jobs a and b leave 4 ns of their period of 12 ns free, in one gap or in two smaller gaps.
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

/// Returns a cluster whose jobs leave 6 ns of their period of 12 ns free, in two gaps of 3 ns. Job c does not fit,
/// because it needs 6 ns in one piece.
Cluster with_scattered_holes(const ClusterOptions& options) {
  Cluster cluster(bench_of_links({10, 10}), options);
  cluster.schedule({job_on("a", 12_ns, 3_ns, 10, {0}), job_on("filler", 12_ns, 3_ns, 10, {0}),
                    job_on("b", 12_ns, 3_ns, 10, {0}), job_on("filler 2", 12_ns, 3_ns, 10, {0})});
  // Four jobs fill the whole period. Two opposite jobs leave, so that the two gaps are not adjacent.
  std::map<std::int64_t, std::string> order;
  for (const auto& job : cluster.solution().jobs) order[job.time_shift.count] = job.name;
  auto leaving = order.begin();
  cluster.leave(leaving->second);
  cluster.leave(std::next(leaving, 2)->second);
  return cluster;
}

TEST(cluster, join__of_a_job_without_competitors_says_so) {
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
  // Every second job of the full circle leaves. That makes four gaps of 2 ns, and the new job needs 8 ns in one piece.
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

TEST(cluster, join__moves_no_job_below_the_threshold_and_says_what_is_lost) {
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
  // Job c has a period of 40.5 ms. Three slots in 120 ms would be too short (40 ms), and two slots would be too long
  // (60 ms). But 47 slots of 40.85 ms fit into 16 periods of 120 ms.
  const Joined joined = cluster.join(job_on("c", Nanos(40'500'000), 1_ms, 10, {0}));
  EXPECT_FALSE(joined.new_slots);
  EXPECT_GE(joined.slot_period, Nanos(40'500'000));
  EXPECT_LE(joined.slot_period, Nanos(41'310'000));
  EXPECT_EQ(cluster.solution().jobs[0].slot_period, 120_ms);
  expect_consistent(cluster);
}

TEST(cluster, join__without_common_slots_the_component_gets_new_ones) {
  // The periods of the jobs in two components have no common multiple of acceptable length. A new job connects the
  // components.
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
  // Three periods of job a equal five periods of job b, but they are longer than 2^53 ns.
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
  EXPECT_THAT(refusal_of(run), HasSubstr("bursts, more than 1000000; let jobs whose periods differ less share links"));
  EXPECT_EQ(cluster.jobs(), 0U);
  // The limit applies to the number of bursts, not to the number of periods.
  ClusterJob often = job_on("tick", 200_us, 10_us, 8, {0});
  for (int i = 1; i < 10; ++i) often.demand.bursts.push_back({Nanos(20'000) * i, Nanos(20'000) * i + 10_us, Rate(8)});
  EXPECT_THAT(refusal_of([&] {
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

/// Returns the mean relative stretch of slots over all jobs.
double mean_stretch(const ClusterSolution& solution) {
  double sum = 0;
  for (const ClusterSolution::SolvedJob& job : solution.jobs)
    sum += job.slot_period.seconds() / job.period.seconds() - 1;
  return sum / static_cast<double>(solution.jobs.size());
}

TEST(cluster, slots__are_stretched_beyond_the_limit_where_collisions_cost_more) {
  // Each job sends 40% of the time. At random shifts, both jobs would send at once 16% of the time. It costs less to
  // stretch job a by 8%.
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
  Cluster alone(bench_of_links({10}), {.max_slot_stretch = 0});
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

// Three jobs get slots of the same length, 104 ms. This is the shortest length with room for all three bursts.
TEST(cluster, slots__have_room_also_where_periods_differ) {
  const auto scheduled = [](double max_slot_stretch) {
    Cluster cluster(bench_of_links({10}), {.max_slot_stretch = max_slot_stretch});
    return cluster.schedule(
        {job_on("a", 97_ms, 34_ms, 10, {0}), job_on("b", 99_ms, 35_ms, 10, {0}), job_on("c", 101_ms, 35_ms, 10, {0})});
  };
  for (const double max_slot_stretch : {0.1, 0.25, 0.3}) {
    const ClusterSolution solution = scheduled(max_slot_stretch);
    EXPECT_EQ(solution.links.at(0).solution.score, 1);
    EXPECT_NEAR(solution.components.at(0).perimeter.millis(), 104, 0.3) << "34 ms after 35 after 35";
  }
}

TEST(cluster, slots__are_not_stretched_where_it_brings_nothing) {
  // Stretching does not pay in three cases. Bursts of 1% of the period hardly ever meet. Bursts of 90% never fit. If
  // the sum of the rates exceeds the capacity only a little, a collision costs little.
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
  // The jobs send for 40, 35 and 30 ms in a period of 100 ms.
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
  // No slots avoid the collisions on link 1. So the slots are hardly stretched, although a stretch of 8% would avoid
  // the collisions on link 0.
  const ClusterJob a = job_on("a", 100_ms, 40_ms, 10, {0});
  const ClusterJob b = job_on("b", 108_ms, 40_ms, 10, {0, 1});
  const ClusterJob c = job_on("c", 108_ms, 90_ms, 10, {1});
  Cluster cluster(bench_of_links({10, 10}));
  EXPECT_LT(mean_stretch(cluster.schedule({a, b, c})), 0.02);
  Cluster any_score(bench_of_links({10, 10}), {.min_score = 0});
  EXPECT_GT(mean_stretch(any_score.schedule({a, b, c})), 0.02);
}

TEST(cluster, slots__depend_on_what_jobs_ask_for_and_on_nothing_else) {
  // The two pairs of jobs, one on each link, have the same periods but different demands. The solver must not use the
  // cached result of one pair for the other pair.
  const std::vector<ClusterJob> jobs{job_on("a", 100_ms, 40_ms, 10, {0}), job_on("b", 108_ms, 40_ms, 10, {0}),
                                     job_on("c", 100_ms, 1_ms, 10, {1}), job_on("d", 108_ms, 1_ms, 10, {1})};
  std::map<std::string, Nanos> slots;
  for (const std::vector<std::size_t>& order : {std::vector<std::size_t>{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}}) {
    for (const std::uint32_t threads : {1U, 3U}) {
      std::vector<ClusterJob> ordered;
      ordered.reserve(order.size());
      for (const std::size_t job : order) ordered.push_back(jobs[job]);
      Cluster cluster(bench_of_links({10, 10}), {.threads = threads});
      for (const ClusterSolution::SolvedJob& job : cluster.schedule(ordered).jobs)
        EXPECT_EQ(slots.try_emplace(job.name, job.slot_period).first->second, job.slot_period) << job.name;
    }
  }
  EXPECT_EQ(slots["a"], 108_ms);
  EXPECT_LT(slots["c"], 102_ms);
}

TEST(cluster, join__moves_no_job_whose_slots_do_for_a_shorter_job) {
  Cluster cluster(bench_of_links({10}));
  cluster.schedule({job_on("b", 108_ms, 20_ms, 10, {0}), job_on("c", 108_ms, 20_ms, 10, {0})});
  const Joined joined = cluster.join(job_on("a", 100_ms, 30_ms, 10, {0}));
  EXPECT_TRUE(joined.moves.empty());
  EXPECT_FALSE(joined.new_slots);
  EXPECT_EQ(joined.slot_period, 108_ms);
  EXPECT_EQ(joined.score, 1);
}

TEST(cluster, join__gives_new_slots_where_the_old_ones_cost_too_much) {
  // The running jobs have slots of 100 ms. A new job with a period of 108 ms collides with them, whatever slots it
  // gets.
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
  // After job b has left, the running jobs return to their former slots.
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
  const Demand max{10_ns, {{0_ns, 8_ns, Rate(10)}}};
  EXPECT_NEAR(cluster.pair_score(half, half, Rate(10)), 1, 1e-12);
  EXPECT_NEAR(cluster.pair_score(half, max, Rate(10)), 0.7, 1e-12);
  EXPECT_NEAR(cluster.pair_score(half, max, Rate(20)), 1, 1e-12);
}

}  // namespace
}  // namespace mltcp::scheduler
