// The deadlines of a connection's sends and receives. Allocated when first needed, because few connections have
// deadlines.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "mltcp/base/ring.h"
#include "mltcp/transport/deadline_heap.h"

namespace mltcp::transport {

/// A deadline is stored under its operation's position in the send or receive ring. The next operation at this position
/// replaces the deadline, so an operation that completes in time need not remove it.
struct OperationDeadlines {
  OperationDeadlines(std::uint32_t max_sends, std::uint32_t max_receives)
      : sends(std::bit_ceil(max_sends)), receives(std::bit_ceil(max_receives)) {
    heap.reserve(std::size_t{sends} + receives);
  }
  [[nodiscard]] std::uint32_t of_send(std::uint64_t number) const {
    return static_cast<std::uint32_t>(number & (sends - 1));
  }
  [[nodiscard]] std::uint32_t of_receive(std::uint64_t number) const {
    return sends + static_cast<std::uint32_t>(number & (receives - 1));
  }
  [[nodiscard]] bool is_send(std::uint32_t slot) const { return slot < sends; }
  /// Returns the first message number from `begin` on that has this slot.
  [[nodiscard]] std::uint64_t send_of(std::uint32_t slot, std::uint64_t begin) const {
    return begin + ((slot - begin) & (sends - 1));
  }
  [[nodiscard]] std::uint64_t receive_of(std::uint32_t slot, std::uint64_t begin) const {
    return begin + ((slot - sends - begin) & (receives - 1));
  }

  std::uint32_t sends;  ///< a power of two
  std::uint32_t receives;
  DeadlineHeap heap;
};

/// Removes the messages with numbers from `from` on that have ended. Later messages move up, together with their
/// deadlines. `slot` maps a message number to the slot of its deadline.
template <typename Message, typename Slot>
void close_up(GrowableRing<Message>& ring, std::uint64_t from, DeadlineHeap& heap, Slot slot) {
  std::uint64_t to = from;
  for (std::uint64_t number = from; number != ring.end(); ++number) {
    if (ring[number].done) continue;
    if (number != to) {
      std::swap(ring[to], ring[number]);  // swapped, so that both keep their allocated memory
      heap.set(slot(to), heap.at(slot(number)));
      heap.set(slot(number), Nanos::never());
    }
    ++to;
  }
  ring.truncate(to);
}

}  // namespace mltcp::transport
