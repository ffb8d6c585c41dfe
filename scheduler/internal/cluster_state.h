// The state of a cluster: jobs that run, or may run, together on a topology, and their affinity graph. A state is split
// into questions, the problems that the solver solves. Used by cluster.cpp.
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

/// A job after routing: its flows have paths, so the links that it uses are known.
struct RoutedJob {
  ClusterJob job;
  std::string identity;                                        ///< result of identity_of() for the demand
  Rate peak;                                                   ///< peak demand of one flow
  std::vector<std::pair<Topology::Link, std::uint32_t>> uses;  ///< each link and its number of flows, ascending

  /// Throws InputError that names the job if its demand is invalid or a flow has no path.
  RoutedJob(ClusterJob given, const Topology& topology, std::uint64_t routing_seed);
  [[nodiscard]] Nanos period() const { return job.demand.period; }

 private:
  void route(const Topology& topology, std::uint64_t routing_seed);
};

struct ClusterState {
  std::vector<const RoutedJob*> jobs;
  std::vector<UsedLink> links;  ///< the links that two or more jobs use
  AffinityGraph graph;
  std::vector<Nanos> slot_periods;  ///< slot period of each job; the caller sets them

  ClusterState(std::vector<const RoutedJob*> given, const Topology& topology);

  /// Returns the distinct periods of the jobs in the component, ascending.
  [[nodiscard]] std::vector<Nanos> periods(const AffinityGraph::Component& component) const;
  /// Returns the slots of the jobs `of_jobs`. Their perimeter is the least common multiple of their slot periods.
  [[nodiscard]] Slots slots(const std::vector<std::uint32_t>& of_jobs, const SolveOptions& options) const;
};

/// Vertices of a state's affinity graph for which the solver finds a common solution.
struct Question {
  std::vector<std::uint32_t> jobs;      ///< jobs of the state, in the order in which problem() lists them
  std::vector<std::uint32_t> vertices;  ///< one vertex for each link of problem(), so vertices can repeat
  double links_per_vertex = 1;          ///< number of links of the topology for each entry of `vertices`
  /// Estimated cost of the problem: number of step meetings (circle.h) in one pass that finds the best shift of each
  /// job.
  double meetings = 0;
  std::vector<Nanos> start;  ///< initial shift of each job, -1 if not given; empty if no job has one
  /// Key for the cache of solutions. Equal problems with equal slots have equal keys. The key depends neither on the
  /// order of the jobs in the state nor on their names, unless several jobs have equal demands and the question has
  /// several links.
  std::string key;

  Question(const ClusterState& state, const std::vector<std::uint32_t>& some_vertices);
  /// Sets `start` from `shifts`, which has one entry for each job of the state.
  void begin_with(const std::vector<std::optional<Nanos>>& shifts);
  [[nodiscard]] Problem problem(const ClusterState& state) const;
  /// Returns the first index in `vertices` of the vertex `vertex` of the graph.
  [[nodiscard]] std::size_t place(std::uint32_t vertex) const;
};

/// Returns a string that identifies the demand: equal demands have equal strings.
std::string identity_of(const Demand& demand);

/// Returns an error message if the jobs of any link have more than `max` bursts within the longest period of the
/// component, since every perimeter is at least that long. Otherwise returns an empty string.
std::string too_many_bursts(const ClusterState& state, const AffinityGraph::Component& component, double max);

/// Returns slots with the periods `slot_periods` for jobs with the periods `periods`. The perimeter is the least common
/// multiple of the slot periods.
Slots slots_with(std::span<const Nanos> periods, std::span<const Nanos> slot_periods, const SolveOptions& options);

/// Appends `number` to `key`.
void append_to_key(std::string& key, std::int64_t number);

}  // namespace mltcp::scheduler
