// A monotonic clock that is cheap enough to be read in every round of a polling loop: the CPU's time-stamp counter
// (TSC), scaled to the nanoseconds of CLOCK_MONOTONIC.
//
// The scale is derived from two readings of the TSC and CLOCK_MONOTONIC. If the readings are 100 ms apart, the scale is
// accurate to about 1 ppm. The TSC is used only if it is invariant (CPUID leaf 0x80000007), that is, has a constant
// rate and never stops. On other CPUs the clock reads CLOCK_MONOTONIC, which takes several times as long as reading the
// TSC.
#pragma once

#include <cstdint>

#include "mltcp/base/units.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace mltcp {

/// Returns whether this CPU has an invariant TSC, that is, one with a constant rate that never stops.
bool has_invariant_tsc();

/// Returns the current time of CLOCK_MONOTONIC.
Nanos monotonic_now();

class Clock {
 public:
  /// Reads the TSC and CLOCK_MONOTONIC for the first time. Until calibrate(), now() returns CLOCK_MONOTONIC.
  Clock();

  /// Reads the TSC and CLOCK_MONOTONIC for the second time. Switches to the TSC if it is invariant and the scale is
  /// plausible. Call it at least 50 ms after construction, while no other thread reads the clock.
  void calibrate();

  /// Returns approximately the time of CLOCK_MONOTONIC. On one CPU, this time never decreases. If a machine
  /// synchronises the TSCs of its CPUs, the times on two CPUs differ by less than a microsecond.
  [[nodiscard]] Nanos now() const {
#if defined(__x86_64__)
    if (multiplier_ != 0) [[likely]] {
      const Uint128 scaled = static_cast<Uint128>(__rdtsc() - start_ticks_) * multiplier_;
      return Nanos(start_.count + static_cast<std::int64_t>(scaled >> 32));
    }
#endif
    return monotonic_now();
  }

  /// Makes the calling thread sleep for `duration`, which must be above 0 and less than a second. A signal ends the
  /// sleep early.
  static void sleep(Nanos duration);

  [[nodiscard]] bool uses_tsc() const { return multiplier_ != 0; }
  /// TSC ticks per second; 0 if the TSC is not used.
  [[nodiscard]] double ticks_per_second() const;

 private:
  std::uint64_t start_ticks_ = 0;
  Nanos start_;
  std::uint64_t multiplier_ = 0;  ///< nanoseconds per TSC tick, times 2^32; 0 if the TSC is not used
};

}  // namespace mltcp
