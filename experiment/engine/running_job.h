// A job of a run, whatever it runs on: what those who hand out slots see of it, and may do.
#pragma once

#include <cstddef>

#include "mltcp/experiment/results/results.h"
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
  /// GateStats::adrift_since of the worker that has waited longest; never() also where that isn't known.
  [[nodiscard]] virtual Nanos adrift_since() const { return Nanos::never(); }
  /// All iterations are recorded. The job goes on afterwards, unrecorded, so that the others keep their competitor.
  [[nodiscard]] virtual bool done() const = 0;
  /// Iterations recorded so far.
  [[nodiscard]] virtual std::size_t recorded() const = 0;
  /// Name, times relative to the run's time 0, bytes; no statistics yet.
  [[nodiscard]] virtual JobResult result() const = 0;
};

/// One that runs over a network of packets.
class DrivenJob : public RunningJob {
 public:
  /// All connections are open.
  [[nodiscard]] virtual bool connected() const = 0;
  /// The experiment's time 0; the job starts at `epoch` + its start time. Once, when connected.
  virtual void start(Nanos epoch) = 0;
};

}  // namespace mltcp::experiment
