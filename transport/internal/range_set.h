// A set of 64-bit positions, stored as sorted, disjoint, non-adjacent half-open ranges. Optimised for sets that are
// nearly always one range growing at its end: then adding is a comparison and an increment within the object's own 24
// bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace mltcp {

class RangeSet {
 public:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  ///< exclusive
  };

  /// Removes all positions; keeps the allocated memory.
  void clear() {
    highest_ = {};
    if (lower_ != nullptr) [[unlikely]]
      lower_->clear();
  }
  /// Like clear(), and frees what was allocated for more than `holes` holes.
  void clear_to(std::size_t holes) {
    if (lower_ != nullptr && lower_->capacity() > holes) [[unlikely]]
      lower_.reset();
    clear();
  }
  /// Allocates memory for first_holes holes.
  void reserve() { lower(); }
  /// Whether there is memory for holes.
  [[nodiscard]] bool has_had_holes() const { return lower_ != nullptr; }
  /// Bytes allocated for holes beyond `holes`.
  [[nodiscard]] std::size_t bytes_beyond(std::size_t holes) const {
    if (lower_ == nullptr) [[likely]]
      return 0;
    return (std::max(lower_->capacity(), holes) - holes) * sizeof(Range);
  }
  /// Whether another hole takes more memory than is allocated.
  [[nodiscard]] bool is_full() const { return lower_ != nullptr && lower_->size() == lower_->capacity(); }
  /// What bytes_beyond() becomes if is_full(), and a hole is added.
  [[nodiscard]] std::size_t bytes_beyond_if_grown(std::size_t holes) const {
    return (std::max(lower_->capacity() * 2, holes) - holes) * sizeof(Range);
  }
  static constexpr std::size_t first_holes = 8;  ///< for which memory is allocated at once

  [[nodiscard]] bool empty() const { return highest_.end == 0; }
  [[nodiscard]] std::size_t size() const { return empty() ? 0 : 1 + lower_count(); }
  /// The i-th range in ascending order.
  [[nodiscard]] const Range& operator[](std::size_t i) const { return i < lower_count() ? (*lower_)[i] : highest_; }
  /// The highest range; an empty one if the set is empty.
  [[nodiscard]] const Range& back() const { return highest_; }
  /// Whether the set is exactly [begin, end), which must not be empty.
  [[nodiscard]] bool is(std::uint64_t begin, std::uint64_t end) const {
    return highest_.end == end && highest_.begin == begin && lower_count() == 0;
  }

  /// Adds [begin, end) and returns how many positions are new.
  std::uint64_t add(std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return 0;
    if (begin > highest_.end || empty()) {
      if (!empty()) lower().push_back(highest_);
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

  /// Whether adding [begin, end) would increase the number of ranges.
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
    if (lower_count() > 0) {
      std::size_t drop = 0;
      while (drop < lower_->size() && (*lower_)[drop].end <= position) ++drop;
      lower_->erase(lower_->begin(), lower_->begin() + static_cast<std::ptrdiff_t>(drop));
    }
    Range& lowest = lower_count() > 0 ? lower_->front() : highest_;
    lowest.begin = std::max(lowest.begin, position);
  }
  /// Removes the lowest range that does not contain `position`; there must be at least two ranges.
  void remove_lowest_range_but(std::uint64_t position) {
    auto& ranges = lower();
    if (position >= ranges.front().end || position < ranges.front().begin)
      ranges.erase(ranges.begin());
    else if (ranges.size() > 1)
      ranges.erase(ranges.begin() + 1);
    else
      remove_highest_range();
  }
  void remove_highest_range() {
    highest_ = {};
    if (lower_count() == 0) return;
    highest_ = lower_->back();
    lower_->pop_back();
  }

 private:
  [[nodiscard]] std::size_t lower_count() const {
    if (lower_ == nullptr) [[likely]]
      return 0;
    return lower_->size();
  }
  std::vector<Range>& lower() {
    if (lower_ == nullptr) [[unlikely]] {
      lower_ = std::make_unique<std::vector<Range>>();
      lower_->reserve(first_holes);
    }
    return *lower_;
  }

  /// Null if there is none.
  [[nodiscard]] const Range* first_ending_at_or_after(std::uint64_t position) const {
    if (lower_count() > 0) {
      const auto at = lower_bound(position);
      if (at != lower_->cend()) return &*at;
    }
    return !empty() && highest_.end >= position ? &highest_ : nullptr;
  }
  /// The next higher range; null after the highest.
  [[nodiscard]] const Range* above(const Range* range) const {
    if (range == &highest_) return nullptr;
    return range == &lower_->back() ? &highest_ : range + 1;
  }
  [[nodiscard]] std::vector<Range>::const_iterator lower_bound(std::uint64_t position) const {
    return std::lower_bound(lower_->cbegin(), lower_->cend(), position,
                            [](const Range& range, std::uint64_t p) { return range.end < p; });
  }

  // Requires that [begin, end) reaches from below the highest range up to or into it.
  std::uint64_t add_below_highest(std::uint64_t begin, std::uint64_t end) {
    end = std::max(end, highest_.end);
    std::uint64_t covered = highest_.end - highest_.begin;
    for (; lower_count() > 0 && lower_->back().end >= begin; lower_->pop_back()) {
      covered += lower_->back().end - lower_->back().begin;
      begin = std::min(begin, lower_->back().begin);
    }
    highest_ = {begin, end};
    return end - begin - covered;
  }

  std::uint64_t add_to_lower(std::uint64_t begin, std::uint64_t end) {
    std::vector<Range>& ranges = lower();
    const auto at = ranges.begin() + (lower_bound(begin) - ranges.cbegin());
    if (at == ranges.end() || at->begin > end) {
      ranges.insert(at, {begin, end});
      return end - begin;
    }
    // Merge [begin, end) with every range that it touches.
    std::uint64_t covered = 0;
    auto last = at;
    for (; last != ranges.end() && last->begin <= end; ++last) {
      covered += last->end - last->begin;
      begin = std::min(begin, last->begin);
      end = std::max(end, last->end);
    }
    *at = {begin, end};
    ranges.erase(at + 1, last);
    return end - begin - covered;
  }

  Range highest_;                              // end 0: the set is empty
  std::unique_ptr<std::vector<Range>> lower_;  // all lower ranges; null until there are any
};

}  // namespace mltcp
