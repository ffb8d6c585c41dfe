// The phase gate of a job: holds the first bytes of each iteration until the job's slot, so that the time shifts that a
// scheduler hands out last (CASSINI, NSDI 2024, arXiv 2308.00852, section 5: a drift of more than 5% of an iteration is
// corrected). Sans-IO like the whole transport: it decides, the connections ask.
//
// A plan names slots: slot + k * period for every whole k. Each iteration takes one, as its first bytes are about to
// leave. With "phase" the time since the slot before:
//
//   early     before the slot that follows the job's last one: waits for it. Slots are a little longer than the job's
//             own period, so this is what an undisturbed job does in every iteration
//   on time   phase <= tolerance * period, or the next slot is less than clock_bound away: goes at once. Small lateness
//             costs nothing, since the slack of the slots lets the job catch up
//   drifted   anything else. At once: waits for the next slot. Gradual: waits for at most gradual_step * period in this
//             and the following iterations, until it is on a slot (not only nearly)
//
// Each drift costs up to a period, so a plan that the job keeps falling out of is worse than none. As in a leaky
// bucket, a correction adds one, and every iteration on its slot takes off a twelfth: at three the plan is dropped as a
// misfit. A straggler now and then is corrected for ever; a job whose iterations have become longer than its slots is
// let go after a few. A gradual correction that has waited for a whole period and not arrived counts again.
//
// A plan is also dropped when it is stale (a wait that would outlast valid_until isn't begun), or out of range. Without
// a plan the gate is open.
//
// An iteration that is skipped while it is held (the program begins the next one before its first bytes have left) is
// as if it had never asked: what was held leaves freely, its slot and its correction are given back, and the next
// iteration may take the same slot.
//
// A job whose workers run on several shards has a gate on each, and none of them hears of the others: each decides from
// the plan, its own history and its own clock. So they decide alike as long as they ask alike. An early worker, however
// early, waits for the slot that the others wait for. Where one is within the tolerance (or clock_bound before the
// slot) and another just beyond, by what their clocks or their readiness differ, the first goes and the second waits
// for the next slot. The collective ends with the last of them, which is a drift for the first, too: both take the slot
// after that and agree again. It costs the job a period and each of them one correction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mltcp/base/units.h"

namespace mltcp {

/// When the up phases of a job may begin. Times are of the shard's clock.
struct PhasePlan {
  enum class Correction : std::uint8_t { at_once, gradual };
  Nanos slot;                                   ///< one of the slots, past or future; at most 2^62 ns from 0
  Nanos period;                                 ///< from slot to slot; above 0, at most 2^60 ns
  double tolerance = 0.05;                      ///< lateness that is no drift, as a share of the period, 0 to 0.5
  Correction correction = Correction::at_once;  ///< of drift
  double gradual_step = 0.1;                    ///< most waiting per iteration, as a share of the period, 0.001 to 1
  Nanos valid_until = Nanos::never();           ///< the last moment at which the plan counts
  /// The clocks of the job's hosts agree within this; 0 to tolerance * period. A worker of a job that waits for the
  /// next slot while another went at once costs the job a period, as drift does; it is on its slot again afterwards.
  Nanos clock_bound;
  bool operator==(const PhasePlan&) const = default;
};

/// What is wrong with the plan, "cause; cure"; empty when it will do.
std::string objection_to(const PhasePlan& plan);

/// What has become of a job's plan. From `removed` on they say why there is none.
enum class PlanState : std::uint8_t {
  none,           ///< there never was one
  active,         ///< the gate holds the job to it
  removed,        ///< by clear_plan()
  stale,          ///< valid_until has passed, or would have before the next slot
  invalid,        ///< out of range
  misfit,         ///< the job kept falling out of its slots
  no_iterations,  ///< the transport learns the job's iterations: it can't know that one begins before it has sent
  unknown_job,
};
/// "none", "active", ...
std::string_view to_text(PlanState state);

struct GateStats {
  PlanState state = PlanState::none;
  std::uint64_t on_slot = 0;        ///< iterations that began on their slot, or after it within the tolerance
  std::uint64_t corrections = 0;    ///< drifts
  std::uint64_t plans_dropped = 0;  ///< as stale, invalid or a misfit
  std::uint64_t skipped = 0;        ///< iterations that were skipped while they were held; they count nowhere else
  Nanos waited;                     ///< in all, also of those that were early
  /// When the iteration asked that is held at once, for a slot that is not the one it was early for: whoever made the
  /// plan may know a better one. never() when none is.
  Nanos adrift_since = Nanos::never();
};

class PhaseGate {
 public:
  /// Iterations on a slot that pay for one correction, and corrections that are too many.
  static constexpr std::uint32_t kIterationsPerCorrection = 12;
  static constexpr std::uint32_t kMisfit = 3;

  /// Takes the place of the plan before. An iteration that is being held is looked at again. Plans that are stale or
  /// out of range leave the gate without one. If the slots are other ones and all else is as it was, the slots have
  /// been moved: a job that has been on one takes the first of the new ones from its next on, and its drifts are
  /// remembered.
  PlanState set(const PhasePlan& plan, Nanos now);
  /// Without a plan the gate is open.
  void clear(PlanState why, Nanos now);

  /// What is posted from now on belongs to a new iteration.
  void begin_iteration() {
    if (pending_ && held_) skip();
    ++round_;
    pending_ = true;
    decided_ = held_ = false;
  }
  /// Of the present iteration, 0 before the first; messages remember it. None is left from 2^32 iterations ago.
  [[nodiscard]] std::uint32_t round() const { return round_; }
  /// No bytes of the iteration have left.
  [[nodiscard]] bool pending() const { return pending_; }
  /// Bytes of that round don't leave before opens_at() lets them.
  [[nodiscard]] bool holds(std::uint32_t round) const {
    return pending_ && round == round_ && stats_.state == PlanState::active;
  }
  /// The first bytes of a pending iteration are about to leave: when they may. `now`, or later; at `now` the gate opens
  /// and stays open for the rest of the iteration, for which it is always `now`.
  Nanos opens_at(Nanos now);

  [[nodiscard]] const GateStats& stats() const { return stats_; }

 private:
  /// What a decision changes, and what is as before when its iteration is skipped.
  struct History {
    bool aligned = false;  ///< the last iteration was on a slot, the next one's is next_slot
    bool joining = false;  ///< no iteration has been on a slot of this plan
    std::uint32_t bucket = 0;
    Nanos next_slot;
    Nanos correction_waited;  ///< gradually, since the correction began or was last counted
  };

  void decide(Nanos now);
  /// What the present decision, if there is one, has counted; not the time for which it has held.
  void undo_counts();
  void skip();
  void take_slot(Nanos slot);
  /// False if it was one too many.
  bool count_correction(Nanos now);
  void drop(PlanState why, Nanos now);
  void end_wait(Nanos now);

  PhasePlan plan_;
  Nanos tolerance_;  ///< as a time, like the next
  Nanos step_;
  std::uint32_t round_ = 0;
  bool pending_ = false;
  bool decided_ = false;  ///< of a pending iteration: its first bytes have asked at asked_, and may leave at opens_
  bool held_ = false;     ///< a decision has been taken for the pending iteration, under this plan or one before
  Nanos asked_;
  Nanos opens_;
  History history_;
  GateStats stats_;
  // Before the decision, and before the first of the pending iteration.
  History history_before_;
  GateStats stats_before_;
  Nanos waited_before_;
};

}  // namespace mltcp
