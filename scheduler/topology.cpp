// Builds networks and finds paths in them (see topology.h).
#include "mltcp/scheduler/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/base/text.h"
#include "mltcp/scheduler/demand.h"

namespace mltcp::scheduler {
namespace {

constexpr std::uint32_t most_of_each = 4096;
constexpr std::uint32_t most_hosts = 1U << 20;

void check_count(std::uint64_t count, std::uint64_t least, std::uint64_t most, const char* what) {
  if (count < least || count > most)
    throw InputError(fmt::format("the network has {} {}; give {} to {}", count, what, least, most));
}

std::vector<Graph::Node> nodes(std::uint32_t hosts) {
  std::vector<Graph::Node> result;
  for (std::uint32_t host = 0; host < hosts; ++host) result.push_back({fmt::format("host {}", host), true});
  return result;
}

/// Items with the same key one after the other: those of key k from begin[k] to begin[k + 1].
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
  std::unordered_map<std::string_view, Node> node_of;
  for (const bool host : {true, false}) {
    for (const Graph::Node& node : graph.nodes) {
      if (node.host != host) continue;
      if (node.name.empty()) throw InputError("a node has no name; give every node one of its own");
      if (!node_of.emplace(node.name, nodes()).second)
        throw InputError(
            fmt::format("two nodes are called {}; give every node a name of its own", in_quotes(node.name)));
      names_.push_back(node.name);
    }
    if (host) hosts_ = nodes();
  }
  check_count(hosts_, 1, most_hosts, "hosts");

  std::unordered_set<std::string> link_names;
  std::vector<Node> from, to;
  for (const Graph::Link& link : graph.links) {
    const std::string plain = link.from + " -> " + link.to;
    const std::string& name = link.name.empty() ? plain : link.name;
    for (const std::string* end : {&link.from, &link.to})
      if (!node_of.contains(*end))
        throw InputError(fmt::format("link {} leads from or to {}, which is no node; add the node or correct the link",
                                     in_quotes(name), in_quotes(*end)));
    if (link.from == link.to)
      throw InputError(fmt::format("link {} leads from a node to itself; leave it out", in_quotes(name)));
    if (link.capacity.is_zero() || link.capacity > kHighestRate)
      throw InputError(fmt::format("link {} has a capacity of {}; give it a rate above 0 and at most {}",
                                   in_quotes(name), to_text(link.capacity), to_text(kHighestRate)));
    if (!link_names.insert(name).second)
      throw InputError(fmt::format("two links are called {}; give each a name of its own", in_quotes(name)));
    if (name != plain) link_names_.emplace(links(), name);
    links_.push_back({node_of[link.from], node_of[link.to], link.capacity});
    from.push_back(links_.back().from);
    to.push_back(links_.back().to);
  }
  group_by(nodes(), from, out_links_, out_begin_);
  group_by(nodes(), to, in_links_, in_begin_);
  check_joined();
  find_racks();
  find_distances();
  for (Node node = 0; node < nodes(); ++node) node_of_.emplace(names_[node], node);
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

void Topology::find_distances() {
  const std::size_t switches = nodes() - hosts_;
  distance_.assign(racks_ * switches, kUnreachable);
  std::vector<Node> reached;
  for (std::uint32_t rack = 0; rack < racks_; ++rack) {
    std::uint16_t* const distance = distance_.data() + rack * switches;
    reached.clear();
    const auto visit = [&](Node end, std::uint16_t hops) {
      for (const Link link : in(end)) {
        const Node node = links_[link].from;
        if (node < hosts_ || distance[node - hosts_] != kUnreachable) continue;
        distance[node - hosts_] = hops;
        reached.push_back(node);
      }
    };
    visit(rack_host_[rack], 1);
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const std::uint16_t hops = distance[reached[i] - hosts_];
      if (hops < kUnreachable - 1) visit(reached[i], static_cast<std::uint16_t>(hops + 1));
    }
  }
}

std::uint16_t Topology::distance(Node node, Host to) const {
  if (node < hosts_) return node == to ? 0 : kUnreachable;
  return distance_[rack_of_[to] * std::size_t{nodes() - hosts_} + node - hosts_];
}

std::string Topology::link_name(Link link) const {
  const auto named = link_names_.find(link);
  return named != link_names_.end() ? named->second : names_[links_[link].from] + " -> " + names_[links_[link].to];
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

std::vector<Topology::Link> Topology::path(Host from, Host to, std::uint64_t flow_key) const {
  check_host(from);
  check_host(to);
  std::vector<Link> path;
  std::vector<Link> choices;
  for (Node node = from; node != to;) {
    std::uint16_t nearest = kUnreachable;
    for (const Link link : out(node)) {
      const std::uint16_t hops = distance(links_[link].to, to);
      if (hops < nearest) choices.clear();
      nearest = std::min(nearest, hops);
      if (hops == nearest) choices.push_back(link);
    }
    if (nearest == kUnreachable)
      throw InputError(fmt::format("no path leads from {} to {}; add links in this direction", in_quotes(names_[from]),
                                   in_quotes(names_[to])));
    path.push_back(choices.size() == 1 ? choices[0] : choices[Random::stream(flow_key, node).below(choices.size())]);
    node = links_[path.back()].to;
    choices.clear();
  }
  return path;
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
          "the path from {} to {} is at {} and goes on over link {}; give links that follow "
          "each other",
          in_quotes(names_[from]), in_quotes(names_[to]), in_quotes(names_[node]), in_quotes(link_name(link))));
    node = links_[link].to;
  }
  if (node != to)
    throw InputError(fmt::format("the path from {} to {} ends at {}; give one that arrives", in_quotes(names_[from]),
                                 in_quotes(names_[to]), in_quotes(names_[node])));
}

Topology Topology::single_switch(std::uint32_t hosts, Rate rate) {
  check_count(hosts, 1, most_hosts, "hosts");
  Graph graph{scheduler::nodes(hosts), {}};
  graph.nodes.push_back({"switch 0"});
  for (std::uint32_t host = 0; host < hosts; ++host) graph.links.push_back({graph.nodes[host].name, "switch 0", rate});
  for (std::uint32_t host = 0; host < hosts; ++host) graph.links.push_back({"switch 0", graph.nodes[host].name, rate});
  return Topology(graph);
}

Topology Topology::leaf_spine(const LeafSpineShape& shape) {
  check_count(shape.leaves, 1, most_of_each, "leaves");
  check_count(shape.spines, shape.leaves == 1 ? 0 : 1, most_of_each, "spines");
  check_count(shape.hosts_per_leaf, 1, most_of_each, "hosts per leaf");
  const std::uint32_t hosts = shape.leaves * shape.hosts_per_leaf;
  check_count(hosts, 1, most_hosts, "hosts");
  const Rate uplink_rate = shape.uplink_rate.is_zero() ? shape.host_rate : shape.uplink_rate;
  Graph graph{scheduler::nodes(hosts), {}};
  const auto host = [](std::uint32_t number) { return fmt::format("host {}", number); };
  const auto leaf = [](std::uint32_t number) { return fmt::format("leaf {}", number); };
  const auto spine = [](std::uint32_t number) { return fmt::format("spine {}", number); };
  for (std::uint32_t i = 0; i < shape.leaves; ++i) graph.nodes.push_back({leaf(i)});
  for (std::uint32_t i = 0; i < shape.spines; ++i) graph.nodes.push_back({spine(i)});
  for (std::uint32_t i = 0; i < hosts; ++i)
    graph.links.push_back({host(i), leaf(i / shape.hosts_per_leaf), shape.host_rate});
  for (std::uint32_t i = 0; i < shape.leaves; ++i)
    for (std::uint32_t j = 0; j < shape.spines; ++j) graph.links.push_back({leaf(i), spine(j), uplink_rate});
  for (std::uint32_t i = 0; i < hosts; ++i)
    graph.links.push_back({leaf(i / shape.hosts_per_leaf), host(i), shape.host_rate});
  for (std::uint32_t j = 0; j < shape.spines; ++j)
    for (std::uint32_t i = 0; i < shape.leaves; ++i) graph.links.push_back({spine(j), leaf(i), uplink_rate});
  return Topology(graph);
}

Topology Topology::fat_tree(std::uint32_t k, Rate rate) {
  if (k < 2 || k > 128 || k % 2 != 0)
    throw InputError(fmt::format("a fat tree has switches with {} ports; give an even number from 2 to 128", k));
  const std::uint32_t half = k / 2;
  Graph graph{scheduler::nodes(k * half * half), {}};
  const auto edge = [](std::uint32_t number) { return fmt::format("edge {}", number); };
  const auto aggregation = [](std::uint32_t number) { return fmt::format("aggregation {}", number); };
  const auto core = [](std::uint32_t number) { return fmt::format("core {}", number); };
  for (std::uint32_t i = 0; i < k * half; ++i) graph.nodes.push_back({edge(i)});
  for (std::uint32_t i = 0; i < k * half; ++i) graph.nodes.push_back({aggregation(i)});
  for (std::uint32_t i = 0; i < half * half; ++i) graph.nodes.push_back({core(i)});
  for (std::uint32_t i = 0; i < k * half * half; ++i)
    graph.links.push_back({graph.nodes[i].name, edge(i / half), rate});
  for (std::uint32_t i = 0; i < k * half; ++i)
    for (std::uint32_t j = 0; j < half; ++j) graph.links.push_back({edge(i), aggregation(i / half * half + j), rate});
  // The j-th aggregation switch of every pod is on the j-th row of core switches.
  for (std::uint32_t i = 0; i < k * half; ++i)
    for (std::uint32_t j = 0; j < half; ++j) graph.links.push_back({aggregation(i), core(i % half * half + j), rate});
  const std::size_t up = graph.links.size();
  for (std::size_t i = 0; i < up; ++i)
    graph.links.push_back({graph.links[i].to, graph.links[i].from, graph.links[i].capacity});
  return Topology(graph);
}

}  // namespace mltcp::scheduler
