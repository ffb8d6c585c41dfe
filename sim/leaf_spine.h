// A leaf-spine network in virtual time, the two-tier folded Clos of data centres (Al-Fares, Loukissas and Vahdat, "A
// scalable, commodity data center network architecture", SIGCOMM 2008; Alizadeh and Edsall, "On the data path
// performance of leaf-spine datacenter fabrics", HOTI 2013): every leaf switch has a link to every spine switch and to
// its own hosts.
//
//         spine 0      spine 1              A packet takes two hops between hosts of one leaf and four between others,
//        /   |   \    /   |   \             where its leaf picks the spine by the hash of its flow (see network.h).
//   leaf 0    leaf 1    leaf 2              Oversubscription is what follows from the rates: hosts per leaf times host
//   | | |     | | |     | | |               rate over spines times uplink rate.
//   hosts
//
// A host is a machine with one link to its leaf and one back. What runs on it gets ports, each a sim::Host with the
// machine's IP address and a UDP port of its own; all ports of a machine share its links.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/fabric/link.h"
#include "mltcp/fabric/usage_meter.h"
#include "mltcp/sim/network.h"

namespace mltcp::sim {

struct LeafSpineConfig {
  std::uint32_t leaves = 2;          ///< 1 to 1024
  std::uint32_t spines = 2;          ///< 1 to 1024
  std::uint32_t hosts_per_leaf = 4;  ///< 1 to 1024
  Rate host_rate;                    ///< of the links between hosts and leaves
  Rate uplink_rate;                  ///< of each link between a leaf and a spine; 0 = host_rate
  Nanos delay{1'000};                ///< one way, of every link
  Bytes buffer_bytes = 1'000'000;    ///< of every port of a switch
  fabric::EcnConfig ecn;             ///< at every port of a switch
  std::uint32_t mtu = 1500;          ///< IP packet size, 576 to 9000
  std::uint64_t seed = 1;            ///< of flow hashing and marking
  std::uint32_t classes = 1;         ///< queues by priority at every port, 1 to 8
  /// Of every switch, in place of buffer_bytes; none with bytes = 0. With PFC it must hold xoff and headroom of each
  /// class and link, so that nothing is ever dropped.
  fabric::SwitchMemoryConfig memory;
  /// For PFC, of each class and link; 0 = as much as it takes (Network::pfc_headroom()). Less may lose packets.
  Bytes pfc_headroom_bytes = 0;

  [[nodiscard]] std::uint32_t hosts() const { return leaves * hosts_per_leaf; }
};

/// Throws InputError if `config` is out of range; rates and delays are left to the links.
void check(const LeafSpineConfig& config);

/// A leaf-spine network on paper: its links, numbered as those of LeafSpine, and the paths that flows take there. Costs
/// no memory but for the leaves.
class LeafSpineMap {
 public:
  using LinkId = Network::LinkId;

  /// Throws InputError if `config` is out of range.
  explicit LeafSpineMap(const LeafSpineConfig& config);

  [[nodiscard]] const LeafSpineConfig& config() const { return config_; }
  /// Links: of the hosts, then of the leaves, then to the hosts, then of the spines; numbers count from 0.
  [[nodiscard]] std::size_t links() const { return std::size_t{2} * (hosts_ + uplinks_); }
  [[nodiscard]] LinkId host_uplink(std::uint32_t host) const { return host; }
  [[nodiscard]] LinkId uplink(std::uint32_t leaf, std::uint32_t spine) const {
    return hosts_ + leaf * config_.spines + spine;
  }
  [[nodiscard]] LinkId host_downlink(std::uint32_t host) const { return hosts_ + uplinks_ + host; }
  [[nodiscard]] LinkId downlink(std::uint32_t spine, std::uint32_t leaf) const {
    return 2 * hosts_ + uplinks_ + spine * config_.leaves + leaf;
  }
  [[nodiscard]] Rate rate(LinkId link) const;
  /// As in LeafSpine::NamedLink.
  [[nodiscard]] std::string name(LinkId link) const;
  /// The address of a host's port.
  [[nodiscard]] Address address(std::uint32_t host, std::uint16_t udp_port) const;
  /// The links, two or four, that packets from a port of host `from` to connection `connection` at a port of `to`, both
  /// below config().hosts() and not the same, take.
  [[nodiscard]] std::vector<LinkId> path(std::uint32_t from, std::uint16_t from_port, std::uint32_t to,
                                         std::uint16_t to_port, std::uint32_t connection) const;
  /// With which seed the leaf's hash picks a spine.
  [[nodiscard]] std::uint64_t group_seed(std::uint32_t leaf) const { return group_seeds_[leaf]; }

 private:
  LeafSpineConfig config_;
  std::uint32_t hosts_;
  std::uint32_t uplinks_;
  std::vector<std::uint64_t> group_seeds_;
};

struct LeafSpineOptions {
  bool virtual_payload = false;                 ///< see NetworkOptions
  std::uint32_t transmit_queue_packets = 1024;  ///< of each port of a host, see NetworkOptions
  bool meters = false;                          ///< count the usage of every link
  Nanos usage_bin{100'000};                     ///< see fabric::UsageMeter, like the next
  std::size_t usage_bins = 8192;
};

class LeafSpine final : public Network {
 public:
  /// A link and what it is called: "host 3 -> leaf 0", "leaf 0 -> spine 1", "spine 1 -> leaf 2", "leaf 2 -> host 9".
  struct NamedLink {
    std::string name;
    LinkId id = 0;
    fabric::UsageMeter* usage = nullptr;  ///< null without meters
  };

  /// Throws InputError if `config` or `options` are out of range.
  explicit LeafSpine(const LeafSpineConfig& config, const LeafSpineOptions& options = {});

  [[nodiscard]] const LeafSpineConfig& config() const { return config_; }
  /// A port of host `host` (below config().hosts(), host / hosts_per_leaf is its leaf). Its address is 10.0.0.1 for the
  /// first host and counts on from there. Throws InputError if the host doesn't exist or has the port already.
  Host& add_port(std::uint32_t host, std::uint16_t udp_port);

  /// All links: of the hosts, then of the leaves, then of the spines.
  [[nodiscard]] const std::vector<NamedLink>& links() const { return links_; }
  [[nodiscard]] Switch leaf(std::uint32_t leaf) const { return leaf_switches_[leaf]; }
  [[nodiscard]] Switch spine(std::uint32_t spine) const { return spine_switches_[spine]; }
  [[nodiscard]] LinkId host_uplink(std::uint32_t host) const { return map_.host_uplink(host); }
  [[nodiscard]] LinkId host_downlink(std::uint32_t host) const { return map_.host_downlink(host); }
  [[nodiscard]] LinkId uplink(std::uint32_t leaf, std::uint32_t spine) const { return map_.uplink(leaf, spine); }
  [[nodiscard]] LinkId downlink(std::uint32_t spine, std::uint32_t leaf) const { return map_.downlink(spine, leaf); }
  /// What `config` says, on paper.
  [[nodiscard]] const LeafSpineMap& map() const { return map_; }

 private:
  void add(std::optional<Switch> from, Switch to);

  LeafSpineMap map_;
  const LeafSpineConfig& config_ = map_.config();
  LeafSpineOptions options_;
  std::vector<Switch> leaf_switches_;
  std::vector<Switch> spine_switches_;
  Switch ends_ = 0;            ///< what comes out of a link to a host has arrived
  std::vector<Group> groups_;  ///< by leaf: its links to the spines
  std::vector<NamedLink> links_;
  std::deque<fabric::UsageMeter> meters_;
};

}  // namespace mltcp::sim
