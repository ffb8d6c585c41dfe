// Parses choices of steps and ranks (see replay_choice.h).
#include "mltcp/lab/workload/replay_choice.h"

#include <fmt/format.h>

#include <string_view>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/workload/graph_program.h"

namespace mltcp::workload {
namespace {

constexpr std::uint32_t kMaxListed = 1U << 16U;

/// Parses a range such as "2" or "1-3". Returns nothing if `text` is not a range.
std::optional<std::pair<std::uint32_t, std::uint32_t>> range_in(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = number_from<std::uint32_t>(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number_from<std::uint32_t>(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return std::pair(*first, *last);
}

}  // namespace

StepChoice StepChoice::from_text(const std::string& text) {
  StepChoice steps;
  if (text == "all") return steps;
  if (text == "typical") {
    steps.typical = true;
    return steps;
  }
  steps.range = range_in(text);
  if (!steps.range)
    throw InputError(fmt::format("{} are not steps; write e.g. all, typical, 2 or 1-3", in_quotes(text)));
  return steps;
}

std::vector<std::uint32_t> ranks_from_text(const std::string& text) {
  std::vector<std::uint32_t> ranks;
  for (const std::string_view part : parts_of(text, ',')) {
    const auto own = range_in(part);
    if (!own || own->second - own->first >= kMaxListed)
      throw InputError(fmt::format("{} are not ranks; write numbers in ascending order, e.g. 0-3,6", in_quotes(text)));
    for (std::uint32_t rank = own->first; rank <= own->second; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> StepChoice::of(const ExecutionGraph& graph) const {
  if (!typical) return range;
  const std::uint32_t step = typical_step(graph);
  return std::pair(step, step);
}

}  // namespace mltcp::workload
