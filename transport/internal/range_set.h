// A set of 64-bit positions, stored as sorted, disjoint, non-adjacent half-open ranges. Optimised for sets that are
// nearly always a single range that grows at its end. Adding to such a set is a comparison and an increment within the
// object's own 24 bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "mltcp/transport/internal/range_list.h"

namespace mltcp::transport {

class RangeSet {
 public:
  using Range = PositionRange;

  /// Removes all positions; keeps the allocated memory.
  void clear() {
    highest_ = {};
    lower_.clear();
  }
  /// Like clear(), but frees the allocated memory if it has room for more than `holes` holes.
  void clear_to(std::size_t holes) {
    if (lower_.capacity() > holes) [[unlikely]]
      lower_.free();
    clear();
  }
  /// Allocates memory for `holes` holes.
  void reserve(std::size_t holes) { lower_.reserve(holes); }
  /// Returns whether memory for holes has been allocated.
  [[nodiscard]] bool has_had_holes() const { return lower_.capacity() > 0; }
  /// Returns the number of bytes allocated for holes beyond the first `holes`.
  [[nodiscard]] std::size_t bytes_beyond(std::size_t holes) const {
    return (std::max(lower_.capacity(), holes) - holes) * sizeof(Range);
  }
  /// Returns whether another hole requires more memory than is allocated.
  [[nodiscard]] bool is_full() const { return has_had_holes() && lower_.size() == lower_.capacity(); }
  /// Returns the value of bytes_beyond() after a hole is added to a set that is_full().
  [[nodiscard]] std::size_t bytes_beyond_if_grown(std::size_t holes) const {
    return (std::max(lower_.capacity() * 2, holes) - holes) * sizeof(Range);
  }
  /// Number of holes for which the first allocation has room.
  static constexpr std::size_t kFirstHoles = RangeList::kMinCapacity;

  [[nodiscard]] bool empty() const { return highest_.end == 0; }
  [[nodiscard]] std::size_t size() const { return empty() ? 0 : 1 + lower_.size(); }
  /// Returns the i-th range in ascending order.
  [[nodiscard]] const Range& operator[](std::size_t i) const { return i < lower_.size() ? lower_[i] : highest_; }
  /// Returns the highest range, or an empty range if the set is empty.
  [[nodiscard]] const Range& back() const { return highest_; }
  /// Returns whether the set is exactly [begin, end), which must not be empty.
  [[nodiscard]] bool is(std::uint64_t begin, std::uint64_t end) const {
    return highest_.end == end && highest_.begin == begin && lower_.empty();
  }

  /// Adds [begin, end) and returns how many positions are new.
  std::uint64_t add(std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return 0;
    if (begin > highest_.end || empty()) {
      if (!empty()) lower_.push_back(highest_);
      highest_ = {begin, end};
      return end - begin;
    }
    if (begin >= highest_.begin) {  // touches or overlaps the highest range
      if (end <= highest_.end) return 0;
      const std::uint64_t added = end - highest_.end;
      highest_.end = end;
      return added;
    }
    return end >= highest_.begin ? add_below_highest(begin, end) : add_to_lower(begin, end);
  }

  /// Returns whether adding [begin, end) would increase the number of ranges.
  [[nodiscard]] bool would_grow(std::uint64_t begin, std::uint64_t end) const {
    const Range* next = first_ending_at_or_after(begin);
    return next == nullptr || next->begin > end;
  }

  [[nodiscard]] bool contains(std::uint64_t position) const {
    if (position >= highest_.end) return false;
    if (position >= highest_.begin) return true;
    return first_ending_at_or_after(position + 1)->begin <= position;
  }

  /// Calls `visit(begin, end)` for each maximal part of [begin, end) that is not in the set, in ascending order.
  template <typename Visit>
  void for_gaps(std::uint64_t begin, std::uint64_t end, Visit visit) const {
    for (const Range* next = first_ending_at_or_after(begin + 1); begin < end && next != nullptr; next = above(next)) {
      if (next->begin >= end) break;
      if (next->begin > begin) visit(begin, next->begin);
      begin = next->end;
    }
    if (begin < end) visit(begin, end);
  }

  /// Removes all positions below `position`.
  void remove_below(std::uint64_t position) {
    if (highest_.end <= position) {
      clear();
      return;
    }
    if (!lower_.empty()) {
      std::size_t drop = 0;
      while (drop < lower_.size() && lower_[drop].end <= position) ++drop;
      lower_.erase(0, drop);
    }
    Range& lowest = lower_.empty() ? highest_ : lower_.front();
    lowest.begin = std::max(lowest.begin, position);
  }
  /// Removes the lowest range that does not contain `position`; there must be at least two ranges.
  void remove_lowest_range_but(std::uint64_t position) {
    if (position >= lower_.front().end || position < lower_.front().begin)
      lower_.erase(0, 1);
    else if (lower_.size() > 1)
      lower_.erase(1, 2);
    else
      remove_highest_range();
  }
  void remove_highest_range() {
    highest_ = {};
    if (lower_.empty()) return;
    highest_ = lower_.back();
    lower_.pop_back();
  }

 private:
  /// Returns the lowest range that ends at or after `position`; null if there is none.
  [[nodiscard]] const Range* first_ending_at_or_after(std::uint64_t position) const {
    if (!lower_.empty()) {
      const Range* const at = lower_bound(position);
      if (at != lower_.end()) return at;
    }
    return !empty() && highest_.end >= position ? &highest_ : nullptr;
  }
  /// Returns the next higher range; null after the highest range.
  [[nodiscard]] const Range* above(const Range* range) const {
    if (range == &highest_) return nullptr;
    return range == &lower_.back() ? &highest_ : range + 1;
  }
  [[nodiscard]] const Range* lower_bound(std::uint64_t position) const {
    return std::lower_bound(lower_.begin(), lower_.end(), position,
                            [](const Range& range, std::uint64_t p) { return range.end < p; });
  }

  // Requires that [begin, end) begins below the highest range and touches or overlaps it.
  std::uint64_t add_below_highest(std::uint64_t begin, std::uint64_t end) {
    end = std::max(end, highest_.end);
    std::uint64_t covered = highest_.end - highest_.begin;
    for (; !lower_.empty() && lower_.back().end >= begin; lower_.pop_back()) {
      covered += lower_.back().end - lower_.back().begin;
      begin = std::min(begin, lower_.back().begin);
    }
    highest_ = {begin, end};
    return end - begin - covered;
  }

  std::uint64_t add_to_lower(std::uint64_t begin, std::uint64_t end) {
    const auto first = static_cast<std::size_t>(lower_bound(begin) - lower_.begin());
    if (first == lower_.size() || lower_[first].begin > end) {
      lower_.insert(first, {begin, end});
      return end - begin;
    }
    // Merge [begin, end) with every range that it touches.
    std::uint64_t covered = 0;
    std::size_t last = first;
    for (; last != lower_.size() && lower_[last].begin <= end; ++last) {
      covered += lower_[last].end - lower_[last].begin;
      begin = std::min(begin, lower_[last].begin);
      end = std::max(end, lower_[last].end);
    }
    lower_[first] = {begin, end};
    lower_.erase(first + 1, last);
    return end - begin - covered;
  }

  Range highest_;    // the set is empty if `end` is 0
  RangeList lower_;  // all ranges below highest_
};

static_assert(sizeof(RangeSet) == 24);

}  // namespace mltcp::transport
