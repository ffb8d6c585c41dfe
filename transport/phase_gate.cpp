// The phase gate (see phase_gate.h).
#include "mltcp/transport/phase_gate.h"

#include <fmt/format.h>

#include <algorithm>

namespace mltcp {
namespace {

constexpr std::int64_t kMaxPeriod = std::int64_t{1} << 60;
constexpr std::int64_t kMaxSlot = std::int64_t{1} << 62;
constexpr double kMaxTolerance = 0.5;
constexpr double kMinStep = 0.001;

Nanos share_of(Nanos period, double share) {
  return Nanos(static_cast<std::int64_t>(static_cast<double>(period.count) * share));
}

/// Returns the time since the most recent slot: at least 0 and less than the period.
Nanos phase_of(Nanos now, const PhasePlan& plan) {
  const std::int64_t period = plan.period.count;
  // `now - slot` may overflow 64 bits. The difference of the remainders cannot.
  const std::int64_t phase = (now.count % period - plan.slot.count % period) % period;
  return Nanos(phase < 0 ? phase + period : phase);
}

Nanos later(Nanos now, Nanos wait) { return Nanos::never() - wait < now ? Nanos::never() : now + wait; }

}  // namespace

std::string objection_to(const PhasePlan& plan) {
  if (plan.period.count <= 0 || plan.period.count > kMaxPeriod)
    return fmt::format("the period is {} ns; give one above 0 and at most 2^60 ns", plan.period.count);
  if (plan.slot.count < -kMaxSlot || plan.slot.count > kMaxSlot)
    return fmt::format("the slot is at {} ns; give one at most 2^62 ns from 0", plan.slot.count);
  // The condition is negated so that it also rejects NaN.
  if (!(plan.tolerance >= 0 && plan.tolerance <= kMaxTolerance))
    return fmt::format("the tolerance is {} of a period; give one from 0 to {}", plan.tolerance, kMaxTolerance);
  if (!(plan.gradual_step >= kMinStep && plan.gradual_step <= 1))
    return fmt::format("the step of a gradual correction is {} of a period; give one from {} to 1", plan.gradual_step,
                       kMinStep);
  if (plan.clock_bound.count < 0)
    return fmt::format("the clock bound is {} ns; give 0 or more", plan.clock_bound.count);
  if (plan.clock_bound > share_of(plan.period, plan.tolerance))
    return fmt::format(
        "clocks agree within {}, more than the tolerance of {}; synchronise them better, or give a larger tolerance",
        to_text(plan.clock_bound), to_text(share_of(plan.period, plan.tolerance)));
  return {};
}

std::string_view to_text(PlanState state) {
  switch (state) {
    case PlanState::none:
      return "none";
    case PlanState::active:
      return "active";
    case PlanState::removed:
      return "removed";
    case PlanState::stale:
      return "stale";
    case PlanState::invalid:
      return "invalid";
    case PlanState::misfit:
      return "misfit";
    case PlanState::no_iterations:
      return "no iterations";
    case PlanState::unknown_job:
      return "unknown job";
  }
  return "unknown";
}

PlanState PhaseGate::set(const PhasePlan& plan, Nanos now) {
  undo_counts();
  if (!objection_to(plan).empty() || now > plan.valid_until) {
    drop(now > plan.valid_until ? PlanState::stale : PlanState::invalid, now);
    return stats_.state;
  }
  PhasePlan same_slots = plan_;
  same_slots.slot = plan.slot;
  const bool moved = stats_.state == PlanState::active && same_slots == plan;
  if (pending_ && decided_) history_ = history_before_;
  end_wait(now);
  plan_ = plan;
  tolerance_ = share_of(plan.period, plan.tolerance);
  step_ = std::max(share_of(plan.period, plan.gradual_step), Nanos(1));
  stats_.state = PlanState::active;
  if (!moved) {
    history_ = {};
    history_.joining = true;
  } else if (history_.aligned) {
    const Nanos phase = phase_of(history_.next_slot, plan_);
    if (phase.count > 0) history_.next_slot = later(history_.next_slot, plan_.period - phase);
  }
  return stats_.state;
}

void PhaseGate::clear(PlanState why, Nanos now) {
  undo_counts();
  end_wait(now);
  stats_.state = why;
}

void PhaseGate::drop(PlanState why, Nanos now) {
  end_wait(now);
  stats_.state = why;
  ++stats_.plans_dropped;
}

void PhaseGate::undo_counts() {
  if (!pending_ || !decided_) return;
  stats_.on_slot = stats_before_.on_slot;
  stats_.corrections = stats_before_.corrections;
}

void PhaseGate::end_wait(Nanos now) {
  if (pending_ && decided_) stats_.waited += now - asked_;
  decided_ = false;
  stats_.adrift_since = Nanos::never();
}

Nanos PhaseGate::opens_at(Nanos now) {
  if (!pending_) return now;  // the current iteration has already begun to send
  if (stats_.state == PlanState::active && !decided_) decide(now);
  if (stats_.state == PlanState::active && now < opens_) return opens_;
  end_wait(now);
  pending_ = false;
  return now;
}

void PhaseGate::skip() {
  undo_counts();
  if (decided_) history_ = history_before_;
  stats_.waited = waited_before_;
  stats_.adrift_since = Nanos::never();
  ++stats_.skipped;
}

void PhaseGate::decide(Nanos now) {
  history_before_ = history_;
  stats_before_ = stats_;
  if (!held_) waited_before_ = stats_.waited;
  held_ = true;
  asked_ = now;
  decided_ = true;
  const Nanos phase = phase_of(now, plan_);
  const Nanos to_next = plan_.period - phase;
  const bool early = history_.aligned && later(now, plan_.clock_bound) < history_.next_slot;
  const bool late = phase <= tolerance_;  // the iteration is after a slot, but within the tolerance
  const bool drifted = !early && !late && to_next > plan_.clock_bound;
  const bool gradual = plan_.correction == PhasePlan::Correction::gradual;
  if (early)
    opens_ = history_.next_slot;
  else if (drifted)
    opens_ = later(now, gradual ? std::min(to_next, step_) : to_next);
  else
    opens_ = now;
  if (opens_ > plan_.valid_until) {
    drop(PlanState::stale, now);
    return;
  }
  if (drifted) {
    // Waiting for the first slot of a new plan is not a drift. A gradual correction counts once, and once more after
    // each whole period that it has waited.
    const bool counts = history_.aligned || (!history_.joining && history_.correction_waited >= plan_.period);
    if (counts && !count_correction(now)) return;
    history_.correction_waited += opens_ - now;
    history_.aligned = false;
    if (opens_ - now < to_next) return;
    if (!gradual) stats_.adrift_since = now;
  }
  take_slot(early ? history_.next_slot : late ? now - phase : later(now, to_next));
}

void PhaseGate::take_slot(Nanos slot) {
  if (history_.aligned || history_.joining) history_.bucket -= std::min(history_.bucket, 1U);
  history_.aligned = true;
  history_.joining = false;
  history_.next_slot = later(slot, plan_.period);
  history_.correction_waited = Nanos(0);
  ++stats_.on_slot;
}

bool PhaseGate::count_correction(Nanos now) {
  ++stats_.corrections;
  history_.correction_waited = Nanos(0);
  history_.bucket += kIterationsPerCorrection;
  if (history_.bucket < kMisfit * kIterationsPerCorrection) return true;
  drop(PlanState::misfit, now);
  return false;
}

}  // namespace mltcp
