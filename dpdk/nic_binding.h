// The kernel's binding of a NIC on the PCI bus, and what DPDK needs to use the NIC: for messages and `mltcp doctor`.
// Read from /sys (Documentation/ABI/testing/sysfs-bus-pci; VFIO: Documentation/driver-api/vfio.rst), without DPDK.
#pragma once

#include <filesystem>
#include <string>

namespace mltcp::dpdk {

struct NicBinding {
  std::string address;             ///< "0000:3b:00.0"
  bool exists = false;             ///< on the bus
  std::string driver;              ///< the kernel's driver; empty: none
  bool has_iommu_group = false;    ///< vfio-pci can use the NIC
  bool has_iommu_driver = false;   ///< vfio_iommu_type1, which VFIO needs, is loaded
  unsigned iommu_bits = 0;         ///< address bits of its IOMMU; 0: not known
  bool remaps_interrupts = false;  ///< the IOMMU remaps interrupts, or VFIO is set to do without
  bool has_unsafe_mode = false;    ///< VFIO can work without an IOMMU, and
  bool uses_unsafe_mode = false;   ///< is set to do so

  /// Whether the driver passes NICs to programs such as DPDK.
  [[nodiscard]] bool is_for_dpdk() const;
};

/// Reads the state. `root`: the path of /sys, for tests.
NicBinding look_at_nic(const std::string& address, const std::filesystem::path& root = "/sys");

/// The command that makes the kernel pass the NIC to DPDK.
std::string how_to_hand_over(const NicBinding& nic);

/// "cause; cure" if DPDK cannot use the NIC with its current binding; empty if no problem is found.
std::string why_not_usable(const NicBinding& nic);

/// "cause; cure" after DPDK has refused the NIC, for any reason.
std::string why_not_taken(const NicBinding& nic);

}  // namespace mltcp::dpdk
