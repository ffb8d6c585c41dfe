// Tests the phase gate: which slot an iteration waits for, what counts as drift, and when the gate drops a plan.
#include "mltcp/transport/phase_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

namespace mltcp {
namespace {

using namespace literals;
using Correction = PhasePlan::Correction;

// Returns a plan with slots at 10 ms + k * 100 ms. A delay of up to 5% of the period is on time.
PhasePlan plan_of(Correction correction = Correction::at_once) {
  PhasePlan plan;
  plan.slot = 10_ms;
  plan.period = 100_ms;
  plan.correction = correction;
  return plan;
}

// Runs one iteration whose first bytes are ready at `ready`. Returns the time at which they leave.
Nanos leaves(PhaseGate& gate, Nanos ready) {
  gate.begin_iteration();
  EXPECT_TRUE(gate.pending());
  const Nanos opens = gate.opens_at(ready);
  if (opens > ready) {
    EXPECT_TRUE(gate.holds(gate.round()));
    EXPECT_FALSE(gate.holds(gate.round() - 1));
    EXPECT_EQ(gate.opens_at(opens - 1_ns), opens) << "asked again meanwhile";
    EXPECT_EQ(gate.opens_at(opens), opens);
  }
  EXPECT_FALSE(gate.pending());
  EXPECT_EQ(gate.opens_at(opens + 1_ms), opens + 1_ms);
  EXPECT_FALSE(gate.holds(gate.round())) << "later phases of the iteration are free";
  return opens;
}

PhaseGate gate_of(const PhasePlan& plan) {
  PhaseGate gate;
  EXPECT_EQ(gate.set(plan, 0_ms), PlanState::active);
  return gate;
}

TEST(PhaseGate, no_plan__is_open) {
  PhaseGate gate;
  EXPECT_FALSE(gate.holds(0));
  EXPECT_EQ(gate.opens_at(7_ms), 7_ms);
  EXPECT_EQ(leaves(gate, 8_ms), 8_ms);
  EXPECT_EQ(gate.stats().state, PlanState::none);
  EXPECT_EQ(gate.stats().waited, 0_ms);
}

TEST(PhaseGate, early__waits_for_its_slot) {
  PhaseGate gate = gate_of(plan_of());
  EXPECT_EQ(leaves(gate, 0_ms), 10_ms);
  EXPECT_EQ(leaves(gate, 109_ms), 110_ms);
  EXPECT_EQ(leaves(gate, 209999999_ns), 210_ms);
  EXPECT_EQ(gate.stats().on_slot, 3U);
  EXPECT_EQ(gate.stats().corrections, 0U);
  EXPECT_EQ(gate.stats().waited, 10_ms + 1_ms + 1_ns);
}

// An early iteration takes the next slot and is not a drift, however short the iterations are.
TEST(PhaseGate, early__also_by_more_than_half_a_period_and_soon_after_the_last_slot) {
  for (const Correction correction : {Correction::at_once, Correction::gradual}) {
    PhaseGate gate = gate_of(plan_of(correction));
    EXPECT_EQ(leaves(gate, 10_ms), 10_ms);
    EXPECT_EQ(leaves(gate, 40_ms), 110_ms);
    EXPECT_EQ(leaves(gate, 112_ms), 210_ms);
    EXPECT_EQ(leaves(gate, 210_ms), 310_ms);
    EXPECT_EQ(gate.stats().corrections, 0U);
  }
}

TEST(PhaseGate, late_within_the_tolerance__goes_at_once_and_catches_up) {
  PhaseGate gate = gate_of(plan_of());
  EXPECT_EQ(leaves(gate, 10_ms), 10_ms);
  EXPECT_EQ(leaves(gate, 114_ms), 114_ms);
  EXPECT_EQ(leaves(gate, 213_ms), 213_ms) << "the job's own period is 99 ms";
  EXPECT_EQ(leaves(gate, 312_ms), 312_ms);
  EXPECT_EQ(leaves(gate, 409_ms), 410_ms);
  EXPECT_EQ(leaves(gate, 515_ms), 515_ms) << "5% is still fine";
  EXPECT_EQ(gate.stats().corrections, 0U);
  EXPECT_EQ(gate.stats().waited, 1_ms);
}

TEST(PhaseGate, drift_at_once__waits_for_the_next_slot) {
  PhaseGate gate = gate_of(plan_of());
  EXPECT_EQ(leaves(gate, 10_ms), 10_ms);
  EXPECT_EQ(leaves(gate, 115000001_ns), 210_ms);
  EXPECT_EQ(gate.stats().corrections, 1U);
  EXPECT_EQ(leaves(gate, 309_ms), 310_ms);
  EXPECT_EQ(leaves(gate, 560_ms), 610_ms) << "a pause of one and a half periods";
  EXPECT_EQ(leaves(gate, 709_ms), 710_ms);
  EXPECT_EQ(leaves(gate, 1012_ms), 1012_ms) << "a pause that ends on another slot";
  EXPECT_EQ(gate.stats().corrections, 2U);
  EXPECT_EQ(gate.stats().waited, 210_ms - 115000001_ns + 1_ms + 50_ms + 1_ms);
}

TEST(PhaseGate, drift_gradual__waits_a_step_per_iteration_until_it_is_on_a_slot) {
  PhaseGate gate = gate_of(plan_of(Correction::gradual));
  EXPECT_EQ(leaves(gate, 10_ms), 10_ms);
  EXPECT_EQ(leaves(gate, 180_ms), 190_ms) << "half an iteration of pause, and 20 ms";
  EXPECT_EQ(leaves(gate, 290_ms), 300_ms) << "iterations of 100 ms";
  EXPECT_EQ(leaves(gate, 400_ms), 410_ms);
  EXPECT_EQ(gate.stats().on_slot, 2U);
  EXPECT_EQ(leaves(gate, 510_ms), 510_ms);
  EXPECT_EQ(gate.stats().corrections, 1U);
  EXPECT_EQ(gate.stats().waited, 30_ms);
  // The last step of a correction may be shorter than the steps before. An iteration that is only near a slot is not on
  // the slot.
  EXPECT_EQ(leaves(gate, 695_ms), 705_ms);
  EXPECT_EQ(leaves(gate, 805_ms), 810_ms);
}

TEST(PhaseGate, drift_gradual__is_over_when_slack_brings_it_back_within_the_tolerance) {
  PhasePlan plan = plan_of(Correction::gradual);
  plan.gradual_step = 0.01;
  PhaseGate gate = gate_of(plan);
  EXPECT_EQ(leaves(gate, 10_ms), 10_ms);
  EXPECT_EQ(leaves(gate, 117_ms), 118_ms);
  EXPECT_EQ(leaves(gate, 214_ms), 214_ms) << "the job's own period is 96 ms";
  EXPECT_EQ(leaves(gate, 309_ms), 310_ms);
  EXPECT_EQ(gate.stats().corrections, 1U);
}

// The job's slack undoes each step of the correction, so the job never reaches a slot.
TEST(PhaseGate, drift_gradual__that_never_arrives_is_a_misfit) {
  PhaseGate gate = gate_of(plan_of(Correction::gradual));
  EXPECT_EQ(leaves(gate, 10_ms), 10_ms);
  Nanos ready = 160_ms;
  int iterations = 0;
  for (; gate.stats().state == PlanState::active && iterations < 100; ++iterations) ready = leaves(gate, ready) + 90_ms;
  EXPECT_EQ(gate.stats().state, PlanState::misfit);
  EXPECT_EQ(iterations, 21) << "two whole periods in steps of a tenth, and one";
}

// A plan with moved slots is not a new plan: the gate still knows the job's next slot and its earlier drifts.
TEST(PhaseGate, set__of_moved_slots_moves_the_next_one) {
  PhaseGate gate = gate_of(plan_of());
  EXPECT_EQ(leaves(gate, 10_ms), 10_ms);
  PhasePlan plan = plan_of();
  plan.slot = 35_ms;
  gate.set(plan, 50_ms);
  EXPECT_EQ(leaves(gate, 60_ms), 135_ms) << "early by far, and not on the slot that was at 35 ms";
  EXPECT_EQ(gate.stats().corrections, 0U);
  // Three drifts count as three, although the slots moved between them.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(leaves(gate, 265_ms + Nanos(200'000'000) * i), 335_ms + Nanos(200'000'000) * i);
    plan.slot += 100_ms;
    gate.set(plan, 340_ms + Nanos(200'000'000) * i);
  }
  EXPECT_EQ(gate.stats().corrections, 2U);
  EXPECT_EQ(leaves(gate, 665_ms), 665_ms);
  EXPECT_EQ(gate.stats().state, PlanState::misfit);
  // A plan with another period is a new plan.
  PhaseGate other = gate_of(plan_of());
  EXPECT_EQ(leaves(other, 10_ms), 10_ms);
  PhasePlan longer = plan_of();
  longer.period = 110_ms;
  longer.slot = 58_ms;
  other.set(longer, 50_ms);
  EXPECT_EQ(leaves(other, 60_ms), 60_ms) << "of which any slot will do";
}

// A scheduler can read `adrift_since` while a correction is pending.
TEST(PhaseGate, adrift__is_told_while_the_job_waits_for_a_slot_that_it_did_not_ask_for) {
  PhaseGate gate = gate_of(plan_of());
  EXPECT_EQ(leaves(gate, 10_ms), 10_ms);
  gate.begin_iteration();
  EXPECT_EQ(gate.opens_at(109_ms), 110_ms);
  EXPECT_TRUE(gate.stats().adrift_since.is_never()) << "early";
  EXPECT_EQ(gate.opens_at(110_ms), 110_ms);
  gate.begin_iteration();
  EXPECT_EQ(gate.opens_at(230_ms), 310_ms);
  EXPECT_EQ(gate.opens_at(240_ms), 310_ms);
  EXPECT_EQ(gate.stats().adrift_since, 230_ms);
  // If the slots move so that they suit the job, the iteration starts and the drift is not counted.
  PhasePlan moved = plan_of();
  moved.slot = 41_ms;
  gate.set(moved, 240_ms);
  EXPECT_TRUE(gate.stats().adrift_since.is_never());
  EXPECT_EQ(gate.opens_at(240_ms), 241_ms);
  EXPECT_TRUE(gate.stats().adrift_since.is_never()) << "early for the slot that it has missed, which is there now";
  EXPECT_EQ(gate.opens_at(241_ms), 241_ms);
  EXPECT_TRUE(gate.stats().adrift_since.is_never());
  EXPECT_EQ(gate.stats().corrections, 0U);
  // An iteration that is skipped is no longer adrift. An iteration that is late by less than the tolerance is never
  // adrift.
  gate.begin_iteration();
  EXPECT_EQ(gate.opens_at(380_ms), 441_ms);
  gate.begin_iteration();
  EXPECT_TRUE(gate.stats().adrift_since.is_never());
  EXPECT_EQ(gate.opens_at(444_ms), 444_ms);
  EXPECT_TRUE(gate.stats().adrift_since.is_never());
  // A gradual correction sets no `adrift_since`, because it needs no scheduler.
  PhaseGate gradual = gate_of(plan_of(Correction::gradual));
  EXPECT_EQ(leaves(gradual, 10_ms), 10_ms);
  gradual.begin_iteration();
  EXPECT_EQ(gradual.opens_at(160_ms), 170_ms);
  EXPECT_TRUE(gradual.stats().adrift_since.is_never());
  EXPECT_EQ(gradual.opens_at(170_ms), 170_ms);
  gradual.begin_iteration();
  EXPECT_EQ(gradual.opens_at(303_ms), 310_ms) << "the last step";
  EXPECT_TRUE(gradual.stats().adrift_since.is_never());
}

TEST(PhaseGate, first_slot_of_a_plan__is_no_drift) {
  PhaseGate gate = gate_of(plan_of());
  EXPECT_EQ(leaves(gate, 50_ms), 110_ms);
  EXPECT_EQ(gate.stats().corrections, 0U);
  PhaseGate gradual = gate_of(plan_of(Correction::gradual));
  EXPECT_EQ(leaves(gradual, 90_ms), 100_ms);
  EXPECT_EQ(leaves(gradual, 200_ms), 210_ms);
  EXPECT_EQ(gradual.stats().corrections, 0U);
}

TEST(PhaseGate, clock_bound__so_near_before_the_slot_is_on_time) {
  PhasePlan plan = plan_of();
  plan.clock_bound = 1_ms;
  PhaseGate gate = gate_of(plan);
  EXPECT_EQ(leaves(gate, 9_ms), 9_ms);
  EXPECT_EQ(leaves(gate, 109_ms), 109_ms);
  EXPECT_EQ(leaves(gate, 208_ms), 210_ms);
  EXPECT_EQ(leaves(gate, 409500_us), 409500_us) << "on the slot after the next";
  EXPECT_EQ(leaves(gate, 505_ms), 510_ms) << "which is the one that it took";
  EXPECT_EQ(gate.stats().on_slot, 5U);
}

TEST(PhaseGate, misfit__of_a_job_that_has_become_longer) {
  PhaseGate gate = gate_of(plan_of());
  EXPECT_EQ(leaves(gate, 10_ms), 10_ms);
  EXPECT_EQ(leaves(gate, 120_ms), 210_ms);
  EXPECT_EQ(leaves(gate, 320_ms), 410_ms);
  EXPECT_EQ(leaves(gate, 520_ms), 520_ms);
  EXPECT_EQ(gate.stats().state, PlanState::misfit);
  EXPECT_EQ(gate.stats().plans_dropped, 1U);
  EXPECT_EQ(gate.stats().corrections, 3U);
  EXPECT_EQ(leaves(gate, 630_ms), 630_ms);
  // Iterations are 3% too long, so every second iteration drifts.
  PhaseGate slow = gate_of(plan_of());
  Nanos ready = 10_ms;
  int iterations = 0;
  for (; slow.stats().state == PlanState::active && iterations < 100; ++iterations)
    ready = leaves(slow, ready) + 103_ms;
  EXPECT_EQ(slow.stats().corrections, 4U);
  EXPECT_LT(iterations, 12);
}

TEST(PhaseGate, misfit__is_not_a_straggler_now_and_then) {
  const auto drops = [](int every) {
    PhaseGate gate = gate_of(plan_of());
    Nanos ready = 10_ms;
    for (int i = 1; i <= 1000; ++i) ready = leaves(gate, ready) + (i % every == 0 ? 150_ms : 99_ms);
    return gate.stats().plans_dropped;
  };
  EXPECT_EQ(drops(20), 0U);
  EXPECT_EQ(drops(14), 0U);
  EXPECT_EQ(drops(8), 1U);
}

TEST(PhaseGate, stale__is_dropped_at_once) {
  PhasePlan plan = plan_of();
  plan.valid_until = 250_ms;
  PhaseGate gate = gate_of(plan);
  EXPECT_EQ(leaves(gate, 100_ms), 110_ms);
  EXPECT_EQ(leaves(gate, 209_ms), 210_ms);
  EXPECT_EQ(leaves(gate, 240_ms), 240_ms) << "the slot at 310 ms is none any more";
  EXPECT_EQ(gate.stats().state, PlanState::stale);
  EXPECT_EQ(gate.stats().plans_dropped, 1U);
  EXPECT_EQ(gate.stats().on_slot, 2U);
  EXPECT_EQ(gate.stats().corrections, 0U);
  EXPECT_EQ(gate.set(plan, 250_ms), PlanState::active);
  EXPECT_EQ(leaves(gate, 251_ms), 251_ms);
  EXPECT_EQ(gate.stats().state, PlanState::stale);
  EXPECT_EQ(gate.set(plan, 251_ms), PlanState::stale);
  EXPECT_EQ(gate.stats().plans_dropped, 3U);
}

TEST(PhaseGate, clear__lets_go_what_is_held) {
  PhaseGate gate = gate_of(plan_of());
  gate.begin_iteration();
  EXPECT_EQ(gate.opens_at(0_ms), 10_ms);
  gate.clear(PlanState::removed, 4_ms);
  EXPECT_FALSE(gate.holds(gate.round()));
  EXPECT_EQ(gate.opens_at(4_ms), 4_ms);
  EXPECT_EQ(gate.stats().state, PlanState::removed);
  EXPECT_EQ(gate.stats().plans_dropped, 0U) << "somebody wanted it so";
  EXPECT_EQ(gate.stats().waited, 4_ms);
}

TEST(PhaseGate, set__looks_at_a_held_iteration_again) {
  PhaseGate gate = gate_of(plan_of());
  gate.begin_iteration();
  EXPECT_EQ(gate.opens_at(0_ms), 10_ms);
  PhasePlan plan = plan_of();
  plan.slot = 307_ms;
  EXPECT_EQ(gate.set(plan, 5_ms), PlanState::active);
  EXPECT_EQ(gate.opens_at(5_ms), 7_ms);
  EXPECT_EQ(gate.opens_at(7_ms), 7_ms);
  EXPECT_EQ(gate.stats().waited, 7_ms);
  // A new plan does not hold an iteration that has begun to send. It holds one that still computes.
  gate.begin_iteration();
  plan.slot = 30_ms;
  gate.set(plan, 50_ms);
  EXPECT_EQ(gate.opens_at(120_ms), 130_ms);
}

TEST(PhaseGate, begin_iteration__twice_holds_the_newest_only) {
  PhaseGate gate = gate_of(plan_of());
  gate.begin_iteration();
  EXPECT_EQ(gate.opens_at(0_ms), 10_ms);
  const std::uint32_t before = gate.round();
  gate.begin_iteration();
  EXPECT_FALSE(gate.holds(before));
  EXPECT_TRUE(gate.holds(gate.round()));
}

// An iteration that is skipped while the gate holds it uses no slot and counts no correction.
TEST(PhaseGate, begin_iteration__twice_gives_back_what_the_held_one_took) {
  PhaseGate gate = gate_of(plan_of());
  gate.begin_iteration();
  EXPECT_EQ(gate.opens_at(0_ms), 10_ms);
  EXPECT_EQ(leaves(gate, 5_ms), 10_ms) << "and not the slot after the skipped one's";
  EXPECT_EQ(gate.stats().on_slot, 1U);
  EXPECT_EQ(gate.stats().skipped, 1U);
  EXPECT_EQ(gate.stats().waited, 5_ms);
  // If several iterations with the same drift are skipped, the drift counts once, when the next iteration starts.
  for (int i = 0; i < 5; ++i) {
    gate.begin_iteration();
    EXPECT_EQ(gate.opens_at(150_ms + Nanos(i)), 210_ms);
  }
  EXPECT_EQ(leaves(gate, 160_ms), 210_ms);
  EXPECT_EQ(gate.stats().state, PlanState::active);
  EXPECT_EQ(gate.stats().corrections, 1U);
  EXPECT_EQ(gate.stats().on_slot, 2U);
  EXPECT_EQ(gate.stats().skipped, 6U);
  EXPECT_EQ(gate.stats().waited, 5_ms + 50_ms);
  // A skip changes nothing if the first bytes are not ready yet or the iteration has already started.
  gate.begin_iteration();
  EXPECT_EQ(leaves(gate, 309_ms), 310_ms);
  EXPECT_EQ(gate.stats().skipped, 6U);
}

// A held iteration counts at most once, however often the plan changes meanwhile.
TEST(PhaseGate, set__of_a_held_iteration_counts_it_once) {
  PhaseGate gate = gate_of(plan_of());
  EXPECT_EQ(leaves(gate, 10_ms), 10_ms);
  gate.begin_iteration();
  PhasePlan plan = plan_of();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(gate.opens_at(150_ms + Nanos(i)), 210_ms + Nanos(i));
    plan.slot += 1_ns;
    gate.set(plan, 150_ms + Nanos(i));
  }
  EXPECT_EQ(gate.opens_at(212_ms), 212_ms);
  EXPECT_EQ(gate.stats().on_slot, 2U);
  EXPECT_EQ(gate.stats().corrections, 0U) << "the first plan's drift is none of the last one's";

  gate.begin_iteration();
  EXPECT_EQ(gate.opens_at(270_ms), 310_ms + 5_ns);
  const Nanos waited = gate.stats().waited;
  gate.set(plan, 280_ms);
  EXPECT_EQ(gate.opens_at(280_ms), 310_ms + 5_ns);
  gate.begin_iteration();
  EXPECT_EQ(gate.stats().waited, waited);
  EXPECT_EQ(gate.stats().on_slot, 2U);
  EXPECT_EQ(gate.stats().skipped, 1U);

  EXPECT_EQ(gate.opens_at(285_ms), 310_ms + 5_ns);
  gate.clear(PlanState::removed, 290_ms);
  EXPECT_EQ(gate.opens_at(290_ms), 290_ms);
  EXPECT_EQ(gate.stats().on_slot, 2U) << "it left without a slot";
  EXPECT_EQ(gate.stats().waited, waited + 5_ms);
}

// One job has two shards. The iteration of the first shard is late by exactly the tolerance. The iteration of the
// second shard is late by 1 ns more.
TEST(PhaseGate, two_gates_of_a_job__agree_again_after_one_correction_each) {
  PhaseGate first = gate_of(plan_of());
  PhaseGate second = gate_of(plan_of());
  EXPECT_EQ(leaves(first, 10_ms), leaves(second, 10_ms));
  EXPECT_EQ(leaves(first, 115_ms), 115_ms);
  EXPECT_EQ(leaves(second, 115000001_ns), 210_ms);
  for (int i = 0; i < 20; ++i) {
    // The iteration ends 99 ms after the later shard has sent.
    const Nanos ready = 309_ms + Nanos(100'000'000) * i;
    EXPECT_EQ(leaves(first, ready), ready + 1_ms);
    EXPECT_EQ(leaves(second, ready + 1_ns), ready + 1_ms);
  }
  for (const PhaseGate* gate : {&first, &second}) {
    EXPECT_EQ(gate->stats().corrections, 1U);
    EXPECT_EQ(gate->stats().state, PlanState::active);
  }
}

TEST(PhaseGate, objection__names_what_is_out_of_range) {
  const auto objection = [](auto&& change) {
    PhasePlan plan = plan_of();
    change(plan);
    PhaseGate gate = gate_of(plan_of());
    gate.begin_iteration();
    std::string text = objection_to(plan);
    EXPECT_EQ(gate.set(plan, 0_ms), text.empty() ? PlanState::active : PlanState::invalid);
    if (!text.empty()) {
      EXPECT_EQ(gate.opens_at(0_ms), 0_ms) << "the plan before is gone too";
      EXPECT_EQ(gate.stats().plans_dropped, 1U);
    }
    return text;
  };
  using testing::HasSubstr;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(objection([](PhasePlan& p) { p.period = 0_ms; }), HasSubstr("period is 0 ns"));
  EXPECT_THAT(objection([](PhasePlan& p) { p.period = Nanos(-5); }), HasSubstr("period"));
  EXPECT_THAT(objection([](PhasePlan& p) { p.period = Nanos((std::int64_t{1} << 60) + 1); }), HasSubstr("period"));
  EXPECT_THAT(objection([](PhasePlan& p) { p.slot = Nanos(std::numeric_limits<std::int64_t>::min()); }),
              HasSubstr("slot"));
  EXPECT_THAT(objection([](PhasePlan& p) { p.slot = Nanos::never(); }), HasSubstr("slot"));
  EXPECT_THAT(objection([](PhasePlan& p) { p.tolerance = nan; }), HasSubstr("tolerance"));
  EXPECT_THAT(objection([](PhasePlan& p) { p.tolerance = 0.51; }), HasSubstr("tolerance"));
  EXPECT_THAT(objection([](PhasePlan& p) { p.tolerance = -0.01; }), HasSubstr("tolerance"));
  EXPECT_THAT(objection([](PhasePlan& p) { p.gradual_step = 0; }), HasSubstr("step"));
  EXPECT_THAT(objection([](PhasePlan& p) { p.gradual_step = 1.5; }), HasSubstr("step"));
  EXPECT_THAT(objection([](PhasePlan& p) { p.clock_bound = Nanos(-1); }), HasSubstr("clock bound"));
  EXPECT_THAT(objection([](PhasePlan& p) { p.clock_bound = 5000001_ns; }), HasSubstr("more than the tolerance"));
  EXPECT_EQ(objection([](PhasePlan& p) { p.clock_bound = 5_ms; }), "");
  EXPECT_EQ(objection([](PhasePlan& p) { p.tolerance = 0; }), "");
  EXPECT_EQ(objection([](PhasePlan& p) { p.period = 1_ns; }), "");
}

TEST(PhaseGate, edges_of_64_bits__neither_wrap_nor_trap) {
  constexpr std::int64_t max = std::int64_t{1} << 62;
  for (const std::int64_t slot : {-max, -max + 1, std::int64_t{-1}, std::int64_t{0}, max - 1, max})
    for (const std::int64_t period : {std::int64_t{1}, std::int64_t{3}, std::int64_t{1'000'000'007}, max / 4})
      for (const std::int64_t now : {std::int64_t{0}, std::int64_t{1}, max, Nanos::never().count - 1}) {
        PhasePlan plan;
        plan.slot = Nanos(slot);
        plan.period = Nanos(period);
        PhaseGate gate = gate_of(plan);
        gate.begin_iteration();
        const Nanos opens = gate.opens_at(Nanos(now));
        ASSERT_GE(opens, Nanos(now));
        if (opens > Nanos(now) && !opens.is_never()) {
          ASSERT_LT((opens - Nanos(now)).count, period);
          ASSERT_EQ((opens.count % period - slot % period) % period, 0) << slot << ' ' << period << ' ' << now;
        }
      }
}

TEST(PhaseGate, state__has_a_text_each) {
  std::set<std::string_view> texts;
  for (int i = 0; i <= static_cast<int>(PlanState::unknown_job); ++i) texts.insert(to_text(static_cast<PlanState>(i)));
  EXPECT_EQ(texts.size(), static_cast<std::size_t>(PlanState::unknown_job) + 1);
}

}  // namespace
}  // namespace mltcp
