// The one thread of a process on which DPDK is started and set up. Internal to this folder.
//
// DPDK starts once in a process, pins the thread that starts it, and its set-up functions (devices, ports, pools) are
// not to be called by two threads at once. So all of them are called here, one after the other, whoever needs them, and
// no thread of the program is changed. The thread is made with the first call, takes no signals, and lasts as long as
// the process.
#pragma once

#include <functional>
#include <type_traits>

namespace mltcp::dpdk {

/// Has the service thread run `work` in the calling thread's network namespace, and waits for its end. What `work`
/// throws is thrown here. On the service thread itself `work` runs at once. Throws RunError if this process was forked
/// from one that had started DPDK, which the child can't use.
void run_on_service(const std::function<void()>& work);
/// For destructors: the same, but does nothing in such a child, and stays in the namespace where it is if the caller's
/// can't be entered. `work` must not throw.
void end_on_service(const std::function<void()>& work) noexcept;

/// As run_on_service(), and returns what `work` does.
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

/// Makes the calling thread known to DPDK until it ends, so that it has caches of its own in pools (DPDK knows 128
/// threads; a further one does without). Its CPU affinity stays as it is. To be called after the start of DPDK; further
/// calls of a thread cost next to nothing.
void join_dpdk() noexcept;

}  // namespace mltcp::dpdk
