// Tests experiment files: the values read, the defaults, and that every error names its line and key.
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "../../temporary_folder.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "../../message_of.h"
#include "../../workload/phases.h"
#include "experiment_texts.h"
#include "mltcp/cc/cubic.h"
#include "mltcp/cc/dcqcn.h"
#include "mltcp/cc/swift.h"
#include "mltcp/lab/workload/inspection.h"

namespace mltcp::experiment {
namespace {

using namespace testing_texts;

TEST(ExperimentFile, parse__keys_of_endless_parts_are_refused) {
  std::string path = "a";
  for (int i = 0; i < 1'000'000; ++i) path += ".a";
  const std::string cause = "a key has more than 16 parts";
  EXPECT_THAT(refusal("\n" + path + " = 1\n"), AllOf(StartsWith("e.toml:2: TOML: "), HasSubstr(cause)));
  EXPECT_THAT(refusal("[" + path + "]\n"), HasSubstr(cause));
  EXPECT_THAT(refusal("name = \"\"\"a\nb\"\"\"\" # '\nx = { " + path + " = 1 }\n"),
              AllOf(StartsWith("e.toml:3: "), HasSubstr(cause)));
  // Dots in texts and comments do not separate parts of a key.
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
  EXPECT_EQ(refusal(top("[turns]\nhold_rate = 0.25\ntest_rate = 0.25")), "no error");
  EXPECT_THAT(refusal(top("[turns]\nhold_rate = 0.3")),
              error_at(2, "turns.hold_rate", "give a value from 0.001 to 0.25"));
  EXPECT_THAT(refusal(top("[turns]\ntest_rate = 0.01")),
              error_at(2, "turns.test_rate",
                       "hold_rate of 0.02 is out of range; give a value of at most test_rate (test_rate is 0.01)"));
  EXPECT_THAT(refusal(top("[turns]\nhold_rat = 0.1")), error_at(2, "turns.hold_rat", "hold_rate"));
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
  EXPECT_THAT(phases_of(a.phases), ElementsAre("send 1000000 B"));
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
  EXPECT_THAT(phases_of(simple.phases), ElementsAre("compute 150 ms", "send 13500000 B"));
  EXPECT_THAT(phases_of(experiment.jobs[1].phases),
              ElementsAre("compute 20 ms", "send 5000000 B beside", "compute 60 ms", "send 9000000 B at 500 Mbps"));
  // In a model group of two, each worker sends a shard of 400 bytes once. Four workers send 1.5 times the gradients.
  // The key bytes_scale halves all bytes.
  EXPECT_THAT(phases_of(experiment.jobs[2].phases), ElementsAre("compute 2 ms", "send 200 B", "compute 14 ms",
                                                                "send 12000 B beside", "compute 4 ms", "send 6000 B"));
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
  // These jobs are compatible only while their iterations have about the same length.
  const Experiment traces = load_experiment(std::filesystem::path(MLTCP_EXAMPLES) / "three-jobs-traces.toml");
  for (const workload::Job& each : traces.jobs) {
    EXPECT_GE(workload::ideal_iteration(each, traces.bottleneck.rate).length, Nanos(290'000'000)) << each.name;
    EXPECT_LE(workload::ideal_iteration(each, traces.bottleneck.rate).length, Nanos(300'000'000)) << each.name;
  }
  EXPECT_EQ(two.iterations, 60U);
  EXPECT_EQ(two.bottleneck.buffer_bytes, 75'000U);
  EXPECT_EQ(two.jobs[1].start, Nanos(3'000'000));
}

TEST(ExperimentFile, parse__top_level_errors) {
  EXPECT_THAT(refusal(top("name = 5")), error_at(1, "name", "a text is expected, but this is a whole number"));
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

TEST(ExperimentFile, parse__balance_and_paths) {
  FileOptions options;
  options.datapaths = {"sim", "ring"};
  const Experiment usual = parse_experiment(top(""), "e.toml");
  EXPECT_EQ(usual.balance, "one");
  EXPECT_EQ(usual.paths, 0U);
  const Experiment spread = parse_experiment(top("balance = \"reps\"\npaths = 64"), "e.toml");
  EXPECT_EQ(spread.balance, "reps");
  EXPECT_EQ(spread.paths, 64U);
  EXPECT_NE(spread.fingerprint, usual.fingerprint);
  EXPECT_EQ(refusal(top("balance = \"rep\"")), "e.toml:1: balance: \"rep\" is not known; did you mean \"reps\"?");
  EXPECT_EQ(refusal(top("paths = 2")),
            "e.toml:1: paths: balance \"one\" uses one path; choose a balancer, such as \"reps\"");
  EXPECT_THAT(refusal(top("balance = \"spray\"\npaths = 257")), error_at(2, "paths", "257 is out of range"));
  EXPECT_THAT(refusal(top("balance = \"spray\"\npaths = 0")), error_at(2, "paths", "0 is out of range"));
  EXPECT_EQ(refusal(top("datapath = \"ring\"\nbalance = \"spray\""), options),
            "e.toml:2: balance: datapath \"ring\" has one path; leave the balancer out, or choose datapath \"sim\"");
  EXPECT_EQ(refusal(top("balance = \"spray\"\npolicies = [\"fair\", \"mltcp+schedule\"]")),
            "e.toml:1: balance: policy \"mltcp+schedule\" computes slots for connections of one path; leave out the "
            "balancer or the policy");
  options.paths = 8;
  EXPECT_EQ(refusal(top(""), options), "--paths: balance \"one\" uses one path; choose a balancer, such as \"reps\"");
  options.balance = "spray";
  EXPECT_EQ(parse_experiment(top("balance = \"one\""), "e.toml", options).balance, "spray");
}

TEST(ExperimentFile, parse__choices) {
  EXPECT_EQ(refusal(top("cc = \"renno\"")),
            "e.toml:1: cc: there is no congestion control \"renno\"; did you mean \"reno\"?");
  EXPECT_THAT(refusal(top("cc = \"bbr-version-three\"")),
              error_at(1, "cc", "write one of reno, cubic, dctcp, dcqcn, swift, nscc"));
  EXPECT_THAT(refusal(top("cc = 3")), error_at(1, "cc", "a text is expected"));
  EXPECT_EQ(refusal(top("datapath = \"ring\"")),
            "e.toml:1: datapath: \"ring\" is not available; this version has: sim");
  EXPECT_EQ(refusal(top("datapath = \"sims\"")), "e.toml:1: datapath: \"sims\" is not known; did you mean \"sim\"?");
  EXPECT_THAT(refusal(top("policies = \"fair\"")), error_at(1, "policies", "an array of texts is expected"));
  EXPECT_THAT(refusal(top("policies = []")), error_at(1, "policies", "the array is empty"));
  EXPECT_THAT(refusal(top("policies = [1]")), error_at(1, "policies", "a text is expected"));
  EXPECT_THAT(refusal(top("policies = [\"fair\",\n \"mltpc\"]")), error_at(2, "policies", "did you mean \"mltcp\"?"));
  EXPECT_THAT(refusal(top("policies = [\"fair\", \"fair\"]")), error_at(1, "policies", "appears twice"));
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
  EXPECT_EQ(refusal(top(""), options), "--policy: \"static\" appears twice; write it once");
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
  // If the line has a second error, or if the place of the quote is unknown, the parser's own message is reported.
  EXPECT_THAT(refusal(top("policies = [\"fair, \"mltcp\"]")), HasSubstr("e.toml:1: TOML: "));
  EXPECT_THAT(refusal(top("a b = 10 ms")), HasSubstr("e.toml:1: TOML: "));
  EXPECT_THAT(refusal(top("cc = " + std::string(300, 'x'))), HasSubstr("in quotes, such as \"150 ms\""));
  // Lines within a multi-line text are neither tables nor keys.
  for (const std::string quotes : {"\"\"\"", "'''"}) {
    const std::string text = "[mltcp]\nnote = " + quotes + "\n[[job]]\n[topology]\ncc = reno\n" + quotes;
    EXPECT_THAT(refusal(text + "\nrate = 5 Gbps\n"), HasSubstr("e.toml:7: mltcp.rate: " + none));
    EXPECT_THAT(refusal("name = " + quotes + "\n[job]\ncc = reno\n"), Not(HasSubstr(none)));
  }
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
  EXPECT_THAT(refusal(link("buffer = \"2 TB\"")), error_at(6, "bottleneck.buffer", "is too large"));
  EXPECT_THAT(refusal(link("ecn = true")), error_at(6, "bottleneck.ecn", "a table is expected"));
  EXPECT_THAT(refusal(link("ecn = { kmax = \"1 kB\" }")), error_at(6, "bottleneck.ecn.kmin", "the key is missing"));
  EXPECT_THAT(refusal(link("ecn = { kmin = \"2 kB\", kmax = \"1 kB\" }")),
              error_at(6, "bottleneck.ecn.kmax", "1 kB is less than kmin"));
  EXPECT_THAT(refusal(link("ecn = { kmin = \"2 kB\", pmax = 1.01 }")),
              error_at(6, "bottleneck.ecn.pmax", "not a probability"));
  EXPECT_THAT(refusal(link("ecn = { kmin = \"2 kB\", pmax = -0.1 }")),
              error_at(6, "bottleneck.ecn.pmax", "not a probability"));
  EXPECT_THAT(refusal(link("ecn = { kmin = \"2 kB\", pmax = nan }")), error_at(6, "bottleneck.ecn.pmax", "not finite"));
  EXPECT_EQ(refusal(link("ecn = { kmin = \"2 kB\", pmax = 1 }")), "no error");
  for (const std::string key : {"loss", "duplication", "corruption", "reordering"}) {
    EXPECT_THAT(refusal(link("faults = { " + key + " = 1.5 }")),
                error_at(6, "bottleneck.faults." + key, "not a probability"));
    EXPECT_THAT(refusal(link("faults = { " + key + " = -1 }")),
                error_at(6, "bottleneck.faults." + key, "not a probability"));
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

TEST(ExperimentFile, parse__syntax_errors) {
  EXPECT_THAT(refusal(""), error_at(1, "experiment", "the file is empty"));
  EXPECT_THAT(refusal("# nothing but this\n"), error_at(1, "experiment", "the file is empty"));
  EXPECT_THAT(refusal("name = \"a\"\n[bottleneck\n"), error_at(2, "TOML", "correct the line"));
  EXPECT_THAT(refusal("name = \"a\"\nname = \"b\"\n"), error_at(2, "TOML", ""));
  // The parser does not detect these errors by itself.
  EXPECT_THAT(refusal(kLink + "[=]\n" + kJob), error_at(3, "TOML", "a key or value is expected"));
  EXPECT_THAT(refusal(kLink + "\n[[/job]]"), error_at(4, "TOML", "a key or value is expected"));
  EXPECT_THAT(refusal("name = \"a\nb\"\n"), StartsWith("e.toml:1: name: the quote at the end is missing"));
  EXPECT_THAT(refusal("\nname = \"\xff\xfe\"\n"), error_at(2, "TOML", ""));
  EXPECT_THAT(refusal("\nx\xc2\xaa = 1\n"), error_at(2, "TOML", "expected '=', saw"));
  EXPECT_THAT(refusal("\nx\xe3\x81\x82 = 1\n"), error_at(2, "TOML", "expected '=', saw"));
  EXPECT_EQ(parse_experiment("name = \"\"\"a\\\n  \xc2\xaa\"\"\"\n" + kLink + kJob, "e.toml").name, "a\xc2\xaa");
  EXPECT_THAT(refusal(std::string("\0\1\2\3", 4)), StartsWith("e.toml:1: TOML: "));
  EXPECT_EQ(parse_experiment("\xEF\xBB\xBF" + kLink + kJob, "e.toml").jobs.size(), 1U);
}

TEST(ExperimentFile, load__refuses_what_is_no_file) {
  const auto message = [](const std::filesystem::path& path) { return refusal_of([&] { load_experiment(path); }); };
  const TemporaryFolder folder;
  EXPECT_THAT(message(folder / "no-such-experiment.toml"), EndsWith("no-such-experiment.toml: there is no such "
                                                                    "file; give the path of an experiment file"));
  EXPECT_THAT(message(folder), HasSubstr(": this is a directory; "));
  const auto locked = folder / "mltcp_locked.toml";
  std::ofstream(locked) << kLink << kJob;
  std::filesystem::permissions(locked, std::filesystem::perms::none);
  // As root, this file can be opened, because root may read any file.
  if (!std::ifstream(locked)) {
    EXPECT_THAT(message(locked), HasSubstr(": the file can't be opened (Permission denied); "));
  }
  EXPECT_THAT(message("/dev/zero"), HasSubstr(": this is a device or socket, not a file; "));
}

TEST(ExperimentFile, parse__name_of_the_file_is_one_line) {
  EXPECT_EQ(parse_experiment(kLink + kJob, "two\njobs\x1b.toml").name, "two?jobs?");
  EXPECT_THAT(refusal_of([&] { parse_experiment("[=]", "two\njobs.toml"); }), StartsWith("two?jobs.toml:1: TOML: "));
}

TEST(ExperimentFile, objection_to_name__as_for_names_of_the_file) {
  EXPECT_EQ(objection_to_name("vgg19 \"ü\""), "");
  EXPECT_EQ(objection_to_name(""), "the name is empty; write a name");
  EXPECT_THAT(objection_to_name(std::string(101, 'x')), HasSubstr("101 bytes"));
  for (const char* name : {"a\nb", "\xff", "\xC2\x9B"})
    EXPECT_THAT(objection_to_name(name), HasSubstr("control characters or is not UTF-8"));
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
  // Errors in the file are still reported with the name of the file.
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
  const fabric::LoopModel& host = experiment.machines.host;
  EXPECT_EQ(host.nap, Nanos(50'000));
  EXPECT_EQ(host.late_min, Nanos(20'000));
  EXPECT_EQ(host.late_mean, Nanos(70'000));
  EXPECT_EQ(host.stall_every, Nanos(200'000'000));
  EXPECT_EQ(host.stall_mean, Nanos(2'000'000));
  EXPECT_EQ(experiment.machines.network_switch.nap, Nanos(40'000));
  EXPECT_EQ(experiment.machines.network_switch.late_mean, Nanos(5'000));
  EXPECT_EQ(experiment.machines.network_switch.stall_every, Nanos());
  EXPECT_EQ(experiment.machines.seed, 7U);
}

TEST(ExperimentFile, host_model__names_what_is_wrong) {
  // `line` is line 7 of the file.
  const auto model = [](const std::string& line) { return refusal(link("[host_model]\n" + line)); };
  EXPECT_EQ(model("look = \"50 us\""), "no error");
  EXPECT_THAT(model(""), error_at(6, "host_model.look", "the key is missing"));
  EXPECT_THAT(model("look = \"0 us\""), error_at(7, "host_model.look", "0 is out of range"));
  EXPECT_THAT(model("look = \"2 s\""), error_at(7, "host_model.look", "too long"));
  EXPECT_THAT(model("look = 50"), error_at(7, "host_model.look", "has no unit"));
  EXPECT_THAT(model("nap = \"50 us\""), error_at(7, "host_model.nap", "unknown key"));
  const std::string look = "look = \"50 us\"\n";  // the following text is in line 8
  EXPECT_THAT(model(look + "late = { mean = \"70 us\" }"), error_at(8, "host_model.late.least", "the key is missing"));
  EXPECT_THAT(model(look + "late = { least = \"70 us\", mean = \"20 us\" }"),
              error_at(8, "host_model.late.mean", "the mean, 20 us, is below the least, 70 us"));
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
              error_at(1, "host_model", "only around a bottleneck"));
}

TEST(ExperimentFile, virtual_time_only__refuses_the_ring) {
  FileOptions options;
  options.datapaths = {"sim", "ring"};
  options.virtual_time_only = true;
  EXPECT_THAT(refusal(top("datapath = \"ring\""), options), error_at(1, "datapath", "one experiment at a time"));
}

}  // namespace
}  // namespace mltcp::experiment
