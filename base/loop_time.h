// The time of a polling loop in one thread, what is counted about its evenness, and how it sleeps.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstdint>

#include "mltcp/base/clock.h"
#include "mltcp/base/time_source.h"
#include "mltcp/base/units.h"

namespace mltcp {

inline constexpr Nanos kStall{1'000'000};
/// Sleep only for things that are further away, and wake that much before them: Linux ends a sleep late.
inline constexpr Nanos kWorthSleeping{200'000};
inline constexpr Nanos kWakeBefore{120'000};
inline constexpr Nanos kLongestSleep{20'000'000};

/// How evenly a loop ran: what the machine did to real time.
struct LoopCounters {
  std::uint64_t rounds = 0;
  Nanos longest_gap;         ///< between two rounds; of a sleep, what it took longer than it should
  std::uint64_t stalls = 0;  ///< gaps above 1 ms
  Nanos stalled;             ///< their sum
  std::uint64_t sleeps = 0;
  Nanos slept;
  Nanos most_overslept;  ///< beyond the end that was asked for, which lies before the next thing that is due
  // Of naps: sleeps of a length that was asked for, which nothing ends early. Stalls are left out.
  std::uint64_t naps = 0;
  Nanos nap_overslept;                         ///< all together
  Nanos least_nap_overslept = Nanos::never();  ///< never() without a nap
  /// By how much a nap ends late.
  [[nodiscard]] Nanos mean_nap_overslept() const {
    return naps == 0 ? Nanos() : nap_overslept / static_cast<std::int64_t>(naps);
  }
};

/// Pins the calling thread for the time of a run and lets it sleep precisely.
class RunThread {
 public:
  explicit RunThread(unsigned cpu) {
    known_ = pthread_getaffinity_np(pthread_self(), sizeof set_, &set_) == 0;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
  }
  ~RunThread() {
    if (known_) pthread_setaffinity_np(pthread_self(), sizeof set_, &set_);
  }
  RunThread(const RunThread&) = delete;
  RunThread& operator=(const RunThread&) = delete;

 private:
  cpu_set_t set_{};
  bool known_ = false;
  PreciseSleep sleep_;
};

/// The time of one thread's loop, and what it counts about its evenness. `Source` tells the time and sleeps, as Clock
/// and TimeSource do.
template <typename Source>
class BasicLoopTime {
 public:
  /// From now on. Times are those of `source`, which outlives it, less `shift`; the first is `now`.
  void start(Source& source, Nanos shift, Nanos now) {
    source_ = &source;
    shift_ = shift;
    latest_ = now;
    round_ = Nanos::never();
  }

  Nanos now() {
    const Nanos time = source_->now() - shift_;
    if (time > latest_) latest_ = time;
    return latest_;
  }

  /// The time of a new round.
  Nanos begin_round() {
    const Nanos time = now();
    ++counters.rounds;
    if (!round_.is_never()) {
      const Nanos gap = time - round_;
      if (gap > counters.longest_gap) {
        counters.longest_gap = gap;
      }
      if (gap > kStall) {
        ++counters.stalls;
        counters.stalled += gap;
      }
    }
    round_ = time;
    return time;
  }

  /// Sleeps to shortly before `due` if that is worth it.
  void sleep_towards(Nanos due) {
    const Nanos time = now();
    if (due - time < kWorthSleeping) return;
    sleep_for(std::min(due - time - kWakeBefore, kLongestSleep));
  }

  /// Sleeps for `wanted`, less than a second and above 0.
  void sleep_for(Nanos wanted) {
    const Nanos overslept = count_sleep(wanted, [&] { source_->sleep(wanted); });
    if (overslept > kStall) return;
    ++counters.naps;
    counters.nap_overslept += overslept;
    counters.least_nap_overslept = std::min(counters.least_nap_overslept, overslept);
  }

  /// Counts what `sleep` does as a sleep that should take `wanted`; returns how much longer it took.
  template <typename Sleep>
  Nanos count_sleep(Nanos wanted, Sleep sleep) {
    const Nanos time = now();
    sleep();
    const Nanos woken = now();
    ++counters.sleeps;
    counters.slept += woken - time;
    const Nanos overslept = woken - (time + wanted);
    counters.most_overslept = std::max(counters.most_overslept, overslept);
    if (overslept > kStall) {  // the machine had other things to do, as between two rounds
      counters.longest_gap = std::max(counters.longest_gap, overslept);
      ++counters.stalls;
      counters.stalled += overslept;
    }
    round_ = Nanos::never();
    return overslept;
  }

  LoopCounters counters;

 private:
  Source* source_ = nullptr;
  Nanos shift_;
  Nanos latest_;
  Nanos round_ = Nanos::never();
};

/// That of a loop that reads the clock itself.
using LoopTime = BasicLoopTime<const Clock>;

}  // namespace mltcp
