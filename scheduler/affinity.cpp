// Builds the affinity graph, and finds its components and groups (see affinity.h).
#include "mltcp/scheduler/affinity.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace mltcp::scheduler {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

class DisjointSets {
 public:
  explicit DisjointSets(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0U); }
  std::uint32_t find(std::uint32_t item) {
    while (parent_[item] != item) item = parent_[item] = parent_[parent_[item]];
    return item;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::uint32_t> parent_;
};

/// Searches the graph depth-first for its biconnected components. Joins the vertices of each component in `groups`. The
/// nodes of the search are the jobs, followed by the vertices of the graph.
class BlockSearch {
 public:
  BlockSearch(const AffinityGraph& graph, std::uint32_t jobs, DisjointSets& groups)
      : jobs_(jobs), groups_(groups), edges_(jobs + graph.vertices.size()), found_(edges_.size(), 0) {
    for (std::uint32_t v = 0; v < graph.vertices.size(); ++v) {
      for (const LinkUse& use : graph.vertices[v].uses) {
        edges_[use.job].push_back(jobs + v);
        edges_[jobs + v].push_back(use.job);
      }
    }
    low_ = found_;
    for (std::uint32_t job = 0; job < jobs; ++job)
      if (found_[job] == 0) search(job);
  }

 private:
  struct Frame {
    std::uint32_t node;
    std::uint32_t parent;
    std::size_t next = 0;  ///< index of the next edge to follow
  };

  void search(std::uint32_t root) {
    std::vector<Frame> frames;
    const auto enter = [&](std::uint32_t next, std::uint32_t from) {
      found_[next] = low_[next] = ++count_;
      open_.push_back(next);
      frames.push_back({next, from});
    };
    enter(root, kNone);
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const std::uint32_t node = frame.node;
      if (frame.next < edges_[node].size()) {
        const std::uint32_t other = edges_[node][frame.next++];
        if (found_[other] == 0)
          enter(other, node);
        else if (other != frame.parent)
          low_[node] = std::min(low_[node], found_[other]);
        continue;
      }
      const std::uint32_t parent = frame.parent;
      frames.pop_back();
      if (parent == kNone) continue;
      low_[parent] = std::min(low_[parent], low_[node]);
      if (low_[node] >= found_[parent]) close_block(parent, node);
    }
    open_.clear();
  }

  void close_block(std::uint32_t parent, std::uint32_t child) {
    std::uint32_t first = parent >= jobs_ ? parent : kNone;
    for (std::uint32_t node = kNone; node != child;) {
      node = open_.back();
      open_.pop_back();
      if (node < jobs_) continue;
      if (first != kNone) groups_.join(node - jobs_, first - jobs_);
      first = node;
    }
  }

  std::uint32_t jobs_;
  DisjointSets& groups_;
  std::vector<std::vector<std::uint32_t>> edges_;
  std::vector<std::uint32_t> found_;  ///< discovery time of each node; 0 if not visited
  /// For each node, the minimum discovery time of all nodes that an edge from the subtree of the node reaches.
  std::vector<std::uint32_t> low_;
  std::vector<std::uint32_t> open_;  ///< visited nodes that have no biconnected component yet
  std::uint32_t count_ = 0;
};

}  // namespace

bool competes(const UsedLink& link, std::span<const Rate> flow_peaks) {
  Uint128 sum = 0;
  for (const LinkUse& use : link.uses) sum += Uint128{flow_peaks[use.job].bits_per_second} * use.flows;
  return link.uses.size() >= 2 && sum > link.capacity.bits_per_second;
}

AffinityGraph affinity_graph(std::span<const UsedLink> links, std::span<const Rate> flow_peaks) {
  AffinityGraph graph;
  const auto jobs = static_cast<std::uint32_t>(flow_peaks.size());
  std::map<std::pair<Rate, std::vector<LinkUse>>, std::uint32_t> alike;
  DisjointSets together(jobs);
  for (const UsedLink& link : links) {
    if (!competes(link, flow_peaks)) continue;
    const auto next = static_cast<std::uint32_t>(graph.vertices.size());
    const auto [vertex, fresh] = alike.try_emplace(std::pair(link.capacity, link.uses), next);
    if (fresh) graph.vertices.push_back({{}, link.capacity, link.uses});
    graph.vertices[vertex->second].links.push_back(link.link);
    for (const LinkUse& use : link.uses) together.join(use.job, link.uses.front().job);
  }
  DisjointSets in_blocks(graph.vertices.size());
  const BlockSearch search(graph, jobs, in_blocks);

  std::vector<std::uint32_t> component_at(jobs, kNone);
  for (std::uint32_t job = 0; job < jobs; ++job) {
    std::uint32_t& component = component_at[together.find(job)];
    if (component == kNone) {
      component = static_cast<std::uint32_t>(graph.components.size());
      graph.components.emplace_back();
    }
    graph.components[component].jobs.push_back(job);
    graph.component_of.push_back(component);
  }
  std::vector<std::uint32_t> group_at(graph.vertices.size(), kNone);
  for (std::uint32_t v = 0; v < graph.vertices.size(); ++v) {
    AffinityGraph::Vertex& vertex = graph.vertices[v];
    std::uint32_t& group = group_at[in_blocks.find(v)];
    if (group == kNone) {
      group = static_cast<std::uint32_t>(graph.groups.size());
      graph.groups.emplace_back().component = graph.component_of[vertex.uses.front().job];
      graph.components[graph.groups.back().component].groups.push_back(group);
    }
    vertex.group = group;
    graph.groups[group].vertices.push_back(v);
    for (const LinkUse& use : vertex.uses) graph.groups[group].jobs.push_back(use.job);
  }
  for (AffinityGraph::Group& group : graph.groups) {
    const std::size_t edges = group.jobs.size();
    std::ranges::sort(group.jobs);
    group.jobs.erase(std::unique(group.jobs.begin(), group.jobs.end()), group.jobs.end());
    group.loops = static_cast<std::uint32_t>(edges + 1 - group.vertices.size() - group.jobs.size());
    graph.components[group.component].loops += group.loops;
  }
  return graph;
}

}  // namespace mltcp::scheduler
