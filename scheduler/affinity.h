// The affinity graph: jobs on one side, the links on which they compete on the other, and an edge where a job uses a
// link (CASSINI, arXiv 2308.00852, section 4.1).
//
// A link is in the graph if at least two jobs use it and the sum of their peaks exceeds its capacity. On all other
// links any time shifts are equally good. Links with equal capacity, jobs and demands (such as the two directions of a
// ring) pose the same problem: they are merged into one vertex with a weight, and form no loop.
//
// Composition of time shifts. The paper solves every link separately and composes the shifts along a tree, which is
// wrong if the graph has a loop. A loop lies within one biconnected component of the graph ("block"; Hopcroft and
// Tarjan, CACM 16(6), 1973). Blocks that share a link form a group, whose links are solved jointly. Different groups
// share only jobs, and no loop passes through two groups, so shifts compose exactly between groups. In a graph without
// loops each link is a group of its own, which is the paper's case.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::scheduler {

/// A job that has `flows` flows on a link.
struct LinkUse {
  std::uint32_t job = 0;
  std::uint32_t flows = 1;
  auto operator<=>(const LinkUse&) const = default;
};

struct AffinityGraph {
  struct Vertex {
    std::vector<std::uint32_t> links;  ///< merged links in ascending order; their number is the vertex's weight
    Rate capacity;
    std::vector<LinkUse> uses;  ///< in ascending order of the jobs; each job once
    std::uint32_t group = 0;
  };
  struct Group {
    std::vector<std::uint32_t> vertices;
    std::vector<std::uint32_t> jobs;  ///< ascending
    std::uint32_t component = 0;
    std::uint32_t loops = 0;  ///< number of edges to remove to make it a tree
  };
  /// A connected component. A job that competes on no link is a component without groups.
  struct Component {
    std::vector<std::uint32_t> jobs;  ///< ascending
    std::vector<std::uint32_t> groups;
    std::uint32_t loops = 0;
  };
  std::vector<Vertex> vertices;
  std::vector<Group> groups;
  std::vector<Component> components;
  std::vector<std::uint32_t> component_of;  ///< by job
};

/// A link used by jobs. `uses` is in ascending order of the jobs, each once.
struct UsedLink {
  std::uint32_t link = 0;
  Rate capacity;
  std::vector<LinkUse> uses;
};

/// Whether the jobs' peaks together exceed the link's capacity. `flow_peaks`: peak of one flow, by job.
bool competes(const UsedLink& link, std::span<const Rate> flow_peaks);

/// The graph of all jobs (as many as `flow_peaks`), and of those links of `links` on which they compete.
AffinityGraph affinity_graph(std::span<const UsedLink> links, std::span<const Rate> flow_peaks);

}  // namespace mltcp::scheduler
