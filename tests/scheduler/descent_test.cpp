// Tests coordinate descent over time shifts: at the end, no change of a single job's shift improves the score.
#include "mltcp/scheduler/internal/descent.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "mltcp/base/random.h"

namespace mltcp::scheduler {
namespace {

using namespace literals;

constexpr double kUnlimited = 1e12;

Problem random_problem(Random& random) {
  Problem problem;
  std::vector<Demand> demands;
  for (std::size_t j = 0; j < 5; ++j) {
    const Nanos period(random.chance(0.5) ? 12 : 6);
    const auto busy = static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(period.count) - 1));
    demands.push_back({period, {{0_ns, Nanos(busy), Rate(20 + random.below(80))}}});
    problem.jobs.push_back({std::to_string(j), period, {}});
  }
  for (std::size_t l = 0; l < 4; ++l) {
    Problem::Link link{std::to_string(l), Rate(60 + random.below(60)), {}};
    for (std::uint32_t j = 0; j < 5; ++j)
      if (random.chance(0.6)) link.uses.push_back({j, demands[j]});
    problem.links.push_back(std::move(link));
  }
  return problem;
}

double sum(const Problem& problem, const Slots& slots, const std::vector<Nanos>& shifts) {
  double result = 0;
  for (const LinkSolution& link : evaluate(problem, slots, shifts).links) result += link.score;
  return result;
}

Slots slots_of(const Problem& problem) {
  std::vector<Nanos> periods;
  for (const Problem::ProblemJob& job : problem.jobs) periods.push_back(job.period);
  return choose_slots(periods);
}

TEST(descent, descend__ends_where_no_job_alone_gains) {
  Random random(3);
  for (int round = 0; round < 100; ++round) {
    const Problem problem = random_problem(random);
    const Slots slots = slots_of(problem);
    const std::vector<Nanos> shifts = internal::descend(problem, slots, {}, kUnlimited);
    const double reached = sum(problem, slots, shifts);
    for (std::size_t j = 0; j < shifts.size(); ++j) {
      std::vector<Nanos> other = shifts;
      for (other[j] = 0_ns; other[j] < slots.periods[j]; other[j] += 1_ns)
        EXPECT_LE(sum(problem, slots, other), reached + 1e-8) << "round " << round;
    }
  }
}

TEST(descent, descend__from_given_shifts_is_never_worse_and_places_the_rest) {
  Random random(4);
  int better = 0;
  for (int round = 0; round < 100; ++round) {
    const Problem problem = random_problem(random);
    const Slots slots = slots_of(problem);
    std::vector<Nanos> start;
    for (const Nanos period : slots.periods)
      start.emplace_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(period.count))));
    const double before = sum(problem, slots, start);
    start[0] = Nanos(-1);
    const double after = sum(problem, slots, internal::descend(problem, slots, start, kUnlimited));
    EXPECT_GE(after, before - 1e-8);
    better += after > before + 1e-8 ? 1 : 0;
  }
  EXPECT_GT(better, 30);
}

TEST(descent, descend__centred_leaves_room_on_both_sides_at_the_same_score) {
  const Demand long_one{100_us, {{0_us, 40_us, Rate(10)}}};
  const Demand short_one{100_us, {{0_us, 20_us, Rate(10)}}};
  const Problem pair{{{"a", 100_us, {}}, {"b", 100_us, {}}}, {{"link", Rate(10), {{0, long_one}, {1, short_one}}}}};
  const Slots slots = slots_of(pair);
  const auto margin = [&](bool centred) {
    return evaluate(pair, slots, internal::descend(pair, slots, {}, kUnlimited, centred)).links[0].margin;
  };
  EXPECT_EQ(margin(false), 0_ns);
  EXPECT_EQ(margin(true), 10_us);

  Random random(6);
  for (int round = 0; round < 100; ++round) {
    const Problem problem = random_problem(random);
    const Slots of = slots_of(problem);
    const double edge = sum(problem, of, internal::descend(problem, of, {}, kUnlimited));
    const double middle = sum(problem, of, internal::descend(problem, of, {}, kUnlimited, true));
    EXPECT_NEAR(middle, edge, 1e-8) << "round " << round;
  }
}

TEST(descent, descend__without_work_left_keeps_given_shifts_and_places_all) {
  Random random(5);
  const Problem problem = random_problem(random);
  const Slots slots = slots_of(problem);
  std::vector<Nanos> start{Nanos(-1), 1_ns, 2_ns, 3_ns, 4_ns};
  const std::vector<Nanos> shifts = internal::descend(problem, slots, start, 0);
  EXPECT_TRUE(std::equal(start.begin() + 1, start.end(), shifts.begin() + 1));
  EXPECT_GE(shifts[0], 0_ns);
}

}  // namespace
}  // namespace mltcp::scheduler
