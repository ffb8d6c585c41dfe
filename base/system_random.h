// Cryptographically secure random numbers from the system (getrandom(2)), for what others must not guess or reuse, such
// as connection ids. Simulations and tests use the seeded, reproducible generator of random.h instead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mltcp {

/// Buffers many numbers per system call. After fork() both processes would draw the same ones: create a new object.
class SystemRandom {
 public:
  SystemRandom() = default;
  SystemRandom(const SystemRandom&) = delete;
  SystemRandom& operator=(const SystemRandom&) = delete;

  /// Uniform over all 64-bit values. May block while the system boots. Throws RunError if the system has no random
  /// numbers, which can only happen in the first call.
  std::uint64_t next() {
    if (left_ == 0) refill();
    return pool_[--left_];
  }

 private:
  void refill();

  std::array<std::uint64_t, 32> pool_{};
  std::size_t left_ = 0;
};

}  // namespace mltcp
