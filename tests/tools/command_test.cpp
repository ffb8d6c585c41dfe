// The command `mltcp` as its user meets it: exit status, what is printed where, one line for each mistake.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class Command : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/mltcp_command_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    put("e.toml",
        "iterations = 2\npolicies = [\"fair\"]\n[bottleneck]\nrate = \"1 Gbps\"\n"
        "[[job]]\nname = \"a\"\ncompute = \"1 ms\"\ncommunicate = \"100 kB\"\n");
    put("t.txt", "DATA\n1\na -1 100 NONE 0 0 NONE 0 500 ALLREDUCE 13500 0\n");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void put(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

  // In the folder, by way of a shell, with `arguments` as they would be typed.
  [[nodiscard]] Outcome run(const std::string& arguments) const {
    const std::string line = "cd '" + folder_.string() + "' && { " MLTCP_PROGRAM " " + arguments + "; } 2>.err";
    std::string quoted = line;
    for (std::size_t at = quoted.find('\''); at != std::string::npos; at = quoted.find('\'', at + 4))
      quoted.replace(at, 1, "'\\''");
    const int status =
        std::system(("bash -c '" + quoted + "' > '" + (folder_ / ".out").string() + "'").c_str());  // NOLINT(cert-*)
    Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(folder_ / ".out"), content(folder_ / ".err")};
    fs::remove(folder_ / ".out");
    fs::remove(folder_ / ".err");
    return outcome;
  }

  // Bad input, and what is said about it in one line.
  [[nodiscard]] std::string refusal(const std::string& arguments) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(StartsWith("mltcp: "), EndsWith("\n")));
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    return outcome.err;
  }

  fs::path folder_;
};

TEST_F(Command, none_or_unknown__named_with_the_list) {
  EXPECT_EQ(refusal(""),
            "mltcp: no command is given; the commands are run, sweep, inspect, report, doctor; see mltcp --help\n");
  EXPECT_EQ(refusal("bogus e.toml"),
            "mltcp: \"bogus\" is not a command; the commands are run, sweep, inspect, report, doctor; see mltcp --help\n");
  EXPECT_THAT(refusal("run"), HasSubstr("EXPERIMENT.toml is required; see mltcp run --help"));
}

TEST_F(Command, run__writes_results_that_report_reads) {
  const Outcome ran = run("run e.toml --json o.results.json");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("e: 1 job, 2 iterations"));
  EXPECT_EQ(ran.err, "");
  const Outcome reported = run("report o.results.json");
  EXPECT_EQ(reported.status, 0) << reported.err;
  EXPECT_EQ(reported.out, "o.results.html\n");
  EXPECT_THAT(content(folder_ / "o.results.html"), HasSubstr("</html>"));
}

TEST_F(Command, run__results_on_standard_output_are_alone_there) {
  const Outcome ran = run("run e.toml --json -");
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.out, StartsWith("{\n  \"schema\""));
  EXPECT_THAT(ran.err, HasSubstr("e: 1 job"));
  EXPECT_EQ(run("run e.toml --json >(cat >piped) && wait $!").status, 0);
  EXPECT_EQ(content(folder_ / "piped"), ran.out);
  EXPECT_THAT(run("run e.toml --json /dev/stdout").out, EndsWith(ran.out));
}

TEST_F(Command, run__reads_an_experiment_from_a_pipe) {
  EXPECT_THAT(run("run <(cat e.toml)").out, HasSubstr("1 job, 2 iterations"));
}

TEST_F(Command, report__page_has_the_name_of_the_results) {
  fs::create_directory(folder_ / "all.json.d");
  const Outcome ran = run("run e.toml --json all.json.d/results");
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(run("report all.json.d/results").out, "all.json.d/results.html\n");
  EXPECT_THAT(refusal("report all.json.d/results -o all.json.d/results"), HasSubstr("is the file that is read"));
  EXPECT_THAT(refusal("report all.json.d/results -o ''"), HasSubstr("the name is empty"));
  EXPECT_THAT(run("report all.json.d/results -o -").out, HasSubstr("</html>"));
}

TEST_F(Command, output_that_is_lost__is_a_failure) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
  for (const char* arguments : {"run e.toml > /dev/full", "run e.toml --json - > /dev/full",
                                "inspect t.txt > /dev/full", "doctor > /dev/full", "--help > /dev/full"}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 1) << arguments;
    EXPECT_THAT(outcome.err, EndsWith("mltcp: standard output can't be written: No space left on device\n"))
        << arguments;
  }
}

TEST_F(Command, run__refuses_options) {
  EXPECT_THAT(refusal("run e.toml --json ''"), StartsWith("mltcp: --json: the name is empty; "));
  EXPECT_THAT(refusal("run e.toml --json e.toml"), HasSubstr("is the file that is read"));
  EXPECT_THAT(refusal("run e.toml --cores 99"), StartsWith("mltcp: --cores is for datapath ring"));
  for (const char* seed : {"99999999999999999999", "9223372036854775808", "-1", "1.5", "0x10", "''"})
    EXPECT_THAT(refusal(std::string("run e.toml --seed ") + seed),
                HasSubstr("is not a whole number from 0 to 2^63 - 1; see mltcp run --help"))
        << seed;
  EXPECT_EQ(run("run e.toml --seed 9223372036854775807").status, 0);
  EXPECT_THAT(refusal("run e.toml --iterations 0"), HasSubstr("--iterations"));
  put("long.toml",
      "[bottleneck]\nrate = \"1 Gbps\"\n[[job]]\nname = \"a\"\ncompute = \"20 min\"\ncommunicate = \"1 B\"\n");
  EXPECT_THAT(refusal("run long.toml --iterations 10000"),
              StartsWith("mltcp: --iterations: 10000 iterations of job[1] take 138.889 days or more; "));
}

#if MLTCP_HAS_DPDK
TEST_F(Command, run__too_many_jobs_for_the_ring_are_named) {
  std::string text = "[bottleneck]\nrate = \"1 Gbps\"\n";
  for (int i = 0; i < 9; ++i) text += "[[job]]\nname = \"" + std::to_string(i) + "\"\ncommunicate = \"1 MB\"\n";
  put("many.toml", text);
  EXPECT_THAT(refusal("run many.toml --datapath ring"),
              StartsWith("mltcp: many.toml:27: job: there are 9 jobs and datapath ring has ports for 8; "));
}
#endif

TEST_F(Command, inspect__name_is_one_that_reads_back) {
  EXPECT_THAT(run("inspect t.txt --toml").out, StartsWith("[[job]]\nname = \"t\"\n"));
  EXPECT_THAT(refusal("inspect t.txt --toml --name $'a\\xff'"), HasSubstr("--name: the name has control characters"));
  EXPECT_THAT(refusal("inspect t.txt --toml --name $'a\\nb'"), HasSubstr("--name: the name has control characters"));
  EXPECT_THAT(refusal("inspect t.txt --toml --name ''"), HasSubstr("--name: the name is empty"));
}

TEST_F(Command, messages__are_one_line_whatever_the_names_hold) {
  EXPECT_THAT(refusal("run $'no\\nsuch\\x1b[31m.toml'"), StartsWith("mltcp: no?such?[31m.toml:1: file: "));
  EXPECT_THAT(refusal("inspect $'no\\nsuch'"), StartsWith("mltcp: no?such: there is no such file"));
  EXPECT_THAT(refusal("report $'no\\nsuch'"), StartsWith("mltcp: no?such: there is no such file"));
  EXPECT_THAT(refusal("run e.toml $'--bo\\ngus'"), HasSubstr("--bo?gus"));
  EXPECT_THAT(refusal("run e.toml --cc $'re\\nno'"), StartsWith("mltcp: --cc: \"re?no\" is not known; "));
}

TEST_F(Command, input__is_a_file_of_bounded_size) {
  for (const char* arguments : {"run /dev/zero", "inspect /dev/zero", "report /dev/zero"})
    EXPECT_THAT(refusal(arguments), HasSubstr("this is no file but a device or socket"));
  ASSERT_EQ(mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(refusal("run fifo"), HasSubstr("the file is empty"));
  EXPECT_THAT(refusal("inspect fifo"), HasSubstr("the file is empty"));
}

}  // namespace
