// A polling loop that runs on another of the Eal's cores than the calling thread.
#pragma once

#include <exception>

#include "mltcp/dpdk/eal.h"
#include "mltcp/transport/poll_loop.h"

namespace mltcp::dpdk {

class LaunchedLoop {
 public:
  /// Starts `loop` on core `core` (index in the Eal's list, 1 or higher) until `until`, and returns at once. All
  /// arguments must outlive this object. Throws InputError if there is no such core, RunError if it is busy.
  LaunchedLoop(const Eal& eal, PollLoop& loop, unsigned core, Nanos until);
  /// Stops the loop and waits for its end; an exception of the loop is lost unless wait() was called.
  ~LaunchedLoop();
  LaunchedLoop(const LaunchedLoop&) = delete;
  LaunchedLoop& operator=(const LaunchedLoop&) = delete;

  /// Waits for the loop's end; returns or throws what its run() does.
  bool wait();

 private:
  static void on_core(void* self);

  PollLoop& loop_;
  Nanos until_;
  CoreThread* thread_ = nullptr;  ///< while it runs
  bool stopped_ = false;
  std::exception_ptr failure_;
};

}  // namespace mltcp::dpdk
