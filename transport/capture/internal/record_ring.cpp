// Implements the ring of captured packets (see record_ring.h).
#include "mltcp/transport/capture/internal/record_ring.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace mltcp::capture {

RecordRing::RecordRing(std::size_t bytes) : size_(std::bit_ceil(bytes)), memory_(std::make_unique<std::byte[]>(size_)) {
  static_assert(std::is_trivially_copyable_v<Entry>);
}

bool RecordRing::push(const Record& record, std::span<const std::byte> first,
                      std::span<const std::byte> second) noexcept {
  const std::size_t needed = entry_bytes(record.stored_bytes);
  std::uint64_t head = head_.load(std::memory_order_relaxed);
  const std::size_t at = head & (size_ - 1);
  // Entries are contiguous. If an entry does not fit before the end of the memory, the rest of the memory stays unused.
  const std::size_t gap = size_ - at < needed ? size_ - at : 0;
  if (head + gap + needed - known_tail_ > size_) {
    known_tail_ = tail_.load(std::memory_order_acquire);
    if (head + gap + needed - known_tail_ > size_) return false;
  }
  if (gap != 0) {
    // The unused rest of the memory may be too short for an Entry. So only the two members that mark the rest as a gap
    // are written.
    const auto bytes = static_cast<std::uint32_t>(gap);
    const bool is_gap = true;
    std::memcpy(memory_.get() + at + offsetof(Entry, bytes), &bytes, sizeof bytes);
    std::memcpy(memory_.get() + at + offsetof(Entry, is_gap), &is_gap, sizeof is_gap);
    head += gap;
  }
  Entry entry;
  entry.bytes = static_cast<std::uint32_t>(needed);
  entry.record = record;
  std::byte* to = memory_.get() + (head & (size_ - 1));
  std::memcpy(to, &entry, sizeof entry);
  to += sizeof entry;
  const std::size_t of_first = std::min<std::size_t>(first.size(), record.stored_bytes);
  if (of_first > 0) std::memcpy(to, first.data(), of_first);
  if (record.stored_bytes > of_first) std::memcpy(to + of_first, second.data(), record.stored_bytes - of_first);
  head_.store(head + needed, std::memory_order_release);
  return true;
}

const Record* RecordRing::front(std::span<const std::byte>& bytes) noexcept {
  const std::uint64_t head = head_.load(std::memory_order_acquire);
  std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  if (tail == head) return nullptr;
  const auto* entry = reinterpret_cast<const Entry*>(memory_.get() + (tail & (size_ - 1)));
  if (entry->is_gap) {
    tail += entry->bytes;
    tail_.store(tail, std::memory_order_release);
    entry = reinterpret_cast<const Entry*>(memory_.get() + (tail & (size_ - 1)));
  }
  bytes = {reinterpret_cast<const std::byte*>(entry) + sizeof(Entry), entry->record.stored_bytes};
  return &entry->record;
}

void RecordRing::pop() noexcept {
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  const auto* const entry = reinterpret_cast<const Entry*>(memory_.get() + (tail & (size_ - 1)));
  tail_.store(tail + entry->bytes, std::memory_order_release);
}

}  // namespace mltcp::capture
