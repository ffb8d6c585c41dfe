// The one thread of a process on which DPDK is started and set up. Internal to this folder.
//
// DPDK starts once in a process, pins the thread that starts it, and its set-up functions (devices, ports, pools) must
// not be called by two threads at once. So this thread makes all of these calls, one after the other, and no thread of
// the program is changed. It is created by the first call, takes no signals, and lasts as long as the process.
#pragma once

#include <functional>
#include <type_traits>

namespace mltcp::dpdk {

/// Makes the service thread run `work` in the calling thread's network namespace, and waits for its end. Rethrows
/// exceptions of `work`. On the service thread itself `work` runs at once. Throws RunError if this process was forked
/// from one that had started DPDK, which the child cannot use.
void run_on_service(const std::function<void()>& work);
/// For destructors: the same, but does nothing in such a child, and stays in its current namespace if the caller's
/// cannot be entered. `work` must not throw.
void end_on_service(const std::function<void()>& work) noexcept;

/// As run_on_service(), and returns the result of `work`.
template <typename Work>
auto on_service(const Work& work) {
  if constexpr (std::is_void_v<decltype(work())>) {
    run_on_service(work);
  } else {
    decltype(work()) result{};
    run_on_service([&] { result = work(); });
    return result;
  }
}

/// Registers the calling thread with DPDK until it ends, so that it has its own caches in pools (for up to 128 threads;
/// further ones have none). Its CPU affinity does not change. Call after the start of DPDK; repeated calls cost next to
/// nothing.
void join_dpdk() noexcept;

}  // namespace mltcp::dpdk
