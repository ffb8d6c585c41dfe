// Detects that a NIC is to be unplugged. VFIO asks the program that uses the NIC to release it
// (VFIO_PCI_REQ_ERR_IRQ_INDEX in linux/vfio.h). The NIC keeps working until the program has released it. Other drivers
// of the kernel do not ask, and the NIC disappears at once. Internal to this folder.
#pragma once

#include <atomic>
#include <string>

namespace mltcp::dpdk {

class NicRemoval {
 public:
  /// `device` is the PCI address of a NIC that DPDK uses. `uses_vfio` is true if the NIC's driver is VFIO.
  NicRemoval(std::string device, bool uses_vfio);
  ~NicRemoval();
  NicRemoval(const NicRemoval&) = delete;
  NicRemoval& operator=(const NicRemoval&) = delete;

  /// Returns whether VFIO has asked for the NIC's release. May be called by any thread.
  [[nodiscard]] bool is_asked_for() const { return asked_.load(std::memory_order_acquire); }
  /// Returns whether the NIC has disappeared without notice. May be called by any thread. Makes a system call, except
  /// with VFIO.
  [[nodiscard]] bool is_gone() const;

 private:
  std::string device_;
  std::string path_;  ///< path of the NIC in /sys; empty with VFIO, which gives notice
  std::atomic<bool> asked_{false};
};

}  // namespace mltcp::dpdk
