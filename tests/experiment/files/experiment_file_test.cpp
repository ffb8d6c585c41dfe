// Experiment files: what is read, the defaults, and every error with its line and key.
#include "mltcp/experiment/files/experiment_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/cc/cubic.h"
#include "mltcp/cc/dcqcn.h"
#include "mltcp/cc/swift.h"
#include "mltcp/workload/inspection.h"
#include "mltcp/workload/job_fields.h"
#include "mltcp/workload/schedule.h"
#include "mltcp/workload/trace.h"

namespace mltcp::experiment {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::filesystem::path kData = MLTCP_TEST_DATA;
const std::string kLink = "[bottleneck]\nrate = \"1 Gbps\"\n";
const std::string kJob = "[[job]]\nname = \"a\"\ncommunicate = \"1 MB\"\n";

std::string refusal(const std::string& text, const FileOptions& options = {}) {
  try {
    parse_experiment(text, "e.toml", options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// "e.toml:LINE: KEY: cause; cure" in one line.
::testing::Matcher<std::string> error_at(int line, const std::string& key, const std::string& cause) {
  return AllOf(StartsWith("e.toml:" + std::to_string(line) + ": " + key + ": "), HasSubstr(cause), HasSubstr("; "),
               ::testing::Not(HasSubstr("\n")));
}

// The key in the table of its kind, with everything else in order: lines 1, 4 and 4.
std::string top(const std::string& line) { return line + "\n" + kLink + kJob; }
std::string link(const std::string& line) { return kJob + kLink + line + "\n"; }                           // line 6
std::string job(const std::string& line) { return kLink + kJob + line + "\n"; }                            // line 6
std::string bare_job(const std::string& line) { return kLink + "[[job]]\nname = \"a\"\n" + line + "\n"; }  // line 5

TEST(ExperimentFile, parse__keys_of_endless_parts_are_refused) {
  std::string path = "a";
  for (int i = 0; i < 1'000'000; ++i) path += ".a";
  const std::string cause = "a key has more than 16 parts";
  EXPECT_THAT(refusal("\n" + path + " = 1\n"), AllOf(StartsWith("e.toml:2: TOML: "), HasSubstr(cause)));
  EXPECT_THAT(refusal("[" + path + "]\n"), HasSubstr(cause));
  EXPECT_THAT(refusal("name = \"\"\"a\nb\"\"\"\" # '\nx = { " + path + " = 1 }\n"),
              AllOf(StartsWith("e.toml:3: "), HasSubstr(cause)));
  // Dots elsewhere are no parts.
  const std::string dots(40, '.');
  EXPECT_EQ(refusal(top("name = \"\\\"" + dots + "\" # " + dots + "'\"")), "no error");
  EXPECT_THAT(refusal(top("name = '''" + dots + "\n" + dots + "'''")), HasSubstr("control characters"));
}

TEST(ExperimentFile, parameters__that_bound_each_other_are_checked_together) {
  const auto dcqcn = [](const std::string& lines) { return top("[dcqcn]\n" + lines); };
  EXPECT_EQ(refusal(dcqcn("notification_interval = \"60 us\"\nalpha_interval = \"70 us\"")), "no error");
  EXPECT_THAT(refusal(dcqcn("g = 0.5\nnotification_interval = \"60 us\"")),
              error_at(3, "dcqcn.notification_interval", "alpha_interval of 55 us is out of range"));
  EXPECT_THAT(refusal(dcqcn("notification_interval = \"60 us\"\nalpha_interval = \"50 us\"")),
              error_at(3, "dcqcn.alpha_interval", "alpha_interval of 50 us is out of range"));
  EXPECT_EQ(refusal(dcqcn("additive_increase = \"5 Mbps\"\nhyper_increase = \"5 Mbps\"")), "no error");
  EXPECT_THAT(refusal(dcqcn("hyper_increase = \"4 Mbps\"\nadditive_increase = \"5 Mbps\"")),
              HasSubstr("dcqcn hyper_increase of 4 Mbps is out of range"));
  EXPECT_EQ(refusal(dcqcn("increase_interval = \"1 us\"\nincrease_bytes = \"1 kB\"")), "no error");
  EXPECT_THAT(refusal(dcqcn("increase_interval = \"999 ns\"")),
              error_at(2, "dcqcn.increase_interval", "give a time of 1 us or more"));
  EXPECT_THAT(refusal(dcqcn("increase_bytes = \"999 B\"")), error_at(2, "dcqcn.increase_bytes", "of 1 kB or more"));
  EXPECT_EQ(refusal(top("[swift]\nflow_min_window = 200\nflow_max_window = 300")), "no error");
  EXPECT_THAT(refusal(top("[swift]\nflow_min_window = 200")),
              error_at(2, "swift.flow_min_window", "flow_max_window of 100 is out of range"));
}

TEST(ExperimentFile, iterations__of_a_job_that_take_too_long_are_named) {
  EXPECT_THAT(refusal(kLink + kJob + "iterations = 900000\ncompute = \"20 s\"\n"),
              error_at(6, "job[1].iterations", "900000 iterations of job[1] take "));
  // Those that straggle, too.
  EXPECT_THAT(refusal(kLink + kJob + "compute = \"3600 s\"\nstraggler = { probability = 1, factor = 1000 }\n"),
              HasSubstr("50 iterations of job[1] take 2083"));
}

TEST(ExperimentFile, parse__defaults) {
  const Experiment experiment = parse_experiment(kLink + kJob, "some/folder/two jobs.toml");
  EXPECT_EQ(experiment.name, "two jobs");
  EXPECT_EQ(experiment.file, "some/folder/two jobs.toml");
  EXPECT_EQ(experiment.datapath, "sim");
  EXPECT_EQ(experiment.iterations, 50U);
  EXPECT_EQ(experiment.seed, 1U);
  EXPECT_EQ(experiment.cc, "reno");
  EXPECT_THAT(experiment.policies, ElementsAre("fair", "mltcp"));
  EXPECT_EQ(experiment.mltcp.function(0), 0.25);
  EXPECT_EQ(experiment.mltcp.function(1), 2.0);
  EXPECT_FALSE(experiment.mltcp.scale_decrease);
  EXPECT_EQ(experiment.bottleneck.rate, Rate(1'000'000'000));
  EXPECT_EQ(experiment.bottleneck.delay, Nanos(10'000));
  EXPECT_EQ(experiment.bottleneck.buffer_bytes, 250'000U);
  EXPECT_EQ(experiment.bottleneck.seed, 1U);
  EXPECT_FALSE(experiment.bottleneck.ecn.enabled);
  EXPECT_FALSE(experiment.bottleneck.faults.any());
  ASSERT_EQ(experiment.jobs.size(), 1U);
  const workload::Job& a = experiment.jobs[0];
  EXPECT_EQ(a.flows, 1U);
  EXPECT_EQ(a.start, Nanos(0));
  EXPECT_EQ(a.jitter, Nanos(0));
  EXPECT_EQ(a.weight, 1.0);
  EXPECT_TRUE(a.rate.is_zero());
  ASSERT_EQ(a.phases.size(), 1U);
  EXPECT_EQ(a.phases[0].bytes, 1'000'000U);
  EXPECT_FALSE(a.phases[0].overlap);
  EXPECT_THAT(experiment.warnings, IsEmpty());
}

TEST(ExperimentFile, load__every_key) {
  const Experiment experiment = load_experiment(kData / "full.toml");
  EXPECT_EQ(experiment.name, "everything");
  EXPECT_EQ(experiment.iterations, 17U);
  EXPECT_EQ(experiment.seed, 99U);
  EXPECT_THAT(experiment.policies, ElementsAre("mltcp", "static"));
  EXPECT_EQ(experiment.mltcp.function(0), 0.5);
  EXPECT_EQ(experiment.mltcp.function(1), 2.5);
  const fabric::LinkConfig& bottleneck = experiment.bottleneck;
  EXPECT_EQ(bottleneck.rate, Rate(2'500'000'000));
  EXPECT_EQ(bottleneck.delay, Nanos(25'000));
  EXPECT_EQ(bottleneck.buffer_bytes, 65'536U);
  EXPECT_EQ(bottleneck.seed, 99U);
  EXPECT_TRUE(bottleneck.ecn.enabled);
  EXPECT_EQ(bottleneck.ecn.kmin_bytes, 20'000U);
  EXPECT_EQ(bottleneck.ecn.kmax_bytes, 40'000U);
  EXPECT_EQ(bottleneck.ecn.pmax, 0.5);
  EXPECT_EQ(bottleneck.faults.loss, 0.01);
  EXPECT_EQ(bottleneck.faults.duplication, 0.02);
  EXPECT_EQ(bottleneck.faults.corruption, 0.03);
  EXPECT_EQ(bottleneck.faults.reordering, 0.04);
  EXPECT_EQ(bottleneck.faults.reorder_delay, Nanos(50'000));

  ASSERT_EQ(experiment.jobs.size(), 3U);
  const workload::Job& simple = experiment.jobs[0];
  EXPECT_EQ(simple.name, "simple");
  EXPECT_EQ(simple.flows, 4U);
  EXPECT_EQ(simple.start, Nanos(3'000'000));
  EXPECT_EQ(simple.jitter, Nanos(1'000'000));
  EXPECT_EQ(simple.weight, 2.0);
  EXPECT_EQ(simple.rate, Rate(1'000'000'000));
  ASSERT_EQ(simple.phases.size(), 2U);
  EXPECT_EQ(simple.phases[0].compute, Nanos(150'000'000));
  EXPECT_EQ(simple.phases[1].bytes, 13'500'000U);

  const workload::Job& phases = experiment.jobs[1];
  ASSERT_EQ(phases.phases.size(), 4U);
  EXPECT_EQ(phases.phases[0].kind, workload::Phase::Kind::compute);
  EXPECT_TRUE(phases.phases[1].overlap);
  EXPECT_EQ(phases.phases[3].rate, Rate(500'000'000));
  EXPECT_FALSE(phases.phases[3].overlap);

  // Among two of the model group, a shard of 400 bytes is sent once; among four workers 1.5 times the gradients.
  const workload::Job& trace = experiment.jobs[2];
  ASSERT_EQ(trace.phases.size(), 6U);
  EXPECT_EQ(trace.phases[0].compute, Nanos(2'000'000));
  EXPECT_EQ(trace.phases[1].bytes, 200U);
  EXPECT_EQ(trace.phases[2].compute, Nanos(14'000'000));
  EXPECT_EQ(trace.phases[3].bytes, 12'000U);
  EXPECT_TRUE(trace.phases[3].overlap);
  EXPECT_EQ(trace.phases[4].compute, Nanos(4'000'000));
  EXPECT_EQ(trace.phases[5].bytes, 6'000U);
  EXPECT_THAT(experiment.warnings, ElementsAre(HasSubstr("layers.txt:2: 3 layers are announced and 2 follow"),
                                               HasSubstr("together need 114% of the link")));
}

TEST(ExperimentFile, load__examples) {
  for (const char* file : {"two-vgg19.toml", "three-jobs-traces.toml", "multi-phase.toml", "learned-buckets.toml",
                           "schedule-40-60.toml"}) {
    const Experiment experiment = load_experiment(std::filesystem::path(MLTCP_EXAMPLES) / file);
    EXPECT_EQ(experiment.name + ".toml", file);
    EXPECT_THAT(experiment.warnings, IsEmpty());
    EXPECT_GE(experiment.jobs.size(), 2U);
    double duty = 0;
    for (const workload::Job& each : experiment.jobs)
      duty += workload::ideal_iteration(each, experiment.bottleneck.rate).duty_cycle();
    EXPECT_LT(duty, 0.95) << file << ": the jobs can't interleave";
  }
  const Experiment two = load_experiment(std::filesystem::path(MLTCP_EXAMPLES) / "two-vgg19.toml");
  EXPECT_EQ(two.iterations, 60U);
  EXPECT_EQ(two.bottleneck.buffer_bytes, 75'000U);
  EXPECT_EQ(two.jobs[1].start, Nanos(3'000'000));
}

TEST(ExperimentFile, parse__top_level_errors) {
  EXPECT_THAT(refusal(top("name = 5")), error_at(1, "name", "a text is expected and this is a whole number"));
  EXPECT_THAT(refusal(top("name = \"\"")), error_at(1, "name", "the name is empty"));
  EXPECT_THAT(refusal(top("name = \"a\\nb\"")), error_at(1, "name", "control characters"));
  EXPECT_THAT(refusal(top("name = \"" + std::string(101, 'x') + "\"")), error_at(1, "name", "101 bytes"));
  EXPECT_THAT(refusal(top("iterations = 0")), error_at(1, "iterations", "0 is out of range"));
  EXPECT_THAT(refusal(top("iterations = -3")), error_at(1, "iterations", "-3 is out of range"));
  EXPECT_THAT(refusal(top("iterations = 1_000_001")), error_at(1, "iterations", "1000001 is out of range"));
  EXPECT_THAT(refusal(top("iterations = 60.0")), error_at(1, "iterations", "a whole number is expected"));
  EXPECT_THAT(refusal(top("iterations = \"60\"")), error_at(1, "iterations", "this is a text"));
  EXPECT_EQ(refusal(top("iterations = 1000000")), "no error");
  EXPECT_THAT(refusal(top("seed = -1")), error_at(1, "seed", "-1 is out of range"));
  EXPECT_THAT(refusal(top("seed = true")), error_at(1, "seed", "this is true or false"));
}

TEST(ExperimentFile, parse__choices) {
  EXPECT_EQ(refusal(top("cc = \"renno\"")),
            "e.toml:1: cc: there is no congestion control \"renno\"; did you mean \"reno\"?");
  EXPECT_THAT(refusal(top("cc = \"bbr-version-three\"")),
              error_at(1, "cc", "write one of reno, cubic, dctcp, dcqcn, swift"));
  EXPECT_THAT(refusal(top("cc = 3")), error_at(1, "cc", "a text is expected"));
  EXPECT_EQ(refusal(top("datapath = \"ring\"")),
            "e.toml:1: datapath: \"ring\" is not available; this version has: sim");
  EXPECT_EQ(refusal(top("datapath = \"sims\"")), "e.toml:1: datapath: \"sims\" is not known; did you mean \"sim\"?");
  EXPECT_THAT(refusal(top("policies = \"fair\"")), error_at(1, "policies", "an array of texts is expected"));
  EXPECT_THAT(refusal(top("policies = []")), error_at(1, "policies", "the array is empty"));
  EXPECT_THAT(refusal(top("policies = [1]")), error_at(1, "policies", "a text is expected"));
  EXPECT_THAT(refusal(top("policies = [\"fair\",\n \"mltpc\"]")), error_at(2, "policies", "did you mean \"mltcp\"?"));
  EXPECT_THAT(refusal(top("policies = [\"fair\", \"fair\"]")), error_at(1, "policies", "stands there twice"));
}

TEST(ExperimentFile, parse__an_algorithm_that_needs_marks_wants_a_link_that_marks) {
  FileOptions options;
  EXPECT_THAT(refusal(top("cc = \"dctcp\""), options), error_at(1, "cc", "dctcp needs ECN"));
  EXPECT_EQ(parse_experiment("cc = \"dctcp\"\n" + link("ecn = { kmin = \"30 kB\" }"), "e.toml", options).cc, "dctcp");
  EXPECT_THAT(refusal(job("cc = \"dctcp\""), options), error_at(6, "job[1].cc", "dctcp needs ECN"));
  options.cc = "dctcp";
  EXPECT_THAT(refusal(top(""), options), StartsWith("--cc: dctcp needs ECN"));
  EXPECT_THAT(refusal(top("cc = \"reno\""), options), StartsWith("--cc: dctcp needs ECN"));
}

TEST(ExperimentFile, parse__marks_that_no_packet_gets_are_refused) {
  EXPECT_THAT(refusal(link("buffer = \"75 kB\"\necn = { kmin = \"75 kB\" }")),
              error_at(7, "bottleneck.ecn.kmin", "no packet is marked"));
  EXPECT_EQ(refusal(link("buffer = \"75 kB\"\necn = { kmin = \"74 kB\" }")), "no error");
}

TEST(ExperimentFile, parse__a_sweep_is_told_from_an_experiment) {
  EXPECT_THAT(refusal("experiment = \"e.toml\"\n"), error_at(1, "experiment", "use mltcp sweep"));
  EXPECT_THAT(refusal("[arrivals]\njobs = 4\n"), error_at(1, "arrivals", "use mltcp cluster"));
}

TEST(ExperimentFile, parse__mtu_and_stragglers) {
  const Experiment experiment = parse_experiment(link("mtu = 9000"), "e.toml", {});
  EXPECT_EQ(experiment.mtu, 9000U);
  EXPECT_THAT(refusal(link("mtu = 9001")), error_at(6, "bottleneck.mtu", "out of range"));
  EXPECT_THAT(refusal(link("mtu = 9000\nbuffer = \"9 kB\"")), error_at(7, "bottleneck.buffer", "9014"));
  EXPECT_THAT(refusal(job("straggler = { probability = 0.1 }")), error_at(6, "job[1].straggler.factor", "missing"));
  EXPECT_THAT(refusal(job("straggler = { probability = 2, factor = 2 }")),
              error_at(6, "job[1].straggler.probability", "no probability"));
  EXPECT_THAT(refusal(job("straggler = { probability = 0.1, factor = 0.5 }")),
              error_at(6, "job[1].straggler.factor", "write 1 to"));
}

TEST(ExperimentFile, parse__pause_and_change) {
  const Experiment experiment =
      parse_experiment(job("compute = \"1 ms\"\npause = { iteration = 20, time = \"130 ms\" }\n"
                           "change = { iteration = 30, compute_scale = 1.5 }"),
                       "e.toml", {});
  EXPECT_EQ(experiment.jobs[0].pause.iteration, 20U);
  EXPECT_EQ(experiment.jobs[0].pause.time, Nanos(130'000'000));
  EXPECT_EQ(experiment.jobs[0].change.iteration, 30U);
  EXPECT_EQ(experiment.jobs[0].change.compute_scale, 1.5);
  EXPECT_TRUE(experiment.jobs[0].compute_varies());
  const std::string compute = "compute = \"1 ms\"\n";
  EXPECT_THAT(refusal(job(compute + "pause = { iteration = 2 }")), error_at(7, "job[1].pause.time", "missing"));
  EXPECT_THAT(refusal(job(compute + "pause = { iteration = -1, time = \"1 ms\" }")),
              error_at(7, "job[1].pause.iteration", "out of range"));
  EXPECT_THAT(refusal(job(compute + "pause = { iteration = 1, tme = \"1 ms\" }")),
              error_at(7, "job[1].pause.tme", "did you mean"));
  EXPECT_THAT(refusal(job(compute + "change = { compute_scale = 2 }")),
              error_at(7, "job[1].change.iteration", "missing"));
  EXPECT_THAT(refusal(job(compute + "change = { iteration = 1, compute_scale = 0 }")),
              error_at(7, "job[1].change.compute_scale", "write"));
  EXPECT_THAT(refusal(job("pause = { iteration = 1, time = \"1 ms\" }")),
              error_at(6, "job[1].pause", "the job computes nothing"));
  // What the inspected job says reads back.
  EXPECT_EQ(parse_experiment(kLink + workload::to_toml(experiment.jobs[0]), "e.toml", {}).jobs[0].change.compute_scale,
            1.5);
}

TEST(ExperimentFile, parse__schedule) {
  const Experiment plain = parse_experiment(top(""), "e.toml", {});
  EXPECT_EQ(plain.schedule.tolerance, 0.05);
  EXPECT_EQ(plain.schedule.correction, PhasePlan::Correction::at_once);
  EXPECT_FALSE(plain.schedule.slack.has_value());
  EXPECT_TRUE(plain.schedule.replan);
  const Experiment all = parse_experiment(kJob + kLink + R"([schedule]
tolerance = 0.1
correction = "gradual"
gradual_step = 0.2
clock_bound = "10 us"
max_stretch = 0.01
slack = 0.03
replan = false
)",
                                          "e.toml", {});
  EXPECT_EQ(all.schedule.tolerance, 0.1);
  EXPECT_EQ(all.schedule.correction, PhasePlan::Correction::gradual);
  EXPECT_EQ(all.schedule.gradual_step, 0.2);
  EXPECT_EQ(all.schedule.clock_bound, Nanos(10'000));
  EXPECT_EQ(all.schedule.max_stretch, 0.01);
  EXPECT_EQ(all.schedule.slack, 0.03);
  EXPECT_FALSE(all.schedule.replan);
  const auto schedule = [](const std::string& keys) { return refusal(top("schedule = { " + keys + " }")); };
  EXPECT_EQ(schedule("slack = \"auto\""), "no error");
  EXPECT_THAT(schedule("slack = \"some\""), error_at(1, "schedule.slack", "write \"auto\""));
  EXPECT_THAT(schedule("slack = -0.1"), error_at(1, "schedule.slack", "out of range"));
  EXPECT_THAT(schedule("tolerance = 0"), error_at(1, "schedule.tolerance", "write 0.001 to 0.5"));
  EXPECT_THAT(schedule("correction = \"slow\""), error_at(1, "schedule.correction", "write \"at-once\""));
  EXPECT_THAT(schedule("gradual_step = 2"), error_at(1, "schedule.gradual_step", "out of range"));
  EXPECT_THAT(schedule("clock_bound = 5"), error_at(1, "schedule.clock_bound", "no unit"));
  EXPECT_THAT(schedule("max_stretch = 1.5"), error_at(1, "schedule.max_stretch", "out of range"));
  EXPECT_THAT(schedule("tolerence = 0.1"), error_at(1, "schedule.tolerence", "did you mean \"tolerance\"?"));
  EXPECT_THAT(refusal(top("policies = [\"schedule\"]\nmltcp = { iterations = \"learned\" }")),
              error_at(2, "mltcp.iterations", "write \"exact\""));
}

TEST(ExperimentFile, parse__options_override_the_file) {
  FileOptions options;
  options.cc = "reno";
  options.datapath = "sim";
  options.policy = {"static", "mltcp"};
  const Experiment experiment =
      parse_experiment(top("cc = \"swift\"\ndatapath = \"ring\"\npolicies = [\"schedule\"]"), "e.toml", options);
  EXPECT_EQ(experiment.cc, "reno");
  EXPECT_EQ(experiment.datapath, "sim");
  EXPECT_THAT(experiment.policies, ElementsAre("static", "mltcp"));
  EXPECT_THAT(refusal(top("cc = \"sswift\""), options), error_at(1, "cc", "did you mean \"swift\"?"));

  options.policy = {"static", "mltcp", "static"};
  EXPECT_EQ(refusal(top(""), options), "--policy: \"static\" stands there twice; write it once");
  options.policy.clear();

  options.cc = "cubbic";
  EXPECT_EQ(refusal(top(""), options), "--cc: there is no congestion control \"cubbic\"; did you mean \"cubic\"?");
  options.cc.reset();
  options.datapath = "rdma";
  EXPECT_THAT(refusal(top(""), options), StartsWith("--datapath: \"rdma\" is not known; "));
  options.datapath.reset();
  options.policy = {"scheduled"};
  EXPECT_THAT(refusal(top(""), options),
              StartsWith("--policy: \"scheduled\" is not known; did you mean \"schedule\"?"));
}

TEST(ExperimentFile, parse__unknown_keys_name_the_nearest) {
  EXPECT_EQ(refusal(top("iteration = 5")), "e.toml:1: iteration: unknown key; did you mean \"iterations\"?");
  EXPECT_EQ(refusal(link("bufer = \"1 MB\"")), "e.toml:6: bottleneck.bufer: unknown key; did you mean \"buffer\"?");
  EXPECT_EQ(refusal(job("comute = \"1 ms\"")), "e.toml:6: job[1].comute: unknown key; did you mean \"compute\"?");
  EXPECT_THAT(refusal(link("ecn = { kmin = \"1 kB\", kmxa = \"2 kB\" }")),
              error_at(6, "bottleneck.ecn.kmxa", "did you mean \"kmax\"?"));
  EXPECT_THAT(refusal(link("faults = { los = 0.1 }")), error_at(6, "bottleneck.faults.los", "did you mean \"loss\"?"));
  EXPECT_THAT(refusal(top("mltcp = { slop = 1.0 }")), error_at(1, "mltcp.slop", "did you mean \"slope\"?"));
  EXPECT_THAT(refusal(bare_job("phases = [ { communicate = \"1 MB\" },\n { comunicate = \"1 MB\" } ]")),
              error_at(6, "job[1].phases[2].comunicate", "did you mean \"communicate\"?"));
  EXPECT_THAT(refusal(top("zzzzzzzzzz = 5")), error_at(1, "zzzzzzzzzz", "the keys here are name, datapath"));
  EXPECT_THAT(refusal(top("\"a\\nb\" = 5")), error_at(1, "a?b", "unknown key"));
  EXPECT_THAT(refusal(kLink + kJob + "[botleneck]\nrate = 1\n"),
              error_at(6, "botleneck", "did you mean \"bottleneck\"?"));
  EXPECT_THAT(refusal(link("iterations = 5")), error_at(6, "bottleneck.iterations", "belongs to the top level"));
}

TEST(ExperimentFile, parse__values_without_quotes_are_told_of_them) {
  const auto missing = [](const std::string& place, const std::string& cause, const std::string& cure) {
    return testing::StrEq("e.toml:" + place + ": " + cause + "; put it in quotes: " + cure);
  };
  const std::string none = "a text has no quotes";
  const std::string open = "the quote at the end is missing";
  EXPECT_THAT(refusal(link("delay = 10 ms")), missing("6: bottleneck.delay", none, "delay = \"10 ms\""));
  EXPECT_THAT(refusal(top("cc=reno # or cubic")), missing("1: cc", none, "cc = \"reno\""));
  EXPECT_THAT(refusal(top("name = x\"")), missing("1: name", none, "name = \"x\""));
  EXPECT_THAT(refusal(top("name = \"x")), missing("1: name", open, "name = \"x\""));
  EXPECT_THAT(refusal(top("name = 'x")), missing("1: name", open, "name = \"x\""));
  EXPECT_THAT(refusal(top("policies = [fair, \"mltcp\", a#]")), HasSubstr("e.toml:1: TOML: "));
  EXPECT_THAT(refusal(top("policies = [fair, \"mltcp\", mltcp+schedule] # all")),
              missing("1: policies", none, "policies = [\"fair\", \"mltcp\", \"mltcp+schedule\"]"));
  EXPECT_THAT(refusal(link("ecn = { kmin = 60 kB, pmax = 1.0 }")),
              missing("6: bottleneck.ecn", none, "ecn = { kmin = \"60 kB\", pmax = 1.0 }"));
  EXPECT_THAT(refusal(kLink + kJob + "[[job]]\nname = \"b\"\ncompute = 1 ms\n"),
              HasSubstr(": job[2].compute: a text has no quotes; put it in quotes: compute = \"1 ms\""));
  // Where more than that is wrong, or nobody knows where the quote should be, the parser's words stand.
  EXPECT_THAT(refusal(top("policies = [\"fair, \"mltcp\"]")), HasSubstr("e.toml:1: TOML: "));
  EXPECT_THAT(refusal(top("a b = 10 ms")), HasSubstr("e.toml:1: TOML: "));
  EXPECT_THAT(refusal(top("cc = " + std::string(300, 'x'))), HasSubstr("in quotes, as in \"150 ms\""));
  // What stands in a text of several lines is no table and no key.
  for (const std::string quotes : {"\"\"\"", "'''"}) {
    const std::string text = "[mltcp]\nnote = " + quotes + "\n[[job]]\n[topology]\ncc = reno\n" + quotes;
    EXPECT_THAT(refusal(text + "\nrate = 5 Gbps\n"), HasSubstr("e.toml:7: mltcp.rate: " + none));
    EXPECT_THAT(refusal("name = " + quotes + "\n[job]\ncc = reno\n"), testing::Not(HasSubstr(none)));
  }
}

TEST(ExperimentFile, parse__jobs_that_need_more_than_the_link_has_are_told_so) {
  const auto warnings = [](const std::string& compute) {
    std::string text = "[bottleneck]\nrate = \"1 Gbps\"\n";
    for (const char* name : {"a", "b"})
      text += std::string("[[job]]\nname = \"") + name + "\"\ncompute = \"" + compute + "\"\ncommunicate = \"10 MB\"\n";
    return parse_experiment(text, "e.toml", FileOptions{}).warnings;
  };
  EXPECT_THAT(warnings("100 ms"), testing::IsEmpty());
  EXPECT_THAT(warnings("20 ms"), ElementsAre(HasSubstr("need 160% of the link")));
}

TEST(ExperimentFile, parse__bottleneck_errors) {
  EXPECT_THAT(refusal(kJob), error_at(1, "bottleneck", "the table is missing"));
  EXPECT_THAT(refusal("bottleneck = 5\n" + kJob), error_at(1, "bottleneck", "a table is expected"));
  EXPECT_THAT(refusal(kJob + "[bottleneck]\ndelay = \"1 us\"\n"), error_at(4, "bottleneck.rate", "the key is missing"));
  const auto with_rate = [](const std::string& rate) { return refusal(kJob + "[bottleneck]\nrate = " + rate + "\n"); };
  EXPECT_THAT(with_rate("1000"), error_at(5, "bottleneck.rate",
                                          "the number 1000 has no unit; write a text with a unit, "
                                          "such as \"1 Gbps\""));
  EXPECT_THAT(with_rate("1.5"), error_at(5, "bottleneck.rate", "the number 1.5 has no unit"));
  EXPECT_THAT(with_rate("\"0 Gbps\""), error_at(5, "bottleneck.rate", "0 bps is out of range"));
  EXPECT_THAT(with_rate("\"101 Tbps\""), error_at(5, "bottleneck.rate", "out of range"));
  EXPECT_THAT(with_rate("\"-1 Gbps\""), error_at(5, "bottleneck.rate", "it is negative"));
  EXPECT_THAT(with_rate("\"1 GB\""), error_at(5, "bottleneck.rate", "unknown unit \"GB\""));
  EXPECT_THAT(with_rate("\"1\\n Gb\""), error_at(5, "bottleneck.rate", "is not a rate"));
  EXPECT_THAT(with_rate("true"), error_at(5, "bottleneck.rate", "this is true or false"));
  EXPECT_THAT(with_rate("[1]"), error_at(5, "bottleneck.rate", "this is an array"));
  EXPECT_THAT(with_rate("2024-01-01"), error_at(5, "bottleneck.rate", "this is a date"));
  EXPECT_THAT(refusal(link("delay = 5")), error_at(6, "bottleneck.delay", "the number 5 has no unit; write a text"));
  EXPECT_THAT(refusal(link("delay = \"-1 us\"")), error_at(6, "bottleneck.delay", "it is negative"));
  EXPECT_THAT(refusal(link("delay = \"1 min\"")), error_at(6, "bottleneck.delay", "60 s is too long"));
  EXPECT_THAT(refusal(link("delay = \"10 MB\"")), error_at(6, "bottleneck.delay", "unknown unit \"MB\""));
  EXPECT_THAT(refusal(link("buffer = \"1513 B\"")), error_at(6, "bottleneck.buffer", "less than one packet"));
  EXPECT_THAT(refusal(link("buffer = \"1513 B\"")), EndsWith("write at least 1514 B"));
  EXPECT_THAT(refusal(link("buffer = \"0 B\"")), error_at(6, "bottleneck.buffer", "less than one packet"));
  EXPECT_EQ(refusal(link("buffer = \"1514 B\"")), "no error");
  EXPECT_THAT(refusal(link("buffer = \"2 TB\"")), error_at(6, "bottleneck.buffer", "is too much"));
  EXPECT_THAT(refusal(link("ecn = true")), error_at(6, "bottleneck.ecn", "a table is expected"));
  EXPECT_THAT(refusal(link("ecn = { kmax = \"1 kB\" }")), error_at(6, "bottleneck.ecn.kmin", "the key is missing"));
  EXPECT_THAT(refusal(link("ecn = { kmin = \"2 kB\", kmax = \"1 kB\" }")),
              error_at(6, "bottleneck.ecn.kmax", "1 kB is less than kmin"));
  EXPECT_THAT(refusal(link("ecn = { kmin = \"2 kB\", pmax = 1.01 }")),
              error_at(6, "bottleneck.ecn.pmax", "no probability"));
  EXPECT_THAT(refusal(link("ecn = { kmin = \"2 kB\", pmax = -0.1 }")),
              error_at(6, "bottleneck.ecn.pmax", "no probability"));
  EXPECT_THAT(refusal(link("ecn = { kmin = \"2 kB\", pmax = nan }")), error_at(6, "bottleneck.ecn.pmax", "not finite"));
  EXPECT_EQ(refusal(link("ecn = { kmin = \"2 kB\", pmax = 1 }")), "no error");
  for (const std::string key : {"loss", "duplication", "corruption", "reordering"}) {
    EXPECT_THAT(refusal(link("faults = { " + key + " = 1.5 }")),
                error_at(6, "bottleneck.faults." + key, "no probability"));
    EXPECT_THAT(refusal(link("faults = { " + key + " = -1 }")),
                error_at(6, "bottleneck.faults." + key, "no probability"));
    EXPECT_THAT(refusal(link("faults = { " + key + " = \"1%\" }")),
                error_at(6, "bottleneck.faults." + key, "a number is"));
  }
  EXPECT_THAT(refusal(link("faults = { reorder_delay = \"0 ms\" }")),
              error_at(6, "bottleneck.faults.reorder_delay", "0"));
}

TEST(ExperimentFile, parse__mltcp_errors) {
  EXPECT_THAT(refusal(top("mltcp = 3")), error_at(1, "mltcp", "a table is expected"));
  EXPECT_THAT(refusal(top("mltcp = { iterations = \"guessed\" }")),
              error_at(1, "mltcp.iterations", "write \"exact\" or \"learned\""));
  EXPECT_EQ(refusal(top("mltcp = { iterations = \"exact\" }")), "no error");
  EXPECT_EQ(refusal(top("mltcp = { iterations = \"learned\" }")), "no error");
  EXPECT_THAT(refusal(top("mltcp = { slope = \"x\" }")), error_at(1, "mltcp.slope", "a number is expected"));
  EXPECT_THAT(refusal(top("mltcp = { slope = inf }")), error_at(1, "mltcp.slope", "not finite"));
  EXPECT_THAT(refusal(top("mltcp = { slope = 1e9 }")), error_at(1, "mltcp.slope", "out of range"));
  EXPECT_THAT(refusal(top("mltcp = { intercept = 0 }")), error_at(1, "mltcp.intercept", "not finite and above 0"));
  EXPECT_THAT(refusal(top("mltcp = { slope = -1, intercept = 0.5 }")),
              error_at(1, "mltcp.intercept", "not finite and above 0"));
  EXPECT_THAT(refusal(top("mltcp = { slope = -1 }")), error_at(1, "mltcp.slope", "not finite and above 0"));
  EXPECT_EQ(refusal(top("mltcp = { slope = -1.75, intercept = 2 }")), "no error");  // F5
  EXPECT_EQ(refusal(top("mltcp = { function = \"F6\", decrease = true }")), "no error");
  EXPECT_EQ(refusal(top("mltcp = { points = [[0, 0.5], [0.3, 1], [1, 2.0]] }")), "no error");
  EXPECT_THAT(refusal(top("mltcp = { function = \"F7\" }")), error_at(1, "mltcp.function", "there are F1, F2, F3"));
  EXPECT_THAT(refusal(top("mltcp = { function = \"F1\", slope = 1 }")), error_at(1, "mltcp.function", "given twice"));
  EXPECT_THAT(refusal(top("mltcp = { points = [[0, 1]] }")), error_at(1, "mltcp.points", "2 to 16"));
  EXPECT_EQ(refusal(top("mltcp = { points = [[0, 1], 2] }")),
            "e.toml:1: mltcp.points: a point is not a pair; write points = [[0, 0.25], [1, 2.0]]");
  EXPECT_THAT(refusal(top("mltcp = { points = [[0, 1], [1, -1]] }")), error_at(1, "mltcp.points", "F(1) is -1"));
}

TEST(ExperimentFile, parse__parameters_of_algorithms) {
  const Experiment experiment = parse_experiment(
      top("swift = { base_target = \"40 us\", beta = 0.5 }\ndcqcn = { additive_increase = \"5 Mbps\" }"), "f.toml");
  EXPECT_EQ(experiment.parameters.of<cc::Swift>().base_target, Nanos(40'000));
  EXPECT_EQ(experiment.parameters.of<cc::Swift>().beta, 0.5);
  EXPECT_EQ(experiment.parameters.of<cc::Dcqcn>().additive_increase, Rate(5'000'000));
  EXPECT_EQ(experiment.parameters.of<cc::Cubic>().beta, 0.7);
  EXPECT_THAT(refusal(top("cubic = { beta = 1.0 }")), error_at(1, "cubic.beta", "from 0.5 to below 1"));
  EXPECT_THAT(refusal(top("dctcp = { g = 0 }")), error_at(1, "dctcp.g", "above 0 and at most 1"));
  EXPECT_THAT(refusal(top("dcqcn = { alpha_interval = \"40 us\" }")),
              error_at(1, "dcqcn.alpha_interval", "above the notification_interval"));
  EXPECT_THAT(refusal(top("swift = { base = \"40 us\" }")), error_at(1, "swift.base", "unknown key"));
}

TEST(ExperimentFile, parse__job_errors) {
  EXPECT_THAT(refusal(kLink), error_at(1, "job", "there is no job"));
  EXPECT_THAT(refusal("job = []\n" + kLink), error_at(1, "job", "there is no job"));
  EXPECT_THAT(refusal("job = 5\n" + kLink), error_at(1, "job", "an array of tables is expected"));
  EXPECT_THAT(refusal("job = [5]\n" + kLink), error_at(1, "job[1]", "a table is expected"));
  EXPECT_THAT(refusal(kLink + "[job]\nname = \"a\"\n"), error_at(3, "job", "write [[job]] above each job"));
  EXPECT_THAT(refusal(kLink + "[[job]]\ncommunicate = \"1 MB\"\n"), error_at(3, "job[1].name", "the key is missing"));
  EXPECT_THAT(refusal(kLink + kJob + "\n" + kJob),
              error_at(8, "job[2].name", "\"a\" is the name of the job of line 4 too"));
  EXPECT_THAT(refusal(bare_job("compute = \"1 ms\"")), error_at(3, "job[1].communicate", "sends nothing"));
  EXPECT_THAT(refusal(bare_job("communicate = \"0 B\"")), error_at(5, "job[1].communicate", "sends nothing"));
  EXPECT_THAT(refusal(bare_job("communicate = 5")), error_at(5, "job[1].communicate", "such as \"13.5 MB\""));
  EXPECT_THAT(refusal(bare_job("communicate = \"5 Gbps\"")),
              error_at(5, "job[1].communicate", "unknown unit \"Gbps\""));
  EXPECT_THAT(refusal(bare_job("communicate = \"1001 TB\"")), error_at(5, "job[1].communicate", "too much"));
  EXPECT_THAT(refusal(job("compute = 150")), error_at(6, "job[1].compute", "such as \"150 ms\""));
  EXPECT_THAT(refusal(job("compute = \"-1 ms\"")), error_at(6, "job[1].compute", "it is negative"));
  EXPECT_THAT(refusal(job("compute = \"90000 s\"")), error_at(6, "job[1].compute", "too long"));
  EXPECT_THAT(refusal(job("flows = 0")), error_at(6, "job[1].flows", "0 is out of range"));
  EXPECT_THAT(refusal(job("flows = 1001")), error_at(6, "job[1].flows", "1001 is out of range"));
  EXPECT_THAT(refusal(job("flows = 1.5")), error_at(6, "job[1].flows", "a whole number is expected"));
  EXPECT_THAT(refusal(job("start = 3")), error_at(6, "job[1].start", "has no unit"));
  EXPECT_THAT(refusal(job("jitter = \"x\"")), error_at(6, "job[1].jitter", "does not begin with a number"));
  EXPECT_THAT(refusal(job("weight = 0")), error_at(6, "job[1].weight", "0 is out of range"));
  EXPECT_THAT(refusal(job("weight = -1.5")), error_at(6, "job[1].weight", "-1.5 is out of range"));
  EXPECT_THAT(refusal(job("weight = inf")), error_at(6, "job[1].weight", "not finite"));
  EXPECT_THAT(refusal(job("weight = nan")), error_at(6, "job[1].weight", "not finite"));
  EXPECT_THAT(refusal(job("weight = 1001.0")), error_at(6, "job[1].weight", "out of range"));
  EXPECT_THAT(refusal(job("weight = \"2\"")), error_at(6, "job[1].weight", "a number is expected"));
  EXPECT_THAT(refusal(job("rate = \"0 bps\"")), error_at(6, "job[1].rate", "out of range"));
  for (const std::string key :
       {"workers = 2", "network = \"all\"", "gather_size = \"total\"", "compute_scale = 1.0", "bytes_scale = 1.0"})
    EXPECT_THAT(refusal(job(key)), error_at(6, "job[1]." + key.substr(0, key.find(' ')), "belongs to a trace"));
}

TEST(ExperimentFile, parse__too_many_jobs) {
  std::string text = kLink;
  for (int i = 0; i < 1001; ++i)
    text.append("[[job]]\nname = \"").append(std::to_string(i)).append("\"\ncommunicate = \"1 MB\"\n");
  EXPECT_THAT(refusal(text), error_at(3, "job", "there are 1001 jobs"));
}

TEST(ExperimentFile, parse__too_many_jobs_for_the_ring) {
  std::string text = "datapath = \"ring\"\n" + kLink;
  for (int i = 0; i < 3; ++i)
    text.append("[[job]]\nname = \"").append(std::to_string(i)).append("\"\ncommunicate = \"1 MB\"\n");
  FileOptions options;
  options.datapaths = {"sim", "ring"};
  options.most_ring_jobs = 2;
  EXPECT_THAT(refusal(text, options), error_at(10, "job", "there are 3 jobs and datapath ring has ports for 2"));
  options.datapath = "sim";
  EXPECT_EQ(refusal(text, options), "no error");
  text.erase(0, text.find('\n') + 1);
  EXPECT_EQ(refusal(text, options), "no error");
  options.datapath = "ring";
  EXPECT_THAT(refusal(text, options), error_at(9, "job", "there are 3 jobs"));
  options.most_ring_jobs = 3;
  EXPECT_EQ(refusal(text, options), "no error");
}

TEST(ExperimentFile, parse__iterations_that_take_too_long) {
  // 7500 of 20 min are 104.17 days, and 2^53 ns are 104.25.
  const std::string compute = job("compute = \"20 min\"");
  EXPECT_EQ(refusal("iterations = 7500\n" + compute), "no error");
  EXPECT_THAT(refusal("iterations = 7600\n" + compute),
              error_at(1, "iterations", "7600 iterations of job[1] take 105.556 days or more; lower them"));
  EXPECT_THAT(refusal("iterations = 7500\n" + compute + "start = \"3 min\"\nrate = \"1 Mbps\"\n"),
              error_at(1, "iterations", "7500 iterations of job[1]"));
  EXPECT_THAT(refusal("iterations = 7500\n" + compute + "start = \"1440 min\"\n"), error_at(1, "iterations", "105.16"));
  // The file doesn't say how many; and what 64 bits of nanoseconds don't hold.
  EXPECT_THAT(refusal(bare_job("communicate = \"1000 TB\"")), error_at(1, "iterations", "50 iterations of job[1]"));
  EXPECT_THAT(refusal(bare_job("communicate = \"1000 TB\"\nrate = \"1 kbps\"")), error_at(1, "iterations", "days"));
  EXPECT_THAT(refusal(bare_job("phases = [{ communicate = \"1 GB\", rate = \"1 kbps\" }]")),
              error_at(1, "iterations", "days"));
  FileOptions options;
  options.iterations = 8000;
  EXPECT_EQ(refusal("iterations = 2\n" + compute, options),
            "--iterations: 8000 iterations of job[1] take 111.112 days or more; lower them, or what an iteration "
            "computes and sends, to 104 days");
  options.iterations = 3;
  options.seed = 12;
  const Experiment experiment = parse_experiment("iterations = 8000\nseed = 5\n" + compute, "e.toml", options);
  EXPECT_EQ(experiment.iterations, 3U);
  EXPECT_EQ(experiment.seed, 12U);
  EXPECT_EQ(experiment.bottleneck.seed, 12U);
}

TEST(ExperimentFile, parse__sums_of_an_iteration) {
  const auto phases = [](int count, const std::string& phase) {
    std::string list = "phases = [{ communicate = \"1 B\" },";
    for (int i = 0; i < count; ++i) list += phase + ",";
    return refusal("iterations = 1\n" + kLink + "[[job]]\nname = \"a\"\n" + list + "]\n");
  };
  EXPECT_EQ(phases(2, "{ compute = \"720 min\" }"), "no error");
  EXPECT_THAT(phases(3, "{ compute = \"720 min\" }"), error_at(6, "job[1].phases", "computes for 129600 s and sends"));
  EXPECT_THAT(phases(10, "{ communicate = \"100 TB\" }"), error_at(6, "job[1].phases", "sends 1e+15 B; write at most"));
  // Sums that 64 bits don't hold: 2^64 B in all look like none.
  EXPECT_THAT(phases(16384, "{ communicate = \"1024 TiB\" }"), HasSubstr("too much"));
  EXPECT_THAT(phases(32768, "{ communicate = \"512 TiB\" }"), error_at(6, "job[1].phases", "sends 1.84467e+19 B"));
}

TEST(ExperimentFile, parse__phases_errors) {
  EXPECT_THAT(refusal(bare_job("phases = 5")), error_at(5, "job[1].phases", "an array of tables is expected"));
  EXPECT_THAT(refusal(bare_job("phases = []")), error_at(5, "job[1].phases", "sends nothing"));
  EXPECT_THAT(refusal(bare_job("phases = [5]")), error_at(5, "job[1].phases[1]", "a table is expected"));
  EXPECT_THAT(refusal(bare_job("phases = [{}]")), error_at(5, "job[1].phases[1]", "neither computes nor communicates"));
  EXPECT_THAT(refusal(bare_job("phases = [{ compute = \"1 ms\" }]")), error_at(5, "job[1].phases", "sends nothing"));
  EXPECT_THAT(refusal(bare_job("phases = [{ compute = \"1 ms\", communicate = \"1 MB\" }]")),
              error_at(5, "job[1].phases[1]", "computes and communicates"));
  EXPECT_THAT(refusal(bare_job("phases = [{ compute = \"1 ms\", overlap = true }]")),
              error_at(5, "job[1].phases[1].overlap", "can't overlap"));
  EXPECT_THAT(refusal(bare_job("phases = [{ compute = \"1 ms\", rate = \"1 Gbps\" }]")),
              error_at(5, "job[1].phases[1].rate", "has no rate"));
  EXPECT_THAT(refusal(bare_job("phases = [{ communicate = \"1 MB\", overlap = \"yes\" }]")),
              error_at(5, "job[1].phases[1].overlap", "true or false is expected"));
  EXPECT_THAT(refusal(bare_job("phases = [{ communicate = \"0 MB\" }]")),
              error_at(5, "job[1].phases[1].communicate", "sends nothing"));
  EXPECT_THAT(refusal(bare_job("phases = [\n{ compute = 20 },\n{ communicate = \"1 MB\" }]")),
              error_at(6, "job[1].phases[1].compute", "such as \"20 ms\""));
  EXPECT_THAT(refusal(job("phases = [{ communicate = \"1 MB\" }]")),
              error_at(5, "job[1].communicate", "has phases too"));
  EXPECT_THAT(refusal(bare_job("compute = \"1 ms\"\nphases = [{ communicate = \"1 MB\" }]")),
              error_at(5, "job[1].compute", "has phases too"));
}

TEST(ExperimentFile, parse__trace_of_the_profiler) {
  const auto traced = [](const std::string& line) {
    return parse_experiment(bare_job("trace = \"profile.json\"\n" + line), (kData / "e.toml").string());
  };
  const workload::Job job = traced("compute_scale = 2.0").jobs[0];
  ASSERT_EQ(job.phases.size(), 3U);
  EXPECT_EQ(job.phases[0].compute, Nanos(20'000'000));
  EXPECT_EQ(job.phases[1].bytes, 1'000'000U);
  EXPECT_EQ(job.phases[2].compute, Nanos(19'000'000));
  for (const char* key : {"network = \"all\"", "gather_size = \"shard\""}) {
    try {
      traced(key);
      ADD_FAILURE() << key << " is not refused";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("a trace of PyTorch's profiler tells what was sent"));
    }
  }
}

TEST(ExperimentFile, parse__trace_errors) {
  const auto traced = [](const std::string& line) {
    try {
      parse_experiment(bare_job("trace = \"layers.txt\"\n" + line), (kData / "e.toml").string());
    } catch (const InputError& error) {
      const std::string message = error.what();
      return message.substr(message.find("e.toml"));
    }
    return std::string("no error");
  };
  EXPECT_EQ(traced(""), "no error");
  EXPECT_THAT(traced("workers = 1"), error_at(6, "job[1].workers", "1 is out of range"));
  EXPECT_THAT(traced("workers = 2.0"), error_at(6, "job[1].workers", "a whole number is expected"));
  EXPECT_THAT(traced("network = \"some\""), error_at(6, "job[1].network", "\"some\" is not known"));
  EXPECT_THAT(traced("network = 1"), error_at(6, "job[1].network", "a text is expected"));
  EXPECT_THAT(traced("gather_size = \"half\""), error_at(6, "job[1].gather_size", "\"half\" is not known"));
  EXPECT_THAT(traced("compute_scale = 0"), error_at(6, "job[1].compute_scale", "0 is out of range"));
  EXPECT_THAT(traced("bytes_scale = -1"), error_at(6, "job[1].bytes_scale", "-1 is out of range"));
  EXPECT_THAT(traced("bytes_scale = 1e7"), error_at(6, "job[1].bytes_scale", "out of range"));
  EXPECT_THAT(traced("compute = \"1 ms\""), error_at(6, "job[1].compute", "has a trace too"));
  EXPECT_THAT(traced("phases = []"), error_at(5, "job[1].trace", "has phases too"));
  EXPECT_THAT(refusal(bare_job("trace = 5")), error_at(5, "job[1].trace", "a text is expected"));
  EXPECT_THAT(refusal(bare_job("trace = \"\"")), error_at(5, "job[1].trace", "the path is empty"));
  EXPECT_THAT(refusal(bare_job("trace = \"no-such-file\"")),
              error_at(5, "job[1].trace", "no-such-file: there is no such file"));
}

TEST(ExperimentFile, parse__profile) {
  const std::string file = ::testing::TempDir() + "/mltcp_profile.csv";
  std::ofstream(file) << "time_ms,rate_bps\n0,0\n20,500e6\n30,0\n50,0\n";
  const std::string key = "profile = \"" + file + "\"";
  const Experiment experiment = parse_experiment(bare_job(key), "e.toml");
  ASSERT_EQ(experiment.jobs[0].phases.size(), 3U);
  EXPECT_EQ(experiment.jobs[0].phases[1].bytes, 625'000U);
  EXPECT_EQ(experiment.jobs[0].phases[1].rate, Rate(500'000'000));
  EXPECT_THAT(refusal(bare_job(key + "\ncompute = \"1 ms\"")), error_at(6, "job[1].compute", "has a profile too"));
  EXPECT_THAT(refusal(bare_job(key + "\ntrace = \"x\"")), error_at(5, "job[1].profile", "has a trace too"));
  EXPECT_THAT(refusal(bare_job(key + "\nphases = []")), error_at(5, "job[1].profile", "has phases too"));
  EXPECT_THAT(refusal(bare_job(key + "\nworkers = 2")), error_at(6, "job[1].workers", "belongs to a trace"));
  EXPECT_THAT(refusal(bare_job("profile = \"\"")), error_at(5, "job[1].profile", "the path is empty"));
  EXPECT_THAT(refusal(bare_job("profile = \"none.csv\"")), error_at(5, "job[1].profile", "none.csv: there is no"));
  std::ofstream(file) << "time_ms,rate_bps\n0,0\n20,-1\n";
  EXPECT_THAT(refusal(bare_job(key)), error_at(5, "job[1].profile", "mltcp_profile.csv:3: rate: -1 is below 0"));
  std::filesystem::remove(file);
}

TEST(ExperimentFile, parse__errors_of_a_trace_name_both_places) {
  const std::string folder = ::testing::TempDir();
  std::ofstream(folder + "/mltcp_bad_trace.txt") << "a -1 1 NONE 0 0 NONE 0 x NONE 0 0\n";
  std::ofstream(folder + "/mltcp_silent_trace.txt") << "a -1 1 NONE 0 0 NONE 0 0 NONE 0 0\n";
  EXPECT_THAT(
      refusal(bare_job("trace = \"" + folder + "/mltcp_bad_trace.txt\"")),
      error_at(5, "job[1].trace", "mltcp_bad_trace.txt:1: weight-gradient compute: \"x\" is not a whole number"));
  EXPECT_THAT(refusal(bare_job("trace = \"" + folder + "/mltcp_silent_trace.txt\"")),
              error_at(5, "job[1].trace", "the trace sends nothing"));
  std::filesystem::remove(folder + "/mltcp_bad_trace.txt");
  std::filesystem::remove(folder + "/mltcp_silent_trace.txt");
}

TEST(ExperimentFile, parse__syntax_errors) {
  EXPECT_THAT(refusal(""), error_at(1, "experiment", "the file is empty"));
  EXPECT_THAT(refusal("# nothing but this\n"), error_at(1, "experiment", "the file is empty"));
  EXPECT_THAT(refusal("name = \"a\"\n[bottleneck\n"), error_at(2, "TOML", "correct the line"));
  EXPECT_THAT(refusal("name = \"a\"\nname = \"b\"\n"), error_at(2, "TOML", ""));
  // Those that the parser does not check by itself.
  EXPECT_THAT(refusal(kLink + "[=]\n" + kJob), error_at(3, "TOML", "a key or value is expected"));
  EXPECT_THAT(refusal(kLink + "\n[[/job]]"), error_at(4, "TOML", "a key or value is expected"));
  EXPECT_THAT(refusal("name = \"a\nb\"\n"), StartsWith("e.toml:1: name: the quote at the end is missing"));
  EXPECT_THAT(refusal("\nname = \"\xff\xfe\"\n"), error_at(2, "TOML", ""));
  EXPECT_THAT(refusal(std::string("\0\1\2\3", 4)), StartsWith("e.toml:1: TOML: "));
  EXPECT_EQ(parse_experiment("\xEF\xBB\xBF" + kLink + kJob, "e.toml").jobs.size(), 1U);
}

TEST(ExperimentFile, load__refuses_what_is_no_file) {
  const auto message = [](const std::filesystem::path& path) {
    try {
      load_experiment(path);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::filesystem::path folder = ::testing::TempDir();
  EXPECT_THAT(message(folder / "no-such-experiment.toml"), EndsWith("no-such-experiment.toml: there is no such "
                                                                    "file; give the path of an experiment file"));
  EXPECT_THAT(message(folder), HasSubstr(": this is a directory; "));
  const auto locked = folder / "mltcp_locked.toml";
  std::ofstream(locked) << kLink << kJob;
  std::filesystem::permissions(locked, std::filesystem::perms::none);
  // Root may read whatever it likes.
  if (!std::ifstream(locked)) {
    EXPECT_THAT(message(locked), HasSubstr(": the file can't be opened (Permission denied); "));
  }
  std::filesystem::remove(locked);
  EXPECT_THAT(message("/dev/zero"), HasSubstr(": this is no file but a device or socket; "));
}

TEST(ExperimentFile, parse__name_of_the_file_is_one_line) {
  EXPECT_EQ(parse_experiment(kLink + kJob, "two\njobs\x1b.toml").name, "two?jobs?");
  try {
    parse_experiment("[=]", "two\njobs.toml");
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), StartsWith("two?jobs.toml:1: TOML: "));
  }
}

TEST(ExperimentFile, objection_to_name__as_for_names_of_the_file) {
  EXPECT_EQ(objection_to_name("vgg19 \"ü\""), "");
  EXPECT_EQ(objection_to_name(""), "the name is empty; write a name");
  EXPECT_THAT(objection_to_name(std::string(101, 'x')), HasSubstr("101 bytes"));
  for (const char* name : {"a\nb", "\xff", "\xC2\x9B"})
    EXPECT_THAT(objection_to_name(name), HasSubstr("control characters or is not UTF-8"));
}

template <typename T>
void expect_same_keys(const T& a, const T& b) {
  for_each_field<T>([&](const auto& field) {
    if constexpr (workload::is_file_key<decltype(field)>) {
      const auto& of_a = a.*field.member;
      if constexpr (HasFields<std::remove_cvref_t<decltype(of_a)>>)
        expect_same_keys(of_a, b.*field.member);
      else
        EXPECT_EQ(of_a, b.*field.member) << field.name;
    }
  });
}

void expect_same(const workload::Job& a, const workload::Job& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.cc, b.cc);
  expect_same_keys(a, b);
  ASSERT_EQ(a.phases.size(), b.phases.size());
  for (std::size_t i = 0; i < a.phases.size(); ++i) {
    EXPECT_EQ(a.phases[i].kind, b.phases[i].kind) << i;
    EXPECT_EQ(a.phases[i].compute, b.phases[i].compute) << i;
    EXPECT_EQ(a.phases[i].bytes, b.phases[i].bytes) << i;
    EXPECT_EQ(a.phases[i].rate, b.phases[i].rate) << i;
    EXPECT_EQ(a.phases[i].overlap, b.phases[i].overlap) << i;
  }
}

TEST(ExperimentFile, to_toml__reads_back_as_the_same_job) {
  Random random(17);
  std::string text = "iterations = 1\n" + kLink;
  std::vector<workload::Job> jobs;
  for (int i = 0; i < 100; ++i) {
    workload::Job each;
    each.name = "job \"" + std::to_string(i) + "\" \\ é";
    each.flows = static_cast<std::uint32_t>(1 + random.below(1000));
    each.start = Nanos(static_cast<std::int64_t>(random.below(1'000'000'000)));
    each.jitter = Nanos(static_cast<std::int64_t>(random.below(1'000'000'000)));
    each.weight = random.chance(0.2) ? 3 : 0.001 + random.uniform() * 10;
    if (random.chance(0.5)) each.rate = Rate(1'000 + random.below(1'000'000'000'000));
    if (random.chance(0.5)) each.start_jitter = Nanos(static_cast<std::int64_t>(random.below(1'000'000'000)));
    if (random.chance(0.5)) each.straggler = {random.uniform() * 1e-6, 1 + random.uniform()};
    if (random.chance(0.5)) each.pause = {static_cast<std::uint32_t>(random.below(9)), Nanos(1'500)};
    if (random.chance(0.5)) each.change = {static_cast<std::uint32_t>(random.below(9)), 0.5 + random.uniform()};
    if (random.chance(0.5)) each.iterations = 1;
    if (random.chance(0.5)) each.priority = static_cast<std::uint32_t>(random.below(8));
    if (random.chance(0.5)) each.cc = "cubic";
    each.unaware = random.chance(0.5);
    each.phases.emplace_back().compute = Nanos(1);
    for (std::uint64_t p = random.below(20); p > 0; --p) {
      workload::Phase phase;
      phase.label = "layer\t#" + std::to_string(p) + "\n\xff";
      if (random.chance(0.5)) {
        phase.compute = Nanos(static_cast<std::int64_t>(1 + random.below(1'000'000'000'000)));
      } else {
        phase.kind = workload::Phase::Kind::communicate;
        phase.bytes = 1 + (random.next() >> (24 + random.below(39)));
        phase.overlap = random.chance(0.5);
        if (random.chance(0.3)) phase.rate = Rate(1'000 + random.below(1'000'000'000));
      }
      each.phases.push_back(phase);
    }
    workload::Phase last;
    last.kind = workload::Phase::Kind::communicate;
    last.bytes = 1;
    each.phases.push_back(last);
    text += workload::to_toml(each);
    jobs.push_back(each);
  }
  const Experiment experiment = parse_experiment(text, "e.toml");
  ASSERT_EQ(experiment.jobs.size(), jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) expect_same(experiment.jobs[i], jobs[i]);
}

TEST(ExperimentFile, to_toml__published_traces_read_back) {
  const char* variable = std::getenv("MLTCP_TRACES");
  const std::filesystem::path folder = variable != nullptr && *variable != '\0' ? variable : MLTCP_DEFAULT_TRACES;
  if (!std::filesystem::exists(folder / "simai"))
    GTEST_SKIP() << "there is no " << (folder / "simai").string()
                 << "; set MLTCP_TRACES to a folder with libra, simai, aicb";
  for (const char* file : {"libra/DLRM.txt", "libra/GPT_3.txt", "simai/microAllReduce.txt",
                           "simai/workload_analytical.txt", "aicb/L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt"}) {
    workload::MappingOptions options;
    options.network = workload::Network::all;
    options.compute_scale = 0.37;
    options.bytes_scale = 0.011;
    const workload::Job original = workload::to_job(workload::load_trace(folder / file), file, options);
    expect_same(parse_experiment(kLink + workload::to_toml(original), "e.toml").jobs.at(0), original);
  }
}

TEST(ExperimentFile, count__makes_jobs_that_differ_in_name_and_start) {
  const Experiment experiment =
      parse_experiment(job("count = 3\nstart = \"1 ms\"\nstart_step = \"2 ms\"\nstart_jitter = \"5 ms\"\nweight = 2") +
                           "[[job]]\nname = \"b\"\ncommunicate = \"1 B\"\n",
                       "e.toml");
  std::vector<std::string> names;
  std::vector<std::int64_t> starts;
  for (const workload::Job& one : experiment.jobs) {
    names.push_back(one.name);
    starts.push_back(one.start.count);
  }
  EXPECT_THAT(names, ElementsAre("a-1", "a-2", "a-3", "b"));
  EXPECT_THAT(starts, ElementsAre(1'000'000, 3'000'000, 5'000'000, 0));
  EXPECT_EQ(experiment.jobs[2].weight, 2);
  EXPECT_EQ(experiment.jobs[2].start_jitter, Nanos(5'000'000));
  EXPECT_EQ(experiment.jobs[3].start_jitter, Nanos(0));
  EXPECT_EQ(parse_experiment(job("count = 1"), "e.toml").jobs[0].name, "a");
}

TEST(ExperimentFile, count__refused) {
  EXPECT_THAT(refusal(job("count = 0")), error_at(6, "job[1].count", "0 is out of range"));
  EXPECT_THAT(refusal(job("count = 1001")), error_at(3, "job", "there are 1001 jobs"));
  EXPECT_THAT(refusal(job("count = 600") + "[[job]]\nname = \"b\"\ncommunicate = \"1 B\"\ncount = 401\n"),
              error_at(7, "job", "there are 1001 jobs"));
  EXPECT_THAT(refusal(job("start_step = \"1 ms\"")), error_at(6, "job[1].start_step", "the job has no count"));
  EXPECT_THAT(refusal(job("count = 3\nstart_step = \"13 h\"")), HasSubstr("unit"));
  EXPECT_THAT(refusal(job("count = 3\nstart_step = \"800 min\"")),
              error_at(7, "job[1].start_step", "starts after more"));
  EXPECT_THAT(refusal(job("count = 2") + "[[job]]\nname = \"a-2\"\ncommunicate = \"1 B\"\n"),
              error_at(8, "job[2].name", "\"a-2\" is the name of the job of line 4 too"));
  EXPECT_THAT(refusal(bare_job("count = 2\ncommunicate = \"1 B\"\nstart_jitter = 5")),
              error_at(7, "job[1].start_jitter", "has no unit"));
  FileOptions ring;
  ring.datapaths = {"sim", "ring"};
  ring.most_ring_jobs = 2;
  EXPECT_THAT(refusal("datapath = \"ring\"\n" + job("count = 3"), ring),
              error_at(4, "job", "there are 3 jobs and datapath ring has ports for 2"));
}

TEST(ExperimentFile, overrides__take_the_place_of_values_and_name_their_origin) {
  FileOptions options;
  options.overrides = {{"bottleneck.ecn.kmin", "\"5 kB\"", "here"}, {"job[*].flows", "3", "there"}};
  const Experiment experiment = parse_experiment(link("buffer = \"1 MB\""), "e.toml", options);
  EXPECT_TRUE(experiment.bottleneck.ecn.enabled);
  EXPECT_EQ(experiment.bottleneck.buffer_bytes, 1'000'000U);
  EXPECT_EQ(experiment.jobs[0].flows, 3U);
  options.overrides[1].value = "0";
  EXPECT_THAT(refusal(link(""), options), StartsWith("there: job[1].flows: 0 is out of range; "));
  options.overrides[1] = {"job[1].phases[2]", "{ communicate = \"0 B\" }", "there"};
  EXPECT_THAT(
      refusal(kLink + "[[job]]\nname = \"a\"\nphases = [{ compute = \"1 ms\" }, { communicate = \"1 B\" }]\n", options),
      StartsWith("there: job[1].phases[2].communicate: the phase sends nothing; "));
  // What is wrong in the file itself stays there.
  options.overrides[1] = {"cc", "\"reno\"", "there"};
  EXPECT_THAT(refusal(link("buffer = 3"), options), error_at(6, "bottleneck.buffer", "has no unit"));
}

TEST(ExperimentFile, host_model__is_off_read_whole_and_follows_the_seed) {
  EXPECT_FALSE(parse_experiment(top(""), "e.toml").machines.on());
  const Experiment experiment = parse_experiment(
      "seed = 7\n" + link("[host_model]\nlook = \"50 us\"\nlate = { least = \"20 us\", mean = \"70 us\" }\n"
                          "stalls = { every = \"200 ms\", mean = \"2 ms\" }\n"
                          "switch = { look = \"40 us\", late = { least = \"5 us\", mean = \"5 us\" } }"),
      "e.toml");
  const sim::LoopModel& host = experiment.machines.host;
  EXPECT_EQ(host.nap, Nanos(50'000));
  EXPECT_EQ(host.late_least, Nanos(20'000));
  EXPECT_EQ(host.late_mean, Nanos(70'000));
  EXPECT_EQ(host.stall_every, Nanos(200'000'000));
  EXPECT_EQ(host.stall_mean, Nanos(2'000'000));
  EXPECT_EQ(experiment.machines.network_switch.nap, Nanos(40'000));
  EXPECT_EQ(experiment.machines.network_switch.late_mean, Nanos(5'000));
  EXPECT_EQ(experiment.machines.network_switch.stall_every, Nanos());
  EXPECT_EQ(experiment.machines.seed, 7U);
}

TEST(ExperimentFile, host_model__names_what_is_wrong) {
  const auto model = [](const std::string& line) { return refusal(link("[host_model]\n" + line)); };  // line 7
  EXPECT_EQ(model("look = \"50 us\""), "no error");
  EXPECT_THAT(model(""), error_at(6, "host_model.look", "the key is missing"));
  EXPECT_THAT(model("look = \"0 us\""), error_at(7, "host_model.look", "0 is out of range"));
  EXPECT_THAT(model("look = \"2 s\""), error_at(7, "host_model.look", "too long"));
  EXPECT_THAT(model("look = 50"), error_at(7, "host_model.look", "has no unit"));
  EXPECT_THAT(model("nap = \"50 us\""), error_at(7, "host_model.nap", "unknown key"));
  const std::string look = "look = \"50 us\"\n";  // what follows is in line 8
  EXPECT_THAT(model(look + "late = { mean = \"70 us\" }"), error_at(8, "host_model.late.least", "the key is missing"));
  EXPECT_THAT(model(look + "late = { least = \"70 us\", mean = \"20 us\" }"),
              error_at(8, "host_model.late.mean", "a mean of 20 us below the least, 70 us"));
  EXPECT_THAT(model(look + "stalls = { every = \"0 s\", mean = \"2 ms\" }"),
              error_at(8, "host_model.stalls.every", "0 is out of range"));
  EXPECT_THAT(model("look = \"999 ns\"\n"), error_at(7, "host_model.look", "write 1 us or more"));
  EXPECT_THAT(model(look + "stalls = { every = \"1 s\" }"),
              error_at(8, "host_model.stalls.mean", "the key is missing"));
  EXPECT_THAT(model(look + "switch = { late = { least = \"1 us\", mean = \"1 us\" } }"),
              error_at(8, "host_model.switch.look", "the key is missing"));
  EXPECT_THAT(model(look + "switch = { look = \"50 us\", idle = \"sleep\" }"),
              error_at(8, "host_model.switch.idle", "unknown key"));
}

TEST(ExperimentFile, host_model__is_refused_where_it_would_do_nothing) {
  const std::string model = "[host_model]\nlook = \"50 us\"\n";
  FileOptions with_flow;
  with_flow.datapaths = {"sim", "flow"};
  EXPECT_THAT(refusal("datapath = \"flow\"\n" + model + kLink + kJob, with_flow),
              error_at(2, "host_model", "datapath flow has no packets"));
  EXPECT_THAT(refusal("policies = [\"fair\", \"priority\"]\n" + model + kLink + kJob),
              error_at(2, "host_model", "no priorities"));
  EXPECT_THAT(refusal(model + "[topology]\nkind = \"single-switch\"\nhosts = 4\nhost_rate = \"1 Gbps\"\n" + kJob),
              error_at(1, "host_model", "around a bottleneck only"));
}

TEST(ExperimentFile, virtual_time_only__refuses_the_ring) {
  FileOptions options;
  options.datapaths = {"sim", "ring"};
  options.virtual_time_only = true;
  EXPECT_THAT(refusal(top("datapath = \"ring\""), options), error_at(1, "datapath", "one experiment at a time"));
}

}  // namespace
}  // namespace mltcp::experiment
