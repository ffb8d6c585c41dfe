// Which CPU a loop that polls was given, and keeping its thread there (sched_setaffinity(2)).
#pragma once

#include <pthread.h>
#include <sched.h>

#include <string>

namespace mltcp {

/// Keeps the calling thread on `cpu`, below CPU_SETSIZE, from here on. 0, or the errno of why not: the thread is where
/// it was.
inline int keep_thread_on(unsigned cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  return pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

/// The CPU that `cores` names, for a host that polls its port on one; -1: it is empty. Throws InputError if it is no
/// number, or one of a CPU that this process may not use.
int named_cpu(const std::string& cores);

}  // namespace mltcp
