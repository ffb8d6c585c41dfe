// Tests with simulated jobs when the keeper of plans moves slots, and when the keeper gives slots up.
#include "mltcp/lab/experiment/run/plan_keeper.h"

#include "../../matchers.h"
#include "mltcp/cc/aggressiveness.h"

namespace mltcp::experiment::plan_keeper_test {
namespace {

using namespace literals;

/// Records the calls that the keeper makes, and returns the values that the test sets.
class FakeJob final : public RunningJob {
 public:
  PlanState set_plan(const PhasePlan& plan) override {
    plans.push_back(plan);
    return state = PlanState::active;
  }
  void clear_plan() override { state = PlanState::removed; }
  [[nodiscard]] PlanState plan_state() const override { return state; }
  [[nodiscard]] Nanos adrift_since() const override { return adrift; }
  [[nodiscard]] bool done() const override { return false; }
  [[nodiscard]] std::size_t recorded() const override { return results.iterations.size(); }
  [[nodiscard]] JobResult result() const override { return results; }

  std::vector<PhasePlan> plans;
  PlanState state = PlanState::active;
  Nanos adrift = Nanos::never();
  JobResult results;
};

/// Two jobs that compute for a while and then send over one link at its rate.
class Setting {
 public:
  Setting(std::pair<Nanos, Nanos> a, std::pair<Nanos, Nanos> b, bool mltcp = false) {
    std::vector<workload::Job> jobs;
    std::vector<Profile> profiles;
    for (const auto& [compute, period] : {a, b}) {
      jobs.emplace_back().name = std::string(1, static_cast<char>('a' + profiles.size()));
      Profile& profile = profiles.emplace_back();
      profile.period = period;
      profile.compute = profile.first_send = compute;
      profile.uses.push_back({0, "link", Rate(1'000'000'000), {period, {{compute, period, Rate(1'000'000'000)}}}});
    }
    PlanOptions options;
    if (mltcp) options.sharing = cc::Aggressiveness(1.75, 0.25);
    options.repaired = true;
    keeper.emplace(settings, std::move(jobs), std::move(profiles), options);
    for (FakeJob& job : fakes) drivers.push_back(&job);
  }
  /// Both jobs have completed `iterations` iterations. Those of the first job took `length` times its period `a`, and
  /// those of the second job `length` times its period `b`.
  void ran(std::size_t iterations, double length, Nanos a, Nanos b) {
    const Nanos periods[] = {a, b};
    for (std::size_t i = 0; i < 2; ++i) {
      JobResult& result = fakes[i].results;
      result.iterations.assign(iterations, Nanos::from_seconds(periods[i].seconds() * length));
      for (std::size_t k = result.starts.size(); k < iterations; ++k)
        result.starts.push_back(result.iterations[0] * static_cast<std::int64_t>(k));
    }
  }

  const ScheduleSettings settings;
  std::optional<PlanKeeper> keeper;
  FakeJob fakes[2];
  std::vector<RunningJob*> drivers;
};

TEST(PlanKeeper, drift__is_repaired_once_however_often_it_is_looked_at) {
  Setting setting({60_ms, 100_ms}, {60_ms, 100_ms});
  PlanKeeper& keeper = *setting.keeper;
  ASSERT_TRUE(keeper.schedule().slots[0] && keeper.schedule().slots[1]);
  EXPECT_LE(keeper.slice(), 1_ms);
  const Nanos epoch = 1_s;
  const Nanos period = keeper.schedule().slots[0]->period;
  const Nanos slot = keeper.schedule().slots[0]->slot;
  // The first job is 30 ms late, and so sends into the burst of the second job.
  const Nanos now = epoch + slot + period * 5 + 30_ms;
  setting.fakes[0].adrift = now;
  keeper.follow(setting.drivers, epoch, now);
  ASSERT_EQ(keeper.summary().repaired, 1U);
  const std::size_t sent = setting.fakes[0].plans.size() + setting.fakes[1].plans.size();
  EXPECT_GE(sent, 1U);
  for (Nanos later = now + 1_ms; later < now + 30_ms; later += 1_ms) keeper.follow(setting.drivers, epoch, later);
  EXPECT_EQ(keeper.summary().repaired, 1U);
  EXPECT_EQ(setting.fakes[0].plans.size() + setting.fakes[1].plans.size(), sent);
  // The keeper releases the late job before its next regular slot.
  ASSERT_FALSE(setting.fakes[0].plans.empty());
  const PhasePlan& own = setting.fakes[0].plans.back();
  EXPECT_LT(modulo(own.slot - now, period), 25_ms) << "sooner than its next slot";
}

TEST(PlanKeeper, job_that_is_early_for_its_first_slot__waits_for_it) {
  Setting setting({60_ms, 100_ms}, {60_ms, 100_ms});
  PlanKeeper& keeper = *setting.keeper;
  const Nanos epoch = 1_s;
  for (std::size_t i = 0; i < 2; ++i) {
    const Nanos slot = keeper.jobs()[i].start + 60_ms;
    setting.fakes[i].adrift = epoch + slot - 10_ms;
    keeper.follow(setting.drivers, epoch, epoch + slot - 10_ms);
    EXPECT_EQ(keeper.summary().repaired, i) << "early";
    // The job misses its first slot.
    setting.fakes[i].adrift = epoch + slot + 20_ms;
    keeper.follow(setting.drivers, epoch, epoch + slot + 20_ms);
    EXPECT_EQ(keeper.summary().repaired, i + 1) << i;
    setting.fakes[i].adrift = Nanos::never();
  }
}

TEST(PlanKeeper, job_that_computes_longer__gets_slots_that_it_and_the_other_job_reach_soon) {
  Setting setting({60_ms, 100_ms}, {60_ms, 100_ms});
  PlanKeeper& keeper = *setting.keeper;
  const Nanos period = keeper.schedule().slots[0]->period;
  // Both jobs have run on their slots for six iterations. Then the first job computes for 60.5 ms.
  setting.ran(6, 1.001, 100_ms, 100_ms);
  for (std::size_t i = 0; i < 2; ++i) {
    JobResult& result = setting.fakes[i].results;
    result.iteration_compute.assign(6, i == 0 ? 60'500_us : 60_ms);
    for (std::size_t k = 0; k < 6; ++k)
      result.starts[k] = keeper.schedule().slots[i]->slot - 60_ms + period * static_cast<std::int64_t>(k);
  }
  const Nanos ready = setting.fakes[0].results.starts.back() + setting.fakes[0].results.iterations.back() + 72_ms;
  setting.fakes[0].adrift = ready;
  keeper.follow(setting.drivers, 0_ms, ready);
  EXPECT_EQ(keeper.summary().replanned, 1U);
  ASSERT_FALSE(setting.fakes[0].plans.empty() || setting.fakes[1].plans.empty());
  const PhasePlan& own = setting.fakes[0].plans.back();
  EXPECT_GE(own.period, 100'500_us);
  EXPECT_LT(modulo(own.slot - ready, own.period), 1_ms) << "it may send at once";
  const PhasePlan& other = setting.fakes[1].plans.back();
  const Nanos next = setting.fakes[1].results.starts.back() + setting.fakes[1].results.iterations.back() + 60_ms;
  EXPECT_LT(modulo(other.slot - next, other.period), 20_ms) << "it waits for no more than the end of that burst";
}

TEST(PlanKeeper, slots_that_take_longer_than_sharing_would__are_given_up_and_it_is_said_why) {
  for (const double length : {1.05, 1.4}) {
    Setting setting({60_ms, 98_ms}, {75_ms, 113_ms}, true);
    PlanKeeper& keeper = *setting.keeper;
    ASSERT_TRUE(keeper.schedule().slots[0] && keeper.schedule().slots[1]);
    ASSERT_FALSE(keeper.schedule().planned[0].fit);
    ASSERT_GT(keeper.schedule().planned[0].sharing.mean, 1.05);
    setting.ran(3, length, 98_ms, 113_ms);
    keeper.follow(setting.drivers, 0_ms, 1_s);
    EXPECT_EQ(setting.fakes[0].state, PlanState::active) << "too few to tell";
    setting.ran(9, length, 98_ms, 113_ms);
    keeper.follow(setting.drivers, 0_ms, 2_s);
    const ScheduleSummary summary = keeper.summary();
    if (length < 1.1) {
      EXPECT_EQ(summary.slots.size(), 2U);
      EXPECT_THAT(summary.reasons, IsEmpty());
      EXPECT_EQ(summary.unplanned, 0U);
      continue;
    }
    EXPECT_THAT(summary.slots, IsEmpty());
    EXPECT_EQ(summary.unplanned, 2U);
    for (const FakeJob& job : setting.fakes) EXPECT_EQ(job.state, PlanState::removed);
    for (const std::string& reason : summary.reasons)
      EXPECT_THAT(reason, HasSubstr("its slots were dropped: iterations took 1.400 times their time alone"));
  }
}

TEST(PlanKeeper, repairs_that_cost_more_than_slots_save__end_them) {
  Setting setting({60_ms, 98_ms}, {75_ms, 113_ms}, true);
  PlanKeeper& keeper = *setting.keeper;
  ASSERT_FALSE(keeper.schedule().planned[0].fit);
  const Nanos period = keeper.schedule().slots[0]->period;
  std::size_t looked = 0;
  for (Nanos now = period * 3; keeper.schedule().slots[0] && looked < 200; now += period, ++looked) {
    // The first job is always half a period later than its slot, even after the keeper has moved the slot.
    const Nanos late = now + modulo(keeper.schedule().slots[0]->slot + period / 2 - now, period);
    setting.fakes[0].adrift = late;
    keeper.follow(setting.drivers, 0_ms, late);
  }
  EXPECT_GT(looked, 3U) << "not for what one drift costs";
  EXPECT_LT(looked, 200U);
  EXPECT_THAT(keeper.summary().reasons.at(0), HasSubstr("repairs cost more than they saved"));
}

}  // namespace
}  // namespace mltcp::experiment::plan_keeper_test
