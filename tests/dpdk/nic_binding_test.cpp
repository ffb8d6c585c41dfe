// Tests the reports on NICs that the kernel has bound in various ways. The test creates the folder that stands for
// /sys.
#include "mltcp/dpdk/nic_binding.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "../temporary_folder.h"

namespace mltcp::dpdk {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class NicBindingTest : public testing::Test {
 protected:
  void nic(const std::string& driver, bool group) {
    const fs::path device = root_ / "bus/pci/devices/0000:3b:00.0";
    fs::create_directories(device);
    if (!driver.empty()) fs::create_directory_symlink("/nowhere/" + driver, device / "driver");
    if (group) fs::create_directory(device / "iommu_group");
  }
  void parameter(const std::string& path, const std::string& value) {
    fs::create_directories((root_ / "module" / path).parent_path());
    std::ofstream(root_ / "module" / path) << value << '\n';
  }
  void interrupt(const std::string& chip) {
    fs::create_directories(root_ / "kernel/irq/24");
    std::ofstream(root_ / "kernel/irq/24/chip_name") << chip << '\n';
  }
  void iommu(const std::string& capability) {
    const fs::path folder = root_ / "bus/pci/devices/0000:3b:00.0/iommu/intel-iommu";
    fs::create_directories(folder);
    std::ofstream(folder / "cap") << capability << '\n';
  }
  [[nodiscard]] NicBinding look() const { return look_at_nic("0000:3b:00.0", root_); }

 private:
  TemporaryFolder folder_;
  fs::path root_{folder_.path()};
};

TEST_F(NicBindingTest, none__is_named) {
  EXPECT_THAT(why_not_taken(look()), HasSubstr("there is no PCI device 0000:3b:00.0; "));
}

TEST_F(NicBindingTest, nic_of_the_kernel__is_handed_over_to_vfio_where_there_is_an_iommu) {
  nic("ixgbe", true);
  EXPECT_EQ(look().driver, "ixgbe");
  EXPECT_FALSE(look().is_for_dpdk());
  EXPECT_EQ(how_to_hand_over(look()), "modprobe vfio-pci, then dpdk-devbind.py -b vfio-pci 0000:3b:00.0");
  EXPECT_EQ(why_not_usable(look()), "");
  EXPECT_THAT(why_not_taken(look()),
              HasSubstr("DPDK has no driver that takes NIC 0000:3b:00.0; bind it: modprobe vfio-pci"));
}

TEST_F(NicBindingTest, nic_of_the_kernel__is_handed_over_to_uio_where_there_is_none) {
  nic("", false);
  EXPECT_THAT(how_to_hand_over(look()), HasSubstr("dpdk-devbind.py -b uio_pci_generic 0000:3b:00.0"));
  EXPECT_THAT(how_to_hand_over(look()), HasSubstr("intel_iommu=on"));
  parameter("vfio/parameters/enable_unsafe_noiommu_mode", "Y");
  EXPECT_THAT(how_to_hand_over(look()), HasSubstr("dpdk-devbind.py -b vfio-pci 0000:3b:00.0"));
}

TEST_F(NicBindingTest, vfio_without_an_iommu__is_told_by_what_the_kernel_can) {
  nic("vfio-pci", false);
  EXPECT_THAT(why_not_usable(look()), HasSubstr("no IOMMU group; turn the IOMMU on"));
  EXPECT_THAT(why_not_usable(look()), HasSubstr("this kernel's VFIO needs an IOMMU"));
  parameter("vfio/parameters/enable_unsafe_noiommu_mode", "N");
  EXPECT_THAT(why_not_usable(look()), HasSubstr("echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode"));
  parameter("vfio/parameters/enable_unsafe_noiommu_mode", "Y");
  EXPECT_EQ(why_not_usable(look()), "");
}

TEST_F(NicBindingTest, vfio_with_an_iommu__needs_its_module_and_remapped_interrupts) {
  nic("vfio-pci", true);
  EXPECT_EQ(why_not_usable(look()), "");  // without the file refcnt, vfio seems to be built into the kernel
  parameter("vfio/refcnt", "1");
  EXPECT_THAT(why_not_usable(look()), HasSubstr("; modprobe vfio_iommu_type1"));
  parameter("vfio_iommu_type1/parameters/allow_unsafe_interrupts", "N");
  EXPECT_EQ(why_not_usable(look()), "");
  EXPECT_THAT(why_not_taken(look()),
              HasSubstr("NIC 0000:3b:00.0 is bound to vfio-pci, but the IOMMU does not remap interrupts"));
  interrupt("IO-APIC");
  EXPECT_FALSE(look().remaps_interrupts);
  interrupt("IR-PCI-MSI");
  EXPECT_TRUE(look().remaps_interrupts);
  EXPECT_THAT(why_not_taken(look()), HasSubstr("DPDK can't use NIC 0000:3b:00.0, which is bound to vfio-pci; read"));
}

TEST_F(NicBindingTest, vfio_that_was_told_to_do_without_remapping__is_taken_at_its_word) {
  nic("vfio-pci", true);
  interrupt("IO-APIC");
  parameter("vfio_iommu_type1/parameters/allow_unsafe_interrupts", "Y");
  EXPECT_TRUE(look().remaps_interrupts);
  EXPECT_THAT(why_not_taken(look()), HasSubstr("DPDK can't use NIC"));
}

TEST_F(NicBindingTest, intels_iommu__tells_how_long_its_addresses_are) {
  nic("vfio-pci", true);
  EXPECT_EQ(look().iommu_bits, 0);
  iommu("not a number");
  EXPECT_EQ(look().iommu_bits, 0);
  iommu("d2008c222f0686");  // the IOMMU of a server, with 48 bits
  EXPECT_EQ(look().iommu_bits, 48);
  iommu("d2008c22260206");  // QEMU's default IOMMU
  EXPECT_EQ(look().iommu_bits, 39);
}

TEST_F(NicBindingTest, uio__needs_none_of_that) {
  nic("uio_pci_generic", false);
  EXPECT_TRUE(look().is_for_dpdk());
  EXPECT_EQ(why_not_usable(look()), "");
}

}  // namespace
}  // namespace mltcp::dpdk
