// The kernel's binding of a NIC on the PCI bus, and what DPDK needs to use the NIC, for messages and `mltcp doctor`.
// All of it is read from /sys, without DPDK (Documentation/ABI/testing/sysfs-bus-pci; VFIO:
// Documentation/driver-api/vfio.rst).
#pragma once

#include <filesystem>
#include <string>

namespace mltcp::dpdk {

struct NicBinding {
  std::string address;             ///< PCI address, such as "0000:3b:00.0"
  bool exists = false;             ///< the NIC is on the bus
  std::string driver;              ///< the kernel's driver; empty if there is none
  bool has_iommu_group = false;    ///< the NIC has an IOMMU group, so that vfio-pci can use it
  bool has_iommu_driver = false;   ///< vfio_iommu_type1, which VFIO needs, is loaded
  unsigned iommu_bits = 0;         ///< address bits of the NIC's IOMMU; 0 if not known
  bool remaps_interrupts = false;  ///< the IOMMU remaps interrupts, or VFIO is set to work without remapping
  bool has_unsafe_mode = false;    ///< VFIO can be set to work without an IOMMU
  bool uses_unsafe_mode = false;   ///< VFIO is set to work without an IOMMU

  /// Returns whether the driver is one that passes NICs to programs such as DPDK.
  [[nodiscard]] bool is_for_dpdk() const;
};

/// Reads the state of the NIC with PCI address `address`. `root` is /sys, except in tests.
NicBinding look_at_nic(const std::string& address, const std::filesystem::path& root = "/sys");

/// Returns the command that makes the kernel pass the NIC to DPDK.
std::string how_to_hand_over(const NicBinding& nic);

/// Returns "cause; cure" if DPDK cannot use the NIC with its current binding; empty if no problem is found.
std::string why_not_usable(const NicBinding& nic);

/// Returns "cause; cure" after DPDK has refused the NIC, for any reason.
std::string why_not_taken(const NicBinding& nic);

}  // namespace mltcp::dpdk
