// Keeping a thread on one CPU, for loops that poll (sched_setaffinity(2)).
#pragma once

#include <pthread.h>
#include <sched.h>

namespace mltcp {

/// Keeps the calling thread on `cpu`, below CPU_SETSIZE, from here on. 0, or the errno of why not: the thread is where
/// it was.
inline int keep_thread_on(unsigned cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  return pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

}  // namespace mltcp
