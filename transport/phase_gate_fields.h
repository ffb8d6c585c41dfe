// Field lists of PhasePlan and GateStats (see base/fields.h).
#pragma once

#include "mltcp/base/fields.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp {

/// The highest value of each enumeration.
constexpr PhasePlan::Correction last_of(PhasePlan::Correction /*type*/) { return PhasePlan::Correction::gradual; }
constexpr PlanState last_of(PlanState /*type*/) { return PlanState::unknown_job; }

constexpr auto fields_of(const PhasePlan* /*type*/) {
  return list_of<PhasePlan>(
      field("slot", &PhasePlan::slot), field("period", &PhasePlan::period), field("tolerance", &PhasePlan::tolerance),
      field("correction", &PhasePlan::correction), field("gradual_step", &PhasePlan::gradual_step),
      field("valid_until", &PhasePlan::valid_until), field("clock_bound", &PhasePlan::clock_bound),
      field("is_disjoint", &PhasePlan::is_disjoint));
}

constexpr auto fields_of(const GateStats* /*type*/) {
  return list_of<GateStats>(field("state", &GateStats::state), field("on_slot", &GateStats::on_slot),
                            field("corrections", &GateStats::corrections),
                            field("plans_dropped", &GateStats::plans_dropped), field("skipped", &GateStats::skipped),
                            field("waited", &GateStats::waited), field("adrift_since", &GateStats::adrift_since));
}

}  // namespace mltcp
