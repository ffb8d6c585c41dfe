// A network of any topology (base/topology.h) in virtual time: single switch, leaf-spine, fat tree, or one from a list
// of links.
//
// Packets take shortest paths. A switch with several links on shortest paths picks one by the flow's hash with its own
// seed (equal-cost multi-path, see network.h). So SwitchedNetworkMap can compute the path of a flow without running the
// network.
//
// A host is a machine with one link to the network and one from it. Each Pollable gets a port of the machine: a
// sim::Host with the machine's IP address and its own UDP port; all ports of a machine share its links.
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

/// The network without simulation: its links, numbered as in the topology, and the paths of flows.
class SwitchedNetworkMap {
 public:
  using LinkId = Network::LinkId;

  /// Throws InputError like fabric::check().
  explicit SwitchedNetworkMap(const fabric::SwitchedNetworkConfig& config);

  [[nodiscard]] const fabric::SwitchedNetworkConfig& config() const { return config_; }
  [[nodiscard]] const Topology& topology() const { return *config_.topology; }
  /// The address of a host's port.
  [[nodiscard]] static Address address(std::uint32_t host, std::uint16_t udp_port);
  /// The links that packets take from a port of host `from` to connection `connection` at a port of host `to`. Both
  /// hosts are below config().hosts() and different.
  [[nodiscard]] std::vector<LinkId> path(std::uint32_t from, std::uint16_t from_port, std::uint32_t to,
                                         std::uint16_t to_port, std::uint32_t connection) const;
  /// Seed of the hash by which a switch picks a link.
  [[nodiscard]] std::uint64_t group_seed(Topology::Node at) const { return group_seeds_[at - topology().hosts()]; }

 private:
  fabric::SwitchedNetworkConfig config_;
  std::vector<std::uint64_t> group_seeds_;  ///< indexed by switch
};

struct SwitchedNetworkOptions {
  bool virtual_payload = false;                 ///< see NetworkOptions
  std::uint32_t transmit_queue_packets = 1024;  ///< for each port of a host, see NetworkOptions
  bool meters = false;                          ///< count the usage of every link
  Nanos usage_bin{100'000};                     ///< bin width of the meters, see fabric::UsageMeter
  std::size_t usage_bins = 8192;
};

class SwitchedNetwork : public Network {
 public:
  /// Routes take 4 bytes per switch and port; add_port() refuses to exceed this number.
  static constexpr std::uint64_t kMaxRoutes = 1U << 28;

  struct NamedLink {
    std::string name;                     ///< as in the topology
    LinkId id = 0;                        ///< as in the topology
    fabric::UsageMeter* usage = nullptr;  ///< null without meters
  };

  /// Throws InputError if `config` or `options` are out of range.
  explicit SwitchedNetwork(const fabric::SwitchedNetworkConfig& config, const SwitchedNetworkOptions& options = {});

  [[nodiscard]] const fabric::SwitchedNetworkConfig& config() const { return map_.config(); }
  /// The paths in this network.
  [[nodiscard]] const SwitchedNetworkMap& map() const { return map_; }
  [[nodiscard]] const Topology& topology() const { return map_.topology(); }
  /// Adds a port to host `host`, below config().hosts(). The first host's address is 10.0.0.1; the others follow.
  /// Throws InputError if the host does not exist or has the port already, or if kMaxRoutes would be exceeded.
  Host& add_port(std::uint32_t host, std::uint16_t udp_port);

  /// All links, in the order of the topology.
  [[nodiscard]] const std::vector<NamedLink>& links() const { return links_; }
  /// The switch of `node`, a node of the topology.
  [[nodiscard]] Switch switch_at(Topology::Node node) const { return switches_[node - topology().hosts()]; }

 private:
  /// Where a switch forwards packets for a host: a link or, if there are several, a group.
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
  Switch ends_ = 0;  ///< far end of the links to hosts: packets there have arrived
  std::uint64_t ports_ = 0;
  std::map<std::uint32_t, std::vector<Route>>
      routes_;  ///< indexed by rack: routes of the switches not directly connected to a host of it
  std::map<std::pair<Topology::Node, std::vector<LinkId>>, Group> groups_;
  std::vector<NamedLink> links_;
  std::deque<fabric::UsageMeter> meters_;
};

}  // namespace mltcp::sim
