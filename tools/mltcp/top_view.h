// The screens of `mltcp top`: processes, their jobs, connections and ports, with rates between two looks. Text in, text
// out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/endpoint/live/snapshot.h"

namespace mltcp::tools {

/// A process as seen now and at the previous look.
struct TopProcess {
  live::Snapshot now;
  std::optional<live::Snapshot> before;
};

/// The sort key of rows, largest first.
enum class TopSort : std::uint8_t { rate, retransmits, name };
TopSort next(TopSort sort);
std::string to_text(TopSort sort);

struct TopOptions {
  std::size_t columns = 80;
  std::size_t rows = 24;  ///< 0: unlimited
  TopSort sort = TopSort::rate;
  bool is_paused = false;
  bool has_colours = false;
  bool has_keys = true;  ///< the last line lists the keys
  double every_seconds = 1;
};

/// A screen: lines that end with a newline, none longer than `columns` and no more than `rows`. `problems` name
/// processes that did not answer.
std::string top_screen(const std::vector<TopProcess>& processes, const std::vector<std::string>& problems,
                       const TopOptions& options);

}  // namespace mltcp::tools
