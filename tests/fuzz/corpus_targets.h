// The targets that a corpus test (corpus_test.cpp) runs. One program runs the targets that read packets. A second
// program runs all other targets, which link most of the project.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "target.h"

namespace mltcp::fuzz {

struct Target {
  std::string_view name;  ///< name of the target and of its folder in corpus/
  void (*run)(Input);
  std::size_t changed;  ///< number of randomly changed inputs to run, chosen to take about half a second
};

/// Returns the targets that this program runs. Each of the two programs defines this function.
std::span<const Target> targets();

}  // namespace mltcp::fuzz
