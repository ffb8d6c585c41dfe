// How the kernel holds a NIC on the PCI bus, and what it takes for DPDK to have it: for messages and `mltcp doctor`.
// Read from /sys (Documentation/ABI/testing/sysfs-bus-pci; VFIO: Documentation/driver-api/vfio.rst), without DPDK.
#pragma once

#include <filesystem>
#include <string>

namespace mltcp::dpdk {

struct NicBinding {
  std::string address;             ///< "0000:3b:00.0"
  bool exists = false;             ///< on the bus
  std::string driver;              ///< of the kernel; empty: none
  bool has_iommu_group = false;    ///< so that vfio-pci can have it
  bool has_iommu_driver = false;   ///< vfio_iommu_type1 is there, which VFIO needs
  unsigned iommu_bits = 0;         ///< of the addresses that its IOMMU takes; 0: not known
  bool remaps_interrupts = false;  ///< or VFIO was told to do without
  bool has_unsafe_mode = false;    ///< VFIO can be told to do without an IOMMU, and
  bool uses_unsafe_mode = false;   ///< was told so

  /// Whether it is a driver that hands NICs to programs such as DPDK.
  [[nodiscard]] bool is_for_dpdk() const;
};

/// `root`: where the kernel's /sys is, for tests.
NicBinding look_at_nic(const std::string& address, const std::filesystem::path& root = "/sys");

/// How the kernel is made to hand it over, by a command.
std::string how_to_hand_over(const NicBinding& nic);

/// "cause; cure" if DPDK can't have it as it is bound; empty if nothing of that kind is seen.
std::string why_not_usable(const NicBinding& nic);

/// "cause; cure" where DPDK does not take it, whatever the reason.
std::string why_not_taken(const NicBinding& nic);

}  // namespace mltcp::dpdk
