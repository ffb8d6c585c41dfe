// A table of texts (see table.h).
#include "mltcp/lab/experiment/results/table.h"

#include <fmt/format.h>

namespace mltcp::experiment {

std::string to_markdown(const Cells& cells) {
  std::string text;
  for (std::size_t r = 0; r < cells.rows.size(); ++r) {
    text += "|";
    for (const std::string& cell : cells.rows[r]) {
      std::string escaped;
      for (const char c : cell) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
      text += fmt::format(" {} |", escaped);
    }
    text += "\n";
    if (r > 0) continue;
    text += "|";
    for (std::size_t c = 0; c < cells.rows[0].size(); ++c) text += c < cells.left ? "---|" : "---:|";
    text += "\n";
  }
  return text;
}

}  // namespace mltcp::experiment
