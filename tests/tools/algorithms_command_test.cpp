// Tests how the command `mltcp` handles congestion controls: lists them, and accepts one from a shared object
// (examples/my_algorithm) wherever it accepts a name.

#include <filesystem>
#include <fstream>
#include <string>

#include "program_test.h"

namespace mltcp::tools {
namespace {

class AlgorithmsCommand : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    std::filesystem::create_directory(folder_ / "sub");
    std::filesystem::copy_file(MLTCP_ALGORITHM, folder_ / "sub/mine.so");
    put("e.toml", experiment(""));
  }
  static std::string experiment(const std::string& top) {
    return top + "\niterations = 2\npolicies = [\"fair\", \"mltcp\"]\n[bottleneck]\nrate = \"1 Gbps\"\n" +
           "[[job]]\nname = \"a\"\ncompute = \"1 ms\"\ncommunicate = \"1 MB\"\n";
  }
  std::string results(const std::string& arguments) const {
    const Outcome outcome = done("run " + arguments + " --json -");
    return outcome.out;
  }
};

TEST_F(AlgorithmsCommand, list__has_all_or_those_that_are_named) {
  const Outcome all = done("algorithms");
  for (const char* name : {"reno: ", "cubic: ", "dctcp: ", "dcqcn: ", "swift: ", "nscc: ", "  swift.base_target = "})
    EXPECT_THAT(all.out, HasSubstr(name));
  EXPECT_THAT(run("algorithms swift --json -").out,
              AllOf(HasSubstr("\"mltcp.algorithms/1\""), HasSubstr("\"endpoint_target\""), Not(HasSubstr("cubic"))));
  EXPECT_THAT(run("algorithms sub/mine.so:gaimd").out,
              HasAll("gaimd: needs nothing of the network, from /", "  gaimd.keep = 0.5\n"));
  EXPECT_THAT(refusal("algorithms swfit"), HasSubstr("did you mean \"swift\"?"));
  EXPECT_THAT(run("run --help").out, HasSubstr("nscc, or FILE.so:NAME"));
}

TEST_F(AlgorithmsCommand, shared_object__by_option_and_by_file) {
  const std::string by_option = results("e.toml --cc ./sub/mine.so:gaimd");
  EXPECT_THAT(by_option, AllOf(HasSubstr("\"cc\": \"gaimd\""), HasSubstr("sub/mine.so"), Not(HasSubstr("cc_param"))));
  // A path in a file is relative to that file.
  put("sub/f.toml", experiment("cc = \"./mine.so:gaimd\"\ngaimd = { increase = 3, keep = 0.9 }"));
  const std::string by_file = results("sub/f.toml");
  EXPECT_THAT(by_file, HasAll("\"cc\": \"gaimd\"", "\"gaimd.increase\": \"3\"", "\"gaimd.keep\": \"0.9\""));
  const std::string by_job = results("sub/f.toml --cc reno");
  EXPECT_THAT(by_job, AllOf(HasSubstr("\"cc\": \"reno\""), Not(HasSubstr("cc_param"))));
  put("j.toml", experiment("gaimd = { keep = 0.9 }") + "cc = \"sub/mine.so:gaimd\"\n");
  EXPECT_THAT(results("j.toml"), HasAll("\"cc\": \"reno\"", "\"cc\": \"gaimd\"", "\"gaimd.keep\": \"0.9\""));
}

TEST_F(AlgorithmsCommand, shared_object__that_is_none__is_refused) {
  EXPECT_EQ(refusal("run e.toml --cc ./nowhere.so:x"),
            "mltcp: --cc: there is no file \"./nowhere.so\"; build it, or correct the path\n");
  EXPECT_THAT(refusal("run e.toml --cc e.toml:x"), HasSubstr("--cc: \"e.toml\" can't be loaded ("));
  EXPECT_THAT(refusal("run e.toml --cc sub/mine.so:bbr"),
              HasSubstr("\"sub/mine.so\" has no congestion control \"bbr\"; it has: gaimd"));
  put("f.toml", experiment("cc = \"mine.so:gaimd\""));
  EXPECT_THAT(refusal("run f.toml"), StartsWith("mltcp: f.toml:1: cc: there is no file \"mine.so\""));
  put("g.toml", experiment("cc = \"sub/mine.so:gaimd\"\ngaimd = { keep = 1.5 }"));
  EXPECT_THAT(refusal("run g.toml"),
              HasSubstr("g.toml:2: gaimd.keep: gaimd keep of 1.5 is out of range; give a value above 0 and below 1"));
  EXPECT_THAT(refusal("gen --join unix:x --port ring:a --ip 10.0.0.1/24 --load sub/mine.so:bbr"),
              StartsWith("mltcp: --load: \"sub/mine.so\" has no congestion control"));
}

// The parameters of the shared object's algorithm apply to all points. The object's code is part of the identity of
// stored runs.
TEST_F(AlgorithmsCommand, sweep__varies_it_and_its_parameters) {
  put("h.toml", experiment("gaimd = { keep = 0.9 }"));
  put("sub/s.toml",
      "experiment = \"../h.toml\"\n[vary]\ncc = [\"reno\", \"./mine.so:gaimd\"]\n\"gaimd.increase\" = [1, 2]\n");
  const Outcome sweep = done("sweep sub/s.toml -o out --json - --threads 1");
  const auto runs = [&] { return std::distance(std::filesystem::directory_iterator(folder_ / "out/runs"), {}); };
  EXPECT_EQ(runs(), 4);
  done("sweep sub/s.toml -o out --json - --threads 1");
  EXPECT_EQ(runs(), 4) << "nothing is run again";
  std::ofstream(folder_ / "sub/mine.so", std::ios::app) << "another build";
  done("sweep sub/s.toml -o out --json - --threads 1");
  EXPECT_EQ(runs(), 6) << "those of the shared object";
  const Outcome vary = done("sweep e.toml --vary cc=sub/mine.so:gaimd -o again --json -");
  EXPECT_THAT(refusal("sweep e.toml --vary cc=mine.so:gaimd -o none"),
              HasSubstr("--vary: cc: there is no file \"mine.so\""));
}

}  // namespace
}  // namespace mltcp::tools
