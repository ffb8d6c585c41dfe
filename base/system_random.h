// Cryptographically secure random numbers from the system (getrandom(2)), for values that others must not guess or
// reuse, such as connection ids. Simulations and tests use the seeded, reproducible generator of random.h instead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mltcp {

/// Returns how many times this process is known to have become a copy of another process, with the same memory. A
/// process becomes a copy if it is the child of a fork(), or if its machine is resumed from a snapshot. The number
/// starts at 0. When it changes, replace all keys that must never be used twice with the same nonce. May be called from
/// any thread.
std::uint32_t process_copies() noexcept;
/// Records that this process has become a copy of another process. May be called from any thread and from signal
/// handlers.
void note_process_copy() noexcept;

/// Fills `out` with new random bytes from the kernel. Suitable for keys, because it keeps no buffer that a copy of the
/// process would share. May block while the system boots. Throws RunError if the system has no random numbers, which
/// can only happen in the first call of a process.
void draw_system_random(std::span<std::byte> out);

/// Buffers random numbers, to make few system calls. Discards the buffer when process_copies() changes.
class SystemRandom {
 public:
  SystemRandom() = default;
  SystemRandom(const SystemRandom&) = delete;
  SystemRandom& operator=(const SystemRandom&) = delete;

  /// Returns a number that is uniform over all 64-bit values. Blocks and throws like draw_system_random().
  std::uint64_t next() {
    if (left_ == 0 || drawn_after_ != process_copies()) [[unlikely]]
      refill();
    return pool_[--left_];
  }

 private:
  void refill();

  std::array<std::uint64_t, 32> pool_{};
  std::size_t left_ = 0;
  std::uint32_t drawn_after_ = 0;  ///< process_copies() when the pool was filled
};

}  // namespace mltcp
