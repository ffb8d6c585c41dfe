// The targets that a corpus test (corpus_test.cpp) runs: a program for those that read packets, and one for the others,
// which link most of the project.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "target.h"

namespace mltcp::fuzz {

struct Target {
  std::string_view name;  ///< of its folder in corpus/, too
  void (*run)(Input);
  std::size_t changed;  ///< inputs with changes: as many as take about half a second
};

/// Of this program.
std::span<const Target> targets();

}  // namespace mltcp::fuzz
