// A first-in-first-out ring on a power-of-two array, indexed by ever-growing positions.
//
// Element `p` (begin() <= p < end()) sits at `p & mask`, so a position names an element for as long as the
// element lives. GrowableRing doubles when it is full (amortised, for set-up, simulation and queues whose
// bound is large but rarely reached); with `reserve` called for the bound it never allocates afterwards.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mltcp {

template <typename T>
class GrowableRing {
 public:
  GrowableRing() = default;
  explicit GrowableRing(std::size_t capacity) { reserve(capacity); }

  void reserve(std::size_t capacity) {
    if (capacity > slots_.size()) grow(std::bit_ceil(capacity));
  }

  [[nodiscard]] bool empty() const { return begin_ == end_; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  [[nodiscard]] std::size_t capacity() const { return slots_.size(); }
  /// Position of the oldest element, and the position that the next element will get.
  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }

  T& operator[](std::uint64_t position) { return slots_[position & mask_]; }
  const T& operator[](std::uint64_t position) const { return slots_[position & mask_]; }
  T& front() { return slots_[begin_ & mask_]; }
  const T& front() const { return slots_[begin_ & mask_]; }
  T& back() { return slots_[(end_ - 1) & mask_]; }
  const T& back() const { return slots_[(end_ - 1) & mask_]; }

  std::uint64_t push(T value) {
    if (size() == slots_.size()) [[unlikely]]
      grow(slots_.empty() ? first : slots_.size() * 2);
    slots_[end_ & mask_] = std::move(value);
    return end_++;
  }
  /// Like push(), but hands out the slot as its last user left it, so that memory it holds is used again.
  T& push_reused() {
    if (size() == slots_.size()) [[unlikely]]
      grow(slots_.empty() ? first : slots_.size() * 2);
    return slots_[end_++ & mask_];
  }
  void pop() { ++begin_; }
  void clear() { begin_ = end_; }

 private:
  static constexpr std::size_t first = 2;  // few: a transport has as many rings as connections

  void grow(std::size_t capacity) {
    std::vector<T> bigger(capacity);
    for (std::uint64_t p = begin_; p != end_; ++p) bigger[p & (capacity - 1)] = std::move(slots_[p & mask_]);
    slots_ = std::move(bigger);
    mask_ = capacity - 1;
  }

  std::vector<T> slots_;
  std::uint64_t mask_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace mltcp
