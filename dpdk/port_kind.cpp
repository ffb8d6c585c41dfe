// Default behaviour of the kinds of ports; see port_kind.h.
#include "mltcp/dpdk/port_kind.h"

#include <fmt/format.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>

#include <algorithm>

#include "mltcp/base/text.h"
#include "mltcp/dpdk/log.h"

namespace mltcp::dpdk {

PortLog::PortLog() : mark_(log_count()) {}
bool PortLog::is_empty() const { return log_since(mark_).empty(); }

bool PortLog::has(std::string_view text) const {
  const auto lines = log_since(mark_);
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

std::string PortLog::words() const {
  for (const std::string& line : log_since(mark_)) {
    // memif logs this line if there are no secondary processes. It is harmless.
    if (line.find("mp action callback") == std::string::npos) return fmt::format(" (DPDK says: {})", one_line(line));
  }
  return {};
}

std::string PortKind::identity() const { return fmt::format("{}:{}", to_text(name_.kind), name_.target); }

std::string PortKind::quoted() const { return in_quotes(config_.device); }

std::unique_ptr<PacketPool> PortKind::make_pool(const std::string& pool, const PortPlan& plan, int node) const {
  return std::make_unique<PacketPool>(pool, plan.buffers, plan.data_bytes, node);
}

std::uint64_t PortKind::pool_bytes(const PortPlan& plan) const {
  return PacketPool::memory_bytes(plan.buffers, plan.data_bytes);
}

int PortKind::plug(const PortPlan& plan) { return rte_vdev_init(device().c_str(), arguments(plan).c_str()); }

void PortKind::unplug(std::uint16_t id) {
  if (rte_eth_dev_is_valid_port(id) != 0) rte_eth_dev_close(id);
  rte_vdev_uninit(device().c_str());
}

std::string PortKind::driver_wanted() { return device().substr(0, device().find('_', 4)); }

std::unique_ptr<PortKind> make_port_kind(const PortConfig& config) {
  using Make = std::unique_ptr<PortKind> (*)(PortName, const PortConfig&);
  struct Entry {
    PortName::Kind kind;
    Make make;
  };
  static constexpr Entry kAll[] = {
      {PortName::Kind::af_packet, make_af_packet_kind}, {PortName::Kind::af_xdp, make_af_xdp_kind},
      {PortName::Kind::memif, make_memif_kind},         {PortName::Kind::tap, make_tap_kind},
      {PortName::Kind::ring, make_ring_kind},           {PortName::Kind::pci, make_pci_kind}};
  PortName name = parse_port_name(config.device);
  const auto* const entry =
      std::find_if(std::begin(kAll), std::end(kAll), [&](const Entry& one) { return one.kind == name.kind; });
  return (entry == std::end(kAll) ? make_driver_kind : entry->make)(std::move(name), config);
}

}  // namespace mltcp::dpdk
