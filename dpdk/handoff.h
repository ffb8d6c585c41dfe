// Tells ThreadSanitizer that packets, or a whole network, change hands. Rings, pools and the launch of threads do it
// inside DPDK's libraries, which are not instrumented, so that it can't see them; in other builds these functions are
// empty.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define MLTCP_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MLTCP_THREAD_SANITIZER 1
#endif
#endif

#if defined(MLTCP_THREAD_SANITIZER)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace mltcp::dpdk {

/// Before what the calling thread wrote is handed over through the ring, pool or other object at `where`.
inline void hand_over([[maybe_unused]] void* where) {
#if defined(MLTCP_THREAD_SANITIZER)
  __tsan_release(where);
#endif
}

/// After something was taken from the one at `where`.
inline void take_over([[maybe_unused]] void* where) {
#if defined(MLTCP_THREAD_SANITIZER)
  __tsan_acquire(where);
#endif
}

}  // namespace mltcp::dpdk
