// Compares the search without its heuristic, and the bounds, with a search over all time shifts.
#include "mltcp/scheduler/internal/search.h"

#include <gtest/gtest.h>

#include "instances.h"
#include "mltcp/scheduler/internal/configuration_bound.h"

namespace mltcp::scheduler::internal {
namespace {

using namespace scheduler::testing;

/// Returns the search's model of a problem with one link, whose periods must have a short common multiple.
Model model_of(const Problem& problem) {
  Model model;
  model.perimeter = 1;
  model.capacities = {static_cast<std::int64_t>(problem.links[0].capacity.bits_per_second)};
  for (const Problem::Use& use : problem.links[0].uses) {
    const std::int64_t period = use.demand.period.count;
    model.perimeter = std::lcm(model.perimeter, period);
    model.jobs.push_back({period, {curve_of(use.demand, 0, period)}, {}, use.job, false, 0});
  }
  return model;
}

/// Returns the lowest excess over all time shifts of whole nanoseconds.
Int128 min_excess(const Problem& problem, const Model& model) {
  const double lost = 1 - BruteForce(problem, 1).best_score();
  return static_cast<Int128>(lost * static_cast<double>(model.perimeter) * static_cast<double>(model.capacities[0]) +
                             0.5);
}

TEST(minimise, finds_the_optimum_from_a_poor_start) {
  Random random(31);
  int improved = 0;
  for (int i = 0; i < 1'500; ++i) {
    const Problem problem = random_link(random, 3 + random.below(2), 12, 1);
    const Model model = model_of(problem);
    const Found start = minimise(model, {0, 0, 0, 1, false});
    const Found found = minimise(model, {100'000, 0, 0, 1, false});
    ASSERT_EQ(found.bound, found.excess) << i;
    ASSERT_EQ(found.excess, min_excess(problem, model)) << i;
    improved += found.excess < start.excess ? 1 : 0;
  }
  EXPECT_GT(improved, 20);
}

TEST(minimise, bounds_of_every_length_of_search_hold) {
  Random random(32);
  for (int i = 0; i < 150; ++i) {
    const Problem problem = random_link(random, 4, 12, 1);
    const Model model = model_of(problem);
    const Int128 min = min_excess(problem, model);
    Int128 bound = 0;
    for (std::uint64_t nodes = 0; nodes < 60; nodes += 3) {
      const Found found = minimise(model, {nodes, 0, 0, 1, false});
      ASSERT_LE(found.bound, min) << i;
      ASSERT_GE(found.excess, min) << i;
      ASSERT_GE(found.bound, bound) << i;  // more work must not make the bound worse
      bound = found.bound;
    }
  }
}

/// Returns identical jobs on a link of capacity 100. In each period of 100 ns, each job sends at rate `level` for `up`
/// ns.
Model alike(std::uint32_t jobs, std::int64_t up, std::uint64_t level) {
  Model model{100, {100}, {}, true, 0};
  for (std::uint32_t j = 0; j < jobs; ++j)
    model.jobs.push_back(
        {100, {curve_of({Nanos(100), {{Nanos(0), Nanos(up), Rate(level)}}}, 0, 100)}, {}, j, false, 0});
  return model;
}

TEST(minimise, nodes__are_all_sweeps_that_it_took) {
  // The search sweeps four times: once to place the second job, once for each of the two jobs, and once for the pair.
  EXPECT_EQ(minimise(alike(2, 60, 60), {0, 0, 0, 1, false}).nodes, 4u);
  // Each pair of the four jobs fits, but no triple does. The search needs 14 sweeps for each of the four triples, and
  // 68 sweeps for all four jobs.
  const Found four = minimise(alike(4, 40, 60), {1'000, 0, 0, 1, false});
  EXPECT_EQ(four.excess, 20 * 60);
  EXPECT_EQ(four.nodes, 68u + 4 * 14u);
}

TEST(minimise, descent__ends_when_no_job_with_excess_has_got_better) {
  // Two jobs exceed the capacity of link 0. Only the third job uses link 1.
  Model model{100, {100, 100}, {}, true, 0};
  for (std::uint32_t j = 0; j < 3; ++j)
    model.jobs.push_back(
        {100, {curve_of({Nanos(100), {{Nanos(0), Nanos(60), Rate(60)}}}, j / 2, 100)}, {}, j, false, 0});
  const Found found = minimise(model, {0, 0, 0, 1, false});
  EXPECT_EQ(found.excess, 20 * 20);
  EXPECT_EQ(found.nodes, 7u) << "two to put jobs in, two of the descent, three alone";
}

TEST(minimise, bounds__are_tight_with_little_work) {
  Random random(77);
  Int128 bounds = 0;
  Int128 excess = 0;
  for (int i = 0; i < 100; ++i) {
    const Found found = minimise(model_of(random_link(random, 6, 12, 1)), {60, 2, 8, 1, false});
    bounds += found.bound;
    excess += found.excess;
  }
  EXPECT_LE(static_cast<std::int64_t>(excess), 1512);
  EXPECT_GE(static_cast<std::int64_t>(bounds), 1440);
}

TEST(minimise, heuristic__takes_out_any_jobs_to_put_them_back) {
  Random random(78);
  Int128 excess = 0;
  for (const std::size_t jobs : {6U, 8U, 10U})
    for (int i = 0; i < 100; ++i)
      excess += minimise(model_of(random_link(random, jobs, 24, 1)), {0, 40, 40, 1, false}).excess;
  EXPECT_LE(static_cast<std::int64_t>(excess), 10'669);
}

TEST(configuration_bound, is_never_above_the_least_excess) {
  Random random(33);
  int positive = 0;
  for (int i = 0; i < 500; ++i) {
    const Problem problem = random_link(random, 4, 12, 1);
    const Model model = model_of(problem);
    std::vector<ConfigurationBound::Set> sets;
    for (std::uint32_t a = 0; a < 4; ++a)
      for (std::uint32_t b = 0; b < a; ++b) {
        Model two{model.perimeter, model.capacities, {model.jobs[a], model.jobs[b]}, true, 0};
        two.jobs[0].twins = 0;
        two.jobs[1].twins = 1;
        sets.push_back({std::uint64_t{1} << a | std::uint64_t{1} << b, minimise(two, {100, 0, 0, 1, false}).excess, 0});
      }
    const Int128 min = min_excess(problem, model);
    const Int128 root = ConfigurationBound(model, sets).root();
    ASSERT_LE(root, min) << i;
    // Except for rounding, the bound is at least as high as the bound from the area of the demands.
    Int128 area = -static_cast<Int128>(model.capacities[0]) * model.perimeter;
    for (const Problem::Use& use : problem.links[0].uses)
      for (const Burst& burst : use.demand.bursts)
        area += static_cast<Int128>((burst.to - burst.from).count) * static_cast<Int128>(burst.rate.bits_per_second) *
                (model.perimeter / use.demand.period.count);
    ASSERT_GE(root, area - 1) << i;
    positive += root > std::max<Int128>(area, 0) ? 1 : 0;
  }
  EXPECT_GT(positive, 100);
}

TEST(configuration_bound, sees_that_bursts_above_half_do_not_fit_together) {
  // Three jobs send at 60% of the capacity half of the time. So for half of the time two of them send together, with an
  // excess of 20%.
  Model model{100, {100}, {}, true, 0};
  for (std::uint32_t j = 0; j < 3; ++j)
    model.jobs.push_back({100, {curve_of({Nanos(100), {{Nanos(0), Nanos(50), Rate(60)}}}, 0, 100)}, {}, 0, false, 0});
  EXPECT_NEAR(static_cast<double>(ConfigurationBound(model, {}).root()), 20 * 50, 1);
  EXPECT_EQ(minimise(model, {1'000, 4, 4, 1, false}).excess, 20 * 50);
}

TEST(configuration_bound, adds_up_no_levels_that_exclude_each_other) {
  // The sum of all levels of both jobs needs more than 64 bits. The sum of one level of each job fits.
  constexpr std::int64_t time = std::int64_t{1} << 20;
  Model model{16 * time, {std::int64_t{1} << 60}, {}, true, 0};
  for (std::uint32_t j = 0; j < 2; ++j) {
    Curve curve;
    std::int64_t before = 0;
    for (std::int64_t level = 1; level <= 16; ++level) {
      const std::int64_t after = level == 16 ? 0 : (std::int64_t{1} << 60) + ((16 - level) << 54);
      curve.steps.push_back({level * time - time, before, after});
      before = after;
      curve.peak = std::max(curve.peak, after);
    }
    curve.level = curve.steps.front().after;
    model.jobs.push_back({16 * time, {curve}, {}, 0, false, 0});
  }
  const Int128 min = minimise(model, {0, 4, 4, 1, false}).excess;
  const Int128 root = ConfigurationBound(model, {}).root();
  EXPECT_LE(root, min);
  EXPECT_GT(root, min / 2);
}

TEST(widened, takes_the_highest_demand_within_reach) {
  Random random(34);
  for (int i = 0; i < 500; ++i) {
    const std::int64_t period = 20;
    // the demand is in half units, because windows include both ends
    const Demand demand = random_demand(random, period, 2, 5);
    const Curve curve = curve_of(demand, 0, 2 * period);
    const std::int64_t by = 2 * static_cast<std::int64_t>(random.below(10));
    const Curve wide = widened(curve, 2 * period, by);
    const auto at = [&](const Curve& of, std::int64_t t) {
      Profile sum;
      add({{}}, of, 2 * period, 0, 1, 2 * period, sum);
      std::int64_t value = 0;
      for (const Entry& entry : sum)
        if (entry.at <= t) value = entry.value;
      return value;
    };
    for (std::int64_t t = 1; t < 2 * period; t += 2) {
      std::int64_t highest = 0;
      for (std::int64_t d = -by; d <= by; ++d) {
        highest = std::max(highest, at(curve, ((t + d) % (2 * period) + 2 * period) % (2 * period)));
      }
      ASSERT_EQ(at(wide, t), highest) << i << " at " << t;
    }
  }
}

}  // namespace
}  // namespace mltcp::scheduler::internal
