// Interface to a job of a running experiment, on any backend, for code that assigns slots.
#pragma once

#include <cstddef>

#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp::experiment {

class RunningJob {
 public:
  virtual ~RunningJob() = default;

  /// Holds the job's iterations to the slots of `plan` from now on; see Shard::set_plan(). The plan's times are on the
  /// backend's clock. Call set_plan() and clear_plan() only between runs of the backend.
  virtual PlanState set_plan(const PhasePlan& plan) = 0;
  virtual void clear_plan() = 0;
  [[nodiscard]] virtual PlanState plan_state() const = 0;
  /// Returns the earliest GateStats::adrift_since of the job's workers; never() if no worker has drifted or the value
  /// is unknown.
  [[nodiscard]] virtual Nanos adrift_since() const { return Nanos::never(); }
  /// Returns whether all requested iterations are recorded. The job continues unrecorded, so that other jobs still
  /// compete with it.
  [[nodiscard]] virtual bool done() const = 0;
  /// Returns the number of iterations recorded so far.
  [[nodiscard]] virtual std::size_t recorded() const = 0;
  /// Returns the job's name, times relative to the run's time 0, and bytes; without statistics.
  [[nodiscard]] virtual JobResult result() const = 0;
};

}  // namespace mltcp::experiment
