// Tests the cost of deviations from the slots. Compares margins and guarantees with an exhaustive search.
#include <gtest/gtest.h>

#include "instances.h"
#include "mltcp/scheduler/problem.h"

namespace mltcp::scheduler {
namespace {

using namespace testing;

Nanos turned(Nanos shift, std::int64_t by, Nanos period) {
  return Nanos(((shift.count + by) % period.count + period.count) % period.count);
}

/// Returns the lowest score when each job deviates from its shift by any whole number of units up to `reach`.
double worst(const BruteForce& brute, const std::vector<std::int64_t>& shifts, std::int64_t reach) {
  double min = 1e9;
  std::vector<std::int64_t> moved = shifts;
  const auto move = [&](auto&& self, std::size_t job) -> void {
    if (job == shifts.size()) {
      min = std::min(min, brute.score(moved));
      return;
    }
    for (std::int64_t by = -reach; by <= reach; ++by) {
      moved[job] = ((shifts[job] + by) % brute.periods()[job] + brute.periods()[job]) % brute.periods()[job];
      self(self, job + 1);
    }
  };
  move(move, 0);
  return min;
}

/// Demands change only at whole units. Between whole units, the excess is linear, so a margin is a whole number of half
/// units.
TEST(margin, equals_the_largest_deviation_that_costs_nothing) {
  constexpr std::int64_t unit = 2;  // an even number, so that half a unit is a whole nanosecond
  Random random(21);
  int positive = 0;
  int weak = 0;
  for (int i = 0; i < 400; ++i) {
    const std::size_t jobs = 2 + random.below(2);
    const Problem problem = random_link(random, jobs, 12, unit);
    const BruteForce brute(problem, unit);
    const BruteForce halves(problem, unit / 2);
    std::vector<Nanos> periods;
    std::vector<Nanos> shifts;
    std::vector<std::int64_t> in_halves;
    std::int64_t max = 1'000;
    for (std::size_t j = 0; j < jobs; ++j) {
      periods.push_back(problem.jobs[j].period);
      shifts.emplace_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(periods[j].count))));
      in_halves.push_back(shifts[j].count);
      max = std::min(max, periods[j].count / 2);
    }
    Slots slots = choose_slots(periods, exact_options());
    const bool solved = random.chance(0.7);
    if (solved) {
      shifts = solve(problem, slots).shifts;
      for (std::size_t j = 0; j < jobs; ++j) in_halves[j] = shifts[j].count;
    }
    const LinkSolution link = evaluate(problem, slots, shifts).links[0];
    std::int64_t largest = 0;
    while (largest < max && worst(halves, in_halves, largest + 1) >= link.score - 1e-12) ++largest;
    ASSERT_LE(link.margin.count, largest) << i;
    if (link.score == 1 || jobs == 2) {
      ASSERT_EQ(link.margin.count, largest) << i;
    }
    positive += link.margin.count > 0 ? 1 : 0;
    weak += link.margin.count < largest ? 1 : 0;
  }
  EXPECT_GT(positive, 50);
  EXPECT_LT(weak, 40);
}

TEST(drift_score, is_never_above_what_a_deviation_gives) {
  Random random(22);
  for (int i = 0; i < 300; ++i) {
    const std::size_t jobs = 2 + random.below(3);
    const Problem problem = random_link(random, jobs, 24, 1'001);
    SolveOptions options = exact_options();
    options.drift = 0.2 * random.uniform();
    const Solution solution = solve(problem, options);
    double min = solution.score;
    for (int probe = 0; probe < 40; ++probe) {
      std::vector<Nanos> shifts = solution.shifts;
      for (std::size_t j = 0; j < jobs; ++j) {
        const Nanos period = solution.slots.periods[j];
        const auto reach = static_cast<std::int64_t>(options.drift * static_cast<double>(period.count));
        const std::int64_t by =
            random.chance(0.5)
                ? (random.chance(0.5) ? reach : -reach)
                : static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * reach + 1))) - reach;
        shifts[j] = turned(shifts[j], by, period);
      }
      min = std::min(min, evaluate(problem, solution.slots, shifts, options).score);
    }
    ASSERT_LE(solution.links[0].drift_score, min + 1e-12) << i;
    ASSERT_LE(solution.links[0].drift_score, solution.score);
  }
}

TEST(drift_score, of_a_pair_is_reached) {
  constexpr std::int64_t unit = 1'000;
  Random random(23);
  for (int i = 0; i < 100; ++i) {
    const Problem problem = random_link(random, 2, 24, unit);
    SolveOptions options = exact_options();
    options.drift = 0.125;
    const Solution solution = solve(problem, options);
    double min = solution.score;
    for (int probe = -100; probe <= 100; ++probe) {
      std::vector<Nanos> shifts = solution.shifts;
      for (std::size_t j = 0; j < 2; ++j) {
        const Nanos period = solution.slots.periods[j];
        const auto reach = static_cast<std::int64_t>(options.drift * static_cast<double>(period.count));
        shifts[j] = turned(shifts[j], (j == 0 ? probe : -probe) * reach / 100, period);
      }
      min = std::min(min, evaluate(problem, solution.slots, shifts, options).score);
    }
    ASSERT_LE(solution.links[0].drift_score, min + 1e-12);
    ASSERT_NEAR(solution.links[0].drift_score, min, 0.02) << i;
  }
}

TEST(solve, robust_shifts_bear_more_than_others_with_the_same_score) {
  Random random(24);
  double robust = 0;
  double plain = 0;
  for (int i = 0; i < 100; ++i) {
    const Problem problem = random_link(random, 3, 24, 1'000);
    SolveOptions options = exact_options();
    const Solution with = solve(problem, options);
    options.robust = false;
    const Solution without = solve(problem, options);
    ASSERT_NEAR(with.score, without.score, 1e-12);
    if (with.score == 1) {
      ASSERT_GE(with.links[0].margin.count, without.links[0].margin.count) << i;
    } else {
      ASSERT_GE(with.links[0].drift_score, without.links[0].drift_score - 1e-12);
    }
    robust += with.links[0].drift_score;
    plain += without.links[0].drift_score;
  }
  EXPECT_GT(robust, plain + 1);
}

TEST(solve, robust_shifts_settle_where_drift_costs_least) {
  Random random(59);
  double robust = 0;
  double plain = 0;
  for (int i = 0; i < 60; ++i) {
    const Problem problem = random_link(random, 4, 24, 1);
    SolveOptions options = exact_options();
    robust += solve(problem, options).links[0].drift_score;
    options.robust = false;
    plain += solve(problem, options).links[0].drift_score;
  }
  EXPECT_GT(robust, plain + 0.745) << "by settling 0.014 of it";
}

}  // namespace
}  // namespace mltcp::scheduler
