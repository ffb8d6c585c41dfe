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
  /// First and last step; empty: the typical step if `typical`, else all.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> range;

  /// Parses "all", "typical", "2" or "1-3". Throws InputError "cause; cure" for other texts.
  static StepChoice from_text(const std::string& text);
  /// Returns the chosen steps of `graph`, for GraphOptions::steps.
  [[nodiscard]] std::optional<std::pair<std::uint32_t, std::uint32_t>> of(const ExecutionGraph& graph) const;
};

/// Parses a list of ranks such as "0-3,6", in ascending order. Throws InputError if it is not such a list.
std::vector<std::uint32_t> ranks_from_text(const std::string& text);

}  // namespace mltcp::workload
