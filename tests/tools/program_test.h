// The program `mltcp`, run in a folder of the test's own as its user would type it.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "../matchers.h"
#include "../temporary_folder.h"

namespace mltcp::tools {

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

class ProgramTest : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) const { folder_.write(name, text); }

  // In the folder, by way of a shell, with `arguments` as they would be typed.
  [[nodiscard]] Outcome run(const std::string& arguments) const {
    // What a shell runs in the background would ignore SIGINT.
    const std::string line =
        "cd '" + folder_.string() + "' && { env --default-signal=INT " MLTCP_PROGRAM " " + arguments + "; } 2>.err";
    std::string quoted = line;
    for (std::size_t at = quoted.find('\''); at != std::string::npos; at = quoted.find('\'', at + 4))
      quoted.replace(at, 1, "'\\''");
    const int status =
        std::system(("bash -c '" + quoted + "' > '" + (folder_ / ".out").string() + "'").c_str());  // NOLINT(cert-*)
    Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(folder_ / ".out"), content(folder_ / ".err")};
    std::filesystem::remove(folder_ / ".out");
    std::filesystem::remove(folder_ / ".err");
    return outcome;
  }

  // As it should, and what it says then.
  Outcome done(const std::string& arguments) const {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.err << outcome.out;
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

  /// The text of a result file up to where it says how it was made, which stands last.
  static std::string without_provenance(const std::string& text) {
    const std::size_t at = text.find("\"provenance\": {");
    EXPECT_NE(at, std::string::npos) << text.substr(0, 100);
    return text.substr(0, at);
  }

  TemporaryFolder folder_;
};

}  // namespace mltcp::tools
