// Texts of experiment files for tests, and matchers for the messages that refuse these texts.
#pragma once

#include <filesystem>
#include <string>

#include "../../message_of.h"
#include "mltcp/lab/experiment/files/experiment_file.h"

namespace mltcp::experiment::testing_texts {

inline const std::filesystem::path kData = MLTCP_TEST_DATA;
inline const std::string kLink = "[bottleneck]\nrate = \"1 Gbps\"\n";
inline const std::string kJob = "[[job]]\nname = \"a\"\ncommunicate = \"1 MB\"\n";

inline std::string refusal(const std::string& text, const FileOptions& options = {}) {
  return refusal_of([&] { parse_experiment(text, "e.toml", options); });
}

// Returns a matcher for an error "e.toml:LINE: KEY: cause; cure" in one line.
inline ::testing::Matcher<std::string> error_at(int line, const std::string& key, const std::string& cause) {
  return AllOf(StartsWith("e.toml:" + std::to_string(line) + ": " + key + ": "), HasSubstr(cause), HasSubstr("; "),
               Not(HasSubstr("\n")));
}

// Each function returns a valid file with `line` in the table that has the function's name. top() makes `line` the
// first line of the file.
inline std::string top(const std::string& line) { return line + "\n" + kLink + kJob; }
inline std::string link(const std::string& line) { return kJob + kLink + line + "\n"; }  // in line 6
inline std::string job(const std::string& line) { return kLink + kJob + line + "\n"; }   // in line 6
inline std::string bare_job(const std::string& line) {
  return kLink + "[[job]]\nname = \"a\"\n" + line + "\n";
}  // in line 5

}  // namespace mltcp::experiment::testing_texts
