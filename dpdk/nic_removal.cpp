// Removal of NICs; see nic_removal.h. DPDK tells on its interrupt thread.
#include "mltcp/dpdk/nic_removal.h"

#include <rte_dev.h>
#include <sched.h>

#include <cerrno>
#include <utility>

namespace mltcp::dpdk {
namespace {

void on_event(const char* /*device*/, rte_dev_event_type event, void* asked) {
  if (event == RTE_DEV_EVENT_REMOVE) static_cast<std::atomic<bool>*>(asked)->store(true, std::memory_order_release);
}

}  // namespace

NicRemoval::NicRemoval(std::string device) : device_(std::move(device)) {
  rte_dev_event_callback_register(device_.c_str(), on_event, &asked_);
}

NicRemoval::~NicRemoval() {
  while (rte_dev_event_callback_unregister(device_.c_str(), on_event, &asked_) == -EAGAIN) sched_yield();  // it runs
}

}  // namespace mltcp::dpdk
