// Test fixture that runs the program `mltcp` in a temporary folder, as a user does.
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

  // Runs the program in the folder through a shell, with `arguments` as a user types them.
  [[nodiscard]] Outcome run(const std::string& arguments) const {
    // Restores SIGINT, which a program ignores if a shell starts it in the background.
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

  // Runs the program and expects success. Returns the outcome.
  Outcome done(const std::string& arguments) const {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.err << outcome.out;
    return outcome;
  }

  // Runs the program and expects that it rejects its input with one line of error message. Returns this line.
  [[nodiscard]] std::string refusal(const std::string& arguments) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(StartsWith("mltcp: "), EndsWith("\n")));
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    return outcome.err;
  }

  /// Returns the text of a results file up to its provenance, which is at the end.
  static std::string without_provenance(const std::string& text) {
    const std::size_t at = text.find("\"provenance\": {");
    EXPECT_NE(at, std::string::npos) << text.substr(0, 100);
    return text.substr(0, at);
  }

  TemporaryFolder folder_;
};

}  // namespace mltcp::tools
