// A job of a run, whatever it runs on: what those who hand out slots see of it, and may do.
#pragma once

#include "mltcp/experiment/results.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp::experiment {

class RunningJob {
 public:
  virtual ~RunningJob() = default;

  /// Holds the job's iterations to the slots of `plan`, whose times are those of what it runs on, from now on; see
  /// Shard::set_plan(). While time stands still, like the next.
  virtual PlanState set_plan(const PhasePlan& plan) = 0;
  virtual void clear_plan() = 0;
  [[nodiscard]] virtual PlanState plan_state() const = 0;
  /// Name, times relative to the run's time 0, bytes; no statistics yet.
  [[nodiscard]] virtual JobResult result() const = 0;
};

}  // namespace mltcp::experiment
