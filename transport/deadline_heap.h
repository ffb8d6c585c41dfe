// The timers of a shard: an indexed binary min-heap with at most one deadline per id. Its memory is one entry per id,
// no matter how often deadlines change.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp {

class DeadlineHeap {
 public:
  /// Reserves memory for ids 0 to count - 1.
  void reserve(std::size_t count) {
    if (place_.size() < count) place_.resize(count, kAbsent);
    heap_.reserve(count);
  }

  [[nodiscard]] Nanos next() const { return heap_.empty() ? Nanos::never() : heap_.front().at; }
  [[nodiscard]] std::uint32_t top() const { return heap_.front().id; }

  /// Returns the deadline of `id`; Nanos::never() if it has none.
  [[nodiscard]] Nanos at(std::uint32_t id) const {
    return place_[id] == kAbsent ? Nanos::never() : heap_[place_[id]].at;
  }

  /// Prefetches the memory that set() needs for `id`.
  void prefetch(std::uint32_t id) const { __builtin_prefetch(&place_[id], 1); }

  /// Sets the deadline of `id`. Nanos::never() removes the deadline.
  void set(std::uint32_t id, Nanos at) {
    std::uint32_t i = place_[id];
    if (at.is_never()) {
      if (i != kAbsent) remove(i);
      return;
    }
    if (i == kAbsent) {
      i = static_cast<std::uint32_t>(heap_.size());
      heap_.push_back({at, id});
      place_[id] = i;
      up(i);
      return;
    }
    if (heap_[i].at == at) return;
    const bool earlier = at < heap_[i].at;
    heap_[i].at = at;
    if (earlier)
      up(i);
    else
      down(i);
  }

 private:
  struct Entry {
    Nanos at;
    std::uint32_t id;
  };
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};

  void put(std::uint32_t i, Entry entry) {
    heap_[i] = entry;
    place_[entry.id] = i;
  }
  void up(std::uint32_t i) {
    const Entry entry = heap_[i];
    while (i > 0 && entry.at < heap_[(i - 1) / 2].at) {
      put(i, heap_[(i - 1) / 2]);
      i = (i - 1) / 2;
    }
    put(i, entry);
  }
  void down(std::uint32_t i) {
    const Entry entry = heap_[i];
    for (;;) {
      std::uint32_t child = 2 * i + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && heap_[child + 1].at < heap_[child].at) ++child;
      if (!(heap_[child].at < entry.at)) break;
      put(i, heap_[child]);
      i = child;
    }
    put(i, entry);
  }
  void remove(std::uint32_t i) {
    place_[heap_[i].id] = kAbsent;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (i == heap_.size()) return;
    const bool earlier = last.at < heap_[i].at;
    put(i, last);
    if (earlier)
      up(i);
    else
      down(i);
  }

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> place_;
};

}  // namespace mltcp
