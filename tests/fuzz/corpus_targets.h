// The targets that a corpus test (corpus_test.cpp) runs: one program for those that read packets, and one for the
// others, which link most of the project.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "target.h"

namespace mltcp::fuzz {

struct Target {
  std::string_view name;  ///< also the name of its folder in corpus/
  void (*run)(Input);
  std::size_t changed;  ///< number of changed inputs, chosen to take about half a second
};

/// The targets of this program.
std::span<const Target> targets();

}  // namespace mltcp::fuzz
