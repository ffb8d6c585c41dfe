// The kernel's binding of a NIC; see nic_binding.h.
#include "mltcp/dpdk/nic_binding.h"

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <ios>
#include <system_error>

namespace mltcp::dpdk {
namespace fs = std::filesystem;
namespace {

bool says_yes(const fs::path& parameter) {
  std::ifstream file(parameter);
  char word = 'N';
  file >> word;
  return word == 'Y' || word == '1';
}

/// Returns whether the IOMMU remaps interrupts. If it does, the drivers of Intel and AMD put "IR-" into the names of
/// their interrupt domains.
bool interrupts_are_remapped(const fs::path& root) {
  std::error_code error;
  for (fs::directory_iterator it(root / "kernel/irq", error), end; !error && it != end; it.increment(error)) {
    std::ifstream file(it->path() / "chip_name");
    std::string name;
    std::getline(file, name);
    if (name.find("IR-") != std::string::npos) return true;
  }
  return false;
}

/// Returns the number of address bits that Intel's IOMMU supports: the field MGAW of its capability register (VT-d
/// specification, section "Capability Register"), as the kernel shows it. 0 if there is no Intel IOMMU.
unsigned address_bits(const fs::path& device) {
  std::ifstream file(device / "iommu/intel-iommu/cap");
  std::uint64_t capability = 0;
  file >> std::hex >> capability;
  return file ? static_cast<unsigned>(capability >> 16 & 0x3F) + 1 : 0;
}

}  // namespace

bool NicBinding::is_for_dpdk() const {
  return driver == "vfio-pci" || driver == "igb_uio" || driver == "uio_pci_generic";
}

NicBinding look_at_nic(const std::string& address, const fs::path& root) {
  NicBinding nic;
  nic.address = address;
  const fs::path device = root / "bus/pci/devices" / address;
  std::error_code error;
  nic.exists = fs::exists(device, error);
  nic.driver = fs::read_symlink(device / "driver", error).filename();
  nic.has_iommu_group = fs::exists(device / "iommu_group", error);
  // If VFIO is built into the kernel, vfio_iommu_type1 is built in, too.
  nic.has_iommu_driver =
      fs::exists(root / "module/vfio_iommu_type1", error) || !fs::exists(root / "module/vfio", error);
  nic.iommu_bits = address_bits(device);
  nic.remaps_interrupts =
      interrupts_are_remapped(root) || says_yes(root / "module/vfio_iommu_type1/parameters/allow_unsafe_interrupts");
  const fs::path unsafe = root / "module/vfio/parameters/enable_unsafe_noiommu_mode";
  nic.has_unsafe_mode = fs::exists(unsafe, error);
  nic.uses_unsafe_mode = says_yes(unsafe);
  return nic;
}

std::string how_to_hand_over(const NicBinding& nic) {
  if (nic.has_iommu_group || nic.uses_unsafe_mode)
    return fmt::format("modprobe vfio-pci, then dpdk-devbind.py -b vfio-pci {}", nic.address);
  return fmt::format(
      "turn the IOMMU on (firmware, and intel_iommu=on or amd_iommu=on) for vfio-pci; on a virtual machine without "
      "one, with "
      "huge pages: modprobe uio_pci_generic, then dpdk-devbind.py -b uio_pci_generic {}",
      nic.address);
}

std::string why_not_usable(const NicBinding& nic) {
  if (nic.driver != "vfio-pci") return {};
  if (!nic.has_iommu_group && !nic.uses_unsafe_mode) {
    const std::string turn_on =
        "turn the IOMMU on (firmware, and intel_iommu=on or amd_iommu=on); on a virtual machine "
        "without one: ";
    return "no IOMMU group; " + turn_on +
           (nic.has_unsafe_mode
                ? "echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
                : fmt::format("dpdk-devbind.py -b uio_pci_generic {}, as this kernel's VFIO needs an IOMMU",
                              nic.address));
  }
  if (nic.uses_unsafe_mode) return {};
  if (!nic.has_iommu_driver) return "the kernel's module for IOMMUs is not loaded; modprobe vfio_iommu_type1";
  return {};
}

std::string why_not_taken(const NicBinding& nic) {
  if (!nic.exists) return "there is no PCI device " + nic.address + "; `lspci -D` lists the existing ones";
  if (!nic.is_for_dpdk())
    return fmt::format("DPDK has no driver that takes NIC {}; bind it: {}", nic.address, how_to_hand_over(nic));
  if (const std::string why = why_not_usable(nic); !why.empty())
    return fmt::format("NIC {} is bound to {}, but {}", nic.address, nic.driver, why);
  // Interrupt remapping is checked only after a failure, because it is only guessed from names.
  if (nic.driver == "vfio-pci" && nic.has_iommu_group && !nic.remaps_interrupts)
    return fmt::format(
        "NIC {} is bound to vfio-pci, but the IOMMU does not remap interrupts, which VFIO needs; if you trust the "
        "programs that use NICs: echo 1 > /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts",
        nic.address);
  return fmt::format(
      "DPDK can't use NIC {}, which is bound to {}; read the kernel's messages (dmesg), and check that DPDK's driver "
      "for it is installed (Debian: librte-net-*23)",
      nic.address, nic.driver);
}

}  // namespace mltcp::dpdk
