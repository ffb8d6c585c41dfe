// Keeps the time of a single-threaded polling loop: current time, statistics of how regularly the loop runs, and
// sleeping.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstdint>

#include "mltcp/base/clock.h"
#include "mltcp/base/thread_cpu.h"
#include "mltcp/base/time_source.h"
#include "mltcp/base/units.h"

namespace mltcp {

inline constexpr Nanos kStall{1'000'000};
/// Linux ends sleeps late. So a loop sleeps only if the next event is at least kWorthSleeping away, and plans to wake
/// up kWakeBefore before the event.
inline constexpr Nanos kWorthSleeping{200'000};
inline constexpr Nanos kWakeBefore{120'000};
inline constexpr Nanos kLongestSleep{20'000'000};

/// Statistics of how regularly a loop ran. They show delays caused by the machine.
struct LoopCounters {
  std::uint64_t rounds = 0;
  Nanos longest_gap;         ///< maximum of times between two rounds and of wake-up delays above 1 ms
  std::uint64_t stalls = 0;  ///< number of times between rounds, and of wake-up delays, above 1 ms
  Nanos stalled;             ///< total length of the times and delays that `stalls` counts
  std::uint64_t sleeps = 0;
  Nanos slept;
  Nanos max_overslept;  ///< maximum delay after the requested wake-up time
  // A nap is a sleep of a fixed length that nothing ends early. Sleeps that end more than 1 ms late are no naps.
  std::uint64_t naps = 0;
  Nanos nap_overslept;                       ///< total delay at the end of naps
  Nanos min_nap_overslept = Nanos::never();  ///< minimum delay at the end of a nap; never() if there was no nap
  /// Mean delay at the end of a nap; 0 if there was no nap.
  [[nodiscard]] Nanos mean_nap_overslept() const {
    return naps == 0 ? Nanos() : nap_overslept / static_cast<std::int64_t>(naps);
  }
};

/// During its lifetime, keeps the calling thread on one CPU and enables precise sleeping. The destructor restores the
/// CPUs on which the thread may run.
class RunThread {
 public:
  explicit RunThread(unsigned cpu) {
    known_ = pthread_getaffinity_np(pthread_self(), sizeof set_, &set_) == 0;
    keep_thread_on(cpu);
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

/// The time of one thread's loop, and statistics of how regularly the loop runs. `Source` reads the time and sleeps,
/// like Clock and TimeSource.
template <typename Source>
class BasicLoopTime {
 public:
  /// Starts a loop. `source` must outlive this object. The time of the loop begins at `now`, and continues as the time
  /// of `source` minus `shift`. Does not reset `counters`.
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

  /// Begins a round of the loop, and returns its start time.
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

  /// Sleeps until kWakeBefore before `due`, but not longer than kLongestSleep. Returns at once if `due` is less than
  /// kWorthSleeping away.
  void sleep_towards(Nanos due) {
    const Nanos time = now();
    if (due - time < kWorthSleeping) return;
    sleep_for(std::min(due - time - kWakeBefore, kLongestSleep));
  }

  /// Sleeps for `wanted`, which must be above 0 and less than a second. The sleep counts as a nap unless it ends more
  /// than 1 ms late.
  void sleep_for(Nanos wanted) {
    const Nanos overslept = count_sleep(wanted, [&] { source_->sleep(wanted); });
    if (overslept > kStall) return;
    ++counters.naps;
    counters.nap_overslept += overslept;
    counters.min_nap_overslept = std::min(counters.min_nap_overslept, overslept);
  }

  /// Calls sleep(), which is expected to take `wanted`, and counts the sleep. Returns how much longer than `wanted` the
  /// sleep took.
  template <typename Sleep>
  Nanos count_sleep(Nanos wanted, Sleep sleep) {
    const Nanos time = now();
    sleep();
    const Nanos woken = now();
    ++counters.sleeps;
    counters.slept += woken - time;
    const Nanos overslept = woken - (time + wanted);
    counters.max_overslept = std::max(counters.max_overslept, overslept);
    if (overslept > kStall) {  // the machine delayed the wake-up: counts like a gap between rounds
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

/// The time of a loop that reads a Clock directly.
using LoopTime = BasicLoopTime<const Clock>;

}  // namespace mltcp
