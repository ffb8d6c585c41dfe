// The phase gate of a job holds back the first bytes of each iteration until the job's time slot. So the time shifts
// that a scheduler has computed persist (CASSINI, NSDI 2024, arXiv 2308.00852, section 5: a drift of more than 5% of an
// iteration is corrected). Sans-IO: the gate only decides when bytes may leave; connections ask it and wait.
//
// A plan defines slots at slot + k * period for every integer k. The gate decides about an iteration when the
// iteration's first bytes are ready to leave. "Phase" is the time since the previous slot:
//
//   early     The first bytes are ready before the slot that follows the job's last slot. The iteration waits for
//             that slot. This is the normal case, because the period is slightly longer than the job's iterations.
//   on time   phase <= tolerance * period, or the next slot is less than clock_bound away. The iteration starts at
//             once. A small delay needs no correction, because the slack in the period lets the job catch up.
//   drifted   All other cases. With Correction::at_once the iteration waits for the next slot. With
//             Correction::gradual this iteration and each following one wait for at most gradual_step * period,
//             until one starts exactly on a slot.
//
// Each correction costs up to a period, so a plan that the job keeps missing is worse than no plan. A leaky bucket
// counts corrections. Each correction adds 1, and each iteration on its slot removes 1/12. When the level reaches 3,
// the plan is dropped as a misfit. So an occasional late iteration is always corrected, but a job whose iterations have
// become longer than its slots loses its plan after a few corrections. A gradual correction that has waited for a whole
// period without reaching a slot counts as one more correction.
//
// A plan is also dropped if it is out of range, or stale (the wait would last beyond valid_until). Without a plan the
// gate is open.
//
// If the program begins the next iteration while the first bytes of the current one are still held, the current
// iteration is skipped. Its data leaves at once, its slot and its correction are not counted, and the next iteration
// may take the same slot.
//
// A job with workers on several shards has one gate on each shard. The gates do not communicate: each decides from the
// plan, its own history and its own clock. They agree as long as their workers are ready at about the same time; early
// workers all wait for the same slot. Assume that worker A is just within the tolerance (or clock_bound before the
// slot), and worker B is just beyond it. A starts, and B waits for the next slot. The collective then ends late for
// both. Both drift, both take the following slot, and the gates agree again. This costs the job one period and each
// worker one correction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mltcp/base/units.h"

namespace mltcp {

/// The times at which the communication phases of a job may begin, on the shard's clock.
struct PhasePlan {
  enum class Correction : std::uint8_t { at_once, gradual };
  Nanos slot;               ///< time of any one slot, past or future; at most 2^62 ns from 0
  Nanos period;             ///< time between slots; above 0, at most 2^60 ns
  double tolerance = 0.05;  ///< maximum delay that is not a drift, as a fraction of the period, 0 to 0.5
  Correction correction = Correction::at_once;  ///< how drift is corrected
  /// Maximum wait per iteration with Correction::gradual, as a fraction of the period, 0.001 to 1.
  double gradual_step = 0.1;
  Nanos valid_until = Nanos::never();  ///< the plan is dropped after this time
  /// Maximum difference between the clocks of the job's hosts, 0 to tolerance * period. If an iteration is ready at
  /// most this long before a slot, it starts at once. So workers with slightly different clocks take the same slot.
  Nanos clock_bound;
  /// It is known that these slots don't overlap those of another job. Bursts then don't wait under policy turns.
  bool is_disjoint = false;
  bool operator==(const PhasePlan&) const = default;
};

/// Returns "cause; cure" for people if the plan is invalid, or an empty string if it is valid.
std::string objection_to(const PhasePlan& plan);

/// State of a job's plan. The values from `removed` on are reasons why the job no longer has a plan.
enum class PlanState : std::uint8_t {
  none,           ///< no plan was ever set
  active,         ///< the gate enforces the plan
  removed,        ///< clear_plan() removed it
  stale,          ///< valid_until has passed, or will pass before the next slot
  invalid,        ///< a value of the plan is out of range
  misfit,         ///< the job kept missing its slots
  no_iterations,  ///< iterations are learned from the traffic, so their beginnings are only known afterwards
  unknown_job,
};
/// Returns the name of the state, such as "active".
std::string_view to_text(PlanState state);

struct GateStats {
  PlanState state = PlanState::none;
  std::uint64_t on_slot = 0;        ///< iterations that began on their slot, or within the tolerance after it
  std::uint64_t corrections = 0;    ///< drifts that were corrected
  std::uint64_t plans_dropped = 0;  ///< plans dropped because they were stale, invalid or a misfit
  std::uint64_t skipped = 0;        ///< iterations skipped while they were held; no other field counts them
  Nanos waited;                     ///< total time for which early and drifted iterations were held
  /// The time at which the first bytes of the drifted iteration that is now held became ready, so that a scheduler can
  /// set a better plan. never() if no drifted iteration is held. Set only with Correction::at_once.
  Nanos adrift_since = Nanos::never();
};

class PhaseGate {
 public:
  /// Leaky bucket of corrections. kIterationsPerCorrection iterations on a slot offset one correction, and the plan is
  /// a misfit when the level reaches kMisfit corrections.
  static constexpr std::uint32_t kIterationsPerCorrection = 12;
  static constexpr std::uint32_t kMisfit = 3;

  /// Replaces the plan, and decides again about an iteration that is held. If `plan` is stale or out of range, the gate
  /// has no plan afterwards. If only `slot` differs from the previous plan, the counted corrections remain. If the job
  /// was on its slots, its next slot is then the first new slot at or after its next old slot. Returns the new state.
  PlanState set(const PhasePlan& plan, Nanos now);
  /// Removes the plan, which opens the gate. `why` becomes the state.
  void clear(PlanState why, Nanos now);

  /// Begins an iteration: data posted from now on belongs to it.
  void begin_iteration() {
    if (pending_ && held_) skip();
    ++round_;
    pending_ = true;
    decided_ = held_ = false;
  }
  /// Returns the number of the current iteration, 0 before the first. Each message stores the number of its iteration.
  /// The number wraps at 2^32; no message with the same number is left by then.
  [[nodiscard]] std::uint32_t round() const { return round_; }
  /// Returns whether an iteration has begun and none of its bytes has left yet.
  [[nodiscard]] bool pending() const { return pending_; }
  /// Returns whether bytes of iteration `round` must wait for opens_at().
  [[nodiscard]] bool holds(std::uint32_t round) const {
    return pending_ && round == round_ && stats_.state == PlanState::active;
  }
  /// Returns whether the gate has a plan whose slots do not overlap those of other jobs.
  [[nodiscard]] bool keeps_apart() const { return stats_.state == PlanState::active && plan_.is_disjoint; }
  /// Returns the time, `now` or later, at which the first bytes of the pending iteration may leave. Call it when these
  /// bytes are ready. Once it has returned `now`, the gate stays open for the rest of the iteration.
  Nanos opens_at(Nanos now);

  [[nodiscard]] const GateStats& stats() const { return stats_; }

 private:
  /// State that a decision about an iteration changes. It is restored if that iteration is skipped.
  struct History {
    bool aligned = false;  ///< the last iteration was on a slot; next_slot is the slot of the next iteration
    bool joining = false;  ///< no iteration has started on a slot of this plan yet
    std::uint32_t bucket = 0;
    Nanos next_slot;
    Nanos correction_waited;  ///< time waited since a gradual correction began or was last counted
  };

  void decide(Nanos now);
  /// Reverts what the current decision, if any, has added to GateStats::on_slot and GateStats::corrections.
  void undo_counts();
  void skip();
  void take_slot(Nanos slot);
  /// Counts a correction. Returns false if the bucket is now full; the plan has then been dropped.
  bool count_correction(Nanos now);
  void drop(PlanState why, Nanos now);
  void end_wait(Nanos now);

  PhasePlan plan_;
  Nanos tolerance_;  ///< PhasePlan::tolerance as a time
  Nanos step_;
  std::uint32_t round_ = 0;
  bool pending_ = false;
  bool decided_ = false;  ///< the first bytes of the pending iteration were ready at asked_ and may leave at opens_
  bool held_ = false;     ///< a decision about the pending iteration was made, under this or an earlier plan
  Nanos asked_;
  Nanos opens_;
  History history_;
  GateStats stats_;
  // Values from before the latest decision about the pending iteration, to undo that decision. `waited_before_` is from
  // before the first decision about it.
  History history_before_;
  GateStats stats_before_;
  Nanos waited_before_;
};

}  // namespace mltcp
