// Tests `mltcp report` as users see it: pages, pictures and comparisons, and one line of error message for each
// mistake.

#include <filesystem>
#include <fstream>
#include <string>

#include "program_test.h"

namespace mltcp::tools {
namespace {

namespace fs = std::filesystem;

class ReportCommand : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    std::ofstream(folder_ / "e.toml")
        << "name = \"pair\"\niterations = 8\npolicies = [\"fair\", \"mltcp\"]\n[bottleneck]\nrate = \"1 Gbps\"\n"
           "[[job]]\nname = \"a\"\ncompute = \"60 ms\"\ncommunicate = \"5 MB\"\n"
           "[[job]]\nname = \"b\"\ncompute = \"60 ms\"\ncommunicate = \"5 MB\"\n";
    done("run e.toml --json r.json");
  }

  [[nodiscard]] std::string file(const std::string& name) const { return content(folder_ / name); }
};

TEST_F(ReportCommand, svg__is_written_without_a_page) {
  const Outcome drawn = done("report r.json --svg p.svg");
  EXPECT_EQ(drawn.out, "p.svg\n");
  EXPECT_THAT(file("p.svg"),
              AllOf(StartsWith("<svg "), EndsWith("</svg>\n"), HasSubstr("pair: use of the link over time")));
  EXPECT_FALSE(fs::exists(folder_ / "r.html"));
  EXPECT_EQ(run("report r.json --svg -").out, file("p.svg"));
  EXPECT_THAT(run("report r.json --svg - --chart iterations").out, HasSubstr("how much slower than alone"));
  const std::string one = run("report r.json --svg - --policy mltcp").out;
  EXPECT_THAT(one, AllOf(HasSubstr(">mltcp: "), Not(HasSubstr(">fair: "))));
  const std::string both = run("report r.json --svg - --policy mltcp,fair").out;
  EXPECT_LT(both.find(">mltcp: "), both.find(">fair: "));
}

TEST_F(ReportCommand, svg__mistakes_are_named_with_their_cures) {
  EXPECT_EQ(refusal("report r.json --chart usage"), "mltcp: --chart: needs a picture; add --svg FILE\n");
  EXPECT_EQ(refusal("report r.json --policy fair"), "mltcp: --policy: needs a picture; add --svg FILE\n");
  EXPECT_EQ(refusal("report r.json --svg x.svg --chart pie"),
            "mltcp: --chart: \"pie\" is not known; give one of usage, iterations\n");
  EXPECT_EQ(refusal("report r.json --svg x.svg --chart usag"),
            "mltcp: --chart: \"usag\" is not known; did you mean \"usage\"?\n");
  EXPECT_THAT(refusal("report r.json --svg x.svg --policy swift"), HasSubstr("choose one of \"fair\", \"mltcp\""));
  EXPECT_THAT(refusal("report r.json --svg ''"), HasSubstr("--svg: the name is empty; "));
  EXPECT_THAT(refusal("report r.json --svg x.svg -o x.html"), HasSubstr("leave one of them out"));
  EXPECT_THAT(refusal("report r.json r.json --svg x.svg"),
              HasSubstr("a picture shows one file of results; give one file"));
  EXPECT_THAT(refusal("report r.json --svg r.json"), HasSubstr("is also the input file"));
  EXPECT_FALSE(fs::exists(folder_ / "x.svg"));
}

TEST_F(ReportCommand, unwritable_exports__are_refused) {
  EXPECT_THAT(refusal("report r.json --svg no/such/p.svg"), HasSubstr("the folder"));
  EXPECT_THAT(refusal("report r.json -o no/such/p.html"), HasSubstr("the folder"));
}

TEST_F(ReportCommand, two_files__are_compared) {
  done("run e.toml --cc cubic --json s.json");
  const Outcome compared = done("report r.json s.json");
  EXPECT_EQ(compared.out, "r-s.html\n");
  EXPECT_THAT(file("r-s.html"), HasAll("pair: two results", "<b>differs</b>"));
  EXPECT_THAT(run("report r.json s.json -o -").out, HasSubstr("</html>"));
  EXPECT_THAT(refusal("report r.json s.json -o s.json"), HasSubstr("is also the input file"));
  EXPECT_THAT(refusal("report r.json s.json r.json"), HasSubstr("see mltcp report --help"));
}

TEST_F(ReportCommand, two_files__that_are_one_are_refused_and_copies_told) {
  EXPECT_EQ(refusal("report r.json ./r.json"),
            "mltcp: ./r.json: given twice; give the results of another run as the second file, or this file once to "
            "write its page\n");
  fs::create_hard_link(folder_ / "r.json", folder_ / "link.json");
  EXPECT_THAT(refusal("report r.json link.json"), HasSubstr("given twice"));
  fs::copy_file(folder_ / "r.json", folder_ / "copy.json");
  EXPECT_THAT(run("report r.json copy.json -o -").out, HasSubstr("A and B are the same result"));
  done("run e.toml --json again.json");
  EXPECT_THAT(run("report r.json again.json -o -").out, HasSubstr("A and B measured the same, to the nanosecond"));
  EXPECT_THAT(refusal("report r.json missing.json"), HasSubstr("missing.json"));
}

TEST_F(ReportCommand, two_files__that_have_nothing_in_common_are_refused) {
  std::ofstream(folder_ / "other.toml") << "iterations = 2\n[bottleneck]\nrate = \"1 Gbps\"\n"
                                           "[[job]]\nname = \"c\"\ncompute = \"1 ms\"\ncommunicate = \"100 kB\"\n";
  done("run other.toml --json o.json");
  EXPECT_THAT(refusal("report r.json o.json"), HasSubstr("r.json and o.json have no job in common"));
  done("run e.toml --policy static --json t.json");
  EXPECT_THAT(refusal("report r.json t.json"), HasSubstr("have no policy in common"));
  done("schedule e.toml --json plan.json");
  EXPECT_THAT(
      refusal("report r.json plan.json"),
      HasSubstr("plan.json: this is \"mltcp.schedule/1\", but only \"mltcp.results/1\" can be compared; give two"));
  EXPECT_FALSE(fs::exists(folder_ / "r-o.html"));
}

TEST_F(ReportCommand, what_other_commands_wrote__has_pages) {
  done("schedule e.toml --json plan.json --report direct.html");
  EXPECT_EQ(run("report plan.json").out, "plan.html\n");
  EXPECT_EQ(file("plan.html"), file("direct.html"));
  done("sweep e.toml --seeds 2 -o runs --json sweep.json");
  EXPECT_EQ(run("report sweep.json").out, "sweep.html\n");
  EXPECT_THAT(file("sweep.html"), HasSubstr("MLTCP sweep"));
  done("cluster " MLTCP_EXAMPLES "/cluster-24.toml --level flow --json cluster.json");
  EXPECT_EQ(run("report cluster.json").out, "cluster.html\n");
  EXPECT_THAT(file("cluster.html"), HasSubstr("MLTCP cluster"));
  EXPECT_THAT(refusal("report sweep.json --svg x.svg"), HasSubstr("--svg cannot draw it; give a file that mltcp run"));
}

TEST_F(ReportCommand, other_schemas__are_refused) {
  std::ofstream(folder_ / "new.json") << R"({"schema": "mltcp.results/9", "runs": []})";
  EXPECT_THAT(refusal("report new.json"), HasSubstr("use the mltcp that wrote the file, or write the file again"));
  std::ofstream(folder_ / "foreign.json") << R"({"schema": "iperf/3"})";
  EXPECT_THAT(refusal("report foreign.json"),
              HasSubstr("schema is \"iperf/3\", for which there is no report; give a --json file"));
  EXPECT_FALSE(fs::exists(folder_ / "new.html"));
}

}  // namespace
}  // namespace mltcp::tools
