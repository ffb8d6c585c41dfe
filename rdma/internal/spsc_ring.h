// A bounded queue without locks. One thread pushes, and another thread pops.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>

namespace mltcp::rdma {

template <typename T, std::size_t kCapacity>
class SpscRing {
  static_assert((kCapacity & (kCapacity - 1)) == 0);

 public:
  /// Returns false if the queue is full.
  bool push(const T& value) {
    const std::size_t end = end_.load(std::memory_order_relaxed);
    if (end - begin_.load(std::memory_order_acquire) == kCapacity) return false;
    slots_[end % kCapacity] = value;
    end_.store(end + 1, std::memory_order_release);
    return true;
  }
  [[nodiscard]] bool is_empty() const {
    return begin_.load(std::memory_order_relaxed) == end_.load(std::memory_order_acquire);
  }
  std::optional<T> pop() {
    if (is_empty()) return std::nullopt;
    const std::size_t begin = begin_.load(std::memory_order_relaxed);
    const T value = slots_[begin % kCapacity];
    begin_.store(begin + 1, std::memory_order_release);
    return value;
  }

 private:
  std::array<T, kCapacity> slots_{};
  alignas(64) std::atomic<std::size_t> begin_{0};
  alignas(64) std::atomic<std::size_t> end_{0};
};

}  // namespace mltcp::rdma
