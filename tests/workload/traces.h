// Finds traces published by others, which are not part of the project. The environment variable MLTCP_TRACES names
// their folder; without it, tests that need one are skipped.
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
