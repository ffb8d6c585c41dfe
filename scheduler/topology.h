// A cluster's network as the scheduler sees it: hosts, switches and directed links with capacities, and the shortest
// paths between hosts.
//
// Among paths of equal length each switch picks by the hash of the flow's key (equal-cost multi-path, RFC 2992), always
// the same for the same key. Hosts don't forward. Distances are kept per group of hosts that hang on the same switches
// (a rack), so that 10,000 hosts take a few MB.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::scheduler {

/// A network as a list of edges.
struct Graph {
  struct Node {
    std::string name;  ///< unique, not empty
    bool host = false;
  };
  struct Link {
    std::string from;
    std::string to;
    Rate capacity;          ///< above 0, at most kHighestRate
    std::string name = {};  ///< unique; empty: "FROM -> TO"
  };
  std::vector<Node> nodes;
  std::vector<Link> links;  ///< one direction each
};

/// Names are those of sim::LeafSpine: "host 3 -> leaf 0", "leaf 0 -> spine 1", "spine 1 -> leaf 2", "leaf 2 -> host 9".
/// Host h hangs on leaf h / hosts_per_leaf.
struct LeafSpineShape {
  std::uint32_t leaves = 2;          ///< 1 to 4096, like the next two; at most 2^20 hosts
  std::uint32_t spines = 2;          ///< 0 is allowed for one leaf
  std::uint32_t hosts_per_leaf = 4;  //
  Rate host_rate;                    ///< of each link between a host and its leaf
  Rate uplink_rate;                  ///< of each link between a leaf and a spine; 0 = host_rate
};

class Topology {
 public:
  using Host = std::uint32_t;  ///< number of a host: from 0, in the order of the graph's nodes
  using Link = std::uint32_t;  ///< number of a link: index in the graph's links

  /// Throws InputError "cause; cure" that names node or link: no hosts, empty or double names, unknown nodes, a link
  /// from a node to itself, no capacity or too much, or hosts that no path of links joins.
  explicit Topology(const Graph& graph);

  /// Hosts "host 0", ... on the switch "switch 0".
  static Topology single_switch(std::uint32_t hosts, Rate rate);
  static Topology leaf_spine(const LeafSpineShape& shape);
  /// A fat tree of switches with `k` ports (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008): k pods of k/2 "edge" and k/2
  /// "aggregation" switches, k^2/4 "core" switches, k^3/4 hosts, all links of one rate. `k` is even, 2 to 128.
  static Topology fat_tree(std::uint32_t k, Rate rate);

  [[nodiscard]] std::uint32_t hosts() const { return hosts_; }
  [[nodiscard]] std::uint32_t links() const { return static_cast<std::uint32_t>(links_.size()); }
  [[nodiscard]] const std::string& host_name(Host host) const { return names_[host]; }
  [[nodiscard]] std::string link_name(Link link) const;
  [[nodiscard]] Rate capacity(Link link) const { return links_[link].capacity; }
  /// Throw InputError for names that don't exist.
  [[nodiscard]] Host find_host(std::string_view name) const;
  [[nodiscard]] Link find_link(std::string_view name) const;

  /// Hosts of one rack hang on the same switches. Numbered from 0.
  [[nodiscard]] std::uint32_t racks() const { return racks_; }
  [[nodiscard]] std::uint32_t rack(Host host) const { return rack_of_[host]; }

  /// The links from one host to another, in order; empty from a host to itself. Throws InputError that names both hosts
  /// if there is no path, or for a number that is no host's.
  [[nodiscard]] std::vector<Link> path(Host from, Host to, std::uint64_t flow_key) const;
  /// Throws InputError unless `path` leads from one to the other over links that follow each other.
  void check_path(Host from, Host to, std::span<const Link> path) const;

 private:
  using Node = std::uint32_t;  ///< hosts come first, then switches
  struct Edge {
    Node from;
    Node to;
    Rate capacity;
  };
  static constexpr std::uint16_t kUnreachable = 0xFFFF;

  void check_joined() const;
  void check_host(Host host) const;
  void find_racks();
  void find_distances();
  [[nodiscard]] std::uint16_t distance(Node node, Host to) const;
  [[nodiscard]] std::span<const Link> out(Node node) const {
    return std::span(out_links_).subspan(out_begin_[node], out_begin_[node + 1] - out_begin_[node]);
  }
  [[nodiscard]] std::span<const Link> in(Node node) const {
    return std::span(in_links_).subspan(in_begin_[node], in_begin_[node + 1] - in_begin_[node]);
  }
  [[nodiscard]] Node nodes() const { return static_cast<Node>(names_.size()); }

  std::uint32_t hosts_ = 0;
  std::uint32_t racks_ = 0;
  std::vector<std::string> names_;  ///< by node
  std::unordered_map<std::string, Node> node_of_;
  std::vector<Edge> links_;
  std::unordered_map<Link, std::string> link_names_;  ///< of those that aren't "FROM -> TO"
  std::vector<Link> out_links_, in_links_;            ///< grouped by node
  std::vector<std::uint32_t> out_begin_, in_begin_;   ///< by node, and one more
  std::vector<std::uint32_t> rack_of_;                ///< by host
  std::vector<Host> rack_host_;                       ///< by rack: one of its hosts
  std::vector<std::uint16_t> distance_;               ///< by rack, then switch: hops to a host of the rack
};

}  // namespace mltcp::scheduler
