// Ports on devices that only DPDK uses: NICs on the PCI bus, and virtual devices in DPDK's syntax.
#include <fmt/format.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <optional>

#include "mltcp/base/error.h"
#include "mltcp/dpdk/nic_binding.h"
#include "mltcp/dpdk/nic_removal.h"
#include "mltcp/dpdk/port_kind.h"

namespace mltcp::dpdk {
namespace {

class DriverKind : public PortKind {
 public:
  using PortKind::PortKind;
  [[nodiscard]] const std::string& device() override { return name().target; }
  [[nodiscard]] bool may_be_hardware() const override { return true; }

 protected:
  std::string arguments(const PortPlan& /*plan*/) override { return name().arguments; }
};

class PciKind final : public DriverKind {
 public:
  using DriverKind::DriverKind;

  /// Plans buffers of a length that NICs accept. Some NICs count the length in KiB and would split a frame over two
  /// buffers. Others refuse buffers that are shorter than usual.
  void adapt(PortPlan& plan) override {
    constexpr std::uint32_t kStep = 1024;
    constexpr std::uint32_t kUsual = 2048;
    constexpr std::uint32_t kBeyond = 64;  // extra bytes, so that frames longer than allowed can be rejected
    if (config().buffer_bytes == 0)
      plan.data_bytes = std::max((plan.frame() + kBeyond + kStep - 1) / kStep * kStep, kUsual);
  }

  std::optional<std::uint16_t> find() override {
    const PortLog log;
    std::uint16_t id = 0;
    // DPDK probes the devices named at its start. Other devices, and those whose port was closed, are probed here.
    if (rte_eth_dev_get_port_by_name(device().c_str(), &id) == 0 ||
        (rte_dev_probe(device().c_str()) == 0 && rte_eth_dev_get_port_by_name(device().c_str(), &id) == 0)) {
      removal_.emplace(device(), look_at_nic(device()).driver == "vfio-pci");
      return id;
    }
    if (log.has("IOVA mode")) {
      throw RunError(
          fmt::format("port {}: NIC {} can't use the virtual addresses that DPDK runs with{}; {}, or turn the IOMMU on "
                      "and bind it to "
                      "vfio-pci",
                      quoted(), device(), log.words(),
                      // DPDK knows physical addresses only of huge pages.
                      rte_eal_has_hugepages() == 0 ? "reserve huge pages as root: echo 256 > /proc/sys/vm/nr_hugepages"
                                                   : "open it before all other ports of this process"));
    }
    throw RunError(fmt::format("port {}: {}{}", quoted(), why_not_taken(look_at_nic(device())), log.words()));
  }
  void unplug(std::uint16_t id) override {
    removal_.reset();
    rte_device* hardware = nullptr;
    rte_eth_dev_info info{};
    if (rte_eth_dev_info_get(id, &info) == 0) hardware = info.device;
    if (rte_eth_dev_is_valid_port(id) != 0) rte_eth_dev_close(id);
    if (hardware != nullptr) rte_dev_remove(hardware);
  }
  [[nodiscard]] std::string why_unplugged() const override {
    if (removal_ && removal_->is_asked_for())
      return fmt::format("NIC {} is being unplugged, and the kernel waits for its users; end the programs that use it",
                         name().target);
    if (removal_ && removal_->is_gone())
      return fmt::format("NIC {} was unplugged; plug it in again, and end the programs that use it", name().target);
    return {};
  }

 private:
  std::optional<NicRemoval> removal_;
};

}  // namespace

std::unique_ptr<PortKind> make_driver_kind(PortName name, const PortConfig& config) {
  return std::make_unique<DriverKind>(std::move(name), config);
}

std::unique_ptr<PortKind> make_pci_kind(PortName name, const PortConfig& config) {
  return std::make_unique<PciKind>(std::move(name), config);
}

}  // namespace mltcp::dpdk
