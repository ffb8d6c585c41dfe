// The simulator's event queue. A network has few event sources, and each source has at most one next event, e.g. the
// next delivery of a link or the next poll of a host. So the queue stores sources instead of events, in an indexed
// 4-ary heap in which the time of a source can be changed (Johnson, "Priority queues with update and finding minimum
// spanning trees", IPL 1975).
//
// Sources with equal times are ordered by number. There are two ranges of numbers: from 0, and from
// EventQueue::kSecond. So two kinds of sources can be added independently of each other, and at equal times the first
// kind always precedes the second.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::sim {

class EventQueue {
 public:
  using Source = std::uint32_t;

  /// First number of the second range.
  static constexpr Source kSecond = Source{1} << 31;

  /// Adds `source` and all lower numbers of its range as idle sources.
  void add(Source source) {
    if (slot(source) >= places_.size()) places_.resize(slot(source) + 1, kAbsent);
    heap_.reserve(places_.size());
  }

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  /// source() returns the source with the earliest time, and time() returns this time. The queue must not be empty.
  [[nodiscard]] Source source() const { return static_cast<Source>(heap_[0]); }
  [[nodiscard]] Nanos time() const { return time_of(heap_[0]); }

  /// Returns the time of `source`; never() if it is idle.
  [[nodiscard]] Nanos time(Source source) const {
    const std::uint32_t place = places_[slot(source)];
    return place == kAbsent ? Nanos::never() : time_of(heap_[place]);
  }

  /// Sets the time of `source` to `time`, which is 0 or later. never() makes the source idle.
  void set(Source source, Nanos time) {
    const std::uint32_t place = places_[slot(source)];
    if (time.is_never()) {
      if (place != kAbsent) remove(place);
      return;
    }
    const Entry entry = static_cast<Entry>(static_cast<std::uint64_t>(time.count)) << 64 | source;
    if (place == kAbsent) {
      heap_.push_back(entry);
      sift_up(heap_.size() - 1, entry);
    } else if (entry < heap_[place]) {
      sift_up(place, entry);
    } else if (entry > heap_[place]) {
      sift_down(place, entry);
    }
  }

 private:
  using Entry = Uint128;  // time in the upper 64 bits, source in the lower 64 bits, so that one comparison orders both
  static constexpr std::uint32_t kAbsent = 0xFFFFFFFF;

  /// Returns the index of a source in places_, where the two ranges of numbers are interleaved.
  static std::size_t slot(Source source) { return std::rotl(source, 1); }
  static Nanos time_of(Entry entry) { return Nanos(static_cast<std::int64_t>(entry >> 64)); }

  void put(std::size_t place, Entry entry) {
    heap_[place] = entry;
    places_[slot(static_cast<Source>(entry))] = static_cast<std::uint32_t>(place);
  }

  void sift_up(std::size_t place, Entry entry) {
    while (place > 0) {
      const std::size_t parent = (place - 1) / 4;
      if (heap_[parent] < entry) break;
      put(place, heap_[parent]);
      place = parent;
    }
    put(place, entry);
  }

  void sift_down(std::size_t place, Entry entry) {
    const std::size_t size = heap_.size();
    for (;;) {
      const std::size_t first = place * 4 + 1;
      if (first >= size) break;
      const std::size_t end = std::min(first + 4, size);
      std::size_t min = first;
      for (std::size_t child = first + 1; child < end; ++child)
        if (heap_[child] < heap_[min]) min = child;
      if (entry < heap_[min]) break;
      put(place, heap_[min]);
      place = min;
    }
    put(place, entry);
  }

  void remove(std::size_t place) {
    places_[slot(static_cast<Source>(heap_[place]))] = kAbsent;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (place == heap_.size()) return;
    if (place > 0 && last < heap_[(place - 1) / 4]) {
      sift_up(place, last);
    } else {
      sift_down(place, last);
    }
  }

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> places_;  // index of each source in heap_, by slot(); kAbsent if idle
};

}  // namespace mltcp::sim
