// The choice of steps and ranks of a recorded graph to replay, as text.
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
  std::optional<std::pair<std::uint32_t, std::uint32_t>> range;  ///< empty: all, or the typical one

  /// "all", "typical", "2" or "1-3". Throws InputError "cause; cure".
  static StepChoice from_text(const std::string& text);
  /// For GraphOptions::steps.
  [[nodiscard]] std::optional<std::pair<std::uint32_t, std::uint32_t>> of(const ExecutionGraph& graph) const;
};

/// "0-3,6": ascending. Throws InputError.
std::vector<std::uint32_t> ranks_from_text(const std::string& text);

}  // namespace mltcp::workload
