// Tests schedules of experiments: their jobs, links and paths, the JSON text, and the HTML page.
#include "mltcp/lab/experiment/fit/compatibility.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/run/demand.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <vector>

#include "../../message_of.h"
#include "../../workload/phases.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/report/schedule_report.h"
#include "mltcp/lab/experiment/run/runner.h"

namespace mltcp::experiment {
namespace {

using namespace literals;
using nlohmann::json;

std::string job(const std::string& name, const std::string& compute, const std::string& communicate,
                const std::string& more = "") {
  return "[[job]]\nname = \"" + name + "\"\ncompute = \"" + compute + "\"\ncommunicate = \"" + communicate + "\"\n" +
         more + "\n";
}

const std::string kLink = "name = \"e\"\n[bottleneck]\nrate = \"1 Gbps\"\n";
const std::string k4060 = kLink + job("fast", "32 ms", "1 MB") + job("slow", "52 ms", "1 MB");
const std::string kThree =
    kLink + job("a", "100 ms", "12.5 MB") + job("b", "110 ms", "11.25 MB") + job("c", "150 ms", "6.25 MB");

std::string network(std::uint32_t leaves, std::uint32_t hosts, std::uint32_t spines = 2) {
  return "name = \"n\"\n[topology]\nkind = \"leaf-spine\"\nleaves = " + std::to_string(leaves) +
         "\nspines = " + std::to_string(spines) + "\nhosts_per_leaf = " + std::to_string(hosts) +
         "\nhost_rate = \"1 Gbps\"\n";
}

ScheduleResult schedule(const std::string& text, const ScheduleOptions& options = {}) {
  return make_schedule(parse_experiment(text, "e.toml"), options);
}

// Computes the score of shifts millisecond by millisecond. All times of the demands must be whole milliseconds.
double score_by_hand(const ScheduleResult& result, const ScheduleResult::Link& link) {
  const std::int64_t perimeter = link.solution.perimeter.count / 1'000'000;
  double excess = 0;
  for (std::int64_t at = 0; at < perimeter; ++at) {
    double demand = 0;
    for (const auto& use : link.uses) {
      const auto& slots = result.jobs[use.job];
      const std::int64_t slot = slots.slot_period.count / 1'000'000;
      const std::int64_t inside = ((at - slots.time_shift.count / 1'000'000) % slot + slot) % slot;
      for (const auto& burst : use.demand.bursts)
        if (inside >= burst.from.count / 1'000'000 && inside < burst.to.count / 1'000'000)
          demand += static_cast<double>(burst.rate.bits_per_second);
    }
    excess += std::max(0.0, demand - static_cast<double>(link.capacity.bits_per_second));
  }
  return 1 - excess / (static_cast<double>(perimeter) * static_cast<double>(link.capacity.bits_per_second));
}

TEST(Schedule, dumbbell__unified_circle_of_40_and_60_ms) {
  const ScheduleResult result = schedule(k4060);
  ASSERT_EQ(result.links.size(), 1U);
  const ScheduleResult::Link& link = result.links[0];
  EXPECT_EQ(link.name, "bottleneck");
  EXPECT_EQ(link.solution.perimeter, 120_ms);
  EXPECT_EQ(link.uses[0].repetitions, 3U);
  EXPECT_EQ(link.uses[1].repetitions, 2U);
  EXPECT_EQ(link.solution.score, 1);
  EXPECT_EQ(score_by_hand(result, link), 1);
  EXPECT_TRUE(link.solution.optimal);
  // The bursts use 16 of every 20 ms. The gaps between them are 2 ms, so the start of each job may deviate by 1 ms.
  EXPECT_EQ(link.solution.margin, 1_ms);
  EXPECT_NEAR(link.unshifted_score, 1 - 8.0 / 120, 1e-12);
  EXPECT_THAT(link.removals, IsEmpty());
  for (const auto& use : link.uses) {
    const auto& slots = result.jobs[use.job];
    EXPECT_EQ(slots.slot_period, slots.period);
    EXPECT_LT(use.rotation, 2 * std::numbers::pi / use.repetitions);
    const double shift = use.rotation / (2 * std::numbers::pi) * 120e6;
    EXPECT_NEAR(shift, static_cast<double>(slots.time_shift.count), 1);
  }
  EXPECT_THAT(verdict(result, link), StartsWith("fully compatible"));
  EXPECT_THAT(verdict(result, link), HasSubstr("to within 1.000 ms"));
  ASSERT_EQ(result.components.size(), 1U);
  EXPECT_TRUE(result.components[0].within_limit);
}

TEST(Schedule, dumbbell__says_who_should_go) {
  const ScheduleResult result = schedule(kThree);
  const ScheduleResult::Link& link = result.links[0];
  EXPECT_LT(link.solution.score, 1);
  EXPECT_NEAR(link.solution.score, score_by_hand(result, link), 1e-3);
  ASSERT_EQ(link.removals.size(), 3U);
  EXPECT_TRUE(std::is_sorted(link.removals.begin(), link.removals.end(),
                             [](const auto& a, const auto& b) { return a.score > b.score; }));
  EXPECT_EQ(link.removals[0].score, 1);
  const std::string text = verdict(result, link);
  EXPECT_THAT(text, StartsWith("not compatible: at best "));
  EXPECT_THAT(text, HasAll("; without job \"" + result.jobs[link.removals[0].job].name + "\"",
                           "the score of the others is 1.000"));
  ASSERT_EQ(link.pair_scores.size(), 3U);
  EXPECT_EQ(link.pair_scores[0][1], link.pair_scores[1][0]);
}

TEST(Schedule, dumbbell__unaware_jobs_have_no_slot) {
  const ScheduleResult result = schedule(k4060 + job("bulk", "0 ms", "5 MB", "unaware = true"));
  EXPECT_EQ(result.links[0].uses.size(), 2U);
  EXPECT_TRUE(result.jobs[2].unaware);
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("\"bulk\"")));
  EXPECT_THROW(schedule(kLink + job("bulk", "0 ms", "5 MB", "unaware = true")), InputError);
}

TEST(Schedule, dumbbell__job_that_exceeds_the_link_alone) {
  const ScheduleResult result = schedule(kLink + job("wide", "75 ms", "6.25 MB", "rate = \"2 Gbps\""));
  EXPECT_EQ(result.jobs[0].period, 100_ms);
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("\"wide\" alone needs 2 Gbps")));
  EXPECT_NEAR(result.links[0].solution.score, 0.75, 1e-12);
}

TEST(Schedule, dumbbell__jobs_that_never_compete_are_left_alone) {
  const ScheduleResult result = schedule(kLink + job("a", "37 ms", "1 MB", "rate = \"400 Mbps\"") +
                                         job("b", "53 ms", "1 MB", "rate = \"600 Mbps\""));
  EXPECT_FALSE(result.links[0].competed);
  EXPECT_EQ(result.score, 1);
  for (const auto& each : result.jobs) EXPECT_EQ(each.slot_period, each.period);
  EXPECT_EQ(result.components.size(), 2U);
  EXPECT_THAT(verdict(result, result.links[0]), StartsWith("any time shifts work"));
}

TEST(Schedule, dumbbell__options_reach_the_solver) {
  ScheduleOptions options;
  options.solve.angles = 4;
  const ScheduleResult coarse = schedule(k4060, options);
  for (const auto& each : coarse.jobs) EXPECT_EQ(each.time_shift.count % 30'000'000, 0);
  options = {};
  options.solve.slack = 0.01;
  const ScheduleResult loose = schedule(k4060, options);
  for (const auto& each : loose.jobs) EXPECT_GE(each.stretch(), 0.0099);
  options = {};
  options.solve.max_stretch = 0;
  options.solve.max_repetitions = 2;
  const std::string odd = kLink + job("a", "31 ms", "1 MB") + job("b", "52.7 ms", "1 MB");
  const ScheduleResult strained = schedule(odd, options);
  EXPECT_FALSE(strained.components[0].within_limit);
  EXPECT_THAT(strained.warnings, ElementsAre(HasSubstr("no short perimeter fits the periods of 2 jobs")));
  EXPECT_THAT(plan_of(strained, {}).jobs, IsEmpty());
}

TEST(Schedule, periods__that_are_too_different_are_refused) {
  const std::string jobs =
      job("tick", "10 us", "1 kB", "hosts = [0, 4]") + job("epoch", "74 s", "1 MB", "hosts = [1, 5]");
  for (const std::string& text :
       {network(2, 4, 1) + jobs, kLink + job("tick", "10 us", "1 kB") + job("epoch", "74 s", "1 MB")})
    EXPECT_THAT(refusal_of([&] { schedule(text); }),
                ContainsRegex("^e.toml:[0-9]+: job\\[1\\]: its iterations of 18 us and those of job \"epoch\" "
                              "\\(74.008 s\\) share link.*; set unaware = true"));
}

TEST(Schedule, errors__name_the_file) {
  const auto refusal = [](const std::string& text, const ScheduleOptions& options) {
    return refusal_of([&] { schedule(text, options); });
  };
  EXPECT_THAT(refusal(kLink + job("bulk", "0 ms", "5 MB", "unaware = true"), {}),
              ContainsRegex("^e.toml:[0-9]+: job\\[1\\]: every job is unaware"));
  ScheduleOptions options;
  options.solve.slack = 2;
  EXPECT_EQ(refusal(k4060 + job("more", "0 ms", "5 MB"), options), "e.toml: slack is 2; give a share from 0 to 1");
}

// With the options that the verdict proposes, the jobs are compatible.
TEST(Schedule, help__is_true_when_it_is_tried) {
  // Jobs with periods of 40 ms and 44 ms are compatible if both get a common period. Three jobs whose bursts fill 105%
  // of a period need longer slots.
  const std::string odd = kLink + job("a", "20 ms", "2.5 MB") + job("b", "22 ms", "2.75 MB");
  const std::string full =
      kLink + job("a", "65 ms", "4.375 MB") + job("b", "65 ms", "4.375 MB") + job("c", "65 ms", "4.375 MB");
  const ScheduleResult three = schedule(full);
  ASSERT_LT(three.score, 1);
  ASSERT_TRUE(three.enough_slack.has_value());
  EXPECT_NEAR(*three.enough_slack, 0.05, 0.0011);
  EXPECT_FALSE(three.enough_stretch.has_value()) << "they are in one rhythm already";
  EXPECT_THAT(verdict(three, three.links.front()), HasSubstr("; with --slack 0.05 all jobs fit, "));
  ScheduleOptions options;
  options.solve.slack = *three.enough_slack;
  EXPECT_EQ(schedule(full, options).score, 1);
  options.solve.slack -= 0.002;
  EXPECT_LT(schedule(full, options).score, 1) << "much less would not do";

  const ScheduleResult two = schedule(odd);
  ASSERT_LT(two.score, 1);
  ASSERT_TRUE(two.enough_stretch.has_value());
  EXPECT_NEAR(*two.enough_stretch, 0.1, 0.0011);
  EXPECT_THAT(verdict(two, two.links.front()), HasSubstr("--max-stretch 0.1 all jobs fit, "));
  options = {};
  options.solve.max_stretch = *two.enough_stretch;
  EXPECT_EQ(schedule(odd, options).score, 1);
  const ScheduleResult fits = schedule(k4060);
  EXPECT_FALSE(fits.enough_slack || fits.enough_stretch || fits.enough_together);
}

// These jobs need a common period as well as longer slots. With a common period but the same slots, their bursts fill
// more than a period.
TEST(Schedule, help__both_where_neither_does_alone) {
  const std::string jobs =
      kLink + job("a", "26 ms", "1.75 MB") + job("b", "26 ms", "1.75 MB") + job("c", "27.2 ms", "1.75 MB");
  const ScheduleResult result = schedule(jobs);
  ASSERT_LT(result.score, 1);
  ASSERT_TRUE(result.enough_together) << help_of(result);
  EXPECT_THAT(verdict(result, result.links.front()), HasSubstr("with " + help_of(result) + " all jobs fit, "));
  ScheduleOptions options;
  options.solve.slack = result.enough_together->slack;
  options.solve.max_stretch = result.enough_together->max_stretch;
  EXPECT_EQ(schedule(jobs, options).score, 1);

  // If the jobs have a common period, a little slack is enough. A large slack stretches slots beyond the limit.
  options = {};
  options.solve.max_stretch = 0.035;
  const ScheduleResult in_rhythm = schedule(jobs, options);
  ASSERT_TRUE(in_rhythm.enough_slack);
  EXPECT_LT(*in_rhythm.enough_slack, 0.05);
  options.solve.slack = 0.5;
  EXPECT_LT(schedule(jobs, options).score, 1);
}

TEST(Schedule, help__of_ideal_demand_says_so) {
  ScheduleResult result = schedule(kThree);
  result.enough_slack = 0.1;
  EXPECT_THAT(verdict(result, result.links[0]), HasSubstr("by ideal demand; add --measure"));
  result.measured = true;
  EXPECT_THAT(verdict(result, result.links[0]), Not(HasSubstr("ideal")));
}

TEST(Schedule, verdict__nothing_above_0_looks_like_0) {
  ScheduleResult result = schedule(kThree);
  result.links[0].solution.score = result.links[0].solution.upper_bound = 0.9999;
  EXPECT_THAT(verdict(result, result.links[0]), HasSubstr(" 0.01% of what"));
  result.links[0].solution.score = result.links[0].solution.upper_bound = 0.99999;
  EXPECT_THAT(verdict(result, result.links[0]), HasSubstr(" less than 0.01% of what"));
}

TEST(Schedule, verdict__rates_are_readable) {
  ScheduleResult result = schedule(kLink + job("a", "1 ms", "1 MB"));
  result.links[0].uses[0].demand.bursts[0].rate = Rate(999'818'954);
  EXPECT_THAT(verdict(result, result.links[0]), HasSubstr("more than 999.8 Mbps of 1 Gbps"));
}

// Automatic slack does not exceed max_stretch, whether an option or the file sets this limit.
TEST(Schedule, make_room__takes_the_limit_of_the_options) {
  const std::string odd = kLink + job("a", "20 ms", "2.5 MB") + job("b", "22 ms", "2.75 MB");
  ScheduleOptions options;
  options.measure = options.add_margin = true;
  options.solve.max_stretch = 0.15;
  const ScheduleResult by_option = schedule(odd, options);
  const ScheduleResult by_key = schedule(odd + "[schedule]\nmax_stretch = 0.15\n", options);
  EXPECT_EQ(by_option.jobs[0].slot_period, by_key.jobs[0].slot_period);
  EXPECT_EQ(by_option.score, by_key.score);
}

TEST(Schedule, demand_of__joins_what_is_too_many_and_keeps_the_bits) {
  workload::Job many;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    many.phases.push_back(workload::computes(Nanos(i % 10 == 9 ? 500'000 : 1'000)));
    many.phases.push_back(workload::sends(1250));
  }
  bool joined = false;
  const scheduler::Demand demand = demand_of(many, Rate(1'000'000'000), &joined);
  EXPECT_TRUE(joined);
  EXPECT_EQ(demand.bursts.size(), kMaxBursts);
  EXPECT_NO_THROW(scheduler::check(demand));
  EXPECT_NEAR(scheduler::bits(demand), 1000 * 1250 * 8, 10);
  // Only bursts with short gaps between them are joined, so that the long gaps remain.
  EXPECT_LT(scheduler::busy_time(demand), 13_ms);
  EXPECT_EQ(demand_of(many, Rate(1'000'000'000)).period, demand.period);
}

TEST(Schedule, dumbbell__measured_jobs_are_slower_than_ideal_ones) {
  ScheduleOptions options;
  options.measure = true;
  std::vector<std::string> reported;
  options.progress = [&](double, const std::string& what) { reported.push_back(what); };
  const ScheduleResult measured = schedule(k4060, options);
  EXPECT_TRUE(measured.measured);
  EXPECT_GT(measured.jobs[0].period, 40_ms);
  EXPECT_LT(measured.jobs[0].period, 42_ms);
  EXPECT_NEAR(measured.jobs[0].first_send.millis(), 32, 0.2);
  // The demand includes headers, so it is more than one megabyte.
  EXPECT_GT(scheduler::bits(measured.links[0].uses[0].demand), 8.1e6);
  EXPECT_LT(scheduler::bits(measured.links[0].uses[0].demand), 9e6);
  EXPECT_EQ(json::parse(to_json(measured))["demand"], "measured");
  EXPECT_THAT(reported, Contains(HasSubstr("measuring fast")));
}

TEST(Schedule, plan_of__up_phases_begin_where_jobs_first_send) {
  const ScheduleResult result = schedule(k4060 + job("bulk", "0 ms", "5 MB", "unaware = true"));
  ScheduleSettings settings;
  settings.tolerance = 0.02;
  const PlanFile plan = plan_of(result, settings);
  EXPECT_EQ(plan.tolerance, 0.02);
  ASSERT_EQ(plan.jobs.size(), 2U);
  EXPECT_EQ(plan.jobs[0].period, 40_ms);
  EXPECT_EQ(plan.jobs[0].offset, Nanos((result.jobs[0].time_shift + 32_ms).count % 40'000'000));
  EXPECT_EQ(plan.jobs[1].offset, Nanos((result.jobs[1].time_shift + 52_ms).count % 60'000'000));
  EXPECT_EQ(parse_plan(to_json(plan), "p").jobs, plan.jobs);
  // A job without competitors has no slots.
  EXPECT_THAT(plan_of(schedule(kLink + job("a", "1 ms", "1 MB")), {}).jobs, IsEmpty());
}

// Slack moves the slots away from the job. If the gradual step were smaller than this movement, the job would never
// reach its slots again.
TEST(Schedule, plan_of__gradual_steps_outrun_the_slack) {
  ScheduleOptions options;
  options.solve.slack = 0.1;
  ScheduleSettings settings;
  settings.gradual_step = 0.05;
  EXPECT_NEAR(plan_of(schedule(k4060, options), settings).gradual_step, 0.2, 0.001);
  settings.gradual_step = 0.5;
  EXPECT_EQ(plan_of(schedule(k4060, options), settings).gradual_step, 0.5);
}

// ---- Topologies ----

const std::string kRings = network(3, 4) + job("z", "20 ms", "1 MB", "hosts = [0, 4, 8]\nflows = 2") +
                           job("b", "20 ms", "1 MB", "hosts = [1, 5, 9]") +
                           job("c", "20 ms", "1 MB", "hosts = [2, 6, 10]") +
                           job("d", "20 ms", "1 MB", "hosts = [3, 7, 0]");

TEST(Schedule, topology__links_carry_what_the_simulator_sends_over_them) {
  Experiment experiment = parse_experiment(kRings, "e.toml");
  const ScheduleResult result = make_schedule(experiment, {});
  std::map<std::string, double> bits;  // bits per iteration, by shared link
  for (const auto& link : result.links) {
    EXPECT_GE(link.uses.size(), 2U);
    EXPECT_TRUE(std::is_sorted(link.uses.begin(), link.uses.end(), [](auto& a, auto& b) { return a.job < b.job; }));
    for (const auto& use : link.uses) bits[link.name] += scheduler::bits(use.demand);
  }
  EXPECT_GE(bits.size(), 3U);
  experiment.policies = {"fair"};
  experiment.iterations = 20;
  const auto run = run_experiment(experiment, *make_sim_datapath()).runs.at(0);
  for (const LinkResult& link : run.links) {
    const double sent = link.utilization * run.duration.seconds() * 1e9 / 20;
    const auto expected = bits.find(link.name);
    if (expected == bits.end()) {
      EXPECT_LT(sent, 8e6 * 1.25) << link.name;  // only one job sends over this link
    } else {
      EXPECT_NEAR(sent / expected->second, 1.1, 0.2) << link.name;
    }
  }
}

TEST(Schedule, topology__shifts_keep_the_links_apart) {
  const ScheduleResult result = schedule(kRings);
  for (const auto& link : result.links) {
    if (!link.competed) continue;
    // The result is approximate, because slots are not whole milliseconds.
    EXPECT_NEAR(link.solution.score, score_by_hand(result, link), 0.08) << link.name;
    EXPECT_EQ(link.solution.perimeter.count % result.jobs[link.uses[0].job].slot_period.count, 0);
  }
}

TEST(Schedule, topology__own_flows_that_meet_slow_a_job) {
  const std::string text = network(2, 4) + job("wide", "20 ms", "1 MB", "hosts = [0, 4, 1, 5]") +
                           job("other", "20 ms", "1 MB", "hosts = [2, 6]");
  const std::size_t at = text.find("host_rate");
  const ScheduleResult result = schedule(text.substr(0, at) + "uplink_rate = \"500 Mbps\"\n" + text.substr(at));
  ASSERT_FALSE(result.warnings.empty());
  EXPECT_THAT(
      result.warnings[0],
      HasSubstr(
          "link \"leaf 0 -> spine 0\" on the path of job \"wide\" lets a worker send at only 500 Mbps, not 1 Gbps"));
  // Sending 8 Mbit takes at least 16 ms at 500 Mbps, although a host has 1 Gbps.
  EXPECT_GE(result.jobs[0].period, 36_ms);
  EXPECT_GE(result.jobs[1].period, 36_ms);
  for (const auto& link : result.links)
    for (const auto& use : link.uses) EXPECT_LE(peak(use.demand), link.capacity);
}

TEST(Schedule, topology__own_flows_that_meet_are_named) {
  // Two workers of the job send from one leaf to the other leaf. Each worker sends three flows over two spines, and
  // each link has the rate of a worker.
  const ScheduleResult result =
      schedule("seed = 2\n" + network(2, 4) + job("wide", "20 ms", "1 MB", "hosts = [0, 4, 1, 5]\nflows = 3"));
  ASSERT_FALSE(result.warnings.empty());
  EXPECT_THAT(result.warnings[0], HasSubstr("flows of job \"wide\" share link"));
  EXPECT_GT(result.jobs[0].period, 28_ms);
}

TEST(Schedule, topology__measured_flows_are_those_of_a_job) {
  ScheduleOptions options;
  options.measure = true;
  const ScheduleResult ideal = schedule(kRings);
  const ScheduleResult measured = schedule(kRings, options);
  ASSERT_EQ(measured.links.size(), ideal.links.size());
  for (std::size_t l = 0; l < ideal.links.size(); ++l)
    for (std::size_t u = 0; u < ideal.links[l].uses.size(); ++u)
      EXPECT_NEAR(scheduler::bits(measured.links[l].uses[u].demand) / scheduler::bits(ideal.links[l].uses[u].demand),
                  1.1, 0.15)
          << ideal.links[l].name;
}

TEST(Schedule, topology__loops_are_named) {
  const ScheduleResult result = schedule(
      network(3, 4) + job("a", "20 ms", "1 MB", "hosts = [0, 4, 8]") + job("b", "22 ms", "1 MB", "hosts = [1, 5, 9]") +
      job("c", "24 ms", "1 MB", "hosts = [2, 6, 10]") + job("d", "26 ms", "1 MB", "hosts = [3, 7, 11]"));
  ASSERT_GT(result.loops, 0U);
  std::uint32_t loops = 0;
  for (const auto& loop : result.joint) {
    EXPECT_GE(loop.jobs.size(), 2U);
    EXPECT_GE(loop.links.size(), 2U);
    loops += loop.count;
  }
  EXPECT_EQ(loops, result.loops);
  const json file = json::parse(to_json(result));
  EXPECT_EQ(file["joint"].size(), result.joint.size());
  EXPECT_TRUE(file["joint"][0]["links"][0].get<std::string>().find(" -> ") != std::string::npos);
  EXPECT_NE(render_schedule(result).find("<section id=\"loops\">"), std::string::npos);
}

TEST(Schedule, topology__nothing_shared) {
  const ScheduleResult result = schedule(network(1, 4) + job("a", "20 ms", "1 MB", "hosts = [0, 1]"));
  EXPECT_THAT(result.links, IsEmpty());
  EXPECT_EQ(result.score, 1);
  EXPECT_NE(render_schedule(result).find("No link is used by two jobs"), std::string::npos);
}

// ---- The file ----

TEST(Schedule, json__has_the_fields_of_the_format) {
  const json file = json::parse(to_json(schedule(k4060)));
  EXPECT_EQ(file["schema"], "mltcp.schedule/1");
  EXPECT_EQ(file["experiment"], "e");
  EXPECT_EQ(file["demand"], "ideal");
  const json& link = file["links"].at(0);
  EXPECT_EQ(link["name"], "bottleneck");
  EXPECT_EQ(link["capacity_bps"], 1'000'000'000);
  EXPECT_EQ(link["perimeter_ns"], 120'000'000);
  EXPECT_EQ(link["angles"], 0);
  EXPECT_EQ(link["score"], 1.0);
  EXPECT_EQ(link["upper_bound"], 1.0);
  EXPECT_EQ(link["optimal"], true);
  EXPECT_EQ(link["margin_ns"], 1'000'000);
  EXPECT_EQ(link["within_limit"], true);
  EXPECT_TRUE(link["drift_score"].is_number());
  const json& slow = link["jobs"].at(1);
  EXPECT_EQ(slow["name"], "slow");
  EXPECT_EQ(slow["period_ns"], 60'000'000);
  EXPECT_EQ(slow["slot_period_ns"], 60'000'000);
  EXPECT_EQ(slow["stretch"], 0.0);
  EXPECT_EQ(slow["repetitions"], 2);
  EXPECT_EQ(slow["demand"], json::parse("[[52000000, 60000000, 1000000000]]"));
  EXPECT_EQ(slow["time_shift_ns"], file["jobs"].at(1)["time_shift_ns"]);
  EXPECT_EQ(file["jobs"].at(1)["name"], "slow");
  EXPECT_FALSE(link.contains("removals"));
  const json three = json::parse(to_json(schedule(kThree)));
  EXPECT_EQ(three["links"].at(0)["removals"].size(), 3U);
  EXPECT_TRUE(three["links"].at(0)["removals"].at(0)["without"].is_string());
  EXPECT_EQ(three["links"].at(0)["pair_scores"].size(), 3U);
}

// ---- The page ----

bool has(const std::string& page, const std::string& text) { return page.find(text) != std::string::npos; }

TEST(ScheduleReport, page__loads_nothing_and_is_filled) {
  const std::string page = render_schedule(schedule(kThree));
  EXPECT_EQ(page.find("<!DOCTYPE html>"), 0U);
  EXPECT_EQ(page.substr(page.size() - 8), "</html>\n");
  EXPECT_TRUE(has(page, "default-src 'none'"));
  EXPECT_FALSE(has(page, "{{"));
  for (const char* loader : {"<link rel=\"stylesheet\"", "<script src", "<img", "<iframe", "@import", "url(h", "url(\"",
                             "import(", "src=\"", "href=\"h"})
    EXPECT_FALSE(has(page, loader)) << loader;
  EXPECT_EQ(render_schedule(schedule(kThree)), page);
}

TEST(ScheduleReport, page__escapes_names) {
  const std::string evil = "</script><b>x\\\"'&";
  const std::string page =
      render_schedule(schedule("name = \"</title>&\"\n" + kThree.substr(kThree.find("[bott")) +
                               job(evil, "10 ms", "1 MB", "unaware = true") + job("<i>" + evil, "90 ms", "12.5 MB")));
  EXPECT_FALSE(has(page, "</script><b>"));
  EXPECT_FALSE(has(page, "<i>&lt;/script"));
  EXPECT_FALSE(has(page, "</title>&"));
  EXPECT_TRUE(has(page, "&lt;/script&gt;&lt;b&gt;x&quot;&#39;&amp;"));
  EXPECT_TRUE(has(page, "\\u003c/script>\\u003cb>x"));
  std::size_t scripts = 0;
  for (std::size_t i = page.find("</script>"); i != std::string::npos; i = page.find("</script>", i + 1)) ++scripts;
  EXPECT_EQ(scripts, 2U);
}

TEST(ScheduleReport, page__says_the_numbers_without_javascript) {
  const std::string page = render_schedule(schedule(k4060));
  const std::string text = page.substr(0, page.find("<script"));
  for (const char* number : {"1.0000, proven best", "0.9333", "120.000 ms", "1.000 ms", ">40.000<", ">3<", ">0.00%<"})
    EXPECT_TRUE(has(text, number)) << number;
  EXPECT_TRUE(
      has(render_schedule(schedule(k4060 + job("bulk", "0 ms", "5 MB", "unaware = true"))), "keeps no plan</td>"));
  EXPECT_TRUE(has(render_schedule(schedule(kThree)), "Score of the other jobs if one is removed"));
}

TEST(ScheduleReport, page__of_a_thousand_links_stays_small) {
  ScheduleResult result = schedule(kRings);
  ASSERT_GE(result.links.size(), 2U);
  const ScheduleResult::Link link = result.links[0];
  while (result.links.size() < 1000) {
    result.links.push_back(link);
    result.links.back().name = "leaf " + std::to_string(result.links.size()) + " -> spine 0";
  }
  const std::string page = render_schedule(result);
  EXPECT_LT(page.size(), 2'000'000U);
  EXPECT_TRUE(has(page, "data-link=\"999\""));
  // The page contains the demands only once.
  const auto at = page.find("\"demands\":");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LT(page.find("\"first\":", at) - at, 2000U);
}

TEST(ScheduleReport, page__of_scores_just_below_1_doesnt_round_them_up) {
  ScheduleResult result = schedule(k4060);
  result.links[0].solution.score = 0.99999;
  EXPECT_TRUE(has(render_schedule(result), "0.9999, proven best"));
}

}  // namespace
}  // namespace mltcp::experiment
