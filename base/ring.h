// A FIFO ring buffer on a power-of-two array, indexed by ever-increasing positions.
//
// Element `p` (begin() <= p < end()) is stored at `p & mask`, so a position identifies an element for its lifetime.
// GrowableRing doubles its capacity when it is full. It suits set-up, simulation, and queues whose maximum is large but
// rarely reached. After reserve() for the maximum size it never allocates.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace mltcp {

template <typename T>
class GrowableRing {
 public:
  GrowableRing() = default;
  explicit GrowableRing(std::size_t capacity) { reserve(capacity); }

  void reserve(std::size_t capacity) {
    if (capacity > capacity_) grow(std::bit_ceil(capacity));
  }

  [[nodiscard]] bool empty() const { return begin_ == end_; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  /// begin() is the position of the oldest element. end() is the position that the next element will get.
  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }

  T& operator[](std::uint64_t position) { return slots_[place(position)]; }
  const T& operator[](std::uint64_t position) const { return slots_[place(position)]; }
  T& front() { return slots_[place(begin_)]; }
  const T& front() const { return slots_[place(begin_)]; }
  T& back() { return slots_[place(end_ - 1)]; }
  const T& back() const { return slots_[place(end_ - 1)]; }

  std::uint64_t push(T value) {
    if (size() == capacity_) [[unlikely]]
      grow(capacity_ == 0 ? kFirst : capacity_ * 2);
    slots_[place(end_)] = std::move(value);
    return end_++;
  }
  /// Adds an element and returns a reference to it. The element still has the value that was last stored in its slot,
  /// so that the caller can reuse its memory.
  T& push_reused() {
    if (size() == capacity_) [[unlikely]]
      grow(capacity_ == 0 ? kFirst : capacity_ * 2);
    return slots_[place(end_++)];
  }
  void pop() { ++begin_; }
  /// Removes the element at `position` and all newer ones. Requires begin() <= position <= end().
  void truncate(std::uint64_t position) { end_ = position; }
  void clear() { begin_ = end_; }
  /// Leaves one position unused. Requires an empty ring.
  void skip() { begin_ = ++end_; }
  /// Prefetches the elements that front() and the next push() access.
  void prefetch() const {
    if (capacity_ == 0) return;
    __builtin_prefetch(&slots_[place(begin_)]);
    __builtin_prefetch(&slots_[place(end_)]);
  }

 private:
  static constexpr std::size_t kFirst = 2;  // small, because a transport has a ring for each of its many connections

  [[nodiscard]] std::size_t place(std::uint64_t position) const { return position & (capacity_ - 1); }

  void grow(std::size_t capacity) {
    auto bigger = std::make_unique<T[]>(capacity);
    for (std::uint64_t p = begin_; p != end_; ++p) bigger[p & (capacity - 1)] = std::move(slots_[place(p)]);
    slots_ = std::move(bigger);
    capacity_ = capacity;
  }

  std::unique_ptr<T[]> slots_;
  std::size_t capacity_ = 0;  // 0 or a power of two
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace mltcp
