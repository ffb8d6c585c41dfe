// Keeps the thread of a polling loop on a CPU (sched_setaffinity(2)), and reads the number of the CPU from text.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <string>

namespace mltcp {

/// Keeps the calling thread on CPU number `cpu`, which must be below CPU_SETSIZE. Returns 0 if successful. If not,
/// returns an errno value and leaves the thread where it is.
inline int keep_thread_on(unsigned cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  return pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

/// Returns the number of the CPU on which a host polls its port, from the text `cores`; -1 if `cores` is empty. Throws
/// InputError if `cores` is not a number, or if this process may not use that CPU.
int named_cpu(const std::string& cores);

}  // namespace mltcp
