// Chooses slot periods for a component of jobs so that their benefit exceeds the cost of their stretch.
//
// The cost is the share by which the iterations of a job become longer, summed over all jobs:
//
//   with slots     the stretch of the slots of the job, P' / P - 1, because each iteration waits for its slot. If a
//                  link of the job scores less than 1, three times the loss of its worst link and a small constant
//                  are added, because a late iteration meets other jobs or waits for its next slot. The addition is
//                  at most the cost without slots.
//   without slots  the cost of fair sharing among jobs that meet by chance. While the demand D exceeds the capacity C,
//                  sending takes D / C times as long. With all other jobs at random times, an iteration would grow by
//                  x, the mean of (D - C) / C over its bursts. Slower jobs meet less often, so the cost is
//                  x / (1 + x).
//
// A component has slots only if all of its links score at least `min_score`. If only some of its jobs had slots, the
// jobs without slots would meet the jobs with slots at any time and make them miss their slots. So if a link has a
// lower score, slots cost as much as running without slots. If no slots have a benefit, the slot periods follow from
// the periods of the jobs alone.
//
// The candidates are the perimeters of slots_front(), and longer perimeters on which bursts that do not fit together
// can follow one another. The sum of the stretches is a lower bound of the cost of a candidate, so most candidates are
// never solved.
#pragma once

#include <optional>
#include <vector>

#include "mltcp/scheduler/internal/cluster_state.h"

namespace mltcp::scheduler::internal {

class SlotCosts {
 public:
  /// Maximum number of jobs of a component. Larger components are excluded, because solving their candidates would take
  /// too long.
  static constexpr std::size_t kMaxJobs = 24;
  static bool applies(const AffinityGraph::Component& component, const ClusterOptions& options) {
    return options.max_slot_stretch > 0 && component.jobs.size() <= kMaxJobs;
  }

  /// `component` may have at most kMaxJobs jobs. `state` and `component` must outlive this object.
  SlotCosts(const ClusterState& state, const AffinityGraph::Component& component);
  /// Returns the cost if no job has slots.
  [[nodiscard]] double without() const;
  /// Returns the cost of the slot periods in the state if links have the given scores. `scores` has one entry for each
  /// vertex of the graph.
  [[nodiscard]] double with(const std::vector<double>& scores, double min_score) const;
  /// Returns the sum of the stretches of all jobs: the part of with() that does not depend on scores.
  [[nodiscard]] double stretch() const;
  /// Returns with() for the scores that a quick search finds. Returns no value if the problem is too large for a
  /// search.
  [[nodiscard]] std::optional<double> searched(const ClusterOptions& options) const;

 private:
  struct Meeting {
    std::uint32_t vertex = 0;
    double delay = 0;  ///< share by which iterations of the job grow if no job has slots
  };
  [[nodiscard]] double stretch_of(std::uint32_t job) const;

  const ClusterState& state_;
  const AffinityGraph::Component& component_;
  std::vector<std::vector<Meeting>> meetings_;  ///< for each of component.jobs
};

/// Two costs count as equal if they differ by less than this number times the number of jobs. If the costs of two
/// candidates are equal, the one that changes less is chosen.
inline constexpr double kCostMargin = 0.001;

/// Returns the best slot period for each of `periods`, which must be state.periods(component). Overwrites the slot
/// periods of the component's jobs in `state` with undefined values. Other slot periods do not change.
std::vector<Nanos> slots_worth_most(ClusterState& state, const AffinityGraph::Component& component,
                                    const std::vector<Nanos>& periods, const ClusterOptions& options);

/// Returns a key for the result of slots_worth_most(). Components with equal keys have equal results. May overwrite the
/// slot periods of the component's jobs in `state` with undefined values.
std::string key_of_slots(ClusterState& state, const AffinityGraph::Component& component, const ClusterOptions& options);

/// Sets the slot periods of the component's jobs in `state`: a job with period periods[i] gets slots[i].
void set_slot_periods(ClusterState& state, const AffinityGraph::Component& component, const std::vector<Nanos>& periods,
                      const std::vector<Nanos>& slots);

}  // namespace mltcp::scheduler::internal
