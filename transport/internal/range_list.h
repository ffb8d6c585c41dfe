// A vector of ranges that occupies eight bytes. empty() does not read the memory to which these bytes point. A
// connection has many range sets (RangeSet), and nearly all of their lists are empty.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace mltcp::transport {

struct PositionRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< the first position after the range
};

class RangeList {
 public:
  static constexpr std::size_t kMinCapacity = 8;  ///< minimum number of ranges for which insert() allocates memory

  RangeList() = default;
  ~RangeList() { free(); }
  RangeList(RangeList&& other) noexcept : block_(std::exchange(other.block_, 0)) {}
  RangeList& operator=(RangeList&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  RangeList(const RangeList&) = delete;
  RangeList& operator=(const RangeList&) = delete;

  [[nodiscard]] bool empty() const { return (block_ & kHasRanges) == 0; }
  [[nodiscard]] std::size_t size() const { return empty() ? 0 : block().size; }
  /// Returns the number of ranges for which memory is allocated.
  [[nodiscard]] std::size_t capacity() const { return block_ == 0 ? 0 : block().capacity; }

  [[nodiscard]] PositionRange* begin() { return empty() ? nullptr : ranges(); }
  [[nodiscard]] PositionRange* end() { return begin() + size(); }
  [[nodiscard]] const PositionRange* begin() const { return empty() ? nullptr : ranges(); }
  [[nodiscard]] const PositionRange* end() const { return begin() + size(); }
  PositionRange& operator[](std::size_t i) { return ranges()[i]; }
  const PositionRange& operator[](std::size_t i) const { return ranges()[i]; }
  [[nodiscard]] PositionRange& front() { return ranges()[0]; }
  [[nodiscard]] PositionRange& back() { return ranges()[block().size - 1]; }
  [[nodiscard]] const PositionRange& back() const { return ranges()[block().size - 1]; }

  void reserve(std::size_t capacity) {
    if (capacity > this->capacity()) reallocate(capacity);
  }
  /// Inserts `range` before the i-th range. Requires i <= size().
  void insert(std::size_t i, PositionRange range) {
    const std::size_t count = size();
    if (count == capacity()) reallocate(std::max<std::size_t>(count * 2, kMinCapacity));
    PositionRange* const at = ranges() + i;
    std::memmove(at + 1, at, (count - i) * sizeof(PositionRange));
    *at = range;
    set_size(count + 1);
  }
  void push_back(PositionRange range) { insert(size(), range); }
  void pop_back() { set_size(block().size - 1); }
  /// Removes the ranges [first, last).
  void erase(std::size_t first, std::size_t last) {
    if (first == last) return;
    PositionRange* const all = ranges();
    std::memmove(all + first, all + last, (block().size - last) * sizeof(PositionRange));
    set_size(block().size - (last - first));
  }
  /// Removes all ranges, but keeps the memory.
  void clear() { block_ &= ~kHasRanges; }
  void free() {
    if (block_ != 0) ::operator delete(&block());
    block_ = 0;
  }

 private:
  struct Block {  // a Block is followed by memory for `capacity` ranges
    std::uint32_t size;
    std::uint32_t capacity;
  };
  static_assert(sizeof(Block) % alignof(PositionRange) == 0);
  static constexpr std::uintptr_t kHasRanges = 1;

  [[nodiscard]] Block& block() const { return *reinterpret_cast<Block*>(block_ & ~kHasRanges); }
  [[nodiscard]] PositionRange* ranges() const { return reinterpret_cast<PositionRange*>(&block() + 1); }
  void set_size(std::size_t size) {
    block().size = static_cast<std::uint32_t>(size);
    block_ = (block_ & ~kHasRanges) | (size > 0 ? kHasRanges : 0);
  }
  void reallocate(std::size_t capacity) {
    RangeList bigger;
    void* const memory = ::operator new(sizeof(Block) + capacity * sizeof(PositionRange));
    bigger.block_ = reinterpret_cast<std::uintptr_t>(new (memory) Block{0, static_cast<std::uint32_t>(capacity)});
    if (!empty()) std::memcpy(bigger.ranges(), ranges(), size() * sizeof(PositionRange));
    bigger.set_size(size());
    std::swap(block_, bigger.block_);
  }

  std::uintptr_t block_ = 0;  ///< address of a Block, or 0 if there is none; the lowest bit is kHasRanges
};

static_assert(sizeof(RangeList) == 8);

}  // namespace mltcp::transport
