// Which slot periods are worth their stretch to a component of jobs.
//
// All is counted in what it costs the jobs, as the share by which their iterations become longer, summed over them:
//
//   with slots     the stretch of the job's slots, P' / P - 1, as each iteration waits for its slot; and on links that
//                  score less than 1, three times what the worst one loses, and a little, but no more than without
//                  slots: an iteration that the excess makes late runs into others, or waits for the next slot
//   without slots  what fair sharing costs jobs that meet by chance. While the demand D is above the capacity C, a job
//                  needs D / C of the time, so that an iteration grows by x, the mean of (D - C) / C over its bursts
//                  with the other jobs anywhere in theirs; and by x / (1 + x), as jobs that are slower meet less often
//
// A component has slots only if all of its links score at least `min_score`: a job without slots meets others at any
// time, makes them miss theirs, and they those of others. So slots that bring nothing cost as much as none, and of
// these the ones that are chosen by the periods alone are taken.
//
// Candidates are the perimeters of slots_front() and those longer by some room, in which bursts that ask for too much
// come to lie one after the other. The sum of the stretch bounds a candidate's cost from below: most are never solved.
#pragma once

#include <optional>
#include <vector>

#include "mltcp/scheduler/internal/cluster_state.h"

namespace mltcp::scheduler::internal {

class SlotCosts {
 public:
  /// Components with more jobs are not looked at: every candidate has to be solved.
  static constexpr std::size_t kMaxJobs = 24;
  static bool applies(const AffinityGraph::Component& component, const ClusterOptions& options) {
    return options.max_slot_stretch > 0 && component.jobs.size() <= kMaxJobs;
  }

  /// For a component of at most kMaxJobs. Refers to both from now on.
  SlotCosts(const ClusterState& state, const AffinityGraph::Component& component);
  /// Of no slots.
  [[nodiscard]] double without() const;
  /// Of the state's slot periods, when links have these scores, by vertex of the graph.
  [[nodiscard]] double with(const std::vector<double>& scores, double min_score) const;
  /// The part of with() that no scores change, if all jobs have slots.
  [[nodiscard]] double stretch() const;
  /// The same with the best scores that a quick search finds; none if the slots are too many to be searched.
  [[nodiscard]] std::optional<double> searched(const ClusterOptions& options) const;

 private:
  struct Meeting {
    std::uint32_t vertex = 0;
    double delay = 0;  ///< of the job's iterations if all are without slots
  };
  [[nodiscard]] double stretch_of(std::uint32_t job) const;

  const ClusterState& state_;
  const AffinityGraph::Component& component_;
  std::vector<std::vector<Meeting>> meetings_;  ///< by place in the component's jobs
};

/// Costs that differ by less, per job, are equal: of equal ones the least change is taken.
inline constexpr double kCostMargin = 0.001;

/// The slot periods for a component, by place in `periods`, which are state.periods(component). Leaves the slot periods
/// of the component's jobs in the state as it pleases, and touches no others.
std::vector<Nanos> slots_worth_most(ClusterState& state, const AffinityGraph::Component& component,
                                    const std::vector<Nanos>& periods, const ClusterOptions& options);

/// Equal for components with equal answers. Leaves the slot periods as slots_worth_most() does.
std::string key_of_slots(ClusterState& state, const AffinityGraph::Component& component, const ClusterOptions& options);

/// The jobs of the component get `slots`, by place in `periods`.
void set_slot_periods(ClusterState& state, const AffinityGraph::Component& component, const std::vector<Nanos>& periods,
                      const std::vector<Nanos>& slots);

}  // namespace mltcp::scheduler::internal
