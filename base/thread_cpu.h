// The CPU of a polling loop: keeping its thread there (sched_setaffinity(2)), and reading its number from text.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <string>

namespace mltcp {

/// Keeps the calling thread on `cpu`, below CPU_SETSIZE, from now on. Returns 0, or an errno value; the thread then
/// stays where it is.
inline int keep_thread_on(unsigned cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  return pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

/// The CPU that `cores` names, for a host that polls its port on one CPU; -1 if `cores` is empty. Throws InputError if
/// it is not a number, or if this process may not use the CPU.
int named_cpu(const std::string& cores);

}  // namespace mltcp
