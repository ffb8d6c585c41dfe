// Tests patterns of communication: their keys in experiment files, and complete runs.

#include <string>

#include "../../message_of.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/files/datapath_kind.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/fit/compatibility.h"
#include "mltcp/lab/experiment/run/runner.h"

namespace mltcp::experiment {
namespace {

using workload::Algorithm;
using Kind = workload::Pattern::Kind;

const std::string kNetwork = R"(policies = ["fair"]
[topology]
kind = "single-switch"
hosts = 8
host_rate = "10 Gbps"
[[job]]
name = "a"
)";

Experiment parse(const std::string& text, const FileOptions& options = {}) {
  return parse_experiment(kNetwork + text, "e.toml", options);
}
std::string refusal(const std::string& text, const FileOptions& options = {}) {
  return refusal_of([&] { parse(text, options); });
}

TEST(Patterns, parse__reads_collectives) {
  const workload::Job job = parse(R"(hosts = [0, 1, 2, 3]
pattern = "all-reduce"
size = "100 MB"
collective = "tree"
chunk = "1 MB"
compute = "5 ms"
)")
                                .jobs[0];
  ASSERT_TRUE(job.pattern.has_value());
  EXPECT_EQ(job.pattern->kind, Kind::all_reduce);
  EXPECT_EQ(job.pattern->ranks, 4U);
  EXPECT_EQ(job.pattern->size, 100'000'000U);
  EXPECT_EQ(job.pattern->algorithm, Algorithm::tree);
  EXPECT_EQ(job.pattern->chunk, 1'000'000U);
  EXPECT_EQ(job.compute_per_iteration(), Nanos(5'000'000));
  const workload::Job servers =
      parse("hosts = [0, 1, 2, 3]\npattern = \"parameter-server\"\nservers = 2\nsize = \"4 MB\"\n").jobs[0];
  EXPECT_EQ(servers.pattern->servers, 2U);
  // A server sends half of its bytes to each of two workers. A worker sends all its bytes to the servers.
  EXPECT_EQ(servers.bytes_per_iteration(), 4'000'000U);
}

TEST(Patterns, parse__reads_training) {
  const workload::Job job = parse(R"(hosts = [0, 1, 2, 3, 4, 5, 6, 7]
parallel = { data = 2, tensor = 2, pipeline = 2 }
collective = "halving-doubling"
compute = "60 ms"
gradients = "100 MB"
activations = "4 MB"
experts = "1 MB"
micro_batches = 8
layers = 6
buckets = 3
overlap = false
)")
                                .jobs[0];
  const workload::Pattern& pattern = *job.pattern;
  EXPECT_EQ(pattern.kind, Kind::training);
  EXPECT_EQ(pattern.data(), 2U);
  EXPECT_EQ(pattern.training.tensor, 2U);
  EXPECT_EQ(pattern.training.pipeline, 2U);
  EXPECT_EQ(pattern.algorithm, Algorithm::halving_doubling);
  EXPECT_EQ(pattern.size, 100'000'000U);
  EXPECT_EQ(pattern.training.activations, 4'000'000U);
  EXPECT_EQ(pattern.training.experts, 1'000'000U);
  EXPECT_EQ(pattern.training.micro_batches, 8U);
  EXPECT_EQ(pattern.training.layers, 6U);
  EXPECT_EQ(pattern.training.buckets, 3U);
  EXPECT_FALSE(pattern.training.overlap);
  // If the number of layers is not given, there are as many layers as buckets.
  EXPECT_EQ(parse("hosts = [0, 1]\nparallel = { data = 2 }\ngradients = \"1 MB\"\nbuckets = 4\n")
                .jobs[0]
                .pattern->training.layers,
            4U);
}

TEST(Patterns, parse__refuses_contradictions) {
  const std::string pattern = "pattern = \"all-reduce\"\nsize = \"1 MB\"\n";
  const std::string ring = "hosts = [0, 1, 2]\n" + pattern;
  const std::string training = "hosts = [0, 1]\nparallel = { data = 2 }\ngradients = \"1 MB\"\n";
  const auto expect = [](const std::string& text, const std::string& line) { EXPECT_EQ(refusal(text), line) << text; };
  EXPECT_EQ(refusal(ring), "no error");
  EXPECT_EQ(refusal(training), "no error");
  expect(pattern,
         "e.toml:8: job[1].pattern: each rank runs on a host of a topology, but the job names no hosts; add hosts = "
         "[0, 1, 2, 3]");
  expect(ring + "communicate = \"1 MB\"\n",
         "e.toml:11: job[1].communicate: the job has a pattern too; keep one of the two");
  expect(ring + "parallel = { data = 3 }\n",
         "e.toml:11: job[1].parallel: the job has a pattern too; keep one of the two");
  expect(training + "trace = \"t\"\n", "e.toml:11: job[1].trace: the job has parallel ranks too; keep one of the two");
  expect(ring + "micro_batches = 2\n",
         "e.toml:11: job[1].micro_batches: the key belongs to parallel ranks, but the job has a pattern; leave it out");
  expect(training + "size = \"1 MB\"\n",
         "e.toml:11: job[1].size: the key belongs to a pattern, but the job has parallel ranks; leave it out");
  expect("communicate = \"1 MB\"\nbuckets = 2\n",
         "e.toml:9: job[1].buckets: the key belongs to a pattern of communication, but the job has none; add pattern = "
         "\"all-reduce\" or parallel = { data = 4 }, or leave the key out");
  expect(training + "accumulate = 4\n",
         "e.toml:11: job[1].accumulate: unknown key; write micro_batches instead: their gradients are accumulated and "
         "reduced once");
  expect(ring + "collective = \"halving-doubling\"\n",
         "e.toml:9: job[1].pattern: halving-doubling needs a power of two, but there are 3 ranks; give another number, "
         "or ring or tree");
  expect(ring + "collective = \"rings\"\n",
         "e.toml:11: job[1].collective: \"rings\" is not known; write \"ring\", \"tree\" or \"halving-doubling\"");
  expect("hosts = [0, 1]\npattern = \"all-to-al\"\nsize = \"1 MB\"\n",
         "e.toml:9: job[1].pattern: \"all-to-al\" is not known; did you mean \"all-to-all\"?");
  expect("hosts = [0, 1]\npattern = \"all-to-all\"\n",
         "e.toml:6: job[1].size: the key is missing; write size = \"100 MB\"");
  expect(ring + "chunk = \"1 MB\"\n",
         "e.toml:11: job[1].chunk: only trees and broadcasts send chunks; add collective = \"tree\", or leave it out");
  expect(ring + "servers = 1\n",
         "e.toml:11: job[1].servers: pattern all-reduce has no servers; leave it out, or use \"parameter-server\"");
  expect(
      "hosts = [0, 1, 2]\nparallel = { data = 2 }\ngradients = \"1 MB\"\n",
      "e.toml:9: job[1].parallel: data times tensor times pipeline is 2, but the job has 3 hosts; write as many hosts");
  expect("hosts = [0, 1]\nparallel = { data = 2 }\n",
         "e.toml:6: job[1].gradients: the key is missing, but data-parallel ranks exchange gradients; write gradients "
         "= \"100 MB\"");
  expect("hosts = [0, 1]\nparallel = { tensor = 2 }\n",
         "e.toml:6: job[1].activations: the key is missing, but tensor ranks and pipeline stages exchange activations; "
         "write activations = \"4 MB\"");
  expect("hosts = [0, 1]\nparallel = { tensor = 2 }\nactivations = \"1 MB\"\nbuckets = 2\n",
         "e.toml:11: job[1].buckets: there is only one data-parallel rank, so no gradients are exchanged; leave it "
         "out, or raise data");
  expect(training + "activations = \"1 MB\"\n",
         "e.toml:11: job[1].activations: there are no tensor ranks or pipeline stages to exchange them; leave it out, "
         "or raise tensor or pipeline");
  expect(training + "layers = 2\nbuckets = 3\n",
         "e.toml:12: job[1].buckets: 3 buckets are more than the 2 layers; write at most as many");
}

/// Returns a topology of leaves under one spine, with links of 10 Gbps and jumbo frames.
std::string leaves(int count, int hosts) {
  return "[topology]\nkind = \"leaf-spine\"\nleaves = " + std::to_string(count) +
         "\nspines = 1\nhosts_per_leaf = " + std::to_string(hosts) +
         "\nhost_rate = \"10 Gbps\"\nuplink_rate = \"10 Gbps\"\ndelay = \"1 us\"\nbuffer = \"150 kB\"\nmtu = 9000\n";
}

/// Returns a job with two replicas of a pipeline of two stages.
std::string pipelines(const std::string& name, const std::string& hosts, const std::string& gradients,
                      const std::string& activations, const std::string& more) {
  return "[[job]]\nname = \"" + name + "\"\nhosts = " + hosts +
         "\nparallel = { data = 2, pipeline = 2 }\ncompute = \"40 ms\"\ngradients = \"" + gradients +
         "\"\nactivations = \"" + activations + "\"\nmicro_batches = 4\nrate = \"9.8 Gbps\"\n" + more + "\n";
}

// In these rings, all ranks send at the start. The slots shift all ranks of a job together, so that they avoid the
// other job on every link.
TEST(Patterns, schedule__shifts_all_ranks_of_a_job_together) {
  const auto job = [](const std::string& name, const std::string& hosts, const std::string& more) {
    return "[[job]]\nname = \"" + name + "\"\nhosts = " + hosts +
           "\npattern = \"all-reduce\"\nsize = \"8 MB\"\ncompute = \"12 ms\"\nrate = \"9.8 Gbps\"\n" + more;
  };
  const Experiment experiment =
      parse_experiment("name = \"rings\"\niterations = 12\npolicies = [\"fair\", \"schedule\", \"mltcp+schedule\"]\n" +
                           leaves(3, 2) + job("a", "[0, 2, 4]", "") +
                           job("b", "[1, 3, 5]", "start = \"1 ms\"\npause = { iteration = 6, time = \"5 ms\" }\n"),
                       "rings.toml", FileOptions{});
  const Results results = run_experiment(experiment, *make_sim_datapath());
  for (const JobResult& one : results.runs[0].jobs) EXPECT_GT(one.slowdown, 1.1) << "under fair sharing they meet";
  for (std::size_t policy = 1; policy < 3; ++policy) {
    const auto& run = results.runs[policy];
    EXPECT_EQ(run.schedule->links, 6U);
    EXPECT_EQ(run.schedule->slots.size(), 2U);
    EXPECT_EQ(run.schedule->repaired, 1U) << "for the rank that paused, and those that wait for it";
    for (const JobResult& one : run.jobs) {
      const double isolated = one.isolated.seconds();
      for (const std::size_t i : {0U, 1U, 2U, 3U, 4U, 5U, 9U, 10U, 11U})
        EXPECT_LT(one.iterations[i].seconds(), 1.01 * isolated) << run.policy << one.name << i;
    }
  }
}

// The late job's first bytes cross no shared link, but the gate of the job delays them. The pauses make the job late by
// less or by more than the sending time of these bytes.
TEST(Patterns, schedule__lets_a_late_job_go_whatever_it_sends_first) {
  for (const std::string pause : {"12 ms", "30 ms", "45 ms", "55 ms"}) {
    const std::string a = "pause = { iteration = 10, time = \"" + pause + "\" }";
    const Experiment experiment =
        parse_experiment("name = \"pipes\"\niterations = 20\npolicies = [\"schedule\"]\n" + leaves(2, 4) +
                             pipelines("a", "[0, 1, 4, 5]", "20 MB", "50 kB", a) +
                             pipelines("b", "[2, 3, 6, 7]", "20 MB", "50 kB", "start = \"3 ms\""),
                         "pipes.toml", FileOptions{});
    const auto run = run_experiment(experiment, *make_sim_datapath()).runs[0];
    EXPECT_GE(run.schedule->repaired, 1U) << pause;
    EXPECT_LT(run.jobs[1].slowdown, 1.02) << pause << ": the other one";
    EXPECT_EQ(run.jobs[0].iteration_compute.size(), run.jobs[0].iterations.size());
  }
}

// A job sends activations while the other job reduces its gradients. No slots can keep the jobs apart, so both are late
// repeatedly.
TEST(Patterns, schedule__moves_slots_of_jobs_that_meet_whatever_the_slots) {
  const Experiment experiment =
      parse_experiment("name = \"pipelines\"\niterations = 24\npolicies = [\"fair\", \"schedule\"]\n" + leaves(4, 2) +
                           pipelines("a", "[0, 2, 4, 6]", "30 MB", "500 kB", "") +
                           pipelines("b", "[1, 3, 5, 7]", "30 MB", "500 kB", "start = \"3 ms\""),
                       "pipelines.toml", FileOptions{});
  const Results results = run_experiment(experiment, *make_sim_datapath());
  const auto& fair = results.runs[0];
  const auto& slots = results.runs[1];
  EXPECT_LT(slots.schedule->score, 0.99);
  EXPECT_EQ(slots.schedule->slots.size(), 2U);
  EXPECT_GT(slots.schedule->repaired, 20U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(slots.jobs[i].plan_dropped, "");
    EXPECT_LT(slots.jobs[i].slowdown, fair.jobs[i].slowdown - 0.02);
  }
}

TEST(Patterns, flows__take_as_long_as_packets) {
  const std::string training = R"(hosts = [0, 1, 2, 3, 4, 5, 6, 7]
parallel = { data = 2, tensor = 2, pipeline = 2 }
compute = "20 ms"
gradients = "10 MB"
activations = "1 MB"
micro_batches = 4
layers = 2
)";
  for (const std::string& text :
       {std::string("hosts = [0, 1, 2, 3]\npattern = \"all-reduce\"\nsize = \"10 MB\"\ncompute = \"5 ms\"\n"),
        std::string("hosts = [0, 1, 2, 3]\npattern = \"all-to-all\"\nsize = \"10 MB\"\ncompute = \"5 ms\"\n"),
        std::string("hosts = [0, 1, 2, 3]\npattern = \"parameter-server\"\nservers = 2\nsize = \"10 MB\"\n"),
        training}) {
    Experiment experiment = parse(text);
    experiment.iterations = 4;
    const JobResult packets = run_experiment(experiment, *make_sim_datapath()).runs[0].jobs[0];
    std::vector<RunSeries> series;
    RunOptions options;
    options.series.emplace();
    options.recorded = &series;
    const JobResult flows = run_experiment(experiment, *make_flow_datapath(), {}, options).runs[0].jobs[0];
    EXPECT_EQ(flows.bytes_per_iteration, packets.bytes_per_iteration) << text;
    EXPECT_NEAR(flows.mean.millis(), packets.mean.millis(), 0.04 * packets.mean.millis()) << text;
    Bytes sent = 0;
    for (std::size_t i = 0; i < series.at(0).connections.size(); ++i)
      sent += series[0].connection(series[0].times.size() - 1, i).sent_bytes;
    EXPECT_GE(sent, flows.bytes) << text;
    EXPECT_LE(sent, flows.bytes + 2 * flows.bytes_per_iteration) << text;
  }
}

TEST(Patterns, parse__refuses_where_they_cannot_run) {
  const std::string ring = "hosts = [0, 1, 2]\npattern = \"all-reduce\"\nsize = \"1 MB\"\n";
  FileOptions options;
  options.datapaths = datapath_names();
  options.datapath = "flow";
  EXPECT_EQ(refusal(ring, options), "no error");
  options = {};
  options.policy = {"schedule", "mltcp+schedule"};
  EXPECT_EQ(refusal(ring, options), "no error");
  EXPECT_EQ(refusal_of([&] { make_schedule(parse(ring), {}); }),
            "e.toml: job \"a\": the link use of a pattern of communication must be measured; add --measure");
}

// Parts of the program that do not support patterns use a list of phases that outlines the pattern.
TEST(Patterns, parse__outlines_the_busiest_rank) {
  const workload::Job job =
      parse("hosts = [0, 1, 2, 3]\npattern = \"parameter-server\"\nsize = \"1 MB\"\ncompute = \"3 ms\"\n").jobs[0];
  ASSERT_EQ(job.phases.size(), 2U);
  EXPECT_EQ(job.phases[0].compute, Nanos(3'000'000));
  EXPECT_EQ(job.phases[1].bytes, 3'000'000U);
}

TEST(Patterns, run__measures_a_job_alone_and_beside_others) {
  const Experiment experiment = parse_experiment("iterations = 6\n" + kNetwork + R"(hosts = [0, 1, 2, 3]
pattern = "all-reduce"
size = "20 MB"
compute = "10 ms"
[[job]]
name = "b"
hosts = [0, 1, 2, 3]
parallel = { data = 2, pipeline = 2 }
compute = "12 ms"
gradients = "6 MB"
activations = "50 kB"
micro_batches = 4
)",
                                                 "e.toml", FileOptions{});
  const Results results = run_experiment(experiment, *make_sim_datapath(true));
  ASSERT_EQ(results.runs.size(), 1U);
  for (const JobResult& job : results.runs[0].jobs) {
    EXPECT_EQ(job.iterations.size(), 6U);
    EXPECT_GT(job.isolated, Nanos(10'000'000));
    EXPECT_GT(job.slowdown, 1.0);  // the jobs share links
    EXPECT_GT(job.verified_messages, 0U);
    EXPECT_EQ(job.checksum_errors, 0U);
  }
  // In isolation, the job computes for 10 ms, and sends 2 * 3/4 of 20 MB at 10 Gbit/s with 6% of headers.
  EXPECT_NEAR(results.runs[0].jobs[0].isolated.millis(), 10 + 24 * 1.07, 1);
  // In isolation, the job computes for 12 ms with a bubble of a quarter, and then sends 6 MB between two ranks.
  EXPECT_NEAR(results.runs[0].jobs[1].isolated.millis(), 12 * 1.25 + 4.8 * 1.07, 0.8);
}

// The rings of two jobs share links between leaves. The jobs separate message by message, as jobs with bursts separate
// burst by burst.
TEST(Patterns, run__mltcp_parts_the_rings_of_two_jobs) {
  FileOptions options;
  options.iterations = 16;
  const Experiment experiment = load_experiment(MLTCP_EXAMPLES "/two-rings.toml", options);
  const Results results = run_experiment(experiment, *make_sim_datapath());
  ASSERT_EQ(results.runs.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_GT(results.runs[0].jobs[i].slowdown, 1.15);
    EXPECT_LT(results.runs[1].jobs[i].slowdown, 1.06);
    EXPECT_TRUE(results.runs[1].jobs[i].interleaved_from.has_value());
  }
}

TEST(Patterns, run__learns_iterations_of_ranks) {
  FileOptions options;
  options.iterations = 16;
  options.policy = {"mltcp"};
  Experiment experiment = load_experiment(MLTCP_EXAMPLES "/two-rings.toml", options);
  experiment.mltcp.learn_iterations = true;
  const Results results = run_experiment(experiment, *make_sim_datapath());
  for (const JobResult& job : results.runs[0].jobs) EXPECT_LT(job.slowdown, 1.15);
}

TEST(Patterns, example__is_read) {
  const Experiment experiment = load_experiment(MLTCP_EXAMPLES "/patterns.toml");
  EXPECT_EQ(experiment.jobs.size(), 4U);
  for (const workload::Job& job : experiment.jobs) EXPECT_TRUE(job.pattern.has_value());
  EXPECT_TRUE(experiment.warnings.empty());
}

}  // namespace
}  // namespace mltcp::experiment
