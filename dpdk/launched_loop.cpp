// Loops on other cores of the Eal; see launched_loop.h.
#include "mltcp/dpdk/launched_loop.h"

#include <fmt/format.h>

#include "mltcp/base/error.h"
#include "mltcp/base/handoff.h"
#include "mltcp/dpdk/core_thread.h"

namespace mltcp::dpdk {

LaunchedLoop::LaunchedLoop(const Eal& eal, PollLoop& loop, unsigned core, Nanos until) : loop_(loop), until_(until) {
  if (core < 1 || core >= eal.cores().size())
    throw InputError(fmt::format(
        "there is no core {} for another loop: the Eal has {}, and the calling thread uses the first; name more cores",
        core, eal.cores().size()));
  hand_over(this);
  if (!eal.core_thread(core).start(on_core, this))
    throw RunError(fmt::format("core {} already runs another loop; give each loop its own core", eal.cores()[core]));
  thread_ = &eal.core_thread(core);
}

LaunchedLoop::~LaunchedLoop() {
  if (thread_ == nullptr) return;
  loop_.request_stop();
  thread_->wait();
}

bool LaunchedLoop::wait() {
  if (thread_ != nullptr) {
    thread_->wait();
    take_over(this);
    thread_ = nullptr;
  }
  if (failure_) std::rethrow_exception(failure_);
  return stopped_;
}

void LaunchedLoop::on_core(void* self) {
  take_over(self);
  auto& launched = *static_cast<LaunchedLoop*>(self);
  try {
    launched.stopped_ = launched.loop_.run(launched.until_);
  } catch (...) {
    launched.failure_ = std::current_exception();
  }
  hand_over(self);
}

}  // namespace mltcp::dpdk
