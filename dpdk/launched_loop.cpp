// Loops on cores of their own; see launched_loop.h.
#include "mltcp/dpdk/launched_loop.h"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>

#include "mltcp/base/error.h"
#include "mltcp/base/handoff.h"

namespace mltcp::dpdk {

LaunchedLoop::LaunchedLoop(const Eal& eal, PollLoop& loop, unsigned core, Nanos until)
    : loop_(loop), core_(core), until_(until) {
  if (core < 1 || core >= eal.cores().size())
    throw InputError(
        fmt::format("there is no core {} for a loop of its own; DPDK was started with {}, and the first "
                    "is the calling thread's",
                    core, eal.cores().size()));
  hand_over(this);
  if (const int error = rte_eal_remote_launch(on_core, this, core); error != 0)
    throw RunError(fmt::format("core {} runs another loop already ({}); give each its own", eal.cores()[core],
                               rte_strerror(-error)));
  running_ = true;
}

LaunchedLoop::~LaunchedLoop() {
  if (!running_) return;
  loop_.request_stop();
  rte_eal_wait_lcore(core_);
}

bool LaunchedLoop::wait() {
  if (running_) {
    rte_eal_wait_lcore(core_);
    take_over(this);
    running_ = false;
  }
  if (failure_) std::rethrow_exception(failure_);
  return stopped_;
}

int LaunchedLoop::on_core(void* self) {
  take_over(self);
  auto& launched = *static_cast<LaunchedLoop*>(self);
  try {
    launched.stopped_ = launched.loop_.run(launched.until_);
  } catch (...) {
    launched.failure_ = std::current_exception();
  }
  hand_over(self);
  return 0;
}

}  // namespace mltcp::dpdk
