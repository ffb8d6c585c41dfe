// Which steps and ranks of a recorded graph to replay, given as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/lab/workload/execution_graph.h"

namespace mltcp::workload {

struct StepChoice {
  bool typical = false;
  /// First and last step. If empty, the choice is the typical step if `typical` is true, or all steps if it is false.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> range;

  /// Parses "all", "typical", "2" or "1-3". Throws InputError "cause; cure" for other texts.
  static StepChoice from_text(const std::string& text);
  /// Returns the chosen steps of `graph`, for GraphOptions::steps.
  [[nodiscard]] std::optional<std::pair<std::uint32_t, std::uint32_t>> of(const ExecutionGraph& graph) const;
};

/// Parses a list of ranks in ascending order, such as "0-3,6". Does not check the order. Throws InputError if `text` is
/// not a list of ranks.
std::vector<std::uint32_t> ranks_from_text(const std::string& text);

}  // namespace mltcp::workload
