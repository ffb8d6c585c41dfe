// Threads of the Eal's further cores; see core_thread.h.
#include "mltcp/dpdk/core_thread.h"

#include <pthread.h>
#include <sched.h>

#include <csignal>

#include "mltcp/base/thread_cpu.h"
#include "mltcp/dpdk/service.h"

namespace mltcp::dpdk {

CoreThread::CoreThread(unsigned cpu) {
  // All signals are blocked in the new thread, so that the creating thread handles them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, cpu] { serve(cpu); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

CoreThread::~CoreThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool CoreThread::start(Work work, void* self) {
  {
    const std::lock_guard lock(mutex_);
    if (work_ != nullptr) return false;
    work_ = work;
    self_ = self;
  }
  changed_.notify_all();
  return true;
}

void CoreThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return work_ == nullptr; });
}

void CoreThread::serve(unsigned cpu) {
  keep_thread_on(cpu);
  join_dpdk();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return work_ != nullptr || ends_; });
    if (work_ == nullptr) return;
    lock.unlock();
    work_(self_);
    lock.lock();
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace mltcp::dpdk
