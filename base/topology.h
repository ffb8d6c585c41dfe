// Describes a network of hosts, switches, and directed links with rates and delays, and finds shortest paths between
// hosts. The scheduler, the packet simulator and the flow-level simulator use it.
//
// Shortest paths have the minimum number of links. If several links begin a shortest path, a switch spreads flows over
// them (equal-cost multi-path, RFC 2992): next() lists these links, and the caller's hash picks one. Hosts do not
// forward packets. Distances are stored for each rack, that is, each group of hosts with the same switches, so that
// 10,000 hosts take a few MB.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp {

/// A network as a list of edges.
struct Graph {
  struct Node {
    std::string name;  ///< unique and not empty; must not contain " -> "
    bool host = false;
  };
  struct Link {
    std::string from;
    std::string to;
    Rate capacity;          ///< above 0, at most Topology::kHighestCapacity
    std::string name = {};  ///< unique; if empty, the name is "FROM -> TO"
    Nanos delay = {};       ///< one-way delay
  };
  std::vector<Node> nodes;
  std::vector<Link> links;  ///< each link has one direction
};

/// A network of two tiers: every leaf switch has links to every spine switch and to its own hosts. Host h is connected
/// to leaf h / hosts_per_leaf. The links are in this order: from hosts ("host 3 -> leaf 0"), from leaves to spines
/// ("leaf 0 -> spine 1"), from leaves to hosts ("leaf 2 -> host 9"), from spines ("spine 1 -> leaf 2").
struct LeafSpineShape {
  std::uint32_t leaves = 2;  ///< number of leaf switches, 1 to Topology::kMaxInTier
  std::uint32_t spines = 2;  ///< number of spine switches, 1 to Topology::kMaxInTier; may be 0 if there is one leaf
  std::uint32_t hosts_per_leaf = 4;  ///< number of hosts per leaf switch, 1 to Topology::kMaxInTier
  Rate host_rate;                    ///< rate of each link between a host and its leaf
  Rate uplink_rate = {};             ///< rate of each link between a leaf and a spine; 0 if equal to host_rate
  Nanos delay = {};                  ///< one-way delay of every link

  [[nodiscard]] std::uint32_t hosts() const { return leaves * hosts_per_leaf; }
};

class Topology {
 public:
  /// Number of a node; hosts come first, then switches, both in the order of the graph's nodes.
  using Node = std::uint32_t;
  using Host = std::uint32_t;  ///< number of a host, below hosts()
  using Link = std::uint32_t;  ///< number of a link: its index in the graph's links

  // These limits bound memory (a few hundred MB) and construction time (seconds). A distance is stored for each pair of
  // a rack and a switch. A step visits a switch or a link between switches, once for each rack.
  static constexpr std::uint32_t kMaxHosts = 1U << 16;
  static constexpr std::uint32_t kMaxSwitches = 1U << 16;
  static constexpr std::uint32_t kMaxLinks = 1U << 22;  ///< each direction counts as a link
  static constexpr std::uint64_t kMaxDistances = 1U << 26;
  static constexpr std::uint64_t kMaxSteps = 1ULL << 32;
  static constexpr std::uint32_t kMaxInTier = 1024;  ///< maximum number of leaves, of spines, and of hosts per leaf
  static constexpr std::uint32_t kMaxPorts = 64;  ///< ports of a switch in the largest fat tree, which has 65536 hosts
  static constexpr Rate kHighestCapacity{100'000'000'000'000};
  static constexpr Nanos kLongestDelay{10'000'000'000};

  /// Throws InputError "cause; cure" that names the node or link. Possible causes: there are no hosts, a limit is
  /// exceeded, a name is empty or duplicate, a link has an unknown node, a link leads from a node to itself, a capacity
  /// or delay is out of range, a host is not connected.
  explicit Topology(const Graph& graph);

  /// Returns a network of one switch, "switch 0", and the hosts "host 0", "host 1" and so on. `delay` is the one-way
  /// delay of every link.
  static Topology single_switch(std::uint32_t hosts, Rate rate, Nanos delay = {});
  static Topology leaf_spine(const LeafSpineShape& shape);
  /// Returns a fat tree of switches with `k` ports (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008): k pods of k/2 "edge"
  /// and k/2 "aggregation" switches, k^2/4 "core" switches and k^3/4 hosts. All links have the same rate and delay. `k`
  /// must be even, from 2 to kMaxPorts.
  static Topology fat_tree(std::uint32_t k, Rate rate, Nanos delay = {});

  [[nodiscard]] std::uint32_t hosts() const { return hosts_; }
  [[nodiscard]] std::uint32_t switches() const { return nodes() - hosts_; }
  [[nodiscard]] Node nodes() const { return static_cast<Node>(names_.size()); }
  [[nodiscard]] std::uint32_t links() const { return static_cast<std::uint32_t>(links_.size()); }
  [[nodiscard]] bool is_host(Node node) const { return node < hosts_; }
  [[nodiscard]] const std::string& node_name(Node node) const { return names_[node]; }
  [[nodiscard]] const std::string& host_name(Host host) const { return names_[host]; }
  [[nodiscard]] std::string link_name(Link link) const;
  [[nodiscard]] Rate capacity(Link link) const { return links_[link].capacity; }
  [[nodiscard]] Nanos delay(Link link) const { return links_[link].delay; }
  [[nodiscard]] Node from(Link link) const { return links_[link].from; }
  [[nodiscard]] Node to(Link link) const { return links_[link].to; }
  [[nodiscard]] bool between_switches(Link link) const { return !is_host(from(link)) && !is_host(to(link)); }
  /// Links from a node (out) or to a node (in), in ascending order.
  [[nodiscard]] std::span<const Link> out(Node node) const {
    return std::span(out_links_).subspan(out_begin_[node], out_begin_[node + 1] - out_begin_[node]);
  }
  [[nodiscard]] std::span<const Link> in(Node node) const {
    return std::span(in_links_).subspan(in_begin_[node], in_begin_[node + 1] - in_begin_[node]);
  }
  /// find_host() and find_link() throw InputError if the name is unknown.
  [[nodiscard]] Host find_host(std::string_view name) const;
  [[nodiscard]] Link find_link(std::string_view name) const;
  /// Shape of a network made by leaf_spine(); empty for other networks.
  [[nodiscard]] const std::optional<LeafSpineShape>& leaf_spine_shape() const { return shape_; }

  /// Number of racks. The hosts of a rack are connected to the same switches. Racks are numbered from 0.
  [[nodiscard]] std::uint32_t racks() const { return racks_; }
  [[nodiscard]] std::uint32_t rack(Host host) const { return rack_of_[host]; }

  /// Maximum rate of all links that lead from hosts; 0 if no link leads from a host.
  [[nodiscard]] Rate fastest_host() const { return fastest_host_; }
  /// Upper bound of the total delay of a shortest path between two hosts. Exact if all links of a tier have the same
  /// delay.
  [[nodiscard]] Nanos longest_delay() const { return longest_delay_; }
  /// Returns whether some node may have to choose between several links on the way to a host.
  [[nodiscard]] bool has_choices() const { return has_choices_; }
  /// Returns the maximum of a ratio over all switches that have links to other switches. The ratio is the total rate of
  /// a switch's links from hosts, divided by the total rate of its links to other switches. Returns 1 if there is only
  /// one rack.
  [[nodiscard]] double oversubscription() const;

  /// Sets `choices` to the links from `at` that begin a shortest path to `to`, in ascending order; empty if there is no
  /// path, or if `at` is `to`.
  void next(Node at, Host to, std::vector<Link>& choices) const;
  /// Number of links on a shortest path from `at` to `to`; kUnreachable if there is no path.
  [[nodiscard]] std::uint16_t distance(Node at, Host to) const;
  static constexpr std::uint16_t kUnreachable = 0xFFFF;
  /// Returns the links of a shortest path, in order; empty if `from` is `to`. If a node has several links that begin a
  /// shortest path, pick(at, choices) selects one of them. Throws InputError that names both hosts if there is no path,
  /// and InputError if a host number is invalid.
  template <typename Pick>  // returns the index of a link: std::size_t(Node at, std::size_t choices)
  [[nodiscard]] std::vector<Link> path_by(Host from, Host to, const Pick& pick) const {
    check_host(from);
    check_host(to);
    std::vector<Link> path;
    std::vector<Link> choices;
    for (Node node = from; node != to; node = links_[path.back()].to) {
      next(node, to, choices);
      if (choices.empty()) throw_no_path(from, to);
      path.push_back(choices.size() == 1 ? choices[0] : choices[pick(node, choices.size())]);
    }
    return path;
  }
  /// Returns a shortest path selected by a hash of `flow_key`. Equal keys give equal paths.
  [[nodiscard]] std::vector<Link> path(Host from, Host to, std::uint64_t flow_key) const;
  /// Throws InputError unless `path` is a contiguous path from `from` to `to`.
  void check_path(Host from, Host to, std::span<const Link> path) const;
  /// Throws InputError unless every host has a path to every other host.
  void check_all_paths() const;

 private:
  struct Edge {
    Node from = 0;
    Node to = 0;
    Rate capacity;
    Nanos delay;
  };

  /// Requires that the first `hosts` names belong to hosts, and that each link connects two different valid nodes.
  Topology(std::uint32_t hosts, std::vector<std::string> names, std::vector<Edge> links);
  void finish();
  void check_joined() const;
  void check_host(Host host) const;
  [[noreturn]] void throw_no_path(Host from, Host to) const;
  void find_racks();
  void find_distances();

  std::uint32_t hosts_ = 0;
  std::uint32_t racks_ = 0;
  std::vector<std::string> names_;  ///< indexed by node
  std::unordered_map<std::string, Node> node_of_;
  std::vector<Edge> links_;
  std::unordered_map<Link, std::string> link_names_;  ///< names other than "FROM -> TO"
  std::vector<Link> out_links_, in_links_;            ///< grouped by node
  std::vector<std::uint32_t> out_begin_, in_begin_;   ///< by node: start of its links above; one more entry at the end
  std::vector<std::uint32_t> rack_of_;                ///< by host: its rack
  std::vector<Host> rack_host_;                       ///< by rack: one of its hosts
  std::vector<std::uint16_t> distance_;               ///< by rack, then switch: their distance in links
  std::optional<LeafSpineShape> shape_;
  Rate fastest_host_;
  Nanos longest_delay_;
  bool has_choices_ = false;
};

}  // namespace mltcp
