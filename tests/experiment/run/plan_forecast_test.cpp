// Tests the forecast of the benefit of slots, without and with repairs, against closed-form results.
#include "mltcp/lab/experiment/run/plan_forecast.h"

#include <gtest/gtest.h>

#include <string>

namespace mltcp::experiment::plan_forecast_test {
namespace {

using namespace literals;

struct Setting {
  scheduler::Problem problem;
  std::vector<ForecastJob> jobs;
  scheduler::Solution solution;

  /// Each job computes and then sends for `up` of its period, at the rate of the one link that all jobs share.
  Setting(std::vector<std::pair<Nanos, Nanos>> up_and_period, double jitter, double slack) {
    problem.links.push_back({"link", Rate(1'000'000'000), {}});
    for (const auto& [up, period] : up_and_period) {
      const auto job = static_cast<std::uint32_t>(problem.jobs.size());
      problem.jobs.push_back({"job " + std::to_string(job), period, {}});
      problem.links[0].uses.push_back({job, {period, {{period - up, period, Rate(1'000'000'000)}}}});
      jobs.push_back({period - up, jitter, {}});
    }
    scheduler::SolveOptions options;
    options.slack = slack;
    solution = scheduler::solve(problem, options);
    const scheduler::Timetable slots = timetable();
    for (std::uint32_t job = 0; job < jobs.size(); ++job) {
      PhasePlan& plan = jobs[job].slots;
      plan.slot = solution.shifts[job] + jobs[job].first_send;
      plan.period = solution.slots.periods[job];
      plan.tolerance =
          std::max(0.01, slots.margin_behind(solution.shifts, job, plan.period / 20).seconds() / plan.period.seconds());
    }
  }
  [[nodiscard]] scheduler::Timetable timetable() const { return {problem, solution.slots}; }
  [[nodiscard]] Forecast sharing(const std::optional<cc::Aggressiveness>& function = std::nullopt) const {
    return forecast_sharing(problem, jobs, function);
  }
  [[nodiscard]] Forecast slots(bool repaired) const {
    const scheduler::Timetable slots = timetable();
    return forecast_slots(problem, jobs, std::nullopt, repaired ? &slots : nullptr);
  }
};

Setting six_at_90_percent(double jitter) {
  return {std::vector<std::pair<Nanos, Nanos>>(6, {45_ms, 300_ms}), jitter, 0.001};
}

TEST(PlanForecast, sharing__costs_two_equal_jobs_the_square_of_their_up_fraction) {
  // Let a be the fraction of a period in which each job sends. Two jobs collide with probability 2a. A collision
  // lengthens the iterations by a / 2 on average.
  const Forecast forecast = Setting({{40_ms, 100_ms}, {40_ms, 100_ms}}, 0, 0.001).sharing();
  EXPECT_NEAR(forecast.mean, 1 + 0.4 * 0.4, 0.06);
  EXPECT_NEAR(forecast.jobs[0], forecast.jobs[1], 0.03);
  EXPECT_GE(forecast.tail, forecast.mean - 1e-9);
}

TEST(PlanForecast, sharing__costs_jobs_that_never_meet_nothing) {
  Setting setting({{40_ms, 100_ms}, {40_ms, 100_ms}}, 0, 0.001);
  setting.problem.links[0].capacity = Rate(2'000'000'000);
  const Forecast forecast = setting.sharing();
  EXPECT_NEAR(forecast.mean, 1, 1e-6);
  EXPECT_NEAR(forecast.tail, 1, 1e-6);
}

TEST(PlanForecast, sharing__leaves_what_a_job_does_not_ask_for_to_the_others) {
  // The first job always demands half of the link, so that the 40 ms burst of the second job takes 80 ms.
  Setting setting({{40_ms, 100_ms}, {40_ms, 100_ms}}, 0, 0.001);
  setting.problem.links[0].uses[0].demand.bursts = {{0_ms, 100_ms, Rate(500'000'000)}};
  setting.jobs[0].first_send = 0_ms;
  const Forecast forecast = setting.sharing();
  EXPECT_NEAR(forecast.jobs[0], 1, 1e-6);
  EXPECT_NEAR(forecast.jobs[1], 1.4, 0.001);
}

TEST(PlanForecast, unaware_jobs__slow_the_others_down_and_are_not_counted) {
  Setting setting({{40_ms, 100_ms}, {40_ms, 100_ms}, {100_ms, 100_ms}}, 0, 0.001);
  // The third job always demands a fifth of the link.
  setting.problem.links[0].uses[2].demand.bursts = {{0_ms, 100_ms, Rate(200'000'000)}};
  setting.jobs[2].first_send = 0_ms;
  setting.jobs[2].unaware = true;
  const std::vector<Nanos> shifts{0_ms, 55_ms};
  for (std::uint32_t job = 0; job < 2; ++job) {
    setting.jobs[job].slots.slot = shifts[job] + setting.jobs[job].first_send;
    setting.jobs[job].slots.period = 110_ms;
  }
  const Forecast forecast = setting.slots(false);
  ASSERT_EQ(forecast.jobs.size(), 2U);
  // A burst that has four fifths of the link takes 50 ms, and so makes an iteration 10 ms longer.
  EXPECT_NEAR(forecast.jobs[0], 1.1, 0.02);
  EXPECT_NEAR(forecast.mean, (forecast.jobs[0] + forecast.jobs[1]) / 2, 1e-9);
  EXPECT_EQ(setting.sharing(cc::Aggressiveness(1.75, 0.25)).jobs.size(), 2U);
}

TEST(PlanForecast, mltcp__parts_jobs_that_fit) {
  const Setting setting({{40_ms, 100_ms}, {40_ms, 100_ms}}, 0, 0.001);
  const Forecast forecast = setting.sharing(cc::Aggressiveness(1.75, 0.25));
  EXPECT_LT(forecast.mean, 1.04);
  EXPECT_NEAR(forecast.tail, 1, 0.002) << "in the later half";
}

TEST(PlanForecast, slots__cost_their_stretch) {
  const Forecast forecast = Setting({{40_ms, 100_ms}, {40_ms, 100_ms}}, 0, 0.01).slots(false);
  EXPECT_NEAR(forecast.mean, 1.01, 0.001);  // the first iteration does not wait for a slot
  EXPECT_NEAR(forecast.tail, 1.01, 1e-6);
}

TEST(PlanForecast, repairs__keep_nearly_full_slots_when_jobs_jitter) {
  for (const double jitter : {0.0085, 0.017}) {
    const Setting setting = six_at_90_percent(jitter);
    const Forecast alone = setting.slots(false);
    const Forecast repaired = setting.slots(true);
    EXPECT_GT(alone.tail, 1.2) << "a slot missed costs most of a period";
    EXPECT_LT(repaired.tail, 1 + 2.5 * jitter) << "not more than the jitter itself";
    EXPECT_LT(repaired.mean, 1 + 1.2 * jitter);
  }
}

TEST(PlanForecast, slots__of_periods_that_do_not_go_together_are_worse_than_sharing) {
  const Setting setting({{115_ms, 265_ms}, {115_ms, 273_ms}}, 0, 0.001);
  ASSERT_LT(setting.solution.score, 0.9);
  EXPECT_GT(setting.slots(true).mean, setting.sharing().mean);
}

TEST(PlanForecast, jobs_of_very_different_periods__count_with_what_they_have_done) {
  const Setting setting({{1_ms, 2_ms}, {1'000_ms, 4'000_ms}}, 0, 0.001);
  const Forecast forecast = setting.sharing();
  EXPECT_TRUE(forecast.known);
  // The large job sends for 1.5 s instead of 1 s. During this time the small job has half of the link, and its
  // iterations take 3 ms instead of 2 ms.
  EXPECT_NEAR(forecast.jobs[0], 1.125, 0.01);
  EXPECT_NEAR(forecast.jobs[1], 1.125, 0.01);
}

TEST(PlanForecast, it__is_the_same_every_time) {
  const Setting setting = six_at_90_percent(0.01);
  EXPECT_EQ(setting.slots(true).mean, setting.slots(true).mean);
  EXPECT_EQ(setting.sharing().tail, setting.sharing().tail);
}

}  // namespace
}  // namespace mltcp::experiment::plan_forecast_test
