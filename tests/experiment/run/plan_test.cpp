// Tests how a plan is made from measured jobs: profiles, slack, groups of jobs, and delays of starts.
#include "mltcp/lab/experiment/run/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/files/experiment_file.h"

namespace mltcp::experiment::plan_test {
namespace {

using namespace literals;
using testing::StartsWith;

workload::Job job_of(const std::string& name, Nanos start = {}) {
  workload::Job job;
  job.name = name;
  job.start = start;
  return job;
}

/// Returns the profile of a job that computes for `compute` and then uses all `links` for the rest of its period.
Profile profile_of(Nanos compute, Nanos period, const std::vector<std::size_t>& links) {
  Profile profile;
  profile.period = period;
  profile.compute = profile.first_send = compute;
  for (const std::size_t link : links)
    profile.uses.push_back({link,
                            "link " + std::to_string(link),
                            Rate(1'000'000'000),
                            {period, {{compute, period, Rate(1'000'000'000)}}}});
  return profile;
}

TEST(Plan, slack__balances_its_cost_against_corrections) {
  EXPECT_EQ(slack_for(0, 0.05), 0.001);
  EXPECT_EQ(slack_for(0.0001, 0.05), 0.001);
  EXPECT_NEAR(slack_for(0.02, 0.05), 0.0221, 0.0001);
  // 10% more slack costs more than the slack that slack_for() returns, and so does 10% less slack.
  const auto cost = [](double slack) { return slack + std::exp(-2 * slack * 0.05 / (0.03 * 0.03)); };
  const double best = slack_for(0.03, 0.05);
  EXPECT_LT(cost(best), cost(best * 1.1));
  EXPECT_LT(cost(best), cost(best * 0.9));
  EXPECT_EQ(slack_for(0.5, 0.05), 0.001) << "no slack tames that";
}

scheduler::Problem on_one_link(const std::vector<std::pair<Nanos, Nanos>>& compute_and_period) {
  scheduler::Problem problem;
  problem.links.push_back({"link", Rate(1'000'000'000), {}});
  for (const auto& [compute, period] : compute_and_period) {
    const auto index = static_cast<std::uint32_t>(problem.jobs.size());
    problem.jobs.push_back({std::string(1, static_cast<char>('a' + index)), period, {}});
    problem.links[0].uses.push_back({index, {period, {{compute, period, Rate(1'000'000'000)}}}});
  }
  return problem;
}

TEST(Plan, room__is_what_bursts_one_after_the_other_take) {
  const scheduler::SolveOptions options;
  EXPECT_EQ(margin_for(on_one_link({{60_ms, 100_ms}, {50_ms, 100_ms}}), options, 0.5), 0);
  // Bursts of 60 + 60 ms exceed a period of 100 ms by 20%. Bursts of 40 + 40 + 45 ms exceed it by 25%.
  const double two = margin_for(on_one_link({{40_ms, 100_ms}, {40_ms, 100_ms}}), options, 0.5);
  EXPECT_GE(two, 0.2);
  EXPECT_LT(two, 0.21);
  const double three = margin_for(on_one_link({{60_ms, 100_ms}, {60_ms, 100_ms}, {55_ms, 100_ms}}), options, 0.5);
  EXPECT_GE(three, 0.25);
  EXPECT_LT(three, 0.26);
  // A slack of 15% counts as room, so that only 5% more room is needed.
  scheduler::SolveOptions slack;
  slack.slack = 0.15;
  EXPECT_NEAR(margin_for(on_one_link({{40_ms, 100_ms}, {40_ms, 100_ms}}), slack, 0.5), 0.05, 0.01);
}

TEST(Plan, room__is_none_where_it_would_not_help) {
  // In the first two cases, both jobs send for 80 of 100 ms and need 60% more room. In the third case, the periods
  // never match.
  EXPECT_EQ(margin_for(on_one_link({{20_ms, 100_ms}, {20_ms, 100_ms}}), {}, 0.5), 0);
  EXPECT_GE(margin_for(on_one_link({{20_ms, 100_ms}, {20_ms, 100_ms}}), {}, 0.7), 0.6);
  EXPECT_EQ(margin_for(on_one_link({{20_ms, 100_ms}, {120_ms, 161'803_us}}), {}, 0.3), 0);
  EXPECT_EQ(margin_for(on_one_link({{40_ms, 100_ms}, {40_ms, 100_ms}}), {}, 0), 0) << "none is allowed";
}

TEST(Plan, jobs__that_do_not_fit_get_longer_slots) {
  const std::vector<workload::Job> jobs{job_of("a"), job_of("b")};
  const std::vector<Profile> profiles{profile_of(45_ms, 100_ms, {0}), profile_of(45_ms, 100_ms, {0})};
  const Schedule longer = plan_jobs({}, jobs, profiles);
  EXPECT_EQ(longer.summary.score, 1);
  ASSERT_TRUE(longer.slots[0] && longer.slots[1]);
  EXPECT_GE(longer.slots[0]->period, 110_ms);
  EXPECT_LT(longer.slots[0]->period, 111_ms);
  EXPECT_EQ(longer.reasons, std::vector<std::string>(2));
  // The forecast says that sharing takes longer than the longer slots. These slots are therefore worth their cost.
  EXPECT_GT(longer.planned[0].sharing.mean, 1.2);
  EXPECT_NEAR(longer.planned[0].slots.mean, 1.1, 0.01);
}

TEST(Plan, jobs__that_need_slots_of_more_than_twice_their_length_run_without) {
  // Each job keeps the link busy for 96 of 100 ms: three jobs demand 2.88 times what the link carries.
  const std::vector<workload::Job> jobs{job_of("a"), job_of("b"), job_of("c")};
  const std::vector<Profile> profiles(3, profile_of(4_ms, 100_ms, {0}));
  for (const bool repaired : {false, true}) {
    PlanOptions options;
    options.repaired = repaired;
    const Schedule schedule = plan_jobs({}, jobs, profiles, options);
    EXPECT_EQ(schedule.summary.unplanned, 3U);
    EXPECT_GT(schedule.planned[0].sharing.mean, 2);
    for (const std::string& reason : schedule.reasons)
      EXPECT_THAT(reason, testing::StartsWith("slots do not help enough"));
  }
  EXPECT_EQ(slack_for(ScheduleSettings{}, jobs, profiles), 0.001) << "no room is enough";
}

// Tests both scheduled policies. They differ only in how jobs without slots share the link.
TEST(Plan, slots__that_cost_more_than_sharing_are_not_taken_and_it_is_said_why) {
  const std::vector<workload::Job> jobs{job_of("a"), job_of("b")};
  const std::vector<Profile> profiles{profile_of(150_ms, 265_ms, {0}), profile_of(203_ms, 318_ms, {0})};
  for (const auto& [mltcp, repaired] : {std::pair{false, false}, {false, true}, {true, false}}) {
    PlanOptions options;
    if (mltcp) options.sharing = cc::Aggressiveness(1.75, 0.25);
    options.repaired = repaired;
    const Schedule schedule = plan_jobs({}, jobs, profiles, options);
    EXPECT_LT(schedule.summary.score, 1);
    EXPECT_FALSE(schedule.slots[0] || schedule.slots[1]) << mltcp << repaired;
    EXPECT_EQ(schedule.summary.unplanned, 2U);
    EXPECT_EQ(schedule.delays, std::vector<Nanos>(2));
    EXPECT_EQ(schedule.summary.stretch, 0);
    for (const std::string& reason : schedule.reasons)
      EXPECT_THAT(reason, testing::StartsWith("slots do not help enough: iterations would take 1."));
    const Schedule::Group& group = schedule.planned[0];
    const double saved = group.sharing.mean - group.slots.mean;
    EXPECT_TRUE(saved < 0.25 * (group.sharing.mean - 1) || group.slots.tail > group.sharing.tail);
  }
}

// Slots give "a" the period of "b", which is 3% longer than with fair sharing. MLTCP without slots would give it the
// same.
TEST(Plan, slots__harm_no_job_that_mltcp_slows_down_as_much) {
  const std::vector<workload::Job> jobs{job_of("a"), job_of("b")};
  const std::vector<Profile> profiles{profile_of(150_ms, 265_ms, {0}), profile_of(203_ms, 318_ms, {0})};
  PlanOptions options;
  options.sharing = cc::Aggressiveness(1.75, 0.25);
  options.repaired = true;
  const Schedule mltcp = plan_jobs({}, jobs, profiles, options);
  EXPECT_TRUE(mltcp.slots[0] && mltcp.slots[1]) << mltcp.reasons[0];
  options.turns = true;
  const Schedule turns = plan_jobs({}, jobs, profiles, options);
  EXPECT_FALSE(turns.slots[0] || turns.slots[1]);
  EXPECT_THAT(turns.reasons[0], testing::StartsWith("slots would harm job \"a\": "));
}

// Both jobs together need 150% of the link. MLTCP would separate them as well in the end, but later than slots do.
TEST(Plan, slots__that_cost_as_much_as_mltcp_are_taken_if_they_cost_much_less_than_fair_sharing) {
  const std::vector<workload::Job> jobs{job_of("a"), job_of("b")};
  const std::vector<Profile> profiles(2, profile_of(30_ms, 120_ms, {0}));
  PlanOptions options;
  options.sharing = cc::Aggressiveness(1.75, 0.25);
  options.repaired = true;
  const Schedule schedule = plan_jobs({}, jobs, profiles, options);
  ASSERT_TRUE(schedule.slots[0] && schedule.slots[1]) << schedule.reasons[0];
  EXPECT_EQ(schedule.slots[0]->period, schedule.slots[1]->period);
  EXPECT_TRUE(schedule.slots[0]->is_disjoint);
  EXPECT_NEAR(schedule.planned[0].slots.mean, schedule.planned[0].sharing.mean, 0.012);
}

TEST(Plan, slots__in_which_jobs_overlap_are_not_disjoint) {
  const std::vector<workload::Job> jobs{job_of("a"), job_of("b")};
  const std::vector<Profile> profiles{profile_of(70_ms, 100_ms, {0}), profile_of(85_ms, 115_ms, {0})};
  PlanOptions options;
  options.repaired = true;
  const Schedule schedule = plan_jobs({}, jobs, profiles, options);
  ASSERT_TRUE(schedule.slots[0]) << schedule.reasons[0];
  EXPECT_LT(schedule.summary.score, 1);
  EXPECT_FALSE(schedule.slots[0]->is_disjoint);
}

TEST(Plan, slots__of_one_length_are_taken_where_they_may_be_so_long) {
  const std::vector<workload::Job> jobs{job_of("a"), job_of("b")};
  const std::vector<Profile> profiles{profile_of(150_ms, 265_ms, {0}), profile_of(158_ms, 273_ms, {0})};
  ScheduleSettings settings;
  settings.max_stretch = 0.04;
  const Schedule schedule = plan_jobs(settings, jobs, profiles);
  ASSERT_TRUE(schedule.slots[0] && schedule.slots[1]) << schedule.reasons[0];
  EXPECT_EQ(schedule.slots[0]->period, schedule.slots[1]->period);
  EXPECT_NEAR(schedule.planned[0].slots.mean, 1.017, 0.003);
}

TEST(Plan, tolerance__of_slots_that_are_repaired_is_the_room_behind_them) {
  const std::vector<workload::Job> jobs{job_of("a"), job_of("b"), job_of("c")};
  const auto tolerances = [&](Nanos compute, bool repaired) {
    PlanOptions options;
    options.repaired = repaired;
    const Schedule schedule = plan_jobs({}, jobs, std::vector<Profile>(3, profile_of(compute, 100_ms, {0})), options);
    std::vector<double> found;
    for (const auto& slot : schedule.slots) found.push_back(slot.value().tolerance);
    return found;
  };
  for (const double tolerance : tolerances(69_ms, true)) EXPECT_NEAR(tolerance, 0.07 / 3, 0.003);
  EXPECT_EQ(tolerances(69_ms, false), std::vector<double>(3, 0.05));
  for (const double tolerance : tolerances(80_ms, true)) EXPECT_DOUBLE_EQ(tolerance, 0.05) << "and never more";
  EXPECT_EQ(tolerances(67_ms, true), std::vector<double>(3, 0.01)) << "never less than a hundredth";
}

TEST(Plan, slack__of_slots_that_are_repaired_is_the_least) {
  std::vector<workload::Job> jobs{job_of("a"), job_of("b")};
  for (workload::Job& job : jobs) job.jitter = 2_ms;
  const std::vector<Profile> profiles(2, profile_of(60_ms, 100_ms, {0}));
  PlanOptions repaired;
  repaired.repaired = true;
  EXPECT_NEAR(plan_jobs({}, jobs, profiles, repaired).summary.stretch, 0.001, 1e-6);
  EXPECT_NEAR(plan_jobs({}, jobs, profiles).summary.stretch, 0.0221, 1e-3);
}

// Simulates the model behind the formula of the slack: a reflected random walk.
TEST(Plan, slack__keeps_lateness_within_the_tolerance) {
  Random random(3);
  constexpr double sigma = 0.02;
  const double slack = slack_for(sigma, 0.05);
  double late = 0;
  int beyond = 0;
  constexpr int iterations = 100'000;
  for (int i = 0; i < iterations; ++i) {
    late = std::max(0.0, late + random.normal() * sigma - slack);
    if (late <= 0.05) continue;
    ++beyond;
    late = 0;  // corrected
  }
  EXPECT_LT(beyond / static_cast<double>(iterations), 2 * sigma * sigma / 0.1);
  EXPECT_GT(beyond, 0);
}

TEST(Plan, two_jobs__get_slots_that_do_not_collide_and_the_least_delay) {
  const std::vector<workload::Job> jobs{job_of("a"), job_of("b", 10_ms)};
  const std::vector<Profile> profiles{profile_of(60_ms, 100_ms, {0}), profile_of(60_ms, 100_ms, {0})};
  ScheduleSettings settings;
  settings.slack = 0;
  const Schedule schedule = plan_jobs(settings, jobs, profiles);
  EXPECT_EQ(schedule.summary.score, 1);
  EXPECT_EQ(schedule.summary.links, 1U);
  ASSERT_TRUE(schedule.slots[0].has_value());
  ASSERT_TRUE(schedule.slots[1].has_value());
  EXPECT_EQ(schedule.slots[0]->period, 100_ms);
  EXPECT_EQ(std::min(schedule.delays[0], schedule.delays[1]), 0_ms) << "one of them need not wait";
  // Both jobs send for 40 ms per period of 100 ms, so their bursts must begin 40 to 60 ms apart.
  const Nanos apart((schedule.slots[1]->slot - schedule.slots[0]->slot + 100_ms).count % 100'000'000);
  EXPECT_GE(apart, 40_ms);
  EXPECT_LE(apart, 60_ms);
  for (std::size_t i = 0; i < 2; ++i) {
    // The first bytes of the job leave at the start of a slot.
    const Nanos first = jobs[i].start + schedule.delays[i] + 60_ms;
    EXPECT_EQ((first - schedule.slots[i]->slot).count % 100'000'000, 0);
    EXPECT_LT(schedule.delays[i], 100_ms);
  }
}

TEST(Plan, memo__saves_the_search_for_jobs_that_start_at_other_times) {
  const std::vector<Profile> profiles{profile_of(60_ms, 100_ms, {0}), profile_of(60_ms, 100_ms, {0})};
  PlanMemo memo;
  PlanOptions options;
  options.memo = &memo;
  for (const Nanos start : {0_ms, 17_ms, 83_ms}) {
    const std::vector<workload::Job> jobs{job_of("a"), job_of("b", start)};
    const Schedule with = plan_jobs({}, jobs, profiles, options);
    const Schedule without = plan_jobs({}, jobs, profiles);
    EXPECT_EQ(with.delays, without.delays);
    ASSERT_TRUE(with.slots[1] && without.slots[1]);
    EXPECT_EQ(with.slots[1]->slot, without.slots[1]->slot);
  }
  EXPECT_EQ(memo.searches, 1U);
  const std::vector<Profile> others{profile_of(60_ms, 101_ms, {0}), profile_of(60_ms, 100_ms, {0})};
  plan_jobs({}, std::vector{job_of("a"), job_of("b")}, others, options);
  EXPECT_EQ(memo.searches, 2U);
}

TEST(Plan, slots__do_not_pay_beside_traffic_that_leaves_no_room_for_them) {
  std::vector<workload::Job> jobs{job_of("a"), job_of("b"), job_of("unaware")};
  jobs[2].unaware = true;
  const auto planned_beside = [&](Nanos compute) {
    return plan_jobs(
        {}, jobs,
        std::vector{profile_of(60_ms, 100_ms, {0}), profile_of(60_ms, 100_ms, {0}), profile_of(compute, 100_ms, {0})});
  };
  // The unaware job sends for 5 of 100 ms, or for 40 of them. The jobs send for 40 ms each.
  const Schedule room = planned_beside(95_ms);
  EXPECT_TRUE(room.slots[0] && room.slots[1] && !room.slots[2]);
  EXPECT_EQ(room.planned[0].sharing.jobs.size(), 2U);
  const Schedule full = planned_beside(60_ms);
  EXPECT_FALSE(full.slots[0] || full.slots[1]);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_THAT(full.reasons[i], StartsWith("slots do not help enough"));
  EXPECT_GT(full.planned[0].sharing.mean, room.planned[0].sharing.mean + 0.1);
}

TEST(Plan, running_jobs__reach_their_slots_with_little_delay) {
  // Without slots, the second job would send right behind the first one, and the third one into both.
  const std::vector<workload::Job> jobs{job_of("a", 1'000_ms), job_of("b", 1'028_ms), job_of("c", 1'050_ms)};
  const std::vector<Profile> profiles(3, profile_of(70_ms, 100_ms, {0}));
  PlanOptions options;
  options.repaired = options.running = true;
  const Schedule schedule = plan_jobs({}, jobs, profiles, options);
  ASSERT_TRUE(schedule.slots[0] && schedule.slots[1] && schedule.slots[2]);
  EXPECT_TRUE(schedule.planned[0].fit);
  EXPECT_EQ(schedule.delays[0], 0_ms);
  EXPECT_NEAR(schedule.delays[1].seconds(), 0.002, 0.0002);
  EXPECT_NEAR(schedule.delays[2].seconds(), 0.010, 0.0004);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(modulo(schedule.slots[i]->slot - jobs[i].start - schedule.delays[i] - 70_ms, schedule.slots[i]->period),
              0_ms);
}

TEST(Plan, slots__are_for_those_that_meet) {
  std::vector<workload::Job> jobs{job_of("a"),       job_of("b"), job_of("alone"),
                                  job_of("unaware"), job_of("c"), job_of("d")};
  jobs[3].unaware = true;
  const std::vector<Profile> profiles{profile_of(60_ms, 100_ms, {0}), profile_of(60_ms, 100_ms, {0}),
                                      profile_of(60_ms, 100_ms, {1}), profile_of(60_ms, 100_ms, {1}),
                                      profile_of(70_ms, 113_ms, {2}), profile_of(70_ms, 113_ms, {2, 3})};
  const Schedule schedule = plan_jobs({}, jobs, profiles);
  EXPECT_TRUE(schedule.slots[0] && schedule.slots[1] && schedule.slots[4] && schedule.slots[5]);
  EXPECT_FALSE(schedule.slots[2] || schedule.slots[3]);
  EXPECT_EQ(schedule.reasons[2], "it shares no link with another job");
  EXPECT_EQ(schedule.delays[2], 0_ms);
  EXPECT_EQ(schedule.groups[0], schedule.groups[1]);
  EXPECT_EQ(schedule.groups[4], schedule.groups[5]);
  EXPECT_NE(schedule.groups[0], schedule.groups[4]) << "each with periods of its own";
  EXPECT_LT(schedule.slots[0]->period, 101_ms);
  EXPECT_EQ(schedule.summary.links, 2U);
}

TEST(Plan, periods_that_do_not_suit__leave_the_jobs_alone) {
  ScheduleSettings settings;
  settings.max_stretch = 0.0001;
  settings.slack = 0;
  const Schedule schedule = plan_jobs(settings, std::vector{job_of("a"), job_of("b")},
                                      std::vector{profile_of(60_ms, 100_ms, {0}), profile_of(60_ms, 107'300_us, {0})});
  EXPECT_FALSE(schedule.slots[0] || schedule.slots[1]);
  EXPECT_EQ(schedule.summary.unplanned, 2U);
  EXPECT_THAT(schedule.reasons[0], testing::HasSubstr("max_stretch is 0.0%"));
  EXPECT_EQ(schedule.delays[0], 0_ms);
  EXPECT_EQ(schedule.delays[1], 0_ms);
}

TEST(Plan, clocks_that_agree_too_little__are_refused) {
  ScheduleSettings settings;
  settings.clock_bound = 6_ms;
  const std::vector<workload::Job> jobs{job_of("a"), job_of("b")};
  const std::vector<Profile> profiles{profile_of(60_ms, 100_ms, {0}), profile_of(60_ms, 100_ms, {0})};
  EXPECT_THROW(plan_jobs(settings, jobs, profiles), InputError);
}

TEST(Plan, gradual_step__outruns_the_slack) {
  ScheduleSettings settings;
  settings.slack = 0.08;
  settings.gradual_step = 0.1;
  const Schedule schedule = plan_jobs(settings, std::vector{job_of("a"), job_of("b")},
                                      std::vector{profile_of(60_ms, 100_ms, {0}), profile_of(60_ms, 100_ms, {0})});
  ASSERT_TRUE(schedule.slots[0].has_value());
  EXPECT_NEAR(schedule.slots[0]->gradual_step, 0.16, 1e-6);
}

TEST(Profile, measured__bits_and_times_of_an_iteration) {
  const Experiment experiment = parse_experiment(R"(name = "t"
[bottleneck]
rate = "1 Gbps"
[[job]]
name = "a"
jitter = "10 ms"
pause = { iteration = 2, time = "1 s" }
phases = [ { compute = "40 ms" }, { communicate = "2.5 MB" }, { compute = "30 ms" }, { communicate = "1 MB", rate = "500 Mbps" } ]
[[job]]
name = "b"
start = "7 ms"
phases = [ { compute = "40 ms" }, { communicate = "2.5 MB" }, { compute = "30 ms" }, { communicate = "1 MB", rate = "500 Mbps" } ]
)",
                                                 "t.toml", {});
  EXPECT_EQ(profile_work(experiment, false), profile_iterations(experiment) * 3.5e6) << "of one of them, not of both";
  const std::vector<Profile> profiles = profile_jobs(experiment, *make_sim_datapath());
  ASSERT_EQ(profiles.size(), 2U);
  const Profile& profile = profiles[1];
  EXPECT_NEAR(profile.period.millis(), 70 + 20 * 1.06 + 16 * 1.06, 0.5);
  EXPECT_EQ(profile.first_send, 40_ms);
  EXPECT_EQ(profile.compute, 70_ms);
  EXPECT_LT(profile.deviation, 0.002);
  ASSERT_EQ(profile.uses.size(), 1U);
  const scheduler::Demand& demand = profile.uses[0].demand;
  EXPECT_NO_THROW(scheduler::check(demand));
  EXPECT_EQ(demand.period, profile.period);
  EXPECT_NEAR(scheduler::bits(demand), 3.5e6 * 8 * 1.06, 3.5e6 * 8 * 0.01);
  EXPECT_NEAR(demand.bursts.front().from.millis(), 40, 0.3);
  EXPECT_LE(scheduler::peak(demand), Rate(1'000'000'000));
  EXPECT_NEAR(scheduler::busy_time(demand).millis(), profile.period.millis() - 70, 1.0);
}

TEST(Profile, measured__an_iteration_too_short_to_be_resolved_has_its_mean) {
  const Experiment experiment = parse_experiment(R"(name = "t"
[bottleneck]
rate = "1 Gbps"
[[job]]
name = "a"
compute = "3 us"
communicate = "1 kB"
)",
                                                 "t.toml", {});
  const Profile profile = profile_jobs(experiment, *make_sim_datapath()).front();
  ASSERT_EQ(profile.uses.size(), 1U);
  const scheduler::Demand& demand = profile.uses[0].demand;
  EXPECT_NO_THROW(scheduler::check(demand));
  EXPECT_EQ(scheduler::busy_time(demand), profile.period);
  EXPECT_NEAR(scheduler::bits(demand), 8 * 1100, 8 * 120);  // 1000 bytes of payload and their headers
}

TEST(Profile, with_compute__moves_the_bursts_apart) {
  Profile profile;
  profile.period = 100_ms;
  profile.compute = 60_ms;
  profile.first_send = 20_ms;
  profile.uses.push_back(
      {0, "l", Rate(10), {100_ms, {{20_ms, 40_ms, Rate(5)}, {40_ms, 50_ms, Rate(3)}, {90_ms, 100_ms, Rate(5)}}}});
  const Profile longer = with_compute(profile, 66_ms);
  EXPECT_EQ(longer.period, 106_ms);
  EXPECT_EQ(longer.compute, 66_ms);
  EXPECT_EQ(longer.first_send, 22_ms);
  const std::vector<scheduler::Burst> expected{
      {22_ms, 42_ms, Rate(5)}, {42_ms, 52_ms, Rate(3)}, {96_ms, 106_ms, Rate(5)}};
  EXPECT_EQ(longer.uses[0].demand.bursts, expected);
  EXPECT_NO_THROW(scheduler::check(longer.uses[0].demand));
  const Profile shorter = with_compute(profile, 0_ms);
  EXPECT_EQ(shorter.period, 40_ms);
  EXPECT_NO_THROW(scheduler::check(shorter.uses[0].demand));
  EXPECT_EQ(scheduler::busy_time(shorter.uses[0].demand), 40_ms);
}

// The measurements resemble jobs with dependences between messages: many bursts on all links of a topology, and periods
// without a short common multiple. Trying all slots with more room would multiply the work.
TEST(Plan, work__ends_where_many_bursts_would_make_it_minutes) {
  std::vector<workload::Job> jobs;
  std::vector<Profile> profiles;
  for (const Nanos period : {39'840_us, 49'930_us, 44'580_us, 26'210_us}) {
    jobs.push_back(job_of(std::string(1, static_cast<char>('a' + jobs.size()))));
    Profile& profile = profiles.emplace_back();
    profile.period = period;
    profile.compute = profile.first_send = period / 4;
    for (std::size_t link = 0; link < 8; ++link) {
      scheduler::Demand demand{period, {}};
      for (std::int64_t burst = 0; burst < 20; ++burst) {
        const Nanos from = period / 4 + period / 30 * burst + Nanos(1'000) * static_cast<std::int64_t>(link);
        demand.bursts.push_back(
            {from, from + period / 45, Rate(500'000'000 + 7'000'000 * static_cast<std::uint64_t>(burst % 9))});
      }
      profile.uses.push_back({link, "link " + std::to_string(link), Rate(1'000'000'000), demand});
    }
  }
  PlanOptions options;
  options.repaired = true;
  const Schedule schedule = plan_jobs({}, jobs, profiles, options);
  EXPECT_TRUE(schedule.summary.cut_off);
  EXPECT_GT(schedule.planned[0].work, kMaxPlanWork);
  EXPECT_LT(schedule.planned[0].work, 8 * kMaxPlanWork) << "the last solution, and two replays of its slots";

  for (Profile& profile : profiles)
    for (Profile::Use& use : profile.uses) use.demand.bursts.resize(1);
  const Schedule few = plan_jobs({}, jobs, profiles, options);
  EXPECT_FALSE(few.summary.cut_off);
  EXPECT_LT(few.planned[0].work, kMaxPlanWork);
}

}  // namespace
}  // namespace mltcp::experiment::plan_test
