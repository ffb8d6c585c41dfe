// Lets threads wait for each other outside the data path, with a mutex and a condition variable on the monotonic clock.
#pragma once

#include <pthread.h>

#include <cerrno>
#include <ctime>

#include "mltcp/base/clock.h"
#include "mltcp/base/units.h"

namespace mltcp::endpoint {

class Gate {
 public:
  Gate() {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed_, &attributes);
    pthread_condattr_destroy(&attributes);
  }
  ~Gate() {
    pthread_cond_destroy(&changed_);
    pthread_mutex_destroy(&mutex_);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Runs `change()` under the mutex and wakes the waiting threads.
  template <typename Change>
  void notify(Change change) noexcept {
    pthread_mutex_lock(&mutex_);
    change();
    pthread_cond_broadcast(&changed_);
    pthread_mutex_unlock(&mutex_);
  }
  void notify() noexcept {
    notify([] {});
  }
  /// Waits until `there()` is true, for at most `limit` (0 or more). Calls `there()` under the mutex after each
  /// notify(), and returns its last result.
  template <typename There>
  bool wait(Nanos limit, There there) noexcept {
    const Nanos now = monotonic_now();
    const Nanos end = limit > Nanos::never() - now ? Nanos::never() : now + limit;
    const timespec until{static_cast<time_t>(end.count / 1'000'000'000), static_cast<long>(end.count % 1'000'000'000)};
    pthread_mutex_lock(&mutex_);
    bool is_there = there();
    while (!is_there) {
      const int result =
          end.is_never() ? pthread_cond_wait(&changed_, &mutex_) : pthread_cond_timedwait(&changed_, &mutex_, &until);
      is_there = there();
      if (result == ETIMEDOUT) break;
    }
    pthread_mutex_unlock(&mutex_);
    return is_there;
  }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed_{};
};

}  // namespace mltcp::endpoint
