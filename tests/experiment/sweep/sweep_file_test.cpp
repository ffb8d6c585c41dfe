// Tests sweeps: the points that a file and a command line describe, and every error message with its line.
#include "mltcp/lab/experiment/sweep/sweep_file.h"
#include "../../temporary_folder.h"

#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "../../message_of.h"

namespace mltcp::experiment {
namespace {

namespace fs = std::filesystem;

const std::string kExperiment =
    "name = \"pair\"\niterations = 3\nseed = 7\n[bottleneck]\nrate = \"1 Gbps\"\nbuffer = \"75 kB\"\n"
    "[[job]]\nname = \"a\"\ncommunicate = \"1 MB\"\n[[job]]\nname = \"b\"\ncommunicate = \"2 MB\"\n";

class SweepFile : public ::testing::Test {
 protected:
  void SetUp() override {
    put("e.toml", kExperiment);
    fs::current_path(folder_, error_);
  }
  void TearDown() override { fs::current_path("/", error_); }

  void put(const std::string& name, const std::string& text) const { folder_.write(name, text); }
  Sweep load(const std::string& text, const SweepOptions& options = {}) const {
    put("s.toml", text);
    return load_sweep("s.toml", options);
  }
  std::string refusal(const std::string& text, const SweepOptions& options = {}) const {
    return refusal_of([&] { load(text, options); });
  }
  static Sweep vary(const std::vector<std::string>& options) {
    SweepOptions sweep;
    sweep.vary = options;
    return load_sweep("e.toml", sweep);
  }
  static std::string refused(const std::vector<std::string>& options) {
    return refusal_of([&] { vary(options); });
  }
  static std::vector<std::string> described(const Sweep& sweep) {
    std::vector<std::string> texts;
    for (const SweepPoint& point : sweep.points) texts.push_back(describe(sweep, point));
    return texts;
  }

  TemporaryFolder folder_;
  std::error_code error_;
};

TEST_F(SweepFile, vary__path_without_end_is_refused) {
  std::string path = "bottleneck";
  for (int i = 0; i < 200'000; ++i) path += ".a";
  EXPECT_THAT(refusal("experiment = \"e.toml\"\n[vary]\n\"" + path + "\" = [1]\n"),
              AllOf(StartsWith("s.toml:3: "), HasSubstr("the path has more than 16 parts")));
  EXPECT_THAT(refused({"mltcp={" + path + "=1}"}), HasSubstr("has more than 16 parts"));
}

TEST_F(SweepFile, vary__many_values_are_read_at_once) {
  std::string values;
  for (int i = 0; i < 300'000; ++i) values += std::to_string(i) + ",";
  // If the parser compared each value with all others, it would take hours.
  EXPECT_THAT(refusal("experiment = \"e.toml\"\nseeds = 10\n[vary]\niterations = [" + values + "]\n"),
              HasSubstr("points times seeds are more than 1000000 runs"));
}

TEST_F(SweepFile, load__cases_times_all_combinations_in_the_order_of_the_file) {
  const Sweep sweep = load(R"(
experiment = "e.toml"
seeds = 2
[vary]
iterations = [2, 3]
"bottleneck.buffer" = ["75 kB", "250 kB"]
[[case]]
name = "plain"
[[case]]
name = "late"
set = { "job[2].start" = "3 ms", "bottleneck.ecn" = { kmin = "30 kB" } }
)");
  EXPECT_THAT(sweep.factors, ElementsAre("case", "iterations", "bottleneck.buffer"));
  EXPECT_THAT(described(sweep), ElementsAre("case = plain, iterations = 2, bottleneck.buffer = 75 kB",
                                            "case = plain, iterations = 2, bottleneck.buffer = 250 kB",
                                            "case = plain, iterations = 3, bottleneck.buffer = 75 kB",
                                            "case = plain, iterations = 3, bottleneck.buffer = 250 kB",
                                            "case = late, iterations = 2, bottleneck.buffer = 75 kB",
                                            "case = late, iterations = 2, bottleneck.buffer = 250 kB",
                                            "case = late, iterations = 3, bottleneck.buffer = 75 kB",
                                            "case = late, iterations = 3, bottleneck.buffer = 250 kB"));
  EXPECT_THAT(sweep.seeds, ElementsAre(7U, 8U));
  EXPECT_EQ(sweep.name, "s");

  const Experiment last = experiment_of(sweep, sweep.points[7], 8);
  EXPECT_EQ(last.iterations, 3U);
  EXPECT_EQ(last.bottleneck.buffer_bytes, 250'000U);
  EXPECT_EQ(last.bottleneck.ecn.kmin_bytes, 30'000U);
  EXPECT_EQ(last.jobs[0].start, Nanos(0));
  EXPECT_EQ(last.jobs[1].start, Nanos(3'000'000));
  EXPECT_EQ(last.seed, 8U);
  EXPECT_EQ(experiment_of(sweep, sweep.points[0], 7).bottleneck.ecn.enabled, false);
}

TEST_F(SweepFile, load__seeds_and_policies) {
  EXPECT_THAT(load("experiment = \"e.toml\"\nseeds = [5, 1]\n").seeds, ElementsAre(5U, 1U));
  EXPECT_THAT(load("experiment = \"e.toml\"\n").seeds, ElementsAre(7U));
  const std::string text = "experiment = \"e.toml\"\nseeds = [5]\npolicies = [\"static\"]\n";
  const Sweep sweep = load(text);
  EXPECT_THAT(experiment_of(sweep, sweep.points[0], 1).policies, ElementsAre("static"));
  SweepOptions options;
  options.policies = {"mltcp"};
  options.seeds = 3;
  const Sweep other = load(text, options);
  EXPECT_THAT(other.seeds, ElementsAre(7U, 8U, 9U));
  EXPECT_THAT(experiment_of(other, other.points[0], 1).policies, ElementsAre("mltcp"));
}

TEST_F(SweepFile, vary__values_are_what_toml_reads_or_texts) {
  const Sweep sweep = vary({"bottleneck.ecn={ kmin = \"30 kB\", kmax = \"60 kB\" },{kmin=\"5 kB\"}",
                            "job[*].jitter=1 ms", "name=\"a,b\",c"});
  ASSERT_EQ(sweep.points.size(), 4U);
  EXPECT_EQ(describe(sweep, sweep.points[0]),
            "bottleneck.ecn = { kmax = \"60 kB\", kmin = \"30 kB\" }, job[*].jitter = 1 ms, name = a,b");
  const Experiment last = experiment_of(sweep, sweep.points[3], 1);
  EXPECT_EQ(last.name, "c");
  EXPECT_EQ(last.bottleneck.ecn.kmax_bytes, 5'000U);
  for (const workload::Job& job : last.jobs) EXPECT_EQ(job.jitter, Nanos(1'000'000));
}

TEST_F(SweepFile, vary__replaces_the_values_of_the_file) {
  SweepOptions options;
  options.vary = {"iterations=5"};
  const Sweep sweep = load("experiment = \"e.toml\"\n[vary]\niterations = [1, 2]\n", options);
  EXPECT_THAT(described(sweep), ElementsAre("iterations = 5"));
}

TEST_F(SweepFile, fingerprint__of_all_that_decides_a_run_and_nothing_else) {
  const auto of = [&](const std::string& text, const std::string& setting = "") {
    put("f.toml", text);
    SweepOptions options;
    if (!setting.empty()) options.vary = {setting};
    return load_sweep("f.toml", options).points[0].fingerprint;
  };
  const std::string base = of(kExperiment);
  EXPECT_EQ(base, of("# a word\n" + kExperiment));
  EXPECT_EQ(base, of(kExperiment, "name=other"));
  EXPECT_EQ(base, of(kExperiment, "cc=reno")) << "the default written out";
  EXPECT_EQ(base, of("policies = [\"fair\", \"mltcp\"]\n" + kExperiment));
  std::set<std::string> all{base};
  for (const char* setting : {"iterations=4", "bottleneck.buffer=76 kB", "mltcp.slope=2", "job[2].start=1 ns",
                              "job[1].start=1 ns", "job[1].name=c", "bottleneck.faults={ loss = 0.1 }"})
    EXPECT_TRUE(all.insert(of(kExperiment, setting)).second) << setting;
  EXPECT_TRUE(all.insert(of("policies = [\"mltcp\", \"fair\"]\n" + kExperiment)).second);
  // The identity of an experiment includes the content of its trace file.
  const std::string traced = "[bottleneck]\nrate = \"1 Gbps\"\n[[job]]\nname = \"a\"\ntrace = \"t.txt\"\n";
  put("t.txt", "DATA\n1\na -1 100 NONE 0 0 NONE 0 500 ALLREDUCE 13500 0\n");
  const std::string before = of(traced);
  EXPECT_EQ(before, of(traced));
  put("t.txt", "DATA\n1\na -1 100 NONE 0 0 NONE 0 500 ALLREDUCE 13501 0\n");
  EXPECT_NE(before, of(traced));
}

TEST_F(SweepFile, load__refusals_name_the_line_of_the_sweep) {
  const std::string head = "experiment = \"e.toml\"\n";
  const auto vary_line = [&](const std::string& line) { return refusal(head + "[vary]\n" + line + "\n"); };
  EXPECT_THAT(vary_line("\"bottleneck.bufer\" = [\"1 MB\"]"),
              AllOf(StartsWith("s.toml:3: bottleneck.bufer: unknown key; "), HasSubstr("\"buffer\"")));
  EXPECT_THAT(vary_line("\"bottleneck.buffer\" = [\"75 kB\", 3]"),
              StartsWith("s.toml:3: bottleneck.buffer: the number 3 has no unit; "));
  EXPECT_THAT(vary_line("\"bottleneck.ecn\" = [{ kmin = \"5 kB\", kmaxx = \"6 kB\" }]"),
              StartsWith("s.toml:3: bottleneck.ecn.kmaxx: unknown key; "));
  EXPECT_THAT(vary_line("bottleneck = [{ rate = \"1 Gbps\", ecn = { kmim = \"5 kB\" } }]"),
              StartsWith("s.toml:3: bottleneck.ecn.kmim: unknown key; "));
  EXPECT_THAT(vary_line("\"job[3].start\" = [\"1 ms\"]"),
              StartsWith("s.toml:3: job[3].start: \"job\" has 2 elements; "));
  EXPECT_THAT(vary_line("\"job[x].start\" = [\"1 ms\"]"), HasSubstr("is not a path of keys; "));
  EXPECT_THAT(vary_line("\"tracker.x\" = [1]"), StartsWith("s.toml:3: tracker: unknown key; "));
  EXPECT_THAT(vary_line("\"iterations.x\" = [1]"),
              StartsWith("s.toml:3: iterations.x: iterations is a whole number, which has no keys; "));
  EXPECT_THAT(vary_line("bottleneck.buffer = [\"1 MB\"]"),
              StartsWith("s.toml:3: vary.bottleneck: a key with dots has no quotes; "));
  EXPECT_THAT(vary_line("cc = \"reno\""), StartsWith("s.toml:3: vary.cc: an array is expected, but this is a text; "));
  EXPECT_THAT(vary_line("cc = []"), StartsWith("s.toml:3: vary.cc: the array is empty; "));
  EXPECT_THAT(vary_line("iterations = [2, 2]"), StartsWith("s.toml:3: iterations: \"2\" appears twice; "));
  EXPECT_THAT(vary_line("seed = [2]"), StartsWith("s.toml:3: vary: seed: it is the same at every point"));
  EXPECT_THAT(vary_line("\"job[2].name\" = [\"a\"]"), HasSubstr("is the name of the job of line 8 too; "));
  EXPECT_THAT(vary_line("datapath = [\"sim\", \"ring\"]"), StartsWith("s.toml:3: datapath: \"ring\" is not available"));

  EXPECT_THAT(refusal("experiment = \"none.toml\"\n"),
              StartsWith("s.toml:1: experiment: none.toml: there is no such file; "));
  EXPECT_THAT(refusal("[vary]\ncc = [\"reno\"]\n"), StartsWith("s.toml:1: experiment: the key is missing; "));
  EXPECT_THAT(refusal(head + "sedes = 3\n"),
              StartsWith("s.toml:2: sedes: unknown key of a sweep; did you mean \"seeds\"?"));
  EXPECT_THAT(refusal(head + "seeds = 0\n"), StartsWith("s.toml:2: seeds: 0 is out of range; "));
  EXPECT_THAT(refusal(head + "seeds = [1, 1]\n"), StartsWith("s.toml:2: seeds: 1 appears twice; "));
  EXPECT_THAT(refusal(head + "policies = [\"fare\"]\n"),
              StartsWith("s.toml:2: policies: \"fare\" is not known; did you mean \"fair\"?"));
  EXPECT_THAT(refusal(head + "[[case]]\nname = \"x\"\nset = { mltcp.slope = 2 }\n"),
              StartsWith("s.toml:4: case[1].set.mltcp: a key with dots has no quotes; "));
  EXPECT_THAT(refusal(head + "[[case]]\nname = \"x\"\n[[case]]\nname = \"x\"\n"), HasSubstr("another case too; "));
  EXPECT_THAT(refusal(head + "[[case]]\n"), StartsWith("s.toml:2: case[1].name: the name is empty; "));
  EXPECT_THAT(refusal(head + "[[case]]\nname = \"x\"\nset = { cc = \"reno\" }\n[vary]\ncc = [\"reno\"]\n"),
              HasSubstr("case \"x\" sets it too; "));
  EXPECT_THAT(refusal(head + "[=]\n"), StartsWith("s.toml:2: TOML: "));
}

TEST_F(SweepFile, load__all_points_are_checked) {
  // Only the last combination is invalid: its ECN kmin is larger than its kmax.
  const std::string text =
      "experiment = \"e.toml\"\n[vary]\n\"bottleneck.ecn.kmin\" = [\"5 kB\", \"50 kB\"]\n"
      "\"bottleneck.ecn.kmax\" = [\"60 kB\", \"40 kB\"]\n";
  EXPECT_THAT(refusal(text), StartsWith("s.toml:4: bottleneck.ecn.kmax: 40 kB is less than kmin; "));
}

TEST_F(SweepFile, load__more_runs_than_anybody_waits_for_are_refused) {
  std::string list("0");
  for (int i = 1; i < 400; ++i) list.append(", ").append(std::to_string(i));
  std::string text = "experiment = \"e.toml\"\nseeds = 100\n[vary]\n";
  for (int key = 0; key < 40; ++key)
    text.append("k").append(std::to_string(key)).append(" = [").append(list).append("]\n");
  EXPECT_THAT(refusal(text), HasSubstr("points times seeds are more than 1000000 runs; "));
}

TEST_F(SweepFile, vary__refusals_name_the_option) {
  EXPECT_THAT(refused({"cc"}), StartsWith("--vary \"cc\": it is not KEY=VALUE,VALUE; "));
  EXPECT_THAT(refused({"cc=reno,"}), HasSubstr("a value is empty; "));
  EXPECT_THAT(refused({"bottleneck.ecn={kmin=30"}),
              StartsWith("--vary bottleneck.ecn: \"{kmin=30\" is not a TOML value; "));
  EXPECT_THAT(refused({"bottleneck.buffer=30"}), StartsWith("--vary: bottleneck.buffer: the number 30 has no unit; "));
  EXPECT_THAT(refused({"cc=reno", "cc=cubic"}), StartsWith("--vary \"cc\": it is given twice; "));
  EXPECT_THAT(refused({"job=1"}), StartsWith("--vary: job: an array of tables is expected"));
}

}  // namespace
}  // namespace mltcp::experiment
