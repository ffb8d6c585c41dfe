// Random numbers that nobody can foresee, from the system (getrandom(2)): for what others must not guess or meet again,
// such as the ids of connections. Simulations and tests use seeded ones (random.h), which are the same every time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mltcp {

/// Asks the system for many at a time. A copy of a process (fork) would draw the same from what is left: make a new
/// one.
class SystemRandom {
 public:
  SystemRandom() = default;
  SystemRandom(const SystemRandom&) = delete;
  SystemRandom& operator=(const SystemRandom&) = delete;

  /// Uniform over all 64-bit values. May wait while the system starts; throws RunError if it has no random numbers,
  /// which shows at the first call: once there are some, there always are.
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
