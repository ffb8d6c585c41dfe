// A loop that runs on one of the Eal's cores instead of the calling thread.
#pragma once

#include <exception>

#include "mltcp/dpdk/eal.h"
#include "mltcp/transport/poll_loop.h"

namespace mltcp::dpdk {

class LaunchedLoop {
 public:
  /// Has `loop` run until `until` on core `core` of the Eal's list, 1 or higher, without waiting for its end. All
  /// outlive it. Throws InputError if there is no such core, RunError if it is busy.
  LaunchedLoop(const Eal& eal, PollLoop& loop, unsigned core, Nanos until);
  /// Stops the loop and waits for its end, unless wait() has; what it throws is lost then.
  ~LaunchedLoop();
  LaunchedLoop(const LaunchedLoop&) = delete;
  LaunchedLoop& operator=(const LaunchedLoop&) = delete;

  /// Waits for the loop's end, and returns or throws what its run() would.
  bool wait();

 private:
  static int on_core(void* self);

  PollLoop& loop_;
  unsigned core_;
  Nanos until_;
  bool running_ = false;
  bool stopped_ = false;
  std::exception_ptr failure_;
};

}  // namespace mltcp::dpdk
