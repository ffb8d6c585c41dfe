// Detection of implausible highest packet numbers (see received_packets.h).
#include "mltcp/transport/internal/received_packets.h"

namespace mltcp::transport {

void ReceivedPackets::count_behind_top(std::uint64_t number) {
  // A packet within the highest range confirms that this range is genuine.
  if (number >= numbers_.back().begin) {
    behind_top_ = 0;
    return;
  }
  const auto top = static_cast<std::uint32_t>(numbers_.back().end);
  if (top != top_) {
    top_ = top;
    behind_top_ = 0;
  }
  if (++behind_top_ < kMaxBehindTop) return;
  numbers_.remove_highest_range();  // the new highest range is then checked in the same way
}

}  // namespace mltcp::transport
