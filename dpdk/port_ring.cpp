// Ports connected within this process by rings.
#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_lcore.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "mltcp/base/clock.h"
#include "mltcp/dpdk/port_kind.h"

namespace mltcp::dpdk {
namespace {

/// A port that is being closed waits until the port at the other end has received the packets sent to it. The port at
/// the other end polls at least every 50 us. The closing port checks the ring at most kMaxLooks times, at intervals of
/// kBetweenLooks (in ns).
constexpr int kMaxLooks = 50;
constexpr Nanos kBetweenLooks{100'000};

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
  /// The port at the other end may continue on another thread, and gets some time to receive the packets sent to it.
  /// Then the remaining packets are freed, because they may refer to the program's memory.
  void unplug(std::uint16_t id) override {
    PortKind::unplug(id);
    for (const auto& wire : wires_) {
      const bool has_reader = wire->end != name().target && wire.use_count() > 1;
      for (int look = 0; has_reader && look < kMaxLooks && !wire->ring.is_empty(); ++look) Clock::sleep(kBetweenLooks);
      wire->ring.drain();
    }
  }
  /// The port at the other end may still use buffers of this port's pools, so the pools are stored in the wire. The
  /// wire's destructor destroys them. If another port on this wire is closed earlier, pools without buffers in use are
  /// destroyed at that time.
  void keep_pools(std::vector<std::unique_ptr<PacketPool>>& pools) override {
    for (const auto& wire : wires_) {
      if (wire->end == name().target || wire.use_count() == 1) continue;
      std::erase_if(wire->kept, [](const auto& pool) { return pool->in_use() == 0; });
      std::move(pools.begin(), pools.end(), std::back_inserter(wire->kept));
      pools.clear();
      return;
    }
  }

 private:
  /// One direction of a connection, owned by the ports at both ends.
  struct Wire {
    Wire(const std::string& name, std::string end_, std::uint32_t slots)
        : end(std::move(end_)), ring(name, slots, PacketRing::Consumers::many) {}
    std::string end;                                ///< name of the receiving port
    std::vector<std::unique_ptr<PacketPool>> kept;  ///< pools of closed ports
    PacketRing ring;
  };

  /// Returns the ring that leads to port `end`, and makes it if needed. Needs no lock, because ports are created one at
  /// a time.
  rte_ring* ring(const std::string& end, std::uint16_t queue, const PortPlan& plan) {
    static std::map<std::string, std::weak_ptr<Wire>> all;
    std::erase_if(all, [](const auto& entry) { return entry.second.expired(); });
    const std::string called = fmt::format("{}{}", end, queue);
    std::shared_ptr<Wire> shared = all[called].lock();
    if (shared == nullptr) all[called] = shared = std::make_shared<Wire>(called, end, plan.descriptors);
    wires_.push_back(shared);
    return shared->ring.get();
  }

  std::string device_;
  std::vector<std::shared_ptr<Wire>> wires_;
};

}  // namespace

std::unique_ptr<PortKind> make_ring_kind(PortName name, const PortConfig& config) {
  return std::make_unique<RingKind>(std::move(name), config);
}

}  // namespace mltcp::dpdk
