// Tests the solver against an independent search over all time shifts (instances.h).
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "instances.h"
#include "mltcp/scheduler/problem.h"

namespace mltcp::scheduler {
namespace {

using namespace testing;

constexpr double kTiny = 1e-12;

struct Summary {
  int instances = 0;
  int proven = 0;
  int incompatible = 0;
  double largest_gap = 0;
  double largest_loss = 0;

  void print(const char* what) const {
    std::printf(
        "%s: %d instances, %d with excess, %d proven optimal, largest gap to the bound %.3g, to the optimum %.3g\n",
        what, instances, incompatible, proven, largest_gap, largest_loss);
  }
};

/// Compares the solver with an exhaustive search on a random problem. `unit` is an odd number of nanoseconds, so that
/// half a unit is not a whole nanosecond.
void compare(Random& random, std::size_t jobs, std::int64_t perimeter, const SolveOptions& options, Summary& summary) {
  constexpr std::int64_t unit = 1'001;
  const Problem problem = random_link(random, jobs, perimeter, unit);
  const Solution solution = solve(problem, options);
  BruteForce brute(problem, unit);
  ASSERT_TRUE(solution.slots.exact);
  ASSERT_EQ(solution.slots.perimeter.count % (brute.perimeter() * unit), 0);
  const double best = brute.best_score();
  ++summary.instances;
  summary.proven += solution.optimal ? 1 : 0;
  summary.incompatible += best < 1 ? 1 : 0;
  summary.largest_gap = std::max(summary.largest_gap, solution.upper_bound - solution.score);
  summary.largest_loss = std::max(summary.largest_loss, best - solution.score);
  ASSERT_GE(solution.upper_bound, best - kTiny);
  ASSERT_LE(solution.score, best + kTiny);
  ASSERT_GE(solution.score, best - (solution.upper_bound - solution.score) - kTiny);
  if (solution.optimal) {
    ASSERT_NEAR(solution.score, best, kTiny);
  }
  // Checks that the score follows from the shifts, and that random shifts between whole units have no better score.
  const Solution again = evaluate(problem, solution.slots, solution.shifts, options);
  ASSERT_EQ(again.score, solution.score);
  std::vector<Nanos> shifts(jobs);
  for (int probe = 0; probe < 3; ++probe) {
    for (std::size_t j = 0; j < jobs; ++j)
      shifts[j] =
          Nanos(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(solution.slots.periods[j].count))));
    ASSERT_LE(evaluate(problem, solution.slots, shifts, options).score, best + kTiny);
  }
}

class Exhaustive : public ::testing::TestWithParam<int> {};

TEST_P(Exhaustive, solve__equals_search_over_all_shifts_of_up_to_4_jobs) {
  Random random = Random::stream(4, static_cast<std::uint64_t>(GetParam()));
  constexpr std::array<std::int64_t, 4> perimeters = {12, 18, 20, 24};
  Summary summary;
  for (int i = 0; i < 1'000; ++i) {
    const std::size_t jobs = 2 + random.below(3);
    const std::int64_t perimeter =
        jobs < 4 ? (random.chance(0.3) ? 36 : perimeters[random.below(4)]) : perimeters[random.below(4)];
    compare(random, jobs, perimeter, exact_options(), summary);
    if (HasFatalFailure()) FAIL() << "instance " << i;
  }
  summary.print("2 to 4 jobs");
  EXPECT_EQ(summary.proven, summary.instances);
}
INSTANTIATE_TEST_SUITE_P(streams, Exhaustive, ::testing::Range(0, 10));

TEST(exhaustive, solve__equals_search_over_all_shifts_of_5_and_6_jobs) {
  Random random(5);
  Summary summary;
  for (int i = 0; i < 200; ++i) {
    compare(random, 5, 12, exact_options(), summary);
    compare(random, 6, 8, exact_options(), summary);
    if (HasFatalFailure()) FAIL() << "instance " << i;
  }
  summary.print("5 and 6 jobs");
  EXPECT_EQ(summary.proven, summary.instances);
}

TEST(exhaustive, solve__equals_search_over_all_shifts_of_periods_without_common_divisors) {
  // The periods are divisors of 30, such as 3, 5, 6, 10 and 15. Moving some jobs by whole periods gives equivalent
  // positions for most other jobs.
  Random random(7);
  Summary summary;
  for (int i = 0; i < 300; ++i) {
    compare(random, 3 + random.below(2), 30, exact_options(), summary);
    if (HasFatalFailure()) FAIL() << "instance " << i;
  }
  summary.print("without common divisors");
  EXPECT_EQ(summary.proven, summary.instances);
}

TEST(exhaustive, solve__bounds_hold_when_cut_off) {
  Random random(6);
  Summary summary;
  SolveOptions options = exact_options();
  for (int i = 0; i < 600; ++i) {
    options.node_limit = random.below(40);
    compare(random, 3 + random.below(2), 18, options, summary);
    if (HasFatalFailure()) FAIL() << "instance " << i;
  }
  summary.print("cut off");
  EXPECT_LT(summary.proven, summary.instances);
}

}  // namespace
}  // namespace mltcp::scheduler
