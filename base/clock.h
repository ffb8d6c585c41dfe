// A monotonic clock that a polling loop can read every round: the CPU's time-stamp counter (TSC), scaled to the
// nanoseconds of CLOCK_MONOTONIC.
//
// The scale comes from two readings of both clocks, taken some time apart; over 100 ms it is right to about a
// millionth. A TSC that stops, or changes its speed, is not used: CPUID leaf 0x80000007 must call it invariant.
// Without one the clock reads CLOCK_MONOTONIC itself, which costs a few times as much.
#pragma once

#include <cstdint>

#include "mltcp/base/units.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace mltcp {

/// Whether this CPU promises a TSC of constant speed that never stops.
bool has_invariant_tsc();

/// CLOCK_MONOTONIC.
Nanos monotonic_now();

class Clock {
 public:
  /// Takes the first reading. The clock reads CLOCK_MONOTONIC until calibrate().
  Clock();

  /// Takes the second reading and switches to the TSC if it is invariant and the scale is believable. Call it 50 ms
  /// or more after construction, and not while others read the clock.
  void calibrate();

  /// Nanoseconds of CLOCK_MONOTONIC, about. Does not go back on one CPU; differs by less than a microsecond between
  /// the CPUs of a machine that synchronises its TSCs.
  [[nodiscard]] Nanos now() const {
#if defined(__x86_64__)
    if (multiplier_ != 0) [[likely]] {
      const Uint128 scaled = static_cast<Uint128>(__rdtsc() - start_ticks_) * multiplier_;
      return Nanos(start_.count + static_cast<std::int64_t>(scaled >> 32));
    }
#endif
    return monotonic_now();
  }

  /// Lets the calling thread sleep for `duration`, above 0 and less than a second; signals end it early.
  static void sleep(Nanos duration);

  [[nodiscard]] bool uses_tsc() const { return multiplier_ != 0; }
  /// TSC ticks per second; 0 if the TSC is not used.
  [[nodiscard]] double ticks_per_second() const;

 private:
  std::uint64_t start_ticks_ = 0;
  Nanos start_;
  std::uint64_t multiplier_ = 0;  ///< nanoseconds per tick, in 2^-32
};

}  // namespace mltcp
