// Packets behind the highest (see received_packets.h).
#include "mltcp/transport/internal/received_packets.h"

namespace mltcp {

void ReceivedPackets::count_behind_top(std::uint64_t number) {
  // Numbers that lead up to the highest are the peer's, and so is that.
  if (number >= numbers_.back().begin) {
    behind_top_ = 0;
    return;
  }
  const auto top = static_cast<std::uint32_t>(numbers_.back().end);
  if (top != top_) {
    top_ = top;
    behind_top_ = 0;
  }
  if (++behind_top_ < max_behind_top) return;
  numbers_.remove_highest_range();  // what is then the highest is counted anew, above
}

}  // namespace mltcp
