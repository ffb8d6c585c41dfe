// Cryptographically secure random numbers from the system (getrandom(2)), for what others must not guess or reuse, such
// as connection ids. Simulations and tests use the seeded, reproducible generator of random.h instead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mltcp {

/// How often this process is known to have become a copy, whose memory another process has, too: as the child of a
/// fork(), or because its machine was resumed from a snapshot. A key under which a number must not be used twice ends
/// when this changes. Starts at 0. From any thread.
std::uint32_t process_copies() noexcept;
/// Says that this process has become a copy. From any thread, and from signal handlers.
void note_process_copy() noexcept;

/// Fills `out` anew, without a buffer in memory that a copy of the process would have, too: for keys. May block while
/// the system boots. Throws RunError if the system has no random numbers, which can only happen in the first call of a
/// process.
void draw_system_random(std::span<std::byte> out);

/// Buffers many numbers per system call. A process that is known to be a copy draws anew (process_copies()).
class SystemRandom {
 public:
  SystemRandom() = default;
  SystemRandom(const SystemRandom&) = delete;
  SystemRandom& operator=(const SystemRandom&) = delete;

  /// Uniform over all 64-bit values. Blocks and throws as draw_system_random().
  std::uint64_t next() {
    if (left_ == 0 || drawn_after_ != process_copies()) [[unlikely]]
      refill();
    return pool_[--left_];
  }

 private:
  void refill();

  std::array<std::uint64_t, 32> pool_{};
  std::size_t left_ = 0;
  std::uint32_t drawn_after_ = 0;  ///< so many copies was the pool filled
};

}  // namespace mltcp
