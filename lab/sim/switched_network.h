// A network of any topology (base/topology.h) in virtual time: a single switch, leaf-spine, a fat tree, or a list of
// links.
//
// Packets take shortest paths. If a switch has several links on shortest paths, it picks one by a hash of the flow with
// the switch's seed (equal-cost multi-path, see network.h). So SwitchedNetworkMap can compute the path of a flow
// without running the network.
//
// A host is a machine with one link to the network and one link from it. Each Pollable gets a port of its machine: a
// sim::Host with the machine's IP address and a separate UDP port. All ports of a machine share its links.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/base/topology.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/fabric/network_config.h"
#include "mltcp/lab/fabric/usage_meter.h"
#include "mltcp/lab/sim/network.h"

namespace mltcp::sim {

/// Computes the links and the paths of flows in a network, without a simulation. Links have the numbers that they have
/// in the topology.
class SwitchedNetworkMap {
 public:
  using LinkId = Network::LinkId;

  /// Throws InputError if fabric::check() does.
  explicit SwitchedNetworkMap(const fabric::SwitchedNetworkConfig& config);

  [[nodiscard]] const fabric::SwitchedNetworkConfig& config() const { return config_; }
  [[nodiscard]] const Topology& topology() const { return *config_.topology; }
  /// Returns the address of a host's port.
  [[nodiscard]] static Address address(std::uint32_t host, std::uint16_t udp_port);
  /// Returns the links that packets take from a port of host `from` to connection `connection` at a port of host `to`.
  /// The hosts must be different and below config().hosts().
  [[nodiscard]] std::vector<LinkId> path(std::uint32_t from, std::uint16_t from_port, std::uint32_t to,
                                         std::uint16_t to_port, std::uint32_t connection) const;
  /// Returns the seed of the hash by which switch `at` picks a link.
  [[nodiscard]] std::uint64_t group_seed(Topology::Node at) const { return group_seeds_[at - topology().hosts()]; }

 private:
  fabric::SwitchedNetworkConfig config_;
  std::vector<std::uint64_t> group_seeds_;  ///< for each switch, the seed of the hash by which it picks a link
};

struct SwitchedNetworkOptions {
  bool virtual_payload = false;  ///< whether hosts accept virtual payloads; see NetworkOptions
  /// Length of the transmit queue of each port of a host; see NetworkOptions.
  std::uint32_t transmit_queue_packets = 1024;
  bool meters = false;       ///< whether to count the usage of every link
  Nanos usage_bin{100'000};  ///< bin width of the meters; see fabric::UsageMeter
  std::size_t usage_bins = 8192;
};

class SwitchedNetwork : public Network {
 public:
  /// Maximum of the number of ports times the number of switches, because routes take 4 bytes per switch and port.
  /// add_port() throws if this maximum would be exceeded.
  static constexpr std::uint64_t kMaxRoutes = 1U << 28;

  struct NamedLink {
    std::string name;                     ///< name of the link in the topology
    LinkId id = 0;                        ///< number of the link in the topology
    fabric::UsageMeter* usage = nullptr;  ///< usage of the link; null without meters
  };

  /// Throws InputError if `config` or `options` are out of range.
  explicit SwitchedNetwork(const fabric::SwitchedNetworkConfig& config, const SwitchedNetworkOptions& options = {});

  [[nodiscard]] const fabric::SwitchedNetworkConfig& config() const { return map_.config(); }
  /// Returns the map of this network's paths.
  [[nodiscard]] const SwitchedNetworkMap& map() const { return map_; }
  [[nodiscard]] const Topology& topology() const { return map_.topology(); }
  /// Adds a port to host number `host`, which is below config().hosts(). The IP address of host i is 10.0.0.1 + i.
  /// Throws InputError if the host does not exist or already has the port, or if kMaxRoutes would be exceeded.
  Host& add_port(std::uint32_t host, std::uint16_t udp_port);

  /// Returns all links, in the order of the topology.
  [[nodiscard]] const std::vector<NamedLink>& links() const { return links_; }
  /// Returns the switch of `node`, which must be a switch of the topology.
  [[nodiscard]] Switch switch_at(Topology::Node node) const { return switches_[node - topology().hosts()]; }

 private:
  /// The link on which a switch forwards packets for a host. If several links are possible, the group of these links.
  struct Route {
    Switch at;
    bool several;
    std::uint32_t to;
  };
  void add(LinkId number);
  [[nodiscard]] const std::vector<Route>& routes_to(std::uint32_t host);

  SwitchedNetworkMap map_;
  SwitchedNetworkOptions options_;
  std::vector<Switch> switches_;
  Switch ends_ = 0;  ///< switch at the far end of all links to hosts; it delivers packets to the hosts
  std::uint64_t ports_ = 0;
  /// For each rack, the routes to its hosts at all switches that have no link to the host.
  std::map<std::uint32_t, std::vector<Route>> routes_;
  std::map<std::pair<Topology::Node, std::vector<LinkId>>, Group> groups_;
  std::vector<NamedLink> links_;
  std::deque<fabric::UsageMeter> meters_;
};

}  // namespace mltcp::sim
