// A bounded lock-free queue of small values, for any number of writing and reading threads. The sequence number of each
// cell shows whether the cell is to be written or read next (Dmitry Vyukov, "Bounded MPMC queue", 1024cores.net).
// Neither push() nor pop() waits.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace mltcp::endpoint {

template <typename T>
class BoundedRing {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// Creates a queue for at least `capacity` values. `capacity` must be 1 or more.
  explicit BoundedRing(std::size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? std::size_t{2} : capacity) - 1),
        cells_(std::make_unique<Cell[]>(mask_ + 1)) {
    for (std::size_t i = 0; i <= mask_; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  /// Returns false if the queue is full.
  bool push(const T& value) noexcept {
    std::size_t place = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[place & mask_];
      const auto ahead =
          static_cast<std::ptrdiff_t>(cell.turn.load(std::memory_order_acquire)) - static_cast<std::ptrdiff_t>(place);
      if (ahead < 0) return false;
      if (ahead == 0 && tail_.compare_exchange_weak(place, place + 1, std::memory_order_relaxed)) {
        cell.value = value;
        cell.turn.store(place + 1, std::memory_order_release);
        return true;
      }
      if (ahead > 0) place = tail_.load(std::memory_order_relaxed);
    }
  }

  /// Returns false if the queue is empty, or if its oldest value is still being written.
  bool pop(T& value) noexcept {
    std::size_t place = head_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[place & mask_];
      const auto ahead = static_cast<std::ptrdiff_t>(cell.turn.load(std::memory_order_acquire)) -
                         static_cast<std::ptrdiff_t>(place + 1);
      if (ahead < 0) return false;
      if (ahead == 0 && head_.compare_exchange_weak(place, place + 1, std::memory_order_relaxed)) {
        value = cell.value;
        cell.turn.store(place + mask_ + 1, std::memory_order_release);
        return true;
      }
      if (ahead > 0) place = head_.load(std::memory_order_relaxed);
    }
  }

  /// Returns whether pop() would succeed now.
  [[nodiscard]] bool has_some() const noexcept {
    const std::size_t place = head_.load(std::memory_order_relaxed);
    return cells_[place & mask_].turn.load(std::memory_order_acquire) == place + 1;
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return mask_ + 1; }

 private:
  struct Cell {
    std::atomic<std::size_t> turn{0};
    T value{};
  };

  const std::size_t mask_;
  const std::unique_ptr<Cell[]> cells_;
  // Writers and readers use separate cache lines.
  alignas(64) std::atomic<std::size_t> tail_{0};
  alignas(64) std::atomic<std::size_t> head_{0};
};

}  // namespace mltcp::endpoint
