// The affinity graph: jobs on one side, the links on which they compete on the other, and an edge where a job uses a
// link (CASSINI, arXiv 2308.00852, section 4.1).
//
// A link is in the graph if at least two jobs use it and the sum of their peaks exceeds its capacity. On all other
// links all time shifts are equally good. Links with equal capacity, jobs and demands (such as the two directions of a
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

/// The use of a link by a job, which has `flows` flows on this link.
struct LinkUse {
  std::uint32_t job = 0;
  std::uint32_t flows = 1;
  auto operator<=>(const LinkUse&) const = default;
};

struct AffinityGraph {
  struct Vertex {
    /// The links that are merged into this vertex, ascending. Their number is the weight of the vertex.
    std::vector<std::uint32_t> links;
    Rate capacity;
    std::vector<LinkUse> uses;  ///< one entry for each job on these links, in ascending order of the jobs
    std::uint32_t group = 0;
  };
  struct Group {
    std::vector<std::uint32_t> vertices;
    std::vector<std::uint32_t> jobs;  ///< indices of the jobs in the group, ascending
    std::uint32_t component = 0;
    std::uint32_t loops = 0;  ///< number of edges to remove until the group is a tree
  };
  /// A connected component of the graph. A job that competes on no link forms a component without groups.
  struct Component {
    std::vector<std::uint32_t> jobs;  ///< indices of the jobs in the component, ascending
    std::vector<std::uint32_t> groups;
    std::uint32_t loops = 0;
  };
  std::vector<Vertex> vertices;
  std::vector<Group> groups;
  std::vector<Component> components;
  std::vector<std::uint32_t> component_of;  ///< index of the component of each job
};

/// A link and the jobs that use it. `uses` contains each job once, in ascending order of the jobs.
struct UsedLink {
  std::uint32_t link = 0;
  Rate capacity;
  std::vector<LinkUse> uses;
};

/// Returns true if at least two jobs use `link` and the sum of their peak demands exceeds its capacity. flow_peaks[job]
/// is the peak demand of one flow of the job.
bool competes(const UsedLink& link, std::span<const Rate> flow_peaks);

/// Returns the affinity graph of all jobs and of those `links` on which jobs compete. `flow_peaks` has one entry for
/// each job: the peak demand of one of its flows.
AffinityGraph affinity_graph(std::span<const UsedLink> links, std::span<const Rate> flow_peaks);

}  // namespace mltcp::scheduler
