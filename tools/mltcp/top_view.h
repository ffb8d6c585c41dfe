// Formats the screens of `mltcp top`: processes, jobs, connections and ports, with the rates since the previous reading
// of the counters. It neither reads processes nor prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/endpoint/live/snapshot.h"

namespace mltcp::tools {

/// The state of a process now and at the previous reading.
struct TopProcess {
  live::Snapshot now;
  std::optional<live::Snapshot> before;
};

/// The key by which rows are sorted: the largest value first, or names in alphabetical order.
enum class TopSort : std::uint8_t { rate, retransmits, name };
TopSort next(TopSort sort);
std::string to_text(TopSort sort);

struct TopOptions {
  std::size_t columns = 80;
  std::size_t rows = 24;  ///< height of the screen; 0: unlimited
  TopSort sort = TopSort::rate;
  bool is_paused = false;
  bool has_colours = false;
  bool has_keys = true;  ///< whether the last line lists the keys
  double every_seconds = 1;
};

/// Returns a screen. Its lines end with a newline, and none is longer than `columns`. It has at most `rows` lines.
/// `problems` has a message for each process that did not answer.
std::string top_screen(const std::vector<TopProcess>& processes, const std::vector<std::string>& problems,
                       const TopOptions& options);

}  // namespace mltcp::tools
