// Tests the solver: problems with known solutions, loops of links, grids, pinned jobs, and invalid input.

#include <numbers>

#include "../message_of.h"
#include "instances.h"
#include "mltcp/base/error.h"
#include "mltcp/scheduler/problem.h"

namespace mltcp::scheduler {
namespace {

using namespace literals;
using namespace testing;

constexpr Rate kLink(50'000'000'000);

Demand up(Nanos period, Nanos from, Nanos to, Rate rate = kLink) { return {period, {{from, to, rate}}}; }

Problem on_one_link(const std::vector<Demand>& demands, Rate capacity = kLink) {
  Problem problem{{}, {{"link", capacity, {}}}};
  for (std::uint32_t j = 0; j < demands.size(); ++j) {
    problem.jobs.push_back({"job" + std::to_string(j), demands[j].period, {}});
    problem.links[0].uses.push_back({j, demands[j]});
  }
  return problem;
}

TEST(solve, the_talks_pair_of_40_and_60_ms) {
  // In 120 ms, job 0 has three bursts of 20 ms, and job 1 has two bursts. One burst of job 1 must overlap a burst of
  // job 0.
  const Problem problem = on_one_link({up(40_ms, 0_ms, 20_ms), up(60_ms, 0_ms, 20_ms)});
  const Solution solution = solve(problem, exact_options());
  EXPECT_EQ(solution.slots.perimeter, 120_ms);
  EXPECT_EQ(solution.links[0].perimeter, 120_ms);
  EXPECT_EQ(solution.slots.repetitions, (std::vector<std::uint32_t>{3, 2}));
  EXPECT_TRUE(solution.optimal);
  // The bursts of job 1 begin 60 ms apart, which is 20 ms modulo 40 ms. So at any shift, the two bursts of job 1
  // overlap bursts of job 0 for 20 ms in total.
  EXPECT_NEAR(solution.score, 1 - 20.0 / 120, 1e-12);
  EXPECT_EQ(solution.upper_bound, solution.score);
  for (std::size_t j = 0; j < 2; ++j) {
    const double angle = rotation(solution.shifts[j], solution.slots.perimeter);
    EXPECT_GE(angle, 0);
    EXPECT_LT(angle, 2 * std::numbers::pi / solution.slots.repetitions[j]);
  }
}

TEST(solve, each_link_of_a_chain_has_the_margin_that_it_has_alone) {
  // Neighbouring links share one job each. The shifts of the links can be combined, so each link keeps the margin that
  // it would have in isolation.
  Random random(17);
  int with_margin = 0;
  for (int round = 0; round < 60; ++round) {
    Problem chain;
    std::vector<Demand> demands;
    for (std::uint32_t j = 0; j < 7; ++j) {
      const Nanos period = random.chance(0.5) ? 1_ms : 2_ms;
      const auto busy = static_cast<std::int64_t>((0.05 + 0.2 * random.uniform()) * static_cast<double>(period.count));
      demands.push_back(up(period, 0_ms, Nanos(busy), Rate(80)));
      chain.jobs.push_back({"job" + std::to_string(j), period, {}});
    }
    for (std::uint32_t l = 0; l < 3; ++l) {
      chain.links.push_back({"link" + std::to_string(l), Rate(100), {}});
      for (std::uint32_t j = 2 * l; j <= 2 * l + 2; ++j) chain.links[l].uses.push_back({j, demands[j]});
    }
    const Solution together = solve(chain);
    if (together.score < 1) continue;
    for (std::size_t l = 0; l < 3; ++l) {
      const Nanos alone =
          solve(on_one_link({demands[2 * l], demands[2 * l + 1], demands[2 * l + 2]}, Rate(100))).links[0].margin;
      EXPECT_GE(together.links[l].margin, alone - 4_us) << "round " << round << ", link " << l;
      with_margin += alone > 20_us ? 1 : 0;
    }
  }
  EXPECT_GT(with_margin, 60);
}

TEST(solve, a_job_beside_links_with_excess_stands_in_the_middle) {
  // Jobs a and b exceed the capacity of link 0 at any shifts. Jobs b and c leave link 1 idle for 40 ms.
  const Demand a = up(100_ms, 0_ms, 80_ms);
  const Demand b = up(100_ms, 0_ms, 40_ms);
  const Demand c = up(100_ms, 0_ms, 20_ms);
  const Problem problem{{{"a", 100_ms, {}}, {"b", 100_ms, {}}, {"c", 100_ms, {}}},
                        {{"link0", kLink, {{0, a}, {1, b}}}, {"link1", kLink, {{1, b}, {2, c}}}}};
  const Solution solution = solve(problem);
  EXPECT_NEAR(solution.links[0].score, 0.8, 1e-12);
  EXPECT_EQ(solution.links[1].score, 1);
  EXPECT_NEAR(solution.links[1].margin.millis(), 10, 0.1);
}

TEST(rotation, time_shift_is_the_angles_share_of_the_perimeter) {
  EXPECT_DOUBLE_EQ(rotation(30_ms, 120_ms), std::numbers::pi / 2);
  EXPECT_DOUBLE_EQ(rotation(0_ms, 120_ms), 0);
}

TEST(solve, two_dlrm_are_fully_compatible) {
  // Each job sends for 40% of an iteration.
  const Demand dlrm = up(250_ms, 20_ms, 120_ms);
  const Solution solution = solve(on_one_link({dlrm, dlrm}));
  EXPECT_EQ(solution.score, 1);
  EXPECT_TRUE(solution.optimal);
  // The gaps are equal, 25 ms each.
  EXPECT_EQ(solution.shifts, (std::vector<Nanos>{0_ms, 125_ms}));
  EXPECT_EQ(solution.links[0].margin, Nanos(12'500'000));
  EXPECT_EQ(solution.links[0].drift_score, 1);  // the assumed drift of 5% of 250 ms equals the margin
}

TEST(solve, two_vgg11_are_partially_compatible) {
  // Each job sends at 45 Gbps for 60% of an iteration. Both jobs send at once 20% of the time, and then exceed the
  // link's capacity by 40 Gbps.
  const Demand vgg = up(200_ms, 0_ms, 120_ms, Rate(45'000'000'000));
  const Solution solution = solve(on_one_link({vgg, vgg}));
  EXPECT_NEAR(solution.score, 1 - 0.2 * 40 / 50, 1e-12);
  EXPECT_TRUE(solution.optimal);
  EXPECT_EQ(solution.upper_bound, solution.score);
  // The bursts overlap by 20 ms at both ends, so a shift of up to 20 ms in either direction costs nothing.
  EXPECT_EQ(solution.shifts, (std::vector<Nanos>{0_ms, 100_ms}));
  EXPECT_EQ(solution.links[0].margin, 10_ms);
}

TEST(solve, gaps_are_equal) {
  const Demand job = up(100_ms, 0_ms, 30_ms);
  const Solution pair = solve(on_one_link({job, job}));
  EXPECT_EQ(pair.shifts, (std::vector<Nanos>{0_ms, 50_ms}));
  EXPECT_EQ(pair.links[0].margin, 10_ms);
  const Solution three = solve(on_one_link({job, job, job}));
  EXPECT_EQ(three.score, 1);
  // The three gaps have 10 ms in total. The search is precise to a few thousandths of half a period.
  EXPECT_NEAR(three.links[0].margin.millis(), 10.0 / 6, 0.03);
}

TEST(solve, score_is_never_clamped) {
  const Demand always = up(100_ms, 0_ms, 100_ms);
  const Solution solution = solve(on_one_link({always, always, always}));
  EXPECT_EQ(solution.score, -1);
  EXPECT_TRUE(solution.optimal);
  // The single job exceeds the link's capacity.
  const Solution alone = solve(on_one_link({up(100_ms, 0_ms, 50_ms, Rate(250'000'000'000))}));
  EXPECT_EQ(alone.links[0].score, -1);
  EXPECT_EQ(alone.score, 1);  // the mean score includes only links with two jobs or more
}

TEST(solve, touching_bursts_are_no_excess) {
  const Solution solution = solve(on_one_link({up(100_ms, 0_ms, 50_ms), up(100_ms, 10_ms, 60_ms)}));
  EXPECT_EQ(solution.score, 1);
  EXPECT_EQ(solution.links[0].margin, 0_ms);
  EXPECT_EQ(solution.shifts[1], 40_ms);
}

TEST(solve, bursts_of_a_stretched_job_keep_their_length) {
  // The slots are 103 ms long, 3 ms longer than the first job's period. The additional silence makes room for the
  // second job's burst.
  Problem problem = on_one_link({up(100_ms, 0_ms, 51_ms), up(103_ms, 0_ms, 52_ms)});
  SolveOptions options;
  options.max_stretch = 0.05;
  const Solution solution = solve(problem, options);
  EXPECT_EQ(solution.slots.perimeter, 103_ms);
  EXPECT_EQ(solution.score, 1);
}

TEST(solve, a_links_perimeter_is_that_of_its_own_jobs) {
  Problem problem = on_one_link({up(20_ms, 0_ms, 10_ms), up(40_ms, 0_ms, 10_ms)});
  problem.jobs.push_back({"other", 60_ms, {}});
  problem.links.push_back({"elsewhere", kLink, {{2, up(60_ms, 0_ms, 60_ms)}, {1, {40_ms, {}}}}});
  const Solution solution = solve(problem, exact_options());
  EXPECT_EQ(solution.slots.perimeter, 120_ms);
  EXPECT_EQ(solution.links[0].perimeter, 40_ms);
  EXPECT_EQ(solution.links[1].perimeter, 120_ms);
  EXPECT_EQ(solution.score, 1);
}

TEST(solve, empty_problems) {
  EXPECT_EQ(solve(Problem{}).score, 1);
  Problem problem{{{"a", 10_ms, {}}}, {{"link", kLink, {}}}};
  const Solution solution = solve(problem);
  EXPECT_EQ(solution.score, 1);
  EXPECT_TRUE(solution.optimal);
  EXPECT_EQ(solution.links[0].perimeter, 0_ms);
  problem.links[0].uses.push_back({0, {10_ms, {}}});
  EXPECT_EQ(solve(problem).links[0].perimeter, 10_ms);
}

TEST(solve, same_seed_same_answer) {
  Random random(3);
  const Problem problem = random_link(random, 7, 60, 1'000'000);
  const Solution a = solve(problem);
  const Solution b = solve(problem);
  EXPECT_EQ(a.shifts, b.shifts);
  EXPECT_EQ(a.upper_bound, b.upper_bound);
}

TEST(solve, order_of_jobs_does_not_matter) {
  Random random(8);
  for (int i = 0; i < 100; ++i) {
    Problem problem = random_link(random, 3, 24, 10);
    const double score = solve(problem, exact_options()).score;
    std::reverse(problem.links[0].uses.begin(), problem.links[0].uses.end());
    ASSERT_NEAR(solve(problem, exact_options()).score, score, 1e-12);
  }
}

TEST(solve, pinned_jobs_stay) {
  Random random(9);
  for (int i = 0; i < 300; ++i) {
    Problem problem = random_link(random, 3 + random.below(2), 18, 1'001);
    const std::uint64_t pinned = 1 + random.below(2);
    for (std::size_t j = 0; j < pinned; ++j)
      problem.jobs[j].pinned =
          // a pinned shift may lie in any iteration of its job
          Nanos(static_cast<std::int64_t>(random.below(40)) * 1'001);
    const Solution solution = solve(problem, exact_options());
    for (std::size_t j = 0; j < pinned; ++j)
      ASSERT_EQ(solution.shifts[j].count, problem.jobs[j].pinned->count % problem.jobs[j].period.count);
    ASSERT_TRUE(solution.optimal);
    ASSERT_NEAR(solution.score, BruteForce(problem, 1'001).best_score(), 1e-12) << i;
  }
}

TEST(solve, all_pinned_is_evaluated) {
  Problem problem = on_one_link({up(100_ms, 0_ms, 50_ms), up(100_ms, 0_ms, 50_ms)});
  problem.jobs[0].pinned = 10_ms;
  problem.jobs[1].pinned = 120_ms;
  const Solution solution = solve(problem);
  EXPECT_NEAR(solution.score, 0.6, 1e-12);
  EXPECT_TRUE(solution.optimal);
  EXPECT_EQ(solution.shifts, (std::vector<Nanos>{10_ms, 20_ms}));
}

/// Returns `jobs` jobs on a ring of as many links, where each job uses two neighbouring links. These are the smallest
/// affinity graphs with loops.
Problem ring(Random& random, std::size_t jobs, std::int64_t perimeter, std::int64_t unit) {
  Problem problem;
  for (std::size_t l = 0; l < jobs; ++l) problem.links.push_back({"link" + std::to_string(l), Rate(), {}});
  for (std::uint32_t j = 0; j < jobs; ++j) {
    const std::int64_t period = random.chance(0.7) ? perimeter : perimeter / 2;
    problem.jobs.push_back({"job" + std::to_string(j), Nanos(period * unit), {}});
    for (const std::size_t l : {std::size_t{j}, (j + 1) % jobs})
      problem.links[l].uses.push_back({j, random_demand(random, period, unit, 7)});
  }
  for (Problem::Link& link : problem.links) link.capacity = Rate(2 + random.below(9));
  return problem;
}

TEST(solve, loops_of_three_links_equal_search_over_all_shifts) {
  Random random(10);
  int exact = 0;
  int lost = 0;
  for (int i = 0; i < 500; ++i) {
    const Problem problem = ring(random, 3, 16, 1'001);
    const Solution solution = solve(problem, exact_options());
    const double best = BruteForce(problem, 1'001).best_score();
    exact += solution.optimal ? 1 : 0;
    ASSERT_NEAR(solution.score, best, 1e-12) << i;
    ASSERT_GE(solution.upper_bound, best - 1e-12);
    double sum = 0;
    for (const LinkSolution& link : solution.links) {
      sum += link.score;
      ASSERT_LE(link.score, link.upper_bound);
      lost += link.score < link.upper_bound ? 1 : 0;
    }
    ASSERT_NEAR(sum / 3, solution.score, 1e-12);
  }
  EXPECT_EQ(exact, 500);
  EXPECT_GT(lost, 50);  // some links have a lower score in a loop than in isolation
}

TEST(solve, loops_of_four_links_cut_off) {
  Random random(11);
  SolveOptions options = exact_options();
  for (int i = 0; i < 60; ++i) {
    const Problem problem = ring(random, 4, 12, 1'001);
    options.node_limit = random.below(60);
    const Solution solution = solve(problem, options);
    const double best = BruteForce(problem, 1'001).best_score();
    ASSERT_GE(solution.upper_bound, best - 1e-12);
    ASSERT_LE(solution.score, best + 1e-12);
    if (solution.optimal) {
      ASSERT_NEAR(solution.score, best, 1e-12);
    }
  }
}

TEST(solve, capacities_without_a_common_multiple) {
  // The capacities of the two links are large primes. The jobs do not have to overlap on either link.
  Problem problem = on_one_link({up(100_ms, 0_ms, 50_ms), up(100_ms, 0_ms, 50_ms)}, Rate(49'999'999'967));
  problem.links.push_back({"other", Rate(99'999'999'977), problem.links[0].uses});
  for (auto& use : problem.links[1].uses) use.demand.bursts[0].rate = problem.links[1].capacity;
  for (auto& use : problem.links[0].uses) use.demand.bursts[0].rate = problem.links[0].capacity;
  const Solution solution = solve(problem);
  EXPECT_EQ(solution.score, 1);
  problem.links[1].uses[1].demand.bursts[0].to = 51_ms;
  EXPECT_NEAR(solve(problem).score, 1 - 0.01 / 2, 1e-12);
}

TEST(solve, grid_is_never_better_than_all_shifts) {
  Random random(12);
  int worse = 0;
  for (int i = 0; i < 200; ++i) {
    const Problem problem = random_link(random, 2 + random.below(2), 24, 1'001);
    SolveOptions options = exact_options();
    const Solution exact = solve(problem, options);
    options.angles = 5 + static_cast<std::uint32_t>(random.below(20));
    const Solution grid = solve(problem, options);
    ASSERT_LE(grid.score, exact.score + 1e-12);
    ASSERT_TRUE(grid.optimal);
    worse += grid.score < exact.score ? 1 : 0;
    // Compares the result with every combination of grid positions.
    const std::int64_t perimeter = grid.links[0].perimeter.count;
    double best = -1e9;
    std::vector<Nanos> shifts(problem.jobs.size());
    const std::uint32_t thirds = problem.jobs.size() == 3 ? options.angles : 1;
    for (std::uint32_t a = 0; a < options.angles; ++a)
      for (std::uint32_t b = 0; b < thirds; ++b) {
        shifts[1] = Nanos(perimeter * a / options.angles % exact.slots.periods[1].count);
        if (problem.jobs.size() == 3) {
          shifts[2] = Nanos(perimeter * b / options.angles % exact.slots.periods[2].count);
        }
        best = std::max(best, evaluate(problem, exact.slots, shifts).score);
      }
    ASSERT_NEAR(grid.score, best, 1e-12);
  }
  EXPECT_GT(worse, 20);
}

TEST(solve, grid_of_5_degrees_is_exact_for_steps_on_it) {
  Random random(13);
  for (int i = 0; i < 100; ++i) {
    const Problem problem = random_link(random, 2 + random.below(2), 72, 1'000);
    SolveOptions options = exact_options();
    options.max_repetitions = 1'000;
    const Solution exact = solve(problem, options);
    if (exact.slots.perimeter.count != 72'000) continue;
    options.angles = 72;
    ASSERT_NEAR(solve(problem, options).score, exact.score, 1e-12);
  }
}

TEST(solve, absurd_common_multiple) {
  const Problem problem = on_one_link(
      {up(Nanos(99'999'991), 0_ms, 30_ms), up(Nanos(100'000'007), 0_ms, 30_ms), up(Nanos(50'000'017), 0_ms, 15_ms)});
  const Solution solution = solve(problem);
  EXPECT_FALSE(solution.slots.exact);
  EXPECT_LT(solution.slots.stretch, 1e-6);
  EXPECT_TRUE(solution.optimal);
}

TEST(solve, too_many_bursts_on_a_perimeter_are_refused) {
  const Demand tick{Nanos(18'000), {{Nanos(0), Nanos(9'000), Rate(8)}}};
  const Demand epoch{Nanos(73'123'456'701), {{Nanos(0), Nanos(1'000'000'000), Rate(8)}}};
  const Problem problem{{{"tick", tick.period, {}}, {"epoch", epoch.period, {}}},
                        {{"uplink", Rate(10), {{0, tick}, {1, epoch}}}}};
  const std::string refused = refusal_of([&] { solve(problem); });
  EXPECT_NE(refused.find("on link \"uplink\" holds 406"), std::string::npos) << refused;
}

TEST(solve, optimal_is_not_said_of_rounded_demands) {
  // The demand on link "thin" is 10^14 times its capacity, which leaves 15 bits for the demands on link "wide". The two
  // jobs together exceed the capacity of "wide" by less than these bits can represent.
  constexpr Nanos period(std::int64_t{1} << 50);
  const Rate half(500'000'000);
  const Problem problem{
      {{"a", period, {}}, {"b", period, {}}},
      {{"thin",
        Rate(1),
        {{0, {period, {{Nanos(0), Nanos(1), Rate(100'000'000'000'000)}}}},
         {1, {period, {{Nanos(0), Nanos(1), Rate(1)}}}}}},
       {"wide",
        Rate(999'999'937),
        {{0, {period, {{Nanos(0), period / 2, half}}}}, {1, {period, {{Nanos(0), period / 2, half}}}}}}}};
  SolveOptions options;
  options.robust = false;
  const Solution found = solve(problem, options);
  const Solution apart = evaluate(problem, found.slots, {Nanos(0), period / 2}, options);
  EXPECT_GE(found.upper_bound, apart.score);
  EXPECT_EQ(found.optimal, found.score == found.upper_bound);
}

TEST(solve, eight_jobs_have_a_bound_and_a_fair_answer) {
  Random random(14);
  for (int i = 0; i < 5; ++i) {
    const Problem problem = random_link(random, 8, 24, 1'000'000);
    SolveOptions options = exact_options();
    options.node_limit = 5'000;
    const Solution solution = solve(problem, options);
    EXPECT_GE(solution.upper_bound, solution.score);
    std::vector<Nanos> shifts(8);
    for (int probe = 0; probe < 200; ++probe) {
      for (std::size_t j = 0; j < 8; ++j)
        shifts[j] =
            Nanos(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(solution.slots.periods[j].count))));
      EXPECT_LE(evaluate(problem, solution.slots, shifts).score, solution.score);
    }
  }
}

TEST(solve, slots_of_the_caller) {
  const Problem problem = on_one_link({up(40_ms, 0_ms, 20_ms), up(60_ms, 0_ms, 20_ms)});
  Slots slots = choose_slots({60_ms, 60_ms});
  EXPECT_EQ(solve(problem, slots).score, 1);  // job 0 waits for job 1 in every iteration
  slots.periods[0] = 30_ms;
  EXPECT_THROW(solve(problem, slots), InputError);
  slots.periods.pop_back();
  EXPECT_THROW(solve(problem, slots), InputError);
}

TEST(pair_scores, of_three_jobs) {
  const Demand half = up(100_ms, 0_ms, 50_ms);
  const Demand max = up(100_ms, 0_ms, 80_ms);
  const Demand too_much = up(100_ms, 0_ms, 10_ms, Rate(100'000'000'000));
  const auto scores = pair_scores({half, max, too_much}, kLink);
  EXPECT_EQ(scores[0][0], 1);
  EXPECT_NEAR(scores[0][1], 0.7, 1e-12);
  EXPECT_EQ(scores[1][0], scores[0][1]);
  EXPECT_NEAR(scores[2][2], 0.9, 1e-12);
  EXPECT_NEAR(scores[1][2], 0.9, 1e-12);
}

TEST(removals, best_first) {
  const Problem problem = on_one_link({up(100_ms, 0_ms, 50_ms), up(100_ms, 0_ms, 80_ms), up(100_ms, 0_ms, 40_ms)});
  const std::vector<Removal> order = removals(problem);
  ASSERT_EQ(order.size(), 3U);
  EXPECT_EQ(order[0].job, 1U);
  EXPECT_EQ(order[0].score, 1);
  EXPECT_EQ(order[1].job, 0U);
  EXPECT_NEAR(order[1].score, 0.8, 1e-12);
  EXPECT_EQ(order[2].job, 2U);
  EXPECT_NEAR(order[2].score, 0.7, 1e-12);
  for (const Removal& removal : order) EXPECT_EQ(removal.upper_bound, removal.score);
}

/// Returns the message of the error with which the solver rejects the problem.
std::string refusal(const Problem& problem, const SolveOptions& options = {}) {
  return refusal_of([&] { solve(problem, options); });
}

TEST(check, names_what_is_wrong) {
  const Problem good = on_one_link({up(40_ms, 0_ms, 20_ms), up(60_ms, 0_ms, 20_ms)});
  EXPECT_EQ(refusal(good), "no error");
  Problem bad = good;
  bad.jobs[1].name = "job0";
  EXPECT_THAT(refusal(bad), HasSubstr("two jobs are named \"job0\""));
  bad = good;
  bad.jobs[1].name = "";
  EXPECT_THAT(refusal(bad), HasSubstr("a job has no name"));
  bad = good;
  bad.jobs[1].period = 0_ms;
  EXPECT_THAT(refusal(bad), HasSubstr("job \"job1\" has a period of 0 ns"));
  bad = good;
  bad.jobs[1].period = 61_ms;
  EXPECT_THAT(refusal(bad), HasSubstr("job \"job1\" has a period of 61000000 ns, its demand on link \"link\""));
  bad = good;
  bad.jobs[0].pinned = Nanos(-1);
  EXPECT_THAT(refusal(bad), HasSubstr("job \"job0\" is pinned at -1 ns"));
  bad = good;
  bad.links.push_back(bad.links[0]);
  EXPECT_THAT(refusal(bad), HasSubstr("two links are named \"link\""));
  bad = good;
  bad.links[0].name = "";
  EXPECT_THAT(refusal(bad), HasSubstr("a link has no name"));
  bad = good;
  bad.links[0].capacity = Rate(0);
  EXPECT_THAT(refusal(bad), HasSubstr("link \"link\" has a capacity of 0 bit/s"));
  bad = good;
  bad.links[0].uses[1].job = 2;
  EXPECT_THAT(refusal(bad), HasSubstr("link \"link\" is used by job number 2, and there are 2 jobs"));
  bad = good;
  bad.links[0].uses[1] = bad.links[0].uses[0];
  EXPECT_THAT(refusal(bad), HasSubstr("link \"link\" is used twice by job \"job0\""));
  bad = good;
  bad.links[0].uses[1].demand.bursts[0].to = 61_ms;
  EXPECT_THAT(refusal(bad), HasSubstr("job \"job1\" on link \"link\": the burst"));
  SolveOptions options;
  options.drift = 0.6;
  EXPECT_THAT(refusal(good, options), HasSubstr("drift is 0.6"));
  options = {};
  options.max_stretch = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refusal(good, options), HasSubstr("max_stretch is nan"));
}

TEST(evaluate, refuses_shifts_that_do_not_fit) {
  const Problem problem = on_one_link({up(40_ms, 0_ms, 20_ms), up(60_ms, 0_ms, 20_ms)});
  const Slots slots = choose_slots({40_ms, 60_ms}, exact_options());
  EXPECT_THROW(evaluate(problem, slots, {0_ms}), InputError);
  EXPECT_THROW(evaluate(problem, slots, {40_ms, 0_ms}), InputError);
  EXPECT_THROW(evaluate(problem, slots, {Nanos(-1), 0_ms}), InputError);
  // At shifts 0, both jobs send from 0 to 20 ms. The other bursts do not overlap. So 20 of 120 ms are in excess.
  EXPECT_NEAR(evaluate(problem, slots, {0_ms, 0_ms}).score, 1 - 20.0 / 120, 1e-12);
}

}  // namespace
}  // namespace mltcp::scheduler
