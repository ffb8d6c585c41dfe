// Annotations for ThreadSanitizer about synchronisation inside libraries that are not instrumented: DPDK (rings, pools,
// thread launch) and oneTBB (tasks). In builds without ThreadSanitizer these functions are empty.
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
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);
#endif

namespace mltcp {

/// Call before this thread passes data to another thread through the object at `where`, such as a ring, pool or task.
inline void hand_over([[maybe_unused]] const void* where) {
#if defined(MLTCP_THREAD_SANITIZER)
  __tsan_release(const_cast<void*>(where));
#endif
}

/// Call after this thread has received data through the object at `where`.
inline void take_over([[maybe_unused]] const void* where) {
#if defined(MLTCP_THREAD_SANITIZER)
  __tsan_acquire(const_cast<void*>(where));
#endif
}

/// During its lifetime, ThreadSanitizer ignores the memory accesses of this thread. Use it around inline functions of
/// DPDK and oneTBB, whose synchronisation ThreadSanitizer does not understand.
class Unwatched {
 public:
#if defined(MLTCP_THREAD_SANITIZER)
  Unwatched() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unwatched() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  Unwatched() {}   // NOLINT(modernize-use-equals-default): avoids warnings about unused variables
  ~Unwatched() {}  // NOLINT(modernize-use-equals-default)
#endif
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

}  // namespace mltcp
