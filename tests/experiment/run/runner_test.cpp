// Tests the main case in virtual time: two training jobs on one link, fair and under MLTCP, against the fluid limit.
#include "mltcp/lab/experiment/run/runner.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "../../message_of.h"
#include "../written.h"
#include "mltcp/base/error.h"
#include "mltcp/cc/fluid_model.h"
#include "mltcp/cc/turns.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/results/results.h"

namespace mltcp::experiment {
namespace {

// Two identical jobs as in examples/two-vgg19.toml: 150 ms of compute and 13.5 MB each. The second job starts 3 ms
// later.
Experiment two_jobs(const std::string& policies, int iterations = 60) {
  return parse_experiment(R"(name = "pair"
iterations = )" + std::to_string(iterations) +
                              R"(
policies = )" + policies + R"(
[bottleneck]
rate = "1 Gbps"
delay = "10 us"
buffer = "75 kB"
[[job]]
name = "a"
compute = "150 ms"
communicate = "13.5 MB"
weight = 2.0
[[job]]
name = "b"
compute = "150 ms"
communicate = "13.5 MB"
start = "3 ms"
)",
                          "pair.toml", FileOptions{});
}

Results run(const Experiment& experiment, bool real_payload = false) {
  return run_experiment(experiment, *make_sim_datapath(real_payload));
}

// Returns how far apart the iterations of the two jobs start, as a share of the isolated iteration, from -0.5 to 0.5.
std::vector<double> offsets(const Run& run) {
  std::vector<double> all;
  const auto& a = run.jobs[0];
  const auto& b = run.jobs[1];
  for (std::size_t i = 0; i < std::min(a.starts.size(), b.starts.size()); ++i) {
    const double turns = static_cast<double>((b.starts[i] - a.starts[i]).count) / static_cast<double>(a.isolated.count);
    all.push_back(turns - std::round(turns));
  }
  return all;
}

TEST(Runner, mltcp__interleaves_two_identical_jobs) {
  const Results results = run(two_jobs(R"(["mltcp"])"));
  ASSERT_EQ(results.runs.size(), 1U);
  for (const JobResult& job : results.runs[0].jobs) {
    EXPECT_EQ(job.iterations.size(), 60U);
    EXPECT_LE(static_cast<double>(job.second_half_mean.count), 1.005 * static_cast<double>(job.isolated.count));
    ASSERT_TRUE(job.interleaved_from.has_value());
    // The first iterations are random: with starts 2 to 4.1 ms apart, the jobs interleave from iteration 3 to 9 on.
    EXPECT_LE(*job.interleaved_from, 9U);
    // An isolated iteration takes 150 ms of compute and 13.5 MB at 1 Gbps with 6% of headers.
    EXPECT_NEAR(job.isolated.millis(), 264.6, 1.0);
  }
}

TEST(Runner, turns__separate_two_identical_jobs_within_three_iterations) {
  const Results results = run(two_jobs(R"(["turns"])", 12));
  for (const JobResult& job : results.runs[0].jobs) {
    EXPECT_LE(static_cast<double>(job.second_half_mean.count), 1.002 * static_cast<double>(job.isolated.count));
    ASSERT_TRUE(job.interleaved_from.has_value());
    EXPECT_LE(*job.interleaved_from, 3U);
  }
}

TEST(Runner, stop__ends_a_job_while_others_continue) {
  Experiment experiment = two_jobs(R"(["fair"])", 3);
  experiment.jobs[0].iterations = 1;
  const std::size_t bins = run(experiment).runs[0].bottleneck.usage.jobs.at("a").size();
  experiment.jobs[0].stop = true;
  const auto stopped = run(experiment).runs[0];
  EXPECT_EQ(stopped.jobs[0].iterations.size(), 1U);
  EXPECT_EQ(stopped.jobs[1].iterations.size(), 3U);
  EXPECT_LT(stopped.bottleneck.usage.jobs.at("a").size(), bins);  // its series ends with its last byte
}

TEST(Runner, isolated__can_be_left_out) {
  const Experiment experiment = two_jobs(R"(["fair"])", 2);
  RunOptions options;
  options.isolated = false;
  const auto datapath = make_sim_datapath(false);
  const Results results = run_experiment(experiment, *datapath, {}, options);
  EXPECT_EQ(results.runs[0].jobs[0].iterations, run(experiment).runs[0].jobs[0].iterations);
  EXPECT_EQ(results.runs[0].jobs[0].isolated, Nanos());
  EXPECT_EQ(results.runs[0].jobs[0].slowdown, 0);
  EXPECT_THAT(message_of<InputError>([&] { check(two_jobs(R"(["schedule"])"), *datapath, options); }),
              testing::HasSubstr("isolated times"));
}

TEST(Runner, turns__follow_their_parameters) {
  Experiment experiment = two_jobs(R"(["mltcp", "turns"])", 12);
  experiment.parameters.edit<cc::Turns>().max_test = 0;  // no burst tests, so none waits
  const Results results = run(experiment);
  EXPECT_EQ(results.runs[1].jobs[0].iterations, results.runs[0].jobs[0].iterations);
  EXPECT_FALSE(results.runs[0].jobs[0].iterations.empty());
}

TEST(Runner, turns__slow_no_job_alone_one_of_whose_phases_is_slow) {
  const Results results = run(parse_experiment(R"(
    iterations = 6
    policies = ["fair", "turns"]
    [bottleneck]
    rate = "1 Gbps"
    delay = "10 us"
    [[job]]
    name = "a"
    phases = [{ compute = "50 ms" }, { communicate = "4 kB", rate = "100 kbps" }, { compute = "100 ms" }, { communicate = "13.5 MB" }]
  )",
                                               "x.toml"));
  EXPECT_LT(static_cast<double>(results.runs[1].jobs[0].second_half_mean.count),
            1.01 * static_cast<double>(results.runs[0].jobs[0].second_half_mean.count));
}

// Periods of 265 and 318 ms meet again and again. Waiting alone would keep the first job behind the second one.
TEST(Runner, turns__slow_no_job_whose_period_differs) {
  Experiment experiment = two_jobs(R"(["fair", "turns"])", 40);
  for (workload::Job& job : experiment.jobs) job.start = Nanos();
  experiment.jobs[1].phases.front().compute = Nanos(203'000'000);
  const Results results = run(experiment);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_LT(static_cast<double>(results.runs[1].jobs[i].mean.count),
              static_cast<double>(results.runs[0].jobs[i].mean.count))
        << i;
}

// MLTCP enlarges DCQCN's steps, which takes a share from traffic that never waits.
TEST(Runner, turns__take_less_than_mltcp_from_unaware_dcqcn_traffic) {
  const Results results = run(parse_experiment(
      R"(
    cc = "dcqcn"
    iterations = 40
    policies = ["fair", "mltcp", "turns"]
    bottleneck = { rate = "1 Gbps", buffer = "250 kB", ecn = { kmin = "20 kB", kmax = "60 kB", pmax = 0.1 } }
    job = [ { name = "a", compute = "250 ms", communicate = "7 MB", start_jitter = "10 ms" },
            { name = "b", compute = "250 ms", communicate = "7 MB", start_jitter = "10 ms" },
            { name = "bulk", communicate = "20 MB", unaware = true } ])",
      "bulk.toml", FileOptions{}));
  const auto over_fair = [&](std::size_t policy, std::size_t job) {
    return static_cast<double>(results.runs[policy].jobs[job].mean.count) /
           static_cast<double>(results.runs[0].jobs[job].mean.count);
  };
  EXPECT_LT(over_fair(2, 0), 1.01);
  EXPECT_LT(over_fair(2, 1), 1.01);
  EXPECT_LT(over_fair(2, 2) - 1, 0.6 * (over_fair(1, 2) - 1)) << over_fair(1, 2);
}

// The modelled hosts process packets when a sleep ends, and not when the packets arrive.
TEST(Runner, mltcp__interleaves_jobs_of_four_flows_on_hosts_that_nap) {
  Experiment experiment = two_jobs(R"(["mltcp"])");
  experiment.iterations = 24;
  for (workload::Job& job : experiment.jobs) job.flows = 4;
  experiment.machines.host = {
      .nap = Nanos(50'000), .late_min = Nanos(20'000), .late_mean = Nanos(70'000), .stall_every = {}, .stall_mean = {}};
  experiment.machines.network_switch = {
      .nap = Nanos(50'000), .late_min = Nanos(45'000), .late_mean = Nanos(65'000), .stall_every = {}, .stall_mean = {}};
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    experiment.seed = experiment.machines.seed = seed;
    const Results results = run(experiment);
    for (const JobResult& job : results.runs[0].jobs) {
      EXPECT_NEAR(job.isolated.millis(), 265.2, 1.0) << "naps cost no rate";
      EXPECT_LE(job.slowdown, 1.06) << "seed " << seed;
      EXPECT_LE(static_cast<double>(job.second_half_mean.count), 1.012 * static_cast<double>(job.isolated.count))
          << "seed " << seed;
    }
  }
}

// The transport learns the iterations from the traffic, which takes three iterations.
TEST(Runner, mltcp__interleaves_nearly_as_well_with_learned_iterations) {
  for (const int start : {3, 8}) {
    Experiment experiment = two_jobs(R"(["mltcp"])", 30);
    experiment.jobs[1].start = Nanos(start * 1'000'000);
    const Results exact = run(experiment);
    experiment.mltcp.learn_iterations = true;
    const Results learned = run(experiment);
    for (std::size_t i = 0; i < 2; ++i) {
      const JobResult& job = learned.runs[0].jobs[i];
      EXPECT_LE(static_cast<double>(job.second_half_mean.count), 1.005 * static_cast<double>(job.isolated.count));
      ASSERT_TRUE(job.interleaved_from.has_value()) << "start " << start << " ms";
      EXPECT_LE(*job.interleaved_from, 12U) << "start " << start << " ms";
    }
    std::printf("start %d ms: mean slow-down %.3f exact, %.3f learned\n", start, exact.runs[0].jobs[0].slowdown,
                learned.runs[0].jobs[0].slowdown);
  }
}

// Each iteration sends four gradient buckets, three of them during the backward pass. On a shared link the buckets
// merge, and the transport must still count their bytes as one iteration.
TEST(Runner, mltcp__interleaves_jobs_of_several_buckets_with_learned_iterations) {
  const auto job = [](const std::string& name, const std::string& start) {
    return "[[job]]\nname = \"" + name + "\"\nstart = \"" + start +
           R"("
phases = [
  { compute = "140 ms" },
  { communicate = "2 MB", overlap = true },
  { compute = "25 ms" },
  { communicate = "4 MB", overlap = true },
  { compute = "35 ms" },
  { communicate = "3.5 MB", overlap = true },
  { compute = "30 ms" },
  { communicate = "2 MB" },
]
)";
  };
  const std::string text = R"(iterations = 40
policies = ["fair", "mltcp"]
[mltcp]
iterations = "learned"
[bottleneck]
rate = "1 Gbps"
buffer = "75 kB"
)" + job("a", "0 ms") + job("b", "6 ms");
  Experiment experiment = parse_experiment(text, "buckets.toml", FileOptions{});
  ASSERT_TRUE(experiment.mltcp.learn_iterations);
  const Results learned = run(experiment);
  experiment.policies = {"mltcp"};
  experiment.mltcp.learn_iterations = false;
  const Results exact = run(experiment);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto second_half = [i](const auto& one) {
      return static_cast<double>(one.jobs[i].second_half_mean.count) / static_cast<double>(one.jobs[i].isolated.count);
    };
    const double fair = second_half(learned.runs[0]);
    const double declared = second_half(exact.runs[0]);
    const double found = second_half(learned.runs[1]);
    std::printf("job %zu: second half %.3f fair, %.3f exact, %.3f learned\n", i, fair, declared, found);
    EXPECT_LE(found, 1.02);
    EXPECT_LE(found, declared + 0.01);
    EXPECT_GT(fair, 1.1);
  }
}

// Under fair sharing, the offset of two jobs is a random walk that ends when their phases happen to be apart. A single
// run may be lucky. On average over starts, fair sharing costs several times as much as MLTCP.
TEST(Runner, fair__collides_where_mltcp_interleaves) {
  double fair = 0;
  double mltcp = 0;
  constexpr int starts = 5;
  for (int start = 1; start <= starts; ++start) {
    Experiment experiment = two_jobs(R"(["fair", "mltcp"])", 30);
    experiment.jobs[1].start = Nanos(start * 2'000'000);
    const Results results = run(experiment);
    for (const JobResult& job : results.runs[0].jobs) fair += (job.slowdown - 1) / (2 * starts);
    for (const JobResult& job : results.runs[1].jobs) {
      mltcp += (job.slowdown - 1) / (2 * starts);
      EXPECT_TRUE(job.interleaved_from.has_value() && *job.interleaved_from <= 9) << "start " << start << " ms";
    }
  }
  std::printf("mean slow-down over %d starts: fair %.3f, mltcp %.3f\n", starts, 1 + fair, 1 + mltcp);
  EXPECT_GT(fair, 0.1);
  EXPECT_LT(mltcp, fair / 3);
}

TEST(Runner, static_weights__interleave_too) {
  const Results results = run(two_jobs(R"(["static"])"));
  for (const JobResult& job : results.runs[0].jobs) EXPECT_LT(job.slowdown, 1.1);
}

// In the fluid limit, jobs share the link in the ratio of their gains at every instant. Under Reno with synchronised
// losses, they share it in the ratio of their increase steps from one loss to the next. There are about ten losses in
// an up phase, so the offset of the jobs follows the curve of the fluid limit, with noise from the first losses. The
// final offset is the share of the up phase in an iteration, at which the up phases are apart. The noise can put the
// later job ahead, and averages out over starts. The jobs are identical, so only the distance between them counts. The
// test leaves out the first iteration, in which slow start shares the link and may shut the later job out
// (docs/reference/tables/small-buffers.md).
TEST(Runner, mltcp__offset_follows_the_fluid_limit) {
  constexpr std::size_t iterations = 12;
  std::vector<double> measured(iterations);
  std::vector<double> fluid(iterations);
  constexpr int starts = 6;
  for (int start = 2; start < 2 + starts; ++start) {
    Experiment experiment = two_jobs(R"(["mltcp"])", iterations);
    experiment.jobs[1].start = Nanos(start * 1'000'000);
    const Results results = run(experiment);
    const std::vector<double> found = offsets(results.runs[0]);
    ASSERT_EQ(found.size(), iterations);
    const double a = 1.0 - 150.0 / results.runs[0].jobs[0].isolated.millis();
    const std::vector<double> limit =
        cc::FluidPair{.period = 1.0, .up_fraction = a, .function = {}}.trajectory(std::abs(found[1]), iterations - 2);
    for (std::size_t i = 1; i < iterations; ++i) {
      measured[i] += std::abs(found[i]) / starts;
      fluid[i] += limit[i - 1] / starts;
    }
    EXPECT_NEAR(std::abs(found.back()), a, 0.01) << "start " << start << " ms";
  }
  std::printf("mean of %d starts\niteration  fluid limit  simulator\n", starts);
  for (std::size_t i = 1; i < iterations; ++i) {
    std::printf("%9zu  %11.4f  %9.4f\n", i, fluid[i], measured[i]);
    EXPECT_NEAR(measured[i], fluid[i], 0.06) << "iteration " << i;
    if (i > 1) {
      EXPECT_GT(measured[i], measured[i - 1] - 1e-3) << "they never come closer again, iteration " << i;
    }
  }
}

TEST(Runner, virtual_time__is_the_same_bit_for_bit_from_the_same_seed) {
  Experiment experiment = two_jobs(R"(["fair", "mltcp"])", 6);
  experiment.bottleneck.faults.loss = 0.001;
  experiment.bottleneck.faults.reordering = 0.001;
  experiment.bottleneck.ecn = {.enabled = true, .kmin_bytes = 30'000, .kmax_bytes = 60'000, .pmax = 0.5};
  for (workload::Job& job : experiment.jobs) job.jitter = Nanos(2'000'000);
  const auto text = [&] { return written(run(experiment)); };
  const std::string first = text();
  EXPECT_EQ(first, text());
  experiment.seed = 2;
  EXPECT_NE(first, text());
}

TEST(Runner, threads__change_nothing_but_the_order_in_which_policies_end) {
  Experiment experiment = two_jobs(R"(["mltcp+schedule", "fair", "schedule", "mltcp", "static"])", 8);
  // The jobs are unequal, so that the runner measures each of them alone.
  experiment.jobs[1].phases.front().compute = Nanos(17'000'000);
  for (workload::Job& job : experiment.jobs) job.jitter = Nanos(2'000'000);
  const auto text = [&](std::uint32_t threads, RunOptions options = {}) {
    options.threads = threads;
    return written(run_experiment(experiment, *make_sim_datapath(), {}, options));
  };
  const std::string one = text(1);
  RunOptions watched;
  std::vector<std::size_t> complete;
  watched.finished = [&](const Results& so_far) {
    complete.push_back(so_far.runs.size());
    EXPECT_EQ(so_far.runs.size() + so_far.unfinished.size(), 5U);
    // Runs are in the order of the policies in the file, not in the order in which they end.
    std::size_t next = 0;
    for (const std::string& policy : experiment.policies)
      if (next < so_far.runs.size() && so_far.runs[next].policy == policy) ++next;
    EXPECT_EQ(next, so_far.runs.size());
  };
  EXPECT_EQ(text(4, watched), one);
  EXPECT_THAT(complete, ElementsAre(1, 2, 3, 4));
}

TEST(Runner, threads__the_first_policy_that_fails_is_told) {
  Experiment experiment = two_jobs(R"(["fair", "priority", "mltcp"])", 3);
  // Datapath flow does not support policy priority, because it has no queues with classes.
  for (const std::uint32_t threads : {1U, 3U}) {
    RunOptions options;
    options.threads = threads;
    EXPECT_THAT(refusal_of([&] { run_experiment(experiment, *make_flow_datapath(), {}, options); }),
                HasSubstr("priority"))
        << threads;
  }
}

TEST(Runner, real_payload__verifies_every_message_and_times_it_alike) {
  const Experiment experiment = two_jobs(R"(["mltcp"])", 3);
  const Results real = run(experiment, true);
  const Results lengths = run(experiment, false);
  for (std::size_t i = 0; i < 2; ++i) {
    // Three iterations send 13.5 MB each, in messages of 256 KiB. A job continues until the other job has also
    // finished.
    EXPECT_GE(real.runs[0].jobs[i].verified_messages, 3 * 52U);
    EXPECT_EQ(real.runs[0].jobs[i].checksum_errors, 0U);
    EXPECT_EQ(real.runs[0].jobs[i].iterations, lengths.runs[0].jobs[i].iterations);
  }
}

TEST(Runner, faults__delay_but_damage_nothing) {
  Experiment experiment = two_jobs(R"(["fair"])", 2);
  experiment.bottleneck.faults = {.loss = 0.01, .duplication = 0.01, .corruption = 0.01, .reordering = 0.01};
  const Results results = run(experiment, true);
  for (const JobResult& job : results.runs[0].jobs) {
    EXPECT_EQ(job.checksum_errors, 0U);
    EXPECT_EQ(job.bytes, 2 * 13'500'000U);
    EXPECT_GT(job.retransmitted_packets, 100U);
  }
}

TEST(Runner, overlap_and_flows__deliver_every_byte) {
  const Experiment experiment = parse_experiment(R"(name = "phases"
iterations = 5
policies = ["mltcp"]
[bottleneck]
rate = "1 Gbps"
delay = "10 us"
[[job]]
name = "pipeline"
flows = 3
phases = [ { compute = "1 ms" }, { communicate = "1000001 B", overlap = true }, { compute = "4 ms" },
           { communicate = "2 B" }, { communicate = "500 kB", rate = "500 Mbps" } ]
)",
                                                 "phases.toml", FileOptions{});
  const Results results = run(experiment, true);
  const JobResult& job = results.runs[0].jobs[0];
  EXPECT_EQ(job.bytes, 5 * (1'000'001U + 2 + 500'000));
  EXPECT_EQ(job.checksum_errors, 0U);
  // The job computes for 5 ms, and later sends 500 kB at 500 Mbps. It sends the first megabyte in 8.5 ms, 4 ms of which
  // overlap with computing.
  EXPECT_GT(job.isolated.millis(), 5 + 8);
  EXPECT_LT(job.isolated.millis(), 5 + 8.5 + 8.5);
}

// These delays, starts and jitters make a run slow, but they are valid.
TEST(Runner, late_start_long_delay_and_jitter__are_waited_for) {
  const std::string head = "name = \"t\"\niterations = 3\npolicies = [\"fair\"]\n[bottleneck]\nrate = \"1 Gbps\"\n";
  const std::string job = "compute = \"1 ms\"\ncommunicate = \"100 kB\"\n";
  for (const std::string& text :
       {head + "[[job]]\nname = \"a\"\n" + job + "[[job]]\nname = \"b\"\n" + job + "start = \"20 s\"\n",
        head + "delay = \"2 s\"\n[[job]]\nname = \"a\"\n" + job,
        head + "delay = \"10 s\"\n[[job]]\nname = \"a\"\n" + job,
        head + "[[job]]\nname = \"a\"\n" + job + "jitter = \"10 s\"\n"}) {
    const Results results = run(parse_experiment(text, "t.toml", FileOptions{}));
    for (const JobResult& result : results.runs.at(0).jobs) EXPECT_EQ(result.iterations.size(), 3U) << text;
  }
}

TEST(Runner, jitter__leaves_a_job_alone_on_the_link_interleaved) {
  const Results results = run(parse_experiment(R"(name = "t"
iterations = 20
policies = ["fair"]
[bottleneck]
rate = "1 Gbps"
[[job]]
name = "a"
compute = "150 ms"
communicate = "5 MB"
jitter = "5 ms"
start = "400 ms"
)",
                                               "t.toml", FileOptions{}));
  const auto& only = results.runs.at(0);
  const JobResult& job = only.jobs.at(0);
  ASSERT_EQ(job.iteration_compute.size(), 20U);
  EXPECT_NE(job.iteration_compute[0], job.iteration_compute[1]);
  EXPECT_TRUE(job.interleaved_from.has_value());
  // The time before the first start is not part of the run.
  EXPECT_NEAR(only.duration.seconds(), 20 * job.mean.seconds(), 0.051);
  EXPECT_NEAR(only.bottleneck.utilization, 20 * 5e6 * 8.4 / 1e9 / only.duration.seconds(), 0.02);
}

TEST(Runner, unaware_job__keeps_its_share_and_its_own_count_of_iterations) {
  Experiment experiment = two_jobs(R"(["fair", "mltcp", "static"])", 5);
  experiment.jobs[1].unaware = true;
  experiment.jobs[1].iterations = 8;
  experiment.jobs[1].weight = 2;
  Results results = run(experiment);
  for (const auto& one : results.runs) {
    EXPECT_EQ(one.jobs[0].iterations.size(), 5U);
    EXPECT_EQ(one.jobs[1].iterations.size(), 8U);
    EXPECT_TRUE(one.jobs[1].unaware);
    EXPECT_EQ(one.jobs[1].interleaved_from, std::nullopt);
  }
  // Both jobs have weight 2. An unaware job b competes without its weight. Job a therefore runs differently when job b
  // is aware.
  experiment.jobs[1].unaware = false;
  experiment.policies = {"static"};
  EXPECT_NE(run(experiment).runs[0].jobs[0].iterations, results.runs[2].jobs[0].iterations);
}

TEST(Runner, parameters__reach_the_algorithm) {
  Experiment experiment = two_jobs(R"(["mltcp"])", 4);
  const Results plain = run(experiment);
  experiment.mltcp.function = cc::Aggressiveness::named("F5");
  const Results falling = run(experiment);
  EXPECT_NE(plain.runs[0].jobs[0].iterations, falling.runs[0].jobs[0].iterations);
  experiment.mltcp.scale_decrease = true;
  EXPECT_NE(run(experiment).runs[0].jobs[0].iterations, falling.runs[0].jobs[0].iterations);
}

TEST(Runner, straggler__computes_longer_now_and_then) {
  Experiment experiment = two_jobs(R"(["fair"])", 40);
  experiment.jobs.resize(1);
  experiment.jobs[0].straggler = {0.2, 3.0};
  const Results results = run(experiment);
  const JobResult& job = results.runs[0].jobs[0];
  ASSERT_EQ(job.iteration_compute.size(), 40U);
  int late = 0;
  for (std::size_t i = 0; i < 40; ++i) {
    const bool straggles = job.iteration_compute[i] == experiment.jobs[0].compute_per_iteration() * 3;
    EXPECT_TRUE(straggles || job.iteration_compute[i] == experiment.jobs[0].compute_per_iteration());
    late += straggles ? 1 : 0;
  }
  EXPECT_GE(late, 2);
  EXPECT_LE(late, 20);
  EXPECT_EQ(job.interleaved_from, 0U) << "a straggler is not the network's doing";
}

TEST(Runner, unusable_link__is_reported_and_not_waited_for) {
  Experiment experiment = two_jobs(R"(["fair"])", 2);
  experiment.bottleneck.faults.loss = 1.0;
  EXPECT_THROW(run(experiment), RunError);
}

TEST(Runner, connection_that_ends__is_told_without_ranks_where_there_are_none) {
  Experiment experiment = two_jobs(R"(["fair"])", 2);
  experiment.bottleneck.faults.loss = 0.93;
  // Long iterations make the run wait long enough for a connection to end.
  for (workload::Job& job : experiment.jobs) job.phases[0].compute = Nanos(2'000'000'000);
  EXPECT_THAT(message_of<RunError>([&] { run(experiment); }),
              ::testing::MatchesRegex("job \"[^\"]*\": a connection ended before the job did \\(unreachable\\)"));
}

// A job that always sends leaves no bandwidth to jobs of lower priority. The error must not blame faults or buffers.
TEST(Runner, priority__that_starves_a_job_is_what_the_error_names) {
  Experiment experiment = two_jobs(R"(["priority"])", 2);
  experiment.jobs[0].priority = 7;
  experiment.jobs[0].flows = 4;
  experiment.jobs[0].phases.erase(experiment.jobs[0].phases.begin());
  const std::string refused = message_of<RunError>([&] { run(experiment); });
  EXPECT_THAT(refused, HasAll("policy priority: no job has finished an iteration",
                              "give the jobs of higher priority less to send"));
}

// The seed determines the start of each job. All policies of a run use the same starts, and each seed gives new ones.
TEST(Runner, start_jitter__draws_starts_from_the_seed) {
  Experiment experiment = two_jobs(R"(["fair", "mltcp"])", 2);
  for (workload::Job& job : experiment.jobs) job.start_jitter = Nanos(5'000'000);
  std::set<std::int64_t> drawn;
  for (experiment.seed = 1; experiment.seed <= 4; ++experiment.seed) {
    const Results results = run(experiment);
    for (std::size_t i = 0; i < 2; ++i) {
      const Nanos start = results.runs[0].jobs[i].starts[0];
      EXPECT_EQ(start, results.runs[1].jobs[i].starts[0]);
      const Nanos late = start - experiment.jobs[i].start;
      EXPECT_GE(late, Nanos(0));
      EXPECT_LT(late, Nanos(5'000'000));
      drawn.insert(late.count);
    }
    EXPECT_EQ(results.runs[0].jobs[0].starts, run(experiment).runs[0].jobs[0].starts);
  }
  EXPECT_EQ(drawn.size(), 8U) << "every job and seed has a start of its own";
}

// ---- Progress and interruption ----

TEST(Runner, progress__is_by_bytes_and_never_falls) {
  Experiment experiment = two_jobs(R"(["fair", "mltcp"])", 20);
  // Each isolated run has 7 iterations, of 13.5 MB or of 1.35 MB. Each policy runs 20 iterations of both jobs.
  experiment.jobs[1].phases.back().bytes /= 10;
  std::map<std::string, double> first;
  double last = 0;
  run_experiment(experiment, *make_sim_datapath(), [&](double fraction, const std::string& what) {
    EXPECT_GE(fraction, last) << what;
    last = fraction;
    first.try_emplace(what, fraction);
  });
  EXPECT_EQ(last, 1);
  const double total = 7 * 1.1 + 2 * 20 * 1.1;
  EXPECT_NEAR(first["a alone"], 0, 1e-9);
  EXPECT_NEAR(first["b alone"], 7 / total, 1e-9);
  EXPECT_NEAR(first["policy fair"], 7 * 1.1 / total, 1e-9);
  EXPECT_NEAR(first["policy mltcp"], (7 * 1.1 + 20 * 1.1) / total, 1e-9);
}

// Interrupts the run when it first reports `when` as its progress, and returns the partial results.
Results interrupted_at(const Experiment& experiment, Datapath& datapath, const std::string& when,
                       std::vector<std::vector<std::string>>* kept = nullptr) {
  std::string why;
  RunOptions options;
  options.interrupted = [&] { return why; };
  options.finished = [&](const Results& so_far) {
    if (kept != nullptr) kept->push_back(so_far.unfinished);
  };
  return run_experiment(
      experiment, datapath,
      [&](double, const std::string& what) {
        if (what == when) why = "interrupted by a test";
      },
      options);
}

TEST(Runner, interrupted__keeps_the_policies_that_are_complete) {
  const Experiment experiment = two_jobs(R"(["fair", "static", "mltcp"])", 8);
  const Results whole = run(experiment);
  EXPECT_TRUE(whole.unfinished.empty());
  for (const bool flow : {false, true}) {
    const auto packets = make_sim_datapath();
    const auto flows = make_flow_datapath();
    Datapath& datapath = flow ? *flows : static_cast<Datapath&>(*packets);
    std::vector<std::vector<std::string>> kept;
    const Results results = interrupted_at(experiment, datapath, "policy static", &kept);
    ASSERT_EQ(results.runs.size(), 1U);
    EXPECT_EQ(results.runs[0].policy, "fair");
    if (!flow) {
      EXPECT_EQ(results.runs[0].jobs[0].iterations, whole.runs[0].jobs[0].iterations);
    }
    EXPECT_EQ(results.unfinished, (std::vector<std::string>{"static", "mltcp"}));
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(kept[0], results.unfinished);
  }
}

TEST(Runner, interrupted__before_any_policy_is_complete_is_an_error) {
  const Experiment experiment = two_jobs(R"(["fair", "mltcp"])", 8);
  for (const char* when : {"a alone", "policy fair"}) {
    EXPECT_EQ(message_of<RunError>([&] { interrupted_at(experiment, *make_sim_datapath(), when); }),
              "interrupted by a test; no policy was complete, so no results are written");
  }
}

// An iteration may take hours, so that a user must be able to interrupt a run during one.
TEST(Runner, interrupted__in_the_middle_of_an_iteration_ends) {
  Experiment experiment = two_jobs(R"(["fair"])", 1);
  experiment.jobs.pop_back();
  workload::Job& job = experiment.jobs.front();
  job.phases.back().bytes = 200'000'000;
  const Nanos whole = run(experiment).runs[0].duration;
  EXPECT_GT(whole.millis(), 1500);
  // The third call of `interrupted` comes before the first isolated iteration ends, when no progress has been reported
  // yet.
  int asked = 0;
  double reported = -1;
  RunOptions options;
  options.interrupted = [&] { return ++asked == 3 ? std::string("interrupted by a test") : std::string(); };
  EXPECT_THROW(
      run_experiment(
          experiment, *make_sim_datapath(), [&](double fraction, const std::string&) { reported = fraction; }, options),
      RunError);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(reported, 0);
}

TEST(Runner, unfinished_policies__read_back) {
  Results results = run(two_jobs(R"(["fair"])", 2));
  EXPECT_THAT(written(results), Not(HasSubstr("unfinished_policies")));
  results.unfinished = {"mltcp"};
  EXPECT_EQ(parse_json(written(results), "r.json").unfinished, results.unfinished);
}

}  // namespace
}  // namespace mltcp::experiment
