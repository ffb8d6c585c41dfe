// Jobs that run together on a topology, or would, and the questions to the solver that follow from their affinity
// graph. What cluster.cpp is made of.
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

/// A job and what it asks of links, once its flows have paths.
struct RoutedJob {
  ClusterJob job;
  std::string identity;                                        ///< of the demand: equal for equal ones
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

  /// Each once, in order.
  [[nodiscard]] std::vector<Nanos> periods(const AffinityGraph::Component& component) const;
  /// The slots of these jobs, with the least perimeter that they have in common.
  [[nodiscard]] Slots slots(const std::vector<std::uint32_t>& of_jobs, const SolveOptions& options) const;
};

/// Vertices of a state's graph that are to be solved together.
struct Question {
  std::vector<std::uint32_t> jobs;      ///< of the state; in the order of the problem's
  std::vector<std::uint32_t> vertices;  ///< in the order of the problem's links, each as often as it counts
  double links_per_vertex = 1;          ///< so many of the topology's links stand behind each of `vertices`
  /// Meetings of steps (circle.h) in finding the best shift of every job once: what the problem costs.
  double meetings = 0;
  std::vector<Nanos> start;  ///< shifts of `jobs` to begin with, -1 for none; may be empty
  /// Equal for equal problems in equal slots. The problem depends neither on the order of the state's jobs nor on
  /// names, unless several jobs have one demand and loops tell them apart.
  std::string key;

  Question(const ClusterState& state, const std::vector<std::uint32_t>& some_vertices);
  /// Jobs with a shift in `shifts`, by job of the state, begin with it.
  void begin_with(const std::vector<std::optional<Nanos>>& shifts);
  [[nodiscard]] Problem problem(const ClusterState& state) const;
  /// The first place of a vertex of the graph in `vertices`.
  [[nodiscard]] std::size_t place(std::uint32_t vertex) const;
};

/// Equal for equal demands.
std::string identity_of(const Demand& demand);

/// Why jobs are not to be scheduled together: in the longest period of the component a link's jobs have more than
/// `most` bursts, and so in any perimeter. Empty: they are not that many.
std::string too_many_bursts(const ClusterState& state, const AffinityGraph::Component& component, double most);

/// Slots of these periods, with the least perimeter that they have in common, for jobs whose own periods are `periods`.
Slots slots_with(std::span<const Nanos> periods, std::span<const Nanos> slot_periods, const SolveOptions& options);

/// A whole number as the text of a key.
void append_to_key(std::string& key, std::int64_t number);

}  // namespace mltcp::scheduler
