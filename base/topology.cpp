// Builds networks and finds paths in them (see topology.h).
#include "mltcp/base/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/base/text.h"

namespace mltcp {
namespace {

// Separates the node names in a link name. No node name contains this text, so link names are unique.
constexpr std::string_view kArrow = " -> ";

void check_count(std::uint64_t number, std::uint64_t low, std::uint64_t high, const char* what) {
  if (number < low || number > high)
    throw InputError(fmt::format("the network has {} {}; give {} to {}", number, what, low, high));
}

/// Adds the names "WHAT 0", "WHAT 1" and so on, `count` in total.
void add_names(std::vector<std::string>& names, const char* what, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) names.push_back(fmt::format("{} {}", what, i));
}

/// Sorts the indices of `key_of` by key into `items`. The indices with key k begin at items[begin[k]] and end before
/// items[begin[k + 1]].
void group_by(std::uint32_t keys, const std::vector<std::uint32_t>& key_of, std::vector<std::uint32_t>& items,
              std::vector<std::uint32_t>& begin) {
  begin.assign(keys + std::size_t{1}, 0);
  for (const std::uint32_t key : key_of) ++begin[key + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  items.resize(key_of.size());
  std::vector<std::uint32_t> next = begin;
  for (std::uint32_t item = 0; item < key_of.size(); ++item) items[next[key_of[item]]++] = item;
}

}  // namespace

Topology::Topology(const Graph& graph) {
  for (const bool host : {true, false}) {
    for (const Graph::Node& node : graph.nodes) {
      if (node.host != host) continue;
      if (node.name.empty()) throw InputError("a node has no name; give every node one of its own");
      if (node.name.find(kArrow) != std::string::npos)
        throw InputError(
            fmt::format("a node is called {}; leave {} out of its name", in_quotes(node.name), in_quotes(kArrow)));
      if (!node_of_.emplace(node.name, nodes()).second)
        throw InputError(
            fmt::format("two nodes are called {}; give every node a name of its own", in_quotes(node.name)));
      names_.push_back(node.name);
    }
    if (host) hosts_ = nodes();
  }
  check_count(hosts_, 1, kMaxHosts, "hosts");
  check_count(switches(), 0, kMaxSwitches, "switches");
  check_count(graph.links.size(), 0, kMaxLinks, "links, one direction each");

  std::unordered_set<std::string> own_names;
  for (const Graph::Link& link : graph.links)
    if (!link.name.empty() && !own_names.insert(link.name).second)
      throw InputError(fmt::format("two links are called {}; give each a name of its own", in_quotes(link.name)));
  std::unordered_set<std::uint64_t> joined;
  for (const Graph::Link& link : graph.links) {
    const std::string plain = fmt::format("{}{}{}", link.from, kArrow, link.to);
    const std::string& name = link.name.empty() ? plain : link.name;
    for (const std::string* end : {&link.from, &link.to})
      if (!node_of_.contains(*end))
        throw InputError(fmt::format("link {} leads from or to {}, which is no node; add the node or correct the link",
                                     in_quotes(name), in_quotes(*end)));
    const Edge edge{node_of_[link.from], node_of_[link.to], link.capacity, link.delay};
    if (!link.name.empty())
      link_names_.emplace(links(), name);
    else if (!joined.insert(std::uint64_t{edge.from} << 32U | edge.to).second || own_names.contains(name))
      throw InputError(fmt::format("two links are called {}; give each a name of its own", in_quotes(name)));
    links_.push_back(edge);
  }
  finish();
}

Topology::Topology(std::uint32_t hosts, std::vector<std::string> names, std::vector<Edge> links)
    : hosts_(hosts), names_(std::move(names)), links_(std::move(links)) {
  for (Node node = 0; node < nodes(); ++node) node_of_.emplace(names_[node], node);
  finish();
}

void Topology::finish() {
  std::vector<std::uint32_t> from;
  std::vector<std::uint32_t> to;
  for (Link link = 0; link < links(); ++link) {
    const Edge& edge = links_[link];
    if (edge.from == edge.to)
      throw InputError(fmt::format("link {} leads from a node to itself; leave it out", in_quotes(link_name(link))));
    if (edge.capacity.is_zero() || edge.capacity > kHighestCapacity)
      throw InputError(fmt::format("link {} has a capacity of {}; give it a rate above 0 and at most {}",
                                   in_quotes(link_name(link)), to_text(edge.capacity), to_text(kHighestCapacity)));
    if (edge.delay < Nanos() || edge.delay > kLongestDelay)
      throw InputError(fmt::format("link {} has a delay of {} ns; give it 0 to {}", in_quotes(link_name(link)),
                                   edge.delay.count, to_text(kLongestDelay)));
    if (is_host(edge.from)) fastest_host_ = std::max(fastest_host_, edge.capacity);
    from.push_back(edge.from);
    to.push_back(edge.to);
  }
  group_by(nodes(), from, out_links_, out_begin_);
  group_by(nodes(), to, in_links_, in_begin_);
  check_joined();
  find_racks();
  find_distances();
}

void Topology::check_joined() const {
  for (Host host = 0; host < hosts_ && hosts_ > 1; ++host)
    for (const auto& [some, what] : {std::pair{!out(host).empty(), "from"}, std::pair{!in(host).empty(), "to"}})
      if (!some)
        throw InputError(
            fmt::format("no link leads {} {}; every host needs one in each direction", what, in_quotes(names_[host])));
  std::vector<bool> seen(nodes());
  std::vector<Node> reached{0};
  seen[0] = true;
  const auto reach = [&](Node node) {
    if (!seen[node]) reached.push_back(node);
    seen[node] = true;
  };
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const Node node = reached[i];
    for (const Link link : out(node)) reach(links_[link].to);
    for (const Link link : in(node)) reach(links_[link].from);
  }
  for (Host host = 0; host < hosts_; ++host)
    if (!seen[host])
      throw InputError(fmt::format("{} and {} are in parts of the network that no link joins; add links between them",
                                   in_quotes(names_[0]), in_quotes(names_[host])));
}

void Topology::find_racks() {
  std::unordered_map<std::string, std::uint32_t> racks;
  for (Host host = 0; host < hosts_; ++host) {
    std::vector<Node> ends;
    for (const Link link : in(host))
      if (links_[link].from >= hosts_) ends.push_back(links_[link].from);
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    const auto [rack, fresh] = racks.emplace(fmt::format("{}", fmt::join(ends, " ")), racks_);
    if (fresh) {
      ++racks_;
      rack_host_.push_back(host);
    }
    rack_of_.push_back(rack->second);
  }
}

// Breadth-first search from each rack, over links between switches.
void Topology::find_distances() {
  std::vector<Link> between;
  std::vector<std::uint32_t> to;
  Nanos first_delay;  // maximum delay of links from hosts
  Nanos last_delay;   // maximum delay of links to hosts
  for (Link link = 0; link < links(); ++link) {
    const Edge& edge = links_[link];
    if (between_switches(link)) {
      between.push_back(link);
      to.push_back(edge.to - hosts_);
    }
    if (is_host(edge.from)) first_delay = std::max(first_delay, edge.delay);
    if (is_host(edge.to)) last_delay = std::max(last_delay, edge.delay);
  }
  const std::uint64_t steps = racks_ * (std::uint64_t{switches()} + between.size());
  if (std::uint64_t{racks_} * switches() > kMaxDistances || steps > kMaxSteps)
    throw InputError(
        fmt::format("the network has {} switches and {} links between them for {} racks of hosts, too many to find the "
                    "shortest paths; make it smaller, or put more hosts on each switch",
                    switches(), between.size(), racks_));
  struct Source {
    Node from;
    Nanos delay;
  };
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> begin;
  group_by(switches(), to, order, begin);
  std::vector<Source> sources;  // grouped by the switch to which the link leads; group k starts at begin[k]
  sources.reserve(between.size());
  for (const std::uint32_t i : order) sources.push_back({links_[between[i]].from - hosts_, links_[between[i]].delay});
  std::vector<bool> first(switches());  // by switch: whether a host has a link to it
  for (Host host = 0; host < hosts_; ++host)
    for (const Link link : out(host))
      if (!is_host(links_[link].to)) first[links_[link].to - hosts_] = true;

  distance_.assign(racks_ * std::size_t{switches()}, kUnreachable);
  std::vector<Node> reached;
  std::vector<Nanos> delay(switches());  // by switch: maximum delay of its shortest paths to the rack's switches
  Nanos longest;
  for (std::uint32_t rack = 0; rack < racks_; ++rack) {
    std::uint16_t* const distance = distance_.data() + rack * std::size_t{switches()};
    reached.clear();
    for (const Link link : in(rack_host_[rack])) {
      if (is_host(links_[link].from)) continue;
      const Node at = links_[link].from - hosts_;
      if (distance[at] != kUnreachable) continue;
      distance[at] = 1;
      delay[at] = Nanos();
      reached.push_back(at);
    }
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const Node at = reached[i];
      if (first[at]) longest = std::max(longest, delay[at]);
      if (distance[at] == kUnreachable - 1) continue;
      const auto hops = static_cast<std::uint16_t>(distance[at] + 1);
      for (std::uint32_t source = begin[at]; source < begin[at + 1]; ++source) {
        const auto [node, link_delay] = sources[source];
        if (distance[node] == kUnreachable) {
          distance[node] = hops;
          delay[node] = delay[at] + link_delay;
          reached.push_back(node);
        } else if (distance[node] == hops) {
          has_choices_ = true;
          delay[node] = std::max(delay[node], delay[at] + link_delay);
        }
      }
    }
  }
  longest_delay_ = first_delay + longest + last_delay;
  // A host with several outgoing or incoming links also has a choice of paths.
  for (Host host = 0; host < hosts_; ++host) has_choices_ |= out(host).size() > 1 || in(host).size() > 1;
}

std::uint16_t Topology::distance(Node at, Host to) const {
  if (is_host(at)) return at == to ? 0 : kUnreachable;
  return distance_[rack_of_[to] * std::size_t{switches()} + at - hosts_];
}

void Topology::next(Node at, Host to, std::vector<Link>& choices) const {
  choices.clear();
  std::uint16_t nearest = kUnreachable;
  for (const Link link : out(at)) {
    const std::uint16_t hops = distance(links_[link].to, to);
    if (hops < nearest) choices.clear();
    nearest = std::min(nearest, hops);
    if (hops == nearest && hops != kUnreachable) choices.push_back(link);
  }
}

double Topology::oversubscription() const {
  if (racks_ < 2) return 1;
  double max = 0;
  for (Node at = hosts_; at < nodes(); ++at) {
    double from_hosts = 0;
    double on = 0;
    for (const Link link : in(at))
      if (is_host(links_[link].from)) from_hosts += static_cast<double>(links_[link].capacity.bits_per_second);
    for (const Link link : out(at))
      if (!is_host(links_[link].to)) on += static_cast<double>(links_[link].capacity.bits_per_second);
    if (on > 0) max = std::max(max, from_hosts / on);
  }
  return max;
}

std::string Topology::link_name(Link link) const {
  const auto named = link_names_.find(link);
  return named != link_names_.end() ? named->second
                                    : fmt::format("{}{}{}", names_[links_[link].from], kArrow, names_[links_[link].to]);
}

Topology::Host Topology::find_host(std::string_view name) const {
  const auto node = node_of_.find(std::string(name));
  if (node == node_of_.end() || node->second >= hosts_)
    throw InputError(fmt::format("there is no host {}; the first host is {}", in_quotes(name), in_quotes(names_[0])));
  return node->second;
}

Topology::Link Topology::find_link(std::string_view name) const {
  for (Link link = 0; link < links(); ++link)
    if (link_name(link) == name) return link;
  throw InputError(
      fmt::format("there is no link {}; {}", in_quotes(name),
                  links_.empty() ? "the network has none" : "the first link is " + in_quotes(link_name(0))));
}

void Topology::check_host(Host host) const {
  if (host >= hosts_)
    throw InputError(fmt::format("there is no host {}; the network has hosts 0 to {}", host, hosts_ - 1));
}

void Topology::throw_no_path(Host from, Host to) const {
  throw InputError(fmt::format("no path leads from {} to {}; add links in this direction", in_quotes(names_[from]),
                               in_quotes(names_[to])));
}

std::vector<Topology::Link> Topology::path(Host from, Host to, std::uint64_t flow_key) const {
  return path_by(from, to, [&](Node at, std::size_t choices) { return Random::stream(flow_key, at).below(choices); });
}

void Topology::check_all_paths() const {
  for (Host host = 0; host < hosts_; ++host)
    if (std::all_of(out(host).begin(), out(host).end(), [&](Link link) { return is_host(links_[link].to); }))
      for (Host to = 0; to < hosts_; ++to) static_cast<void>(path(host, to, 0));
  // A host reaches every node that one of its switches reaches.
  for (std::uint32_t rack = 0; rack < racks_; ++rack)
    for (Node at = hosts_; at < nodes(); ++at) {
      if (distance(at, rack_host_[rack]) != kUnreachable) continue;
      for (const Link link : in(at))
        if (is_host(links_[link].from)) static_cast<void>(path(links_[link].from, rack_host_[rack], 0));
    }
}

void Topology::check_path(Host from, Host to, std::span<const Link> path) const {
  check_host(from);
  check_host(to);
  Node node = from;
  for (const Link link : path) {
    if (link >= links())
      throw InputError(fmt::format("the path from {} to {} has a link {}, but links are 0 to {}",
                                   in_quotes(names_[from]), in_quotes(names_[to]), link, std::int64_t{links()} - 1));
    if (links_[link].from != node)
      throw InputError(fmt::format(
          "the path from {} to {} reaches {} and then takes link {}, which begins elsewhere; give links that follow "
          "each other",
          in_quotes(names_[from]), in_quotes(names_[to]), in_quotes(names_[node]), in_quotes(link_name(link))));
    node = links_[link].to;
  }
  if (node != to)
    throw InputError(fmt::format("the path from {} to {} ends at {}; end it at its destination",
                                 in_quotes(names_[from]), in_quotes(names_[to]), in_quotes(names_[node])));
}

Topology Topology::single_switch(std::uint32_t hosts, Rate rate, Nanos delay) {
  check_count(hosts, 1, kMaxHosts, "hosts");
  std::vector<std::string> names;
  add_names(names, "host", hosts);
  add_names(names, "switch", 1);
  std::vector<Edge> links;
  for (Host host = 0; host < hosts; ++host) links.push_back({host, hosts, rate, delay});
  for (Host host = 0; host < hosts; ++host) links.push_back({hosts, host, rate, delay});
  return {hosts, std::move(names), std::move(links)};
}

Topology Topology::leaf_spine(const LeafSpineShape& shape) {
  check_count(shape.leaves, 1, kMaxInTier, "leaves");
  check_count(shape.spines, shape.leaves == 1 ? 0 : 1, kMaxInTier, "spines");
  check_count(shape.hosts_per_leaf, 1, kMaxInTier, "hosts per leaf");
  const std::uint32_t hosts = shape.hosts();
  check_count(hosts, 1, kMaxHosts, "hosts");
  const Rate uplink_rate = shape.uplink_rate.is_zero() ? shape.host_rate : shape.uplink_rate;
  std::vector<std::string> names;
  add_names(names, "host", hosts);
  add_names(names, "leaf", shape.leaves);
  add_names(names, "spine", shape.spines);
  const Node leaf = hosts;
  const Node spine = hosts + shape.leaves;
  std::vector<Edge> links;
  for (Host i = 0; i < hosts; ++i) links.push_back({i, leaf + i / shape.hosts_per_leaf, shape.host_rate, shape.delay});
  for (Node i = 0; i < shape.leaves; ++i)
    for (Node j = 0; j < shape.spines; ++j) links.push_back({leaf + i, spine + j, uplink_rate, shape.delay});
  for (Host i = 0; i < hosts; ++i) links.push_back({leaf + i / shape.hosts_per_leaf, i, shape.host_rate, shape.delay});
  for (Node j = 0; j < shape.spines; ++j)
    for (Node i = 0; i < shape.leaves; ++i) links.push_back({spine + j, leaf + i, uplink_rate, shape.delay});
  Topology topology(hosts, std::move(names), std::move(links));
  topology.shape_ = shape;
  topology.shape_->uplink_rate = uplink_rate;
  return topology;
}

Topology Topology::fat_tree(std::uint32_t k, Rate rate, Nanos delay) {
  if (k < 2 || k > kMaxPorts || k % 2 != 0)
    throw InputError(
        fmt::format("a fat tree has switches with {} ports; give an even number from 2 to {}", k, kMaxPorts));
  const std::uint32_t half = k / 2;
  const std::uint32_t hosts = k * half * half;
  std::vector<std::string> names;
  add_names(names, "host", hosts);
  add_names(names, "edge", k * half);
  add_names(names, "aggregation", k * half);
  add_names(names, "core", half * half);
  const Node edge = hosts;
  const Node aggregation = edge + k * half;
  const Node core = aggregation + k * half;
  std::vector<Edge> links;
  for (Host i = 0; i < hosts; ++i) links.push_back({i, edge + i / half, rate, delay});
  for (Node i = 0; i < k * half; ++i)
    for (Node j = 0; j < half; ++j) links.push_back({edge + i, aggregation + i / half * half + j, rate, delay});
  // The j-th aggregation switch of every pod has links to all core switches of row j.
  for (Node i = 0; i < k * half; ++i)
    for (Node j = 0; j < half; ++j) links.push_back({aggregation + i, core + i % half * half + j, rate, delay});
  const std::size_t up = links.size();
  for (std::size_t i = 0; i < up; ++i) links.push_back({links[i].to, links[i].from, rate, delay});
  return {hosts, std::move(names), std::move(links)};
}

}  // namespace mltcp
