// Removal of NICs; see nic_removal.h. DPDK reports a removal on its interrupt thread.
#include "mltcp/dpdk/nic_removal.h"

#include <rte_dev.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace mltcp::dpdk {
namespace {

void on_event(const char* /*device*/, rte_dev_event_type event, void* asked) {
  if (event == RTE_DEV_EVENT_REMOVE) static_cast<std::atomic<bool>*>(asked)->store(true, std::memory_order_release);
}

}  // namespace

NicRemoval::NicRemoval(std::string device, bool uses_vfio)
    : device_(std::move(device)), path_(uses_vfio ? "" : "/sys/bus/pci/devices/" + device_) {
  rte_dev_event_callback_register(device_.c_str(), on_event, &asked_);
}

NicRemoval::~NicRemoval() {
  while (rte_dev_event_callback_unregister(device_.c_str(), on_event, &asked_) == -EAGAIN)
    sched_yield();  // the callback is still running
}

bool NicRemoval::is_gone() const { return !path_.empty() && access(path_.c_str(), F_OK) != 0; }

}  // namespace mltcp::dpdk
