// Timekeeping of a single-threaded polling loop: current time, statistics of its regularity, and sleeping.
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
/// Linux ends sleeps late. So sleep only if the next event is at least this far away, and wake up kWakeBefore before
/// it.
inline constexpr Nanos kWorthSleeping{200'000};
inline constexpr Nanos kWakeBefore{120'000};
inline constexpr Nanos kLongestSleep{20'000'000};

/// Measures of how regularly a loop ran: delays caused by the machine.
struct LoopCounters {
  std::uint64_t rounds = 0;
  Nanos longest_gap;         ///< maximum time between two rounds; sleeps count only with the time overslept
  std::uint64_t stalls = 0;  ///< gaps above 1 ms
  Nanos stalled;             ///< sum of these gaps
  std::uint64_t sleeps = 0;
  Nanos slept;
  Nanos max_overslept;  ///< maximum delay after the requested wake-up time, which is earlier than the next event by
                        ///< kWakeBefore
  // Naps are sleeps of a fixed length that nothing ends early. Stalls are not counted.
  std::uint64_t naps = 0;
  Nanos nap_overslept;                       ///< in total
  Nanos min_nap_overslept = Nanos::never();  ///< minimum; never() if there was no nap
  /// Mean delay at the end of a nap.
  [[nodiscard]] Nanos mean_nap_overslept() const {
    return naps == 0 ? Nanos() : nap_overslept / static_cast<std::int64_t>(naps);
  }
};

/// Keeps the calling thread on a CPU while it lives, and enables precise sleeping.
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

/// The time of one thread's loop, and statistics of its regularity. `Source` reads the time and sleeps, like Clock and
/// TimeSource.
template <typename Source>
class BasicLoopTime {
 public:
  /// Restarts the statistics. Times are those of `source`, which must outlive this object, minus `shift`; `now` is the
  /// first.
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

  /// Begins a round and returns its time.
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

  /// Sleeps until shortly before `due` if that is far enough away.
  void sleep_towards(Nanos due) {
    const Nanos time = now();
    if (due - time < kWorthSleeping) return;
    sleep_for(std::min(due - time - kWakeBefore, kLongestSleep));
  }

  /// Sleeps for `wanted`, above 0 and less than a second.
  void sleep_for(Nanos wanted) {
    const Nanos overslept = count_sleep(wanted, [&] { source_->sleep(wanted); });
    if (overslept > kStall) return;
    ++counters.naps;
    counters.nap_overslept += overslept;
    counters.min_nap_overslept = std::min(counters.min_nap_overslept, overslept);
  }

  /// Calls `sleep`, which should take `wanted`, and counts it; returns how much longer it took.
  template <typename Sleep>
  Nanos count_sleep(Nanos wanted, Sleep sleep) {
    const Nanos time = now();
    sleep();
    const Nanos woken = now();
    ++counters.sleeps;
    counters.slept += woken - time;
    const Nanos overslept = woken - (time + wanted);
    counters.max_overslept = std::max(counters.max_overslept, overslept);
    if (overslept > kStall) {  // delayed by the machine, counted like a gap between rounds
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

/// For a loop that reads the clock directly.
using LoopTime = BasicLoopTime<const Clock>;

}  // namespace mltcp
