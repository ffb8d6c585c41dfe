// Runs a polling loop on one of the Eal's cores, but not on the first one, which is for the calling thread.
#pragma once

#include <exception>

#include "mltcp/dpdk/eal.h"
#include "mltcp/transport/poll_loop.h"

namespace mltcp::dpdk {

class LaunchedLoop {
 public:
  /// Starts `loop` on core `core` (index in the Eal's list, 1 or higher) until the time `until`, and returns at once.
  /// All arguments must outlive this object. Throws InputError if there is no such core. Throws RunError if the core
  /// already runs a loop.
  LaunchedLoop(const Eal& eal, PollLoop& loop, unsigned core, Nanos until);
  /// Stops the loop and waits for its end. An exception of the loop is lost unless wait() was called.
  ~LaunchedLoop();
  LaunchedLoop(const LaunchedLoop&) = delete;
  LaunchedLoop& operator=(const LaunchedLoop&) = delete;

  /// Waits for the loop's end. Returns what PollLoop::run() returned, or throws its exception.
  bool wait();

 private:
  static void on_core(void* self);

  PollLoop& loop_;
  Nanos until_;
  CoreThread* thread_ = nullptr;  ///< the thread that runs the loop; null after wait()
  bool stopped_ = false;
  std::exception_ptr failure_;
};

}  // namespace mltcp::dpdk
