// Tests policies schedule and mltcp+schedule in virtual time: jobs that keep to their slots, jobs that drift, and plans
// that come from a file while the jobs run.

#include <filesystem>
#include <fstream>

#include "../../matchers.h"
#include "../../temporary_folder.h"
#include "../written.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/backends/flow_level.h"
#include "mltcp/lab/experiment/files/datapath_kind.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/files/plan_file.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/run/runner.h"

namespace mltcp::experiment::schedule_run_test {
namespace {

using namespace literals;

Experiment two_jobs(const std::string& policies, int iterations, const std::string& of_a = "",
                    const std::string& of_b = "", const std::string& schedule = "") {
  return parse_experiment("name = \"pair\"\niterations = " + std::to_string(iterations) + "\npolicies = " + policies +
                              R"(
[bottleneck]
rate = "1 Gbps"
delay = "10 us"
buffer = "75 kB"
[schedule]
)" + schedule + R"(
[[job]]
name = "a"
compute = "60 ms"
communicate = "5 MB"
)" + of_a + R"(
[[job]]
name = "b"
compute = "60 ms"
communicate = "5 MB"
start = "3 ms"
)" + of_b,
                          "pair.toml", FileOptions{});
}

Results run(const Experiment& experiment, const RunOptions& options = {}) {
  return run_experiment(experiment, *make_sim_datapath(), {}, options);
}

/// Returns the mean duration of iterations [from, to), minus their additional compute time, divided by the isolated
/// time.
double slowdown(const JobResult& job, std::size_t from, std::size_t to) {
  double sum = 0;
  for (std::size_t i = from; i < to; ++i) {
    const Nanos longer = job.iteration_compute.empty() ? 0_ns : job.iteration_compute[i] - job.compute;
    sum += (job.iterations[i] - longer).seconds();
  }
  return sum / static_cast<double>(to - from) / job.isolated.seconds();
}

TEST(Schedule, both_policies__interleave_from_the_first_iteration_on) {
  const Results results = run(two_jobs(R"(["schedule", "mltcp+schedule"])", 20));
  for (const auto& one : results.runs) {
    ASSERT_TRUE(one.schedule.has_value());
    EXPECT_EQ(one.schedule->score, 1);
    EXPECT_TRUE(one.schedule->optimal);
    for (const JobResult& job : one.jobs) {
      EXPECT_LT(job.slowdown, 1.003) << one.policy << ' ' << job.name;
      EXPECT_EQ(job.interleaved_from, 0U) << one.policy << ' ' << job.name;
      EXPECT_EQ(job.gate_corrections, 0U);
      EXPECT_EQ(job.plan_dropped, "");
      EXPECT_GT(job.gate_waited, 0_ns) << "the slack of the slots";
    }
    EXPECT_EQ(std::min(one.jobs[0].time_shift, one.jobs[1].time_shift), 0_ns);
    EXPECT_GT(std::max(one.jobs[0].time_shift, one.jobs[1].time_shift), 30_ms);
    EXPECT_EQ(one.jobs[0].starts[0], one.jobs[0].time_shift);
    EXPECT_EQ(one.jobs[1].starts[0], 3_ms + one.jobs[1].time_shift);
    EXPECT_EQ(one.bottleneck.dropped_packets, 0U);
    // The plan puts the up phases of both jobs half a period apart.
    const std::vector<ScheduleSummary::Slot>& slots = one.schedule->slots;
    ASSERT_EQ(slots.size(), 2U);
    EXPECT_THAT(one.schedule->without_slots, IsEmpty());
    EXPECT_EQ(slots[0].job, "a");
    EXPECT_EQ(slots[1].job, "b");
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(slots[i].time_shift, one.jobs[i].time_shift);
      EXPECT_NEAR(slots[i].stretch, slots[i].period.seconds() / one.jobs[i].isolated.seconds() - 1, 1e-9);
      EXPECT_GT(slots[i].stretch, 0);
      EXPECT_EQ(slots[i].offset, Nanos((one.jobs[i].starts[0] + 60_ms).count % slots[i].period.count));
    }
    EXPECT_NEAR(std::abs((slots[0].offset - slots[1].offset).millis()), slots[0].period.millis() / 2, 1);
  }
}

// Three jobs send several bursts per iteration. Without slots, MLTCP settles on an order of the bursts that is not the
// best.
TEST(Schedule, three_jobs__are_as_if_alone) {
  Experiment experiment = parse_experiment(R"(name = "three"
iterations = 12
policies = ["schedule"]
[bottleneck]
rate = "1 Gbps"
buffer = "75 kB"
[[job]]
name = "a"
phases = [ { compute = "70 ms" }, { communicate = "3 MB" } ]
[[job]]
name = "b"
phases = [ { compute = "20 ms" }, { communicate = "1 MB" }, { compute = "50 ms" }, { communicate = "2 MB" } ]
[[job]]
name = "c"
phases = [ { compute = "80 ms" }, { communicate = "1.7 MB" } ]
)",
                                           "three.toml", FileOptions{});
  const Results results = run(experiment);
  for (const JobResult& job : results.runs[0].jobs) {
    EXPECT_LT(job.slowdown, 1.03) << job.name;
    EXPECT_EQ(job.gate_corrections, 0U);
  }
  EXPECT_EQ(results.runs[0].schedule->score, 1);
}

TEST(Schedule, jitter__is_paid_for_with_repairs_or_with_slack) {
  Experiment experiment = two_jobs(R"(["schedule", "mltcp+schedule"])", 60, "jitter = \"1 ms\"", "jitter = \"1 ms\"");
  const Results results = run(experiment);
  EXPECT_LT(results.runs[0].schedule->stretch, 0.0011);
  for (const JobResult& job : results.runs[0].jobs) EXPECT_LT(job.slowdown, 1.008);
  experiment.policies = {"mltcp+schedule"};
  experiment.schedule.replan = false;  // turns off repairs
  const auto planned = run(experiment).runs[0];
  EXPECT_GT(planned.schedule->stretch, 0.004);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(planned.jobs[i].plan_dropped, "");
    EXPECT_LE(planned.jobs[i].gate_corrections, 2U);
    EXPECT_LT(planned.jobs[i].slowdown, 1.01);
  }
}

TEST(Schedule, unaware_job__has_no_slots) {
  Experiment experiment = two_jobs(R"(["schedule"])", 5);
  experiment.jobs[1].unaware = true;
  const Results results = run(experiment);
  for (const JobResult& job : results.runs[0].jobs) {
    EXPECT_EQ(job.time_shift, 0_ns);
    EXPECT_EQ(job.gate_waited, 0_ns);
  }
  EXPECT_EQ(results.runs[0].schedule->links, 0U);
  EXPECT_THAT(results.runs[0].schedule->slots, IsEmpty());
  EXPECT_THAT(results.runs[0].schedule->without_slots, ElementsAre("a"));
}

// Job "a" pauses, and is half a period late when job "b" is about to send. The keeper moves the slots of job "b".
TEST(Schedule, pause__is_repaired_at_the_least_cost_of_both) {
  const Results results =
      run(two_jobs(R"(["mltcp", "schedule", "mltcp+schedule"])", 30, "pause = { iteration = 10, time = \"51 ms\" }"));
  for (const auto& one : {results.runs[1], results.runs[2]}) {
    EXPECT_EQ(one.schedule->repaired, 1U);
    const double waited = slowdown(one.jobs[0], 10, 11) - 1 + (slowdown(one.jobs[1], 0, 30) - 1) * 30;
    EXPECT_LT(waited, 0.48) << one.policy << ": half a period, less the gap between them";
    EXPECT_GT(waited, 0.3) << one.policy;
    for (const JobResult& job : one.jobs) {
      EXPECT_EQ(job.gate_corrections, 0U) << "the gate's own, of a period each";
      EXPECT_LT(slowdown(job, 13, 30), 1.003) << one.policy << ' ' << job.name;
    }
    EXPECT_EQ(one.jobs[0].iteration_compute[10], 111_ms);
    EXPECT_EQ(one.jobs[0].iteration_compute[11], 60_ms);
  }
  EXPECT_GT(slowdown(results.runs[0].jobs[1], 10, 14), 1.02) << "under MLTCP both meet, for a while";
}

TEST(Schedule, pause_without_a_keeper__is_corrected_once_and_the_other_job_does_not_notice) {
  const Results results = run(two_jobs(R"(["schedule", "mltcp+schedule"])", 30,
                                       "pause = { iteration = 10, time = \"51 ms\" }", "", "replan = false"));
  for (const auto& one : results.runs) {
    EXPECT_EQ(one.schedule->repaired, 0U);
    EXPECT_EQ(one.jobs[0].gate_corrections, 1U);
    EXPECT_EQ(one.jobs[1].gate_corrections, 0U);
    EXPECT_LT(slowdown(one.jobs[1], 0, 30), 1.003) << one.policy;
    EXPECT_LT(slowdown(one.jobs[0], 11, 30), 1.003) << one.policy;
    // The paused job waits for the rest of the slot that it missed.
    EXPECT_NEAR(slowdown(one.jobs[0], 10, 11), 1.5, 0.02);
  }
}

/// Runs `jobs` on one link at flow level.
Results run_flows(const std::string& policies, int iterations, const std::string& jobs,
                  const std::string& schedule = "") {
  FileOptions options;
  options.datapaths = datapath_names();
  options.datapath = "flow";
  const Experiment experiment =
      parse_experiment("name = \"flows\"\niterations = " + std::to_string(iterations) + "\npolicies = " + policies +
                           "\n[bottleneck]\nrate = \"1 Gbps\"\ndelay = \"10 us\"\nbuffer = \"75 kB\"\n[schedule]\n" +
                           schedule + "\n" + jobs,
                       "flows.toml", options);
  return run_experiment(experiment, *make_flow_datapath());
}

/// Returns a [[job]] table of an experiment file, for run_flows().
std::string job_of(const std::string& name, const std::string& compute, const std::string& communicate,
                   const std::string& more = "") {
  return "[[job]]\nname = \"" + name + "\"\ncompute = \"" + compute + "\"\ncommunicate = \"" + communicate + "\"\n" +
         more + "\n";
}

/// Runs six jobs at flow level. Their bursts together fill 90% of their period.
Results six_jobs(const std::string& jitter) {
  return run_flows(
      R"(["fair", "mltcp", "schedule", "mltcp+schedule"])", 60,
      job_of("job", "255 ms", "5.3 MB", "count = 6\nstart_jitter = \"10 ms\"\njitter = \"" + jitter + "\""));
}

double second_half_p99(const Run& run) {
  double sum = 0;
  for (const JobResult& job : run.jobs)
    sum += iteration_stats(job.iterations).second_half_p99.seconds() / job.isolated.seconds();
  return sum / static_cast<double>(run.jobs.size());
}

TEST(Schedule, nearly_full_slots__have_no_longer_tail_than_mltcp) {
  for (const auto& [jitter, most] : {std::pair{"1.275 ms", 1.015}, {"2.55 ms", 1.03}, {"5.1 ms", 1.05}}) {
    const Results results = six_jobs(jitter);
    const double mltcp = second_half_p99(results.runs[1]);
    for (const auto& one : {results.runs[2], results.runs[3]}) {
      EXPECT_EQ(one.schedule->slots.size(), 6U);
      EXPECT_LT(second_half_p99(one), std::max(mltcp, most)) << one.policy << ' ' << jitter;
      EXPECT_LT(one.jobs[0].slowdown, results.runs[1].jobs[0].slowdown) << one.policy << ' ' << jitter;
    }
    EXPECT_GT(results.runs[3].schedule->repaired, 0U);
  }
}

TEST(Schedule, jobs_that_slots_do_not_suit__run_as_without_to_the_last_digit) {
  Experiment experiment = parse_experiment(R"(name = "apart"
iterations = 12
policies = ["fair", "mltcp", "schedule", "mltcp+schedule"]
[bottleneck]
rate = "1 Gbps"
buffer = "75 kB"
[schedule]
max_stretch = 0.0001
[[job]]
name = "a"
compute = "60 ms"
communicate = "4.6 MB"
[[job]]
name = "b"
compute = "75 ms"
communicate = "4.6 MB"
start = "3 ms"
)",
                                           "apart.toml", FileOptions{});
  const Results results = run(experiment);
  for (std::size_t policy = 0; policy < 2; ++policy) {
    const auto& without = results.runs[policy];
    const auto& with = results.runs[policy + 2];
    for (std::size_t job = 0; job < 2; ++job) EXPECT_EQ(with.jobs[job].iterations, without.jobs[job].iterations);
    EXPECT_THAT(with.schedule->without_slots, ElementsAre("a", "b"));
    EXPECT_EQ(with.schedule->unplanned, 2U);
    for (const std::string& reason : with.schedule->reasons) EXPECT_THAT(reason, HasSubstr("max_stretch"));
  }
}

TEST(Schedule, pause_corrected_gradually__takes_more_iterations_and_less_of_each) {
  const Results results = run(two_jobs(R"(["mltcp+schedule"])", 40, "pause = { iteration = 10, time = \"45 ms\" }", "",
                                       "correction = \"gradual\""));
  const JobResult& paused = results.runs[0].jobs[0];
  EXPECT_GE(paused.gate_corrections, 1U);
  EXPECT_EQ(paused.plan_dropped, "");
  for (std::size_t i = 10; i < 40; ++i) EXPECT_LT(slowdown(paused, i, i + 1), 1.5) << i;
  EXPECT_GT(slowdown(paused, 11, 12), 1.05) << "not corrected by then";
  EXPECT_LT(slowdown(paused, 30, 40), 1.003);
}

TEST(Schedule, job_that_becomes_longer__is_planned_again) {
  const std::string change = "change = { iteration = 10, compute_scale = 1.10 }";
  const Results results = run(two_jobs(R"(["mltcp", "mltcp+schedule"])", 60, "", change, "max_stretch = 0.07"));
  const auto& planned = results.runs[1];
  EXPECT_EQ(planned.schedule->replanned, 1U);
  EXPECT_GE(planned.schedule->repaired, 1U) << "until three iterations show that it has changed for good";
  EXPECT_EQ(planned.jobs[1].gate_corrections, 0U);
  EXPECT_EQ(planned.jobs[1].plan_dropped, "");
  EXPECT_LT(slowdown(planned.jobs[1], 20, 60), 1.005);
  // The job that did not change gets the same longer slots as the changed job.
  EXPECT_NEAR(slowdown(planned.jobs[0], 20, 60), 1.06, 0.01);
}

// The second job computes longer from iteration 10 on, and the third job arrives at about the same time. Its first plan
// for such jobs used to delay one of them by a whole period.
TEST(Schedule, newcomer_and_change__make_no_iteration_longer_than_sharing_does) {
  const Results results = run(parse_experiment(R"(name = "newcomer"
iterations = 26
cc = "dctcp"
policies = ["fair", "schedule"]
[bottleneck]
rate = "10 Gbps"
buffer = "1 MB"
mtu = 9000
ecn = { kmin = "100 kB" }
[[job]]
name = "first"
compute = "20 ms"
communicate = "11 MB"
start_jitter = "10 ms"
jitter = "0.2 ms"
[[job]]
name = "second"
compute = "20 ms"
communicate = "11 MB"
start_jitter = "10 ms"
jitter = "0.2 ms"
change = { iteration = 10, compute_scale = 1.08 }
[[job]]
name = "comer"
compute = "20 ms"
communicate = "11 MB"
start_jitter = "10 ms"
jitter = "0.2 ms"
start = "260 ms"
iterations = 17
)",
                                               "newcomer.toml", FileOptions{}));
  EXPECT_GE(results.runs[1].schedule->replanned, 1U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_LT(results.runs[1].jobs[i].slowdown, results.runs[0].jobs[i].slowdown);
    EXPECT_LT(*std::ranges::max_element(results.runs[1].jobs[i].iterations),
              *std::ranges::max_element(results.runs[0].jobs[i].iterations));
  }
}

// Short transfers cut the rates of DCQCN, so that bursts take three times as long as the slots expect.
TEST(Schedule, traffic_that_lengthens_bursts__ends_slots) {
  const Results results = run(parse_experiment(R"(name = "legacy"
iterations = 24
seed = 901
cc = "dcqcn"
policies = ["fair", "schedule"]
[bottleneck]
rate = "100 Gbps"
delay = "2 us"
buffer = "4 MB"
mtu = 9000
ecn = { kmin = "100 kB", kmax = "400 kB", pmax = 0.2 }
[[job]]
name = "a"
compute = "4 ms"
communicate = "24 MB"
start_jitter = "3 ms"
jitter = "0.04 ms"
[[job]]
name = "b"
compute = "4 ms"
communicate = "24 MB"
start_jitter = "3 ms"
jitter = "0.04 ms"
[[job]]
name = "legacy"
compute = "0.8 ms"
communicate = "2.4 MB"
unaware = true
jitter = "0.3 ms"
iterations = 200
)",
                                               "legacy.toml", FileOptions{}));
  EXPECT_THAT(results.runs[1].schedule->without_slots, ElementsAre("a", "b"));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_THAT(results.runs[1].schedule->reasons[i], HasSubstr("its slots were dropped: iterations took"));
    EXPECT_EQ(results.runs[1].jobs[i].plan_dropped, "removed");
  }
}

TEST(Schedule, job_that_becomes_longer__loses_its_plan_where_no_other_suits) {
  const auto planned_with = [&](const std::string& scale, const std::string& settings) {
    const std::string change = "change = { iteration = 10, compute_scale = " + scale + " }";
    return run(two_jobs(R"(["mltcp+schedule"])", 40, "", change, settings)).runs[0];
  };
  const auto unsuitable = planned_with("1.4", "max_stretch = 0.01");
  EXPECT_EQ(unsuitable.schedule->replanned, 1U);
  EXPECT_THAT(unsuitable.schedule->without_slots, ElementsAre("a", "b"));
  EXPECT_THAT(unsuitable.schedule->reasons[0], AnyOf(HasSubstr("do not help enough"), HasSubstr("were dropped")));
  EXPECT_EQ(unsuitable.jobs[0].plan_dropped, "removed");
  EXPECT_LT(slowdown(unsuitable.jobs[0], 20, 40), 1.2) << "MLTCP carries on";
  const auto alone = planned_with("1.12", "replan = false");
  EXPECT_EQ(alone.jobs[1].plan_dropped, "misfit");
  EXPECT_EQ(alone.jobs[0].plan_dropped, "removed") << "with the one that it was planned with";
  EXPECT_THAT(alone.schedule->reasons[0], HasSubstr("kept missing them"));
  EXPECT_LT(slowdown(alone.jobs[0], 20, 40), 1.15) << "MLTCP carries on";
}

// No slots keep these jobs apart for a whole common cycle. With the slots that are best for a whole cycle, the jobs
// collide in the first iterations. After that, first one job and then the other would be late.
TEST(Schedule, jobs_with_periods_3_percent_apart__are_parted_from_the_first_iteration_on) {
  const Results results = run_flows(
      R"(["fair", "schedule"])", 40,
      job_of("a", "150 ms", "13.5 MB", "start = \"7 ms\"") + job_of("b", "158 ms", "13.5 MB", "start = \"17 ms\""));
  const auto& fair = results.runs[0];
  const auto& slots = results.runs[1];
  ASSERT_EQ(slots.schedule->slots.size(), 2U);
  EXPECT_LT(slots.schedule->score, 0.95);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_LT(slowdown(slots.jobs[i], 0, 3), 1.04) << i;
    EXPECT_LT(slowdown(slots.jobs[i], 0, 40), 1.08) << i;
    EXPECT_GT(slowdown(fair.jobs[i], 0, 40), 1.15) << i;
  }
}

// A clock difference within the bound must not count as a delay, even if little time is left after the slot of a job.
TEST(Schedule, clock_bound__may_be_larger_than_the_room_behind_a_job) {
  // Bursts of 41 ms take turns in periods of 87 ms. This leaves 2 ms after each burst, and the tolerance is 4.3 ms.
  const std::string jobs = job_of("a", "45 ms", "5 MB") + job_of("b", "45 ms", "5 MB");
  const auto one = run_flows(R"(["schedule"])", 10, jobs, "clock_bound = \"4 ms\"").runs[0];
  EXPECT_EQ(one.schedule->slots.size(), 2U);
  for (const JobResult& job : one.jobs) {
    EXPECT_EQ(job.plan_dropped, "");
    EXPECT_LT(job.slowdown, 1.02);
  }
}

TEST(Schedule, offsets__lie_within_the_period_whatever_the_starts) {
  for (const char* start : {"0 ms", "5 ms", "50 ms", "110 ms", "200 ms"}) {
    const Results results = run_flows(
        R"(["schedule"])", 3,
        job_of("a", "104 ms", "13.5 MB", "start = \"" + std::string(start) + "\"") + job_of("b", "104 ms", "13.5 MB"));
    ASSERT_EQ(results.runs[0].schedule->slots.size(), 2U);
    for (const auto& slot : results.runs[0].schedule->slots) {
      EXPECT_GE(slot.offset, 0_ms) << slot.job << " from " << start;
      EXPECT_LT(slot.offset, slot.period) << slot.job << " from " << start;
    }
  }
}

TEST(Schedule, two_workers__take_the_same_slots) {
  const auto job = [](const std::string& name, const std::string& hosts) {
    return "[[job]]\nname = \"" + name + "\"\ncompute = \"15 ms\"\ncommunicate = \"13.5 MB\"\nhosts = " + hosts + "\n";
  };
  const Results results = run(parse_experiment(R"(name = "t"
iterations = 16
policies = ["schedule"]
[topology]
kind = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 4
host_rate = "10 Gbps"
buffer = "250 kB"
mtu = 9000
)" + job("a", "[0, 4]") + "pause = { iteration = 5, time = \"12 ms\" }\n" +
                                                   job("b", "[1, 5]"),
                                               "t.toml", FileOptions{}));
  const auto& one = results.runs[0];
  EXPECT_EQ(one.schedule->links, 4U) << "both ways between the leaves, over the spine";
  EXPECT_EQ(one.schedule->score, 1);
  EXPECT_EQ(one.schedule->repaired, 1U) << "for both of its workers";
  EXPECT_LT(slowdown(one.jobs[0], 8, 16), 1.005);
  EXPECT_LT(slowdown(one.jobs[1], 8, 16), 1.005);
}

TEST(Schedule, virtual_time__is_the_same_bit_for_bit_from_the_same_seed) {
  const auto text = [] {
    return written(run(two_jobs(R"(["mltcp+schedule"])", 15, "jitter = \"2 ms\"",
                                "change = { iteration = 5, compute_scale = 1.1 }", "max_stretch = 0.08")));
  };
  const std::string first = text();
  EXPECT_EQ(first, text());
  EXPECT_NE(first.find("\"replanned\": 1"), std::string::npos);
}

TEST(Schedule, learned_iterations__are_refused) {
  Experiment experiment = two_jobs(R"(["schedule"])", 3);
  experiment.mltcp.learn_iterations = true;
  EXPECT_THROW(run(experiment), InputError);
}

class SchedulePlanFile : public testing::Test {
 protected:
  SchedulePlanFile() {
    options.plan_file = file;
    options.report = [this](const std::string& problem) { problems.push_back(problem); };
  }

  /// Writes a plan with periods of 110 ms, in which the up phases of "b" begin `apart` after those of "a".
  void write(std::uint64_t serial, Nanos apart) const {
    PlanFile plan;
    plan.serial = serial;
    plan.jobs = {{"a", 110_ms, 60_ms}, {"b", 110_ms, 60_ms + apart}};
    write_plan(plan, file);
  }

  const TemporaryFolder folder;
  const std::string file = folder / "plan.json";
  RunOptions options;
  std::vector<std::string> problems;
};

/// Returns when the up phase of iteration `iteration` began, modulo the period of 110 ms.
Nanos phase(const JobResult& job, std::size_t iteration) {
  // The iteration ends when its bytes have been delivered, 42.4 ms after its first byte was sent.
  const Nanos end = job.starts[iteration] + job.iterations[iteration];
  return Nanos((end - 42'400_us).count % 110'000'000);
}

TEST_F(SchedulePlanFile, replaced_while_jobs_run__is_taken_over) {
  write(1, 50_ms);
  bool replaced = false;
  options.between_slices = [&](const std::string& policy, Nanos time) {
    EXPECT_EQ(policy, "schedule");
    if (time < 1_s || replaced) return;
    replaced = true;
    write(2, 60_ms);
  };
  const Results results = run(two_jobs(R"(["schedule"])", 25), options);
  const auto& one = results.runs[0];
  EXPECT_TRUE(replaced);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_FALSE(one.schedule.has_value()) << "nobody has computed a plan";
  for (std::size_t i = 1; i < 8; ++i) {
    EXPECT_NEAR(phase(one.jobs[0], i).millis(), 60, 0.5) << i;
    EXPECT_NEAR(phase(one.jobs[1], i).millis(), 0, 0.5) << i;
  }
  for (std::size_t i = 12; i < 25; ++i) {
    EXPECT_NEAR(phase(one.jobs[0], i).millis(), 60, 0.5) << i;
    EXPECT_NEAR(phase(one.jobs[1], i).millis(), 10, 0.5) << i;
  }
}

TEST_F(SchedulePlanFile, broken_or_gone__is_reported_and_MLTCP_carries_on) {
  write(1, 50_ms);
  bool broken = false;
  options.between_slices = [&](const std::string&, Nanos time) {
    if (time >= 500_ms && !broken) {
      std::ofstream(file) << "{";
      broken = true;
    }
    if (time >= 1000_ms) std::filesystem::remove(file);
  };
  const Results results = run(two_jobs(R"(["mltcp+schedule"])", 25), options);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_THAT(problems[0], HasSubstr("the plan with serial 1 still applies"));
  EXPECT_THAT(problems[1], HasSubstr("the file was removed"));
  for (const JobResult& job : results.runs[0].jobs) {
    EXPECT_EQ(job.plan_dropped, "removed");
    EXPECT_NEAR(job.iterations[7].millis(), 110, 0.5) << "held to its slots";
    EXPECT_NEAR(job.iterations[20].millis(), job.isolated.millis(), 1.0) << "free, and still apart";
  }
}

TEST_F(SchedulePlanFile, stale_and_strange_jobs__are_left_alone) {
  PlanFile plan;
  plan.valid_until = 600_ms;
  plan.jobs = {{"a", 110_ms, 60_ms}, {"gone", 110_ms, 0_ms}};
  write_plan(plan, file);
  const Results results = run(two_jobs(R"(["mltcp+schedule"])", 12), options);
  EXPECT_THAT(
      problems,
      ElementsAre(
          HasSubstr("of the 2 jobs in serial 0, \"gone\" is not in the experiment; the others have their slots"),
          HasSubstr("has no slots for \"b\"")));
  EXPECT_EQ(results.runs[0].jobs[0].plan_dropped, "stale");
  EXPECT_EQ(results.runs[0].jobs[1].plan_dropped, "");
  EXPECT_EQ(results.runs[0].jobs[1].gate_waited, 0_ns);
}

// A job that was never in the plan must not be reported as having lost its plan, on any datapath.
TEST_F(SchedulePlanFile, job_that_is_not_in_it__has_dropped_no_plan) {
  PlanFile plan;
  plan.jobs = {{"a", 110_ms, 60_ms}};
  write_plan(plan, file);
  for (const auto& datapath : {std::unique_ptr<Datapath>(make_sim_datapath()), make_flow_datapath()}) {
    const Results results = run_experiment(two_jobs(R"(["schedule"])", 3), *datapath, {}, options);
    EXPECT_EQ(results.runs[0].jobs[0].plan_dropped, "") << datapath->datapath();
    EXPECT_EQ(results.runs[0].jobs[1].plan_dropped, "") << datapath->datapath();
  }
}

// The message appears once, however many policies run.
TEST_F(SchedulePlanFile, jobs_that_are_not_in_it__are_named) {
  PlanFile plan;
  plan.jobs = {{"a", 110_ms, 60_ms}};
  write_plan(plan, file);
  static_cast<void>(run(two_jobs(R"(["schedule", "mltcp+schedule"])", 3), options));
  EXPECT_THAT(problems, ElementsAre(EndsWith(" has no slots for \"b\", which runs without")));
  problems.clear();
  plan.jobs.clear();
  write_plan(plan, file);
  static_cast<void>(run(two_jobs(R"(["schedule"])", 3), options));
  EXPECT_THAT(problems, ElementsAre(EndsWith(" has no slots for \"a\", \"b\", which run without")));
}

TEST_F(SchedulePlanFile, jobs_without_slots__are_named) {
  PlanFile plan;
  plan.jobs = {{"b", 110_ms, 0_ms}};
  for (const char* name : {"v", "w", "x", "y", "z"}) plan.jobs.push_back({name, 110_ms, 0_ms});
  write_plan(plan, file);
  Experiment experiment = two_jobs(R"(["schedule"])", 3);
  experiment.jobs[1].unaware = true;
  static_cast<void>(run(experiment, options));
  EXPECT_THAT(problems,
              ElementsAre(EndsWith("of the 6 jobs in serial 0, \"b\" is unaware, \"v\" is not in the experiment, \"w\" "
                                   "is not in the experiment, \"x\" is not in the experiment, \"y\" is not in the "
                                   "experiment, and 1 more are left out; no job has slots")));
}

TEST_F(SchedulePlanFile, unusable__is_refused_before_anything_runs) {
  EXPECT_THROW(run(two_jobs(R"(["schedule"])", 3), options), InputError) << "there is no file";
  write(1, 50_ms);
  EXPECT_THROW(run(two_jobs(R"(["mltcp"])", 3), options), InputError) << "no policy uses it";
  PlanFile plan;
  plan.clock = PlanFile::Clock::realtime;
  write_plan(plan, file);
  EXPECT_THROW(run(two_jobs(R"(["schedule"])", 3), options), InputError) << "virtual time";
}

}  // namespace
}  // namespace mltcp::experiment::schedule_run_test
