// Hears when a NIC is to be unplugged. VFIO asks the program that has it to let go, and waits until it does
// (VFIO_PCI_REQ_ERR_IRQ_INDEX in linux/vfio.h); until then the NIC works on. Other drivers of the kernel do not ask:
// the NIC is gone. Internal to this folder.
#pragma once

#include <atomic>
#include <string>

namespace mltcp::dpdk {

class NicRemoval {
 public:
  /// `device`: the NIC's PCI address, of a NIC that DPDK has. `is_told`: VFIO has it.
  NicRemoval(std::string device, bool is_told);
  ~NicRemoval();
  NicRemoval(const NicRemoval&) = delete;
  NicRemoval& operator=(const NicRemoval&) = delete;

  /// Whether it was asked for. By any thread.
  [[nodiscard]] bool is_asked_for() const { return asked_.load(std::memory_order_acquire); }
  /// Whether it went unasked. By any thread; a system call where VFIO does not tell.
  [[nodiscard]] bool is_gone() const;

 private:
  std::string device_;
  std::string path_;  ///< of the kernel's description; empty: VFIO tells
  std::atomic<bool> asked_{false};
};

}  // namespace mltcp::dpdk
