// The affinity graph: jobs on one side, the links on which they compete on the other, an edge where a job uses a link
// (CASSINI, arXiv 2308.00852, section 4.1).
//
// A link is in the graph if two jobs or more use it and their peaks together exceed its capacity; on any other link all
// time shifts are as good. Links of one capacity with the same jobs and demands ask the same question (the way there
// and the way back of a ring, for one): they are one vertex with a weight, and no loop.
//
// Where time shifts compose. The paper solves every link alone and composes the shifts along a tree; a loop makes that
// wrong. A loop lies within one block of the graph (a maximal part that no single vertex cuts; Hopcroft and Tarjan,
// CACM 16(6), 1973). Links in one block, or in blocks that meet in a link, form a group, to be solved jointly. Groups
// meet in jobs only, and no loop leads through two of them, so that between groups shifts compose without loss; and a
// group of one link has no loop. In a graph without loops each link is a group, which is the paper's case.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::scheduler {

/// A job on a link with so many of its flows.
struct LinkUse {
  std::uint32_t job = 0;
  std::uint32_t flows = 1;
  auto operator<=>(const LinkUse&) const = default;
};

struct AffinityGraph {
  struct Vertex {
    std::vector<std::uint32_t> links;  ///< that are alike, in order; their number is the weight
    Rate capacity;
    std::vector<LinkUse> uses;  ///< in the order of the jobs; each job once
    std::uint32_t group = 0;
  };
  struct Group {
    std::vector<std::uint32_t> vertices;
    std::vector<std::uint32_t> jobs;  ///< in order
    std::uint32_t component = 0;
    std::uint32_t loops = 0;  ///< edges that could go before it is a tree
  };
  /// What hangs together. A job that competes on no link is a component without groups.
  struct Component {
    std::vector<std::uint32_t> jobs;  ///< in order
    std::vector<std::uint32_t> groups;
    std::uint32_t loops = 0;
  };
  std::vector<Vertex> vertices;
  std::vector<Group> groups;
  std::vector<Component> components;
  std::vector<std::uint32_t> component_of;  ///< by job
};

/// A link that jobs use. `uses` in the order of the jobs, each once.
struct UsedLink {
  std::uint32_t link = 0;
  Rate capacity;
  std::vector<LinkUse> uses;
};

/// Whether jobs compete on the link. `flow_peaks`: by job, of one flow.
bool competes(const UsedLink& link, std::span<const Rate> flow_peaks);

/// The graph of all jobs (there are as many as `flow_peaks`) and those of the links on which they compete.
AffinityGraph affinity_graph(std::span<const UsedLink> links, std::span<const Rate> flow_peaks);

}  // namespace mltcp::scheduler
