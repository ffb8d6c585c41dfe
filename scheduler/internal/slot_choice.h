// Chooses slot periods whose benefit is worth their stretch to a component of jobs.
//
// The cost is the share by which each job's iterations become longer, summed over the jobs:
//
//   with slots     the stretch of the job's slots, P' / P - 1, as each iteration waits for its slot. If links score
//                  less than 1: plus three times the loss of the worst link and a small constant, but no more than
//                  without slots: an iteration that is late by the excess meets others, or waits for the next slot
//   without slots  the cost of fair sharing among jobs that meet by chance. While the demand D is above the capacity C,
//                  a job takes D / C of the time, so an iteration grows by x, the mean of (D - C) / C over its bursts,
//                  with the other jobs at random times; and by x / (1 + x), as slower jobs meet less often
//
// A component has slots only if all of its links score at least `min_score`: a job without slots meets others at any
// time and makes them miss their slots, and these in turn others. So slots without benefit cost as much as none; then
// the slots chosen by the periods alone are taken.
//
// Candidates are the perimeters of slots_front(), and longer ones with room for bursts that do not fit together to lie
// one after the other. The sum of the stretch is a lower bound of a candidate's cost, so most are never solved.
#pragma once

#include <optional>
#include <vector>

#include "mltcp/scheduler/internal/cluster_state.h"

namespace mltcp::scheduler::internal {

class SlotCosts {
 public:
  /// Components with more jobs are excluded, since every candidate must be solved.
  static constexpr std::size_t kMaxJobs = 24;
  static bool applies(const AffinityGraph::Component& component, const ClusterOptions& options) {
    return options.max_slot_stretch > 0 && component.jobs.size() <= kMaxJobs;
  }

  /// For a component of at most kMaxJobs. Both arguments must outlive it.
  SlotCosts(const ClusterState& state, const AffinityGraph::Component& component);
  /// The cost without slots.
  [[nodiscard]] double without() const;
  /// The cost of the state's slot periods if links have these scores, by vertex of the graph.
  [[nodiscard]] double with(const std::vector<double>& scores, double min_score) const;
  /// The part of with() that does not depend on scores, if all jobs have slots.
  [[nodiscard]] double stretch() const;
  /// with() for the best scores that a quick search finds; empty if the problem is too large for a search.
  [[nodiscard]] std::optional<double> searched(const ClusterOptions& options) const;

 private:
  struct Meeting {
    std::uint32_t vertex = 0;
    double delay = 0;  ///< of the job's iterations if no job has slots
  };
  [[nodiscard]] double stretch_of(std::uint32_t job) const;

  const ClusterState& state_;
  const AffinityGraph::Component& component_;
  std::vector<std::vector<Meeting>> meetings_;  ///< by place in the component's jobs
};

/// Costs that differ by less, per job, are equal; of equal ones the smallest change is chosen.
inline constexpr double kCostMargin = 0.001;

/// The slot periods for a component, by place in `periods`, which must be state.periods(component). Afterwards the slot
/// periods of the component's jobs in the state are undefined; others do not change.
std::vector<Nanos> slots_worth_most(ClusterState& state, const AffinityGraph::Component& component,
                                    const std::vector<Nanos>& periods, const ClusterOptions& options);

/// A key for the result of slots_worth_most(): components of equal keys have equal results. Changes slot periods as
/// slots_worth_most() does.
std::string key_of_slots(ClusterState& state, const AffinityGraph::Component& component, const ClusterOptions& options);

/// Sets the slots of the component's jobs to `slots`, by place in `periods`.
void set_slot_periods(ClusterState& state, const AffinityGraph::Component& component, const std::vector<Nanos>& periods,
                      const std::vector<Nanos>& slots);

}  // namespace mltcp::scheduler::internal
