// A job of a running experiment on any backend: the interface for the code that assigns slots.
#pragma once

#include <cstddef>

#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp::experiment {

class RunningJob {
 public:
  virtual ~RunningJob() = default;

  /// Holds the job's iterations to the slots of `plan`, in the backend's time, from now on; see Shard::set_plan(). Call
  /// set_plan() and clear_plan() only between runs of the backend.
  virtual PlanState set_plan(const PhasePlan& plan) = 0;
  virtual void clear_plan() = 0;
  [[nodiscard]] virtual PlanState plan_state() const = 0;
  /// GateStats::adrift_since of the worker that has waited longest; never() if there is none or it is not known.
  [[nodiscard]] virtual Nanos adrift_since() const { return Nanos::never(); }
  /// Whether all iterations are recorded. The job continues unrecorded, so that others still compete with it.
  [[nodiscard]] virtual bool done() const = 0;
  /// Number of iterations recorded so far.
  [[nodiscard]] virtual std::size_t recorded() const = 0;
  /// The job's name, times relative to the run's time 0, and bytes; without statistics.
  [[nodiscard]] virtual JobResult result() const = 0;
};

}  // namespace mltcp::experiment
