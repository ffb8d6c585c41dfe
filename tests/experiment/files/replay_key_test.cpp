// Tests jobs of experiment files that replay traces.

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "../../message_of.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/workload/phase_program.h"

namespace mltcp::experiment {
namespace {

constexpr const char* kFiles =
    "[\"" MLTCP_EXAMPLES "/traces/data-parallel.0.json\", \"" MLTCP_EXAMPLES "/traces/data-parallel.1.json\"]";
const std::string kSwitch = "[topology]\nkind = \"single-switch\"\nhosts = 4\nhost_rate = \"10 Gbps\"\n";
const std::string kJob = "[[job]]\nname = \"a\"\nhosts = [1, 3]\n";

std::string refusal(const std::string& text, const std::string& datapath = "sim") {
  FileOptions options;
  options.datapaths = {"sim", "flow"};
  options.datapath = datapath;
  return refusal_of([&] { parse_experiment(text, "e.toml", options); });
}

TEST(ReplayKey, files__become_programs_of_ranks) {
  const Experiment experiment = parse_experiment(kSwitch + kJob + "replay = " + kFiles + "\n", "e.toml", {});
  const workload::Job& job = experiment.jobs[0];
  ASSERT_TRUE(job.programs);
  EXPECT_EQ(workload::ranks_of(job), 2U);
  EXPECT_EQ(job.bytes_per_iteration(), 26'000'000U);
  EXPECT_EQ(job.compute_per_iteration(), Nanos(39'000'000));
  EXPECT_EQ(refusal(kSwitch + kJob + "replay = " + kFiles + "\n", "flow"), "no error");
}

TEST(ReplayKey, table__has_options) {
  const Experiment experiment =
      parse_experiment(kSwitch + kJob + "replay = { files = " + kFiles +
                           ", steps = \"typical\", ranks = \"0-1\", algorithm = \"tree\", compute_scale = 0.5, "
                           "bytes_scale = 2, islands = 1, delays = false }\n",
                       "e.toml", {});
  EXPECT_EQ(experiment.jobs[0].bytes_per_iteration(), 52'000'000U);
  EXPECT_EQ(experiment.jobs[0].compute_per_iteration(), Nanos(19'500'000));
}

TEST(ReplayKey, fingerprint__is_of_dependencies_too) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "replay_key_test";
  std::filesystem::create_directories(folder);
  const auto fingerprint = [&](const std::string& dependencies) {
    for (const char* rank : {"0", "1"}) {
      std::ifstream from(std::string(MLTCP_EXAMPLES "/traces/data-parallel.") + rank + ".json");
      std::stringstream text;
      text << from.rdbuf();
      std::string changed = text.str();
      const std::string last = R"("dataDeps": ["3", "5", "7"])";
      EXPECT_NE(changed.find(last), std::string::npos);
      changed.replace(changed.find(last), last.size(), dependencies);
      std::ofstream(folder / (std::string("trace.") + rank + ".json")) << changed;
    }
    const std::string files =
        "[\"" + (folder / "trace.0.json").string() + "\", \"" + (folder / "trace.1.json").string() + "\"]";
    // Delays are off, because they would also change the fingerprint.
    return parse_experiment(kSwitch + kJob + "replay = { files = " + files + ", delays = false }\n", "e.toml", {})
        .fingerprint;
  };
  const std::string all = fingerprint(R"("dataDeps": ["3", "5", "7"])");
  EXPECT_EQ(fingerprint(R"("dataDeps": ["3", "5", "7"])"), all);
  EXPECT_NE(fingerprint(R"("dataDeps": ["3", "5"])"), all);
  std::filesystem::remove_all(folder);
}

TEST(ReplayKey, bottleneck__has_a_rank_at_each_side) {
  const std::string text =
      "[bottleneck]\nrate = \"10 Gbps\"\n[[job]]\nname = \"a\"\nreplay = " + std::string(kFiles) + "\n";
  EXPECT_EQ(refusal(text), "no error");
  EXPECT_THAT(refusal(text, "flow"),
              HasSubstr("e.toml:5: job[1].replay: datapath flow can replay traces only on a topology"));
}

TEST(ReplayKey, what_does_not_go_together__is_refused_by_line_and_key) {
  const auto replay = [](const std::string& value) { return kSwitch + kJob + "replay = " + value + "\n"; };
  const std::string files = kFiles;
  EXPECT_THAT(refusal(replay(files) + "compute = \"1 ms\"\n"),
              HasSubstr("e.toml:9: job[1].compute: the job has a replayed"));
  EXPECT_THAT(refusal(replay(files) + "bytes_scale = 2\n"), HasSubstr("job[1].bytes_scale: the key belongs to trace"));
  EXPECT_THAT(refusal(replay("[]")), HasSubstr("e.toml:8: job[1].replay: there is no file"));
  EXPECT_THAT(refusal(replay("\"none.et\"")), HasSubstr("e.toml:8: job[1].replay: "));
  EXPECT_THAT(refusal(replay("{ steps = \"all\" }")), HasSubstr("job[1].replay.files"));
  EXPECT_THAT(refusal(replay("{ files = " + files + ", steps = \"some\" }")),
              HasSubstr("job[1].replay.steps: \"some\" are not steps"));
  EXPECT_THAT(refusal(replay("{ files = " + files + ", algorithm = \"star\" }")), HasSubstr("job[1].replay.algorithm"));
  EXPECT_THAT(refusal(replay("{ files = " + files + ", step = \"all\" }")), HasSubstr("job[1].replay.step"));
  EXPECT_THAT(refusal(kSwitch + "[[job]]\nname = \"a\"\nhosts = [0, 1, 2]\nreplay = " + files + "\n"),
              HasSubstr("2 ranks are replayed, but the job has 3 hosts"));
}

}  // namespace
}  // namespace mltcp::experiment
