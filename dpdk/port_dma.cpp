// Memory for ports that use DMA. The memory must be registered with DPDK (rte_extmem_register) once for all ports, and
// mapped in the IOMMU for each device (rte_dev_dma_map).
#include "mltcp/dpdk/port_dma.h"

#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_memory.h>
#include <unistd.h>

#include <map>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/dpdk/nic_binding.h"
#include "mltcp/dpdk/port_kind.h"
#include "mltcp/dpdk/service.h"

namespace mltcp::dpdk {
namespace {

/// Number of ports that have mapped each registered range. Used by the service thread only.
std::map<const std::byte*, unsigned>& users() {
  static std::map<const std::byte*, unsigned> all;
  return all;
}

class PortDma final : public DmaDevice {
 public:
  PortDma(std::uint16_t id, bool reads_by_dma, std::string name, std::string driver)
      : id_(id), reads_by_dma_(reads_by_dma), name_(std::move(name)), driver_(std::move(driver)) {}

  [[nodiscard]] bool needs_mapping() const override { return reads_by_dma_; }

  std::uint64_t map(std::span<std::byte> memory) override {
    return on_service([&] { return map_here(memory); });
  }

  void unmap(std::span<std::byte> memory, std::uint64_t /*key*/) noexcept override {
    end_on_service([&] {
      if (rte_device* const device = hardware(); device != nullptr)
        rte_dev_dma_unmap(device, memory.data(), address_of(memory), memory.size());
      let_go(memory);
    });
  }

 private:
  [[nodiscard]] std::uint64_t map_here(std::span<std::byte> memory) const {
    if (rte_eal_iova_mode() != RTE_IOVA_VA)
      refuse("DPDK uses physical addresses here; turn the IOMMU on and bind the NIC to vfio-pci");
    rte_device* const device = hardware();
    if (device == nullptr) refuse("DPDK finds no hardware device for it; choose another port");
    check_reach(memory, look_at_nic(rte_dev_name(device)).iommu_bits);
    unsigned& count = users()[memory.data()];
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    if (count == 0 && rte_extmem_register(memory.data(), memory.size(), nullptr, 0, page) != 0) {
      users().erase(memory.data());
      refuse(fmt::format("DPDK can't register it ({}); use other memory", rte_strerror(rte_errno)));
    }
    ++count;
    const PortLog log;
    rte_errno = 0;
    if (rte_dev_dma_map(device, memory.data(), address_of(memory), memory.size()) != 0) {
      const int error = rte_errno;
      let_go(memory);
      refuse(
          // The message includes DPDK's log, because DPDK does not pass on the kernel's error.
          fmt::format("{} does not map it{}; if the driver can map memory, raise the limit of locked memory: ulimit -l "
                      "unlimited",
                      driver_, error != 0 && log.is_empty() ? fmt::format(" ({})", rte_strerror(error)) : log.words()));
    }
    return address_of(memory);  // the address is the key, because ports that use DMA work with virtual addresses
  }

  /// Throws RunError unless addresses of `bits` bits reach all of `memory`. If `bits` is 0, the number is unknown and
  /// nothing is checked. With 39 bits, as on small processors and with QEMU's IOMMU, addresses do not reach the
  /// process's stack, heap and mmap() areas.
  void check_reach(std::span<std::byte> memory, unsigned bits) const {
    const std::uint64_t end = address_of(memory) + memory.size();
    if (bits == 0 || bits >= 64 || end <= std::uint64_t{1} << bits) return;
    refuse(
        fmt::format("its IOMMU reaches addresses of {} bits, but the memory ends at {:#x}; map it below {:#x} with the "
                    "first argument of mmap()",
                    bits, end, std::uint64_t{1} << bits));
  }

  static std::uint64_t address_of(std::span<std::byte> memory) {
    return reinterpret_cast<std::uintptr_t>(memory.data());
  }
  static void let_go(std::span<std::byte> memory) {
    const auto found = users().find(memory.data());
    if (--found->second > 0) return;
    users().erase(found);
    rte_extmem_unregister(memory.data(), memory.size());
  }
  [[nodiscard]] rte_device* hardware() const {
    rte_eth_dev_info info{};
    return rte_eth_dev_info_get(id_, &info) == 0 ? info.device : nullptr;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw RunError(fmt::format(
        "port {} can't read the program's own memory: {}, or send without registering it (the data is then copied)",
        name_, what));
  }

  std::uint16_t id_;
  bool reads_by_dma_;
  std::string name_;
  std::string driver_;
};

}  // namespace

std::unique_ptr<DmaDevice> make_port_dma(std::uint16_t id, bool reads_by_dma, std::string name, std::string driver) {
  return std::make_unique<PortDma>(id, reads_by_dma, std::move(name), std::move(driver));
}

}  // namespace mltcp::dpdk
