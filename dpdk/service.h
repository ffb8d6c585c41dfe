// The single thread of a process that starts DPDK and sets it up. Internal to this folder.
//
// DPDK can start only once in a process, and it pins the thread that starts it. Two threads must not call its set-up
// functions (devices, ports, pools) at once. So the service thread makes all of these calls, one after the other, and
// DPDK does not pin a thread of the program. The first call creates the service thread. The thread receives no signals
// and runs until the process ends.
#pragma once

#include <functional>
#include <type_traits>

namespace mltcp::dpdk {

/// Makes the service thread run `work` in the calling thread's network namespace, and waits until `work` returns.
/// Rethrows exceptions of `work`. If the caller is the service thread, runs `work` at once. Throws RunError if the
/// parent process started DPDK before it forked this process, because this process then cannot use DPDK.
void run_on_service(const std::function<void()>& work);
/// The variant of run_on_service() for destructors. Does nothing if the parent process started DPDK before the fork. If
/// the service thread cannot enter the caller's network namespace, it runs `work` in the namespace in which it is.
/// `work` must not throw.
void end_on_service(const std::function<void()>& work) noexcept;

/// Calls run_on_service(), and returns the result of `work`.
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

/// Registers the calling thread with DPDK until the thread ends, so that it has its own caches in pools. DPDK registers
/// up to 128 threads; further threads have no caches. The thread's CPU affinity does not change. Requires that DPDK has
/// started. Repeated calls cost next to nothing.
void join_dpdk() noexcept;

}  // namespace mltcp::dpdk
