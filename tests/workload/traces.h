// Finds published traces, which are not part of this project, in the folder that the environment variable MLTCP_TRACES
// names. Without the variable, tests that need such a trace are skipped.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace mltcp::workload {

inline std::filesystem::path trace_folder() {
  const char* folder = std::getenv("MLTCP_TRACES");
  return folder != nullptr && *folder != '\0' ? folder : MLTCP_DEFAULT_TRACES;
}

}  // namespace mltcp::workload

#define SKIP_WITHOUT(path)            \
  if (!std::filesystem::exists(path)) \
  GTEST_SKIP() << "there is no " << (path).string() << "; set MLTCP_TRACES to a folder with libra, simai, aicb"
