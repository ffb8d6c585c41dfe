// Jobs that run, or would run, together on a topology, and the questions to the solver from their affinity graph. Used
// by cluster.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/scheduler/affinity.h"
#include "mltcp/scheduler/cluster.h"
#include "mltcp/scheduler/problem.h"
#include "mltcp/scheduler/topology.h"

namespace mltcp::scheduler {

/// A job with paths for its flows, and its use of links.
struct RoutedJob {
  ClusterJob job;
  std::string identity;                                        ///< of the demand: equal for equal demands
  Rate peak;                                                   ///< of one flow
  std::vector<std::pair<Topology::Link, std::uint32_t>> uses;  ///< link and flows, in the order of the links

  /// Throws InputError that names the job.
  RoutedJob(ClusterJob given, const Topology& topology, std::uint64_t routing_seed);
  [[nodiscard]] Nanos period() const { return job.demand.period; }

 private:
  void route(const Topology& topology, std::uint64_t routing_seed);
};

struct ClusterState {
  std::vector<const RoutedJob*> jobs;
  std::vector<UsedLink> links;  ///< with two jobs or more
  AffinityGraph graph;
  std::vector<Nanos> slot_periods;  ///< by job; for the caller to fill in

  ClusterState(std::vector<const RoutedJob*> given, const Topology& topology);

  /// The different periods, ascending.
  [[nodiscard]] std::vector<Nanos> periods(const AffinityGraph::Component& component) const;
  /// The slots of these jobs, with their least common perimeter.
  [[nodiscard]] Slots slots(const std::vector<std::uint32_t>& of_jobs, const SolveOptions& options) const;
};

/// Vertices of a state's graph to solve together.
struct Question {
  std::vector<std::uint32_t> jobs;      ///< of the state; in the order of the problem's jobs
  std::vector<std::uint32_t> vertices;  ///< in the order of the problem's links, repeated by weight
  double links_per_vertex = 1;          ///< each of `vertices` represents this many links of the topology
  /// The cost of the problem: meetings of steps (circle.h) to find the best shift of every job once.
  double meetings = 0;
  std::vector<Nanos> start;  ///< shifts of `jobs` to begin with, -1 for none; may be empty
  /// Equal for equal problems in equal slots. The problem depends neither on the order of the state's jobs nor on
  /// names, unless several jobs have equal demands and differ by loops.
  std::string key;

  Question(const ClusterState& state, const std::vector<std::uint32_t>& some_vertices);
  /// Sets the initial shifts from `shifts`, by job of the state.
  void begin_with(const std::vector<std::optional<Nanos>>& shifts);
  [[nodiscard]] Problem problem(const ClusterState& state) const;
  /// The first place of a vertex of the graph in `vertices`.
  [[nodiscard]] std::size_t place(std::uint32_t vertex) const;
};

/// Equal for equal demands.
std::string identity_of(const Demand& demand);

/// Why these jobs cannot be scheduled together: a link's jobs have more than `most` bursts in the longest period of the
/// component, and so in any perimeter. Empty if they have not.
std::string too_many_bursts(const ClusterState& state, const AffinityGraph::Component& component, double most);

/// Slots of the periods `slot_periods`, with their least common perimeter, for jobs whose own periods are `periods`.
Slots slots_with(std::span<const Nanos> periods, std::span<const Nanos> slot_periods, const SolveOptions& options);

/// Appends a number to a key.
void append_to_key(std::string& key, std::int64_t number);

}  // namespace mltcp::scheduler
