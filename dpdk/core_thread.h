// A thread that is bound to a CPU, known to DPDK, and sleeps until it is given work. Internal to this folder.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace mltcp::dpdk {

class CoreThread {
 public:
  explicit CoreThread(unsigned cpu);
  /// Waits for the end of its work.
  ~CoreThread();
  CoreThread(const CoreThread&) = delete;
  CoreThread& operator=(const CoreThread&) = delete;

  using Work = void (*)(void* self);
  /// Makes it call `work` with `self`; `work` must not throw. False if it is already at work.
  bool start(Work work, void* self);
  /// Waits until it has no work.
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
