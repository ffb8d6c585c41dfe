// Implements the clock on the scaled time-stamp counter (TSC); see clock.h.
#include "mltcp/base/clock.h"

#include <ctime>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace mltcp {
namespace {

struct Reading {
  std::uint64_t ticks = 0;
  Nanos time;
};

/// Reads the TSC and CLOCK_MONOTONIC at nearly the same moment. Each attempt reads the TSC before and after
/// CLOCK_MONOTONIC. Returns the attempt with the shortest time between its two TSC reads.
Reading read_both() {
  Reading best;
#if defined(__x86_64__)
  std::uint64_t best_width = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 16; ++attempt) {
    const std::uint64_t before = __rdtsc();
    const Nanos time = monotonic_now();
    const std::uint64_t width = __rdtsc() - before;
    if (width < best_width) {
      best_width = width;
      best = {before + width / 2, time};
    }
  }
#endif
  return best;
}

}  // namespace

bool has_invariant_tsc() {
#if defined(__x86_64__)
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1U << 8)) != 0;
#else
  return false;
#endif
}

Nanos monotonic_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return Nanos(std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec);
}

Clock::Clock() {
  const Reading reading = read_both();
  start_ticks_ = reading.ticks;
  start_ = reading.time;
}

void Clock::sleep(Nanos duration) {
  const timespec wanted{0, static_cast<long>(duration.count)};
  nanosleep(&wanted, nullptr);
}

void Clock::calibrate() {
  if (!has_invariant_tsc()) return;
  const Reading reading = read_both();
  const std::int64_t elapsed = (reading.time - start_).count;
  const std::uint64_t ticks = reading.ticks - start_ticks_;
  if (elapsed < 10'000'000 || reading.ticks <= start_ticks_) return;
  const auto multiplier =
      static_cast<std::uint64_t>((static_cast<Uint128>(static_cast<std::uint64_t>(elapsed)) << 32) / ticks);
  // A TSC rate outside 100 MHz to 100 GHz means that the readings were disturbed.
  constexpr std::uint64_t kSlowest = std::uint64_t{10} << 32;
  constexpr std::uint64_t kFastest = (std::uint64_t{1} << 32) / 100;
  if (multiplier > kSlowest || multiplier < kFastest) return;
  multiplier_ = multiplier;
}

double Clock::ticks_per_second() const {
  return multiplier_ == 0 ? 0.0 : 1e9 * 0x1.0p32 / static_cast<double>(multiplier_);
}

}  // namespace mltcp
