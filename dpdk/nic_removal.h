// Detects that a NIC is to be unplugged. VFIO asks the program that uses it to release it, and waits
// (VFIO_PCI_REQ_ERR_IRQ_INDEX in linux/vfio.h); until then the NIC keeps working. Other drivers of the kernel do not
// ask: the NIC is gone. Internal to this folder.
#pragma once

#include <atomic>
#include <string>

namespace mltcp::dpdk {

class NicRemoval {
 public:
  /// `device`: PCI address of a NIC that DPDK uses. `is_told`: VFIO is its driver.
  NicRemoval(std::string device, bool is_told);
  ~NicRemoval();
  NicRemoval(const NicRemoval&) = delete;
  NicRemoval& operator=(const NicRemoval&) = delete;

  /// Whether VFIO has asked for the NIC. May be called by any thread.
  [[nodiscard]] bool is_asked_for() const { return asked_.load(std::memory_order_acquire); }
  /// Whether the NIC is gone without notice. May be called by any thread; without VFIO it makes a system call.
  [[nodiscard]] bool is_gone() const;

 private:
  std::string device_;
  std::string path_;  ///< path of the NIC in /sys; empty: VFIO notifies
  std::atomic<bool> asked_{false};
};

}  // namespace mltcp::dpdk
