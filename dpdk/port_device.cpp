// Ports on devices of DPDK's own: NICs on the PCI bus, and virtual devices in DPDK's syntax.
#include <fmt/format.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <unistd.h>

#include "mltcp/base/error.h"
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

  std::optional<std::uint16_t> find() override {
    const PortLog log;
    std::uint16_t id = 0;
    // DPDK probes devices that it is told of when it starts; others, and one whose port was closed, are probed here.
    if (rte_eth_dev_get_port_by_name(device().c_str(), &id) == 0) return id;
    if (rte_dev_probe(device().c_str()) == 0 && rte_eth_dev_get_port_by_name(device().c_str(), &id) == 0) return id;
    const bool exists = access(("/sys/bus/pci/devices/" + device()).c_str(), F_OK) == 0;
    if (log.has("IOVA mode"))
      throw RunError(
          fmt::format("port {}: NIC {} can't use the virtual addresses that DPDK runs with{}; open it before "
                      "all other ports of this process, or turn the IOMMU on",
                      quoted(), device(), log.words()));
    throw RunError(fmt::format(
        "port {}: {}{}", quoted(),
        exists
            ? fmt::format("DPDK has no driver that takes NIC {0}; bind it to vfio-pci: dpdk-devbind.py -b vfio-pci {0}",
                          device())
            : "there is no PCI device " + device() + "; `lspci -D` lists those that there are",
        log.words()));
  }
  void unplug(std::uint16_t id) override {
    rte_device* hardware = nullptr;
    rte_eth_dev_info info{};
    if (rte_eth_dev_info_get(id, &info) == 0) hardware = info.device;
    if (rte_eth_dev_is_valid_port(id) != 0) rte_eth_dev_close(id);
    if (hardware != nullptr) rte_dev_remove(hardware);
  }
};

}  // namespace

std::unique_ptr<PortKind> make_driver_kind(PortName name, const PortConfig& config) {
  return std::make_unique<DriverKind>(std::move(name), config);
}

std::unique_ptr<PortKind> make_pci_kind(PortName name, const PortConfig& config) {
  return std::make_unique<PciKind>(std::move(name), config);
}

}  // namespace mltcp::dpdk
