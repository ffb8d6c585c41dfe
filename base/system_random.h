// Cryptographically secure random numbers from the system (getrandom(2)), for what others must not guess or reuse, such
// as connection ids. Simulations and tests use the seeded, reproducible generator of random.h instead.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mltcp {

/// Buffers many numbers per system call. After fork() the child draws anew: its numbers are not those of its parent.
class SystemRandom {
 public:
  SystemRandom() = default;
  SystemRandom(const SystemRandom&) = delete;
  SystemRandom& operator=(const SystemRandom&) = delete;

  /// Uniform over all 64-bit values. May block while the system boots. Throws RunError if the system has no random
  /// numbers, which can only happen in the first call of a process.
  std::uint64_t next() {
    if (left_ == 0 || drawn_after_ != forks_.load(std::memory_order_relaxed)) [[unlikely]]
      refill();
    return pool_[--left_];
  }

 private:
  void refill();
  static void on_fork() noexcept { forks_.fetch_add(1, std::memory_order_relaxed); }

  /// How many fork() lie between this process and the program's first.
  static inline std::atomic<std::uint32_t> forks_{0};

  std::array<std::uint64_t, 32> pool_{};
  std::size_t left_ = 0;
  std::uint32_t drawn_after_ = 0;  ///< so many fork() was the pool filled
};

}  // namespace mltcp
