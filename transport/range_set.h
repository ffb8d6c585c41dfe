// A set of 64-bit positions as sorted, disjoint, non-touching half-open ranges. Made for sets that are nearly always
// one range that grows at its end: then adding is a comparison and an increment.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mltcp {

class RangeSet {
 public:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  ///< exclusive
  };

  RangeSet() = default;

  /// Makes room for `count` ranges.
  void reserve(std::size_t count) { ranges_.reserve(count); }
  /// Forgets everything; keeps the memory.
  void clear() { ranges_.clear(); }
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] std::size_t size() const { return ranges_.size(); }
  /// The i-th range from below.
  [[nodiscard]] const Range& operator[](std::size_t i) const { return ranges_[i]; }
  [[nodiscard]] const Range& back() const { return ranges_.back(); }

  /// Adds [begin, end) and returns how many positions were new.
  std::uint64_t add(std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return 0;
    if (ranges_.empty() || begin > ranges_.back().end) {
      ranges_.push_back({begin, end});
      return end - begin;
    }
    if (begin >= ranges_.back().begin) {  // touches or overlaps the last range
      Range& last = ranges_.back();
      if (end <= last.end) return 0;
      const std::uint64_t added = end - last.end;
      last.end = end;
      return added;
    }
    return add_inside(begin, end);
  }

  /// Whether adding [begin, end) would make one more range.
  [[nodiscard]] bool would_grow(std::uint64_t begin, std::uint64_t end) const {
    const auto next = first_ending_at_or_after(begin);
    return next == ranges_.end() || next->begin > end;
  }

  [[nodiscard]] bool contains(std::uint64_t position) const {
    if (ranges_.empty() || position >= ranges_.back().end) return false;
    if (position >= ranges_.back().begin) return true;
    const auto next = first_ending_at_or_after(position + 1);
    return next->begin <= position;
  }

  /// Calls `visit(begin, end)` for each part of [begin, end) that is not in the set, in order.
  template <typename Visit>
  void for_gaps(std::uint64_t begin, std::uint64_t end, Visit visit) const {
    for (auto next = first_ending_at_or_after(begin + 1); begin < end && next != ranges_.end(); ++next) {
      if (next->begin >= end) break;
      if (next->begin > begin) visit(begin, next->begin);
      begin = next->end;
    }
    if (begin < end) visit(begin, end);
  }

  /// Removes everything below `position`.
  void remove_below(std::uint64_t position) {
    std::size_t drop = 0;
    while (drop < ranges_.size() && ranges_[drop].end <= position) ++drop;
    if (drop > 0) ranges_.erase(ranges_.begin(), ranges_.begin() + static_cast<std::ptrdiff_t>(drop));
    if (!ranges_.empty() && ranges_.front().begin < position) ranges_.front().begin = position;
  }
  void remove_lowest_range() { ranges_.erase(ranges_.begin()); }

 private:
  [[nodiscard]] std::vector<Range>::const_iterator first_ending_at_or_after(std::uint64_t position) const {
    return std::lower_bound(ranges_.begin(), ranges_.end(), position,
                            [](const Range& range, std::uint64_t p) { return range.end < p; });
  }

  std::uint64_t add_inside(std::uint64_t begin, std::uint64_t end) {
    const auto at = ranges_.begin() + (first_ending_at_or_after(begin) - ranges_.cbegin());
    if (at == ranges_.end() || at->begin > end) {
      ranges_.insert(at, {begin, end});
      return end - begin;
    }
    // Merge [begin, end) with every range that it touches.
    std::uint64_t covered = 0;
    auto last = at;
    for (; last != ranges_.end() && last->begin <= end; ++last) {
      covered += last->end - last->begin;
      begin = std::min(begin, last->begin);
      end = std::max(end, last->end);
    }
    *at = {begin, end};
    ranges_.erase(at + 1, last);
    return end - begin - covered;
  }

  std::vector<Range> ranges_;
};

}  // namespace mltcp
