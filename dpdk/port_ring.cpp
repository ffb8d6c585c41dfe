// Ports connected within this process by rings.
#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_lcore.h>

#include <map>

#include "mltcp/dpdk/port_kind.h"

namespace mltcp::dpdk {
namespace {

class RingKind final : public PortKind {
 public:
  RingKind(PortName name, const PortConfig& config)
      : PortKind(std::move(name), config), device_("net_ring_" + this->name().target) {}

  [[nodiscard]] const std::string& device() override { return device_; }
  int plug(const PortPlan& plan) override {
    std::vector<rte_ring*> receive;
    std::vector<rte_ring*> send;
    for (std::uint16_t queue = 0; queue < config().queues; ++queue) {
      receive.push_back(ring(name().target, queue, plan));
      send.push_back(name().arguments.empty() ? receive.back() : ring(name().arguments, queue, plan));
    }
    const int port = rte_eth_from_rings(name().target.c_str(), receive.data(), config().queues, send.data(),
                                        config().queues, rte_socket_id());
    return port < 0 ? -rte_errno : 0;
  }
  void unplug(std::uint16_t id) override {
    PortKind::unplug(id);
    for (const auto& ring : rings_) ring->drain();  // they may contain buffers of this port's pools
  }

 private:
  /// One ring of a connection, owned by the ports at both ends. Ports are created one at a time.
  rte_ring* ring(const std::string& end, std::uint16_t queue, const PortPlan& plan) {
    static std::map<std::string, std::weak_ptr<PacketRing>> all;
    std::erase_if(all, [](const auto& entry) { return entry.second.expired(); });
    const std::string called = fmt::format("{}{}", end, queue);
    std::shared_ptr<PacketRing> shared = all[called].lock();
    if (shared == nullptr) all[called] = shared = std::make_shared<PacketRing>(called, plan.descriptors);
    rings_.push_back(shared);
    return shared->get();
  }

  std::string device_;
  std::vector<std::shared_ptr<PacketRing>> rings_;
};

}  // namespace

std::unique_ptr<PortKind> make_ring_kind(PortName name, const PortConfig& config) {
  return std::make_unique<RingKind>(std::move(name), config);
}

}  // namespace mltcp::dpdk
