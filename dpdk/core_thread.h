// A thread that is bound to a CPU and registered with DPDK. It sleeps until it is given work. Internal to this folder.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace mltcp::dpdk {

class CoreThread {
 public:
  explicit CoreThread(unsigned cpu);
  /// Waits until the current work has ended, and ends the thread.
  ~CoreThread();
  CoreThread(const CoreThread&) = delete;
  CoreThread& operator=(const CoreThread&) = delete;

  using Work = void (*)(void* self);
  /// Makes the thread call `work` with `self`. `work` must not throw. Returns false if an earlier call's work has not
  /// ended.
  bool start(Work work, void* self);
  /// Waits until the thread has no work.
  void wait();

 private:
  void serve(unsigned cpu);

  std::mutex mutex_;
  std::condition_variable changed_;
  Work work_ = nullptr;
  void* self_ = nullptr;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace mltcp::dpdk
