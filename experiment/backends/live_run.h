// The one interface that a run drives: jobs that have been set up on some backend, and that live as time passes there.
// The loop that drives it is Datapath::run().
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/backends/run_plan.h"
#include "mltcp/experiment/engine/job_network.h"
#include "mltcp/experiment/engine/running_job.h"
#include "mltcp/experiment/results/results.h"

namespace mltcp::experiment {

/// One run's. Its calls are made once each and in this order, but for those that only tell, and run().
class LiveRun {
 public:
  virtual ~LiveRun() = default;

  /// In the order of the plan's; they live as long as this.
  [[nodiscard]] virtual std::span<RunningJob* const> jobs() const = 0;

  /// Until all connections are open. Throws RunError if they don't get there.
  virtual void connect() = 0;
  /// The experiment's time 0, which is to come.
  virtual Nanos choose_epoch() = 0;
  /// Jobs start at `epoch` and their own start times.
  virtual void start(Nanos epoch) = 0;
  /// Until `until`, or until all jobs are done; returns whether they are. Throws RunError when one can't go on.
  virtual bool run(Nanos until) = 0;
  /// Adds what only the backend knows to `run`, of the jobs as in plan.jobs; returns its links, as they were left, for
  /// RunPlan::finished.
  virtual std::vector<JobNetwork::LinkView> finish(Run& run) = 0;

  [[nodiscard]] virtual Nanos now() const = 0;
  /// For how long no job may end an iteration before the run is given up.
  [[nodiscard]] virtual Nanos patience() const = 0;
  /// Calls `tell` in run() when iterations have ended; false if it doesn't, and is to be looked at now and then.
  virtual bool tells_progress(std::function<void()> /*tell*/) { return false; }
  /// How long run() may go on before `RunPlan::between` is called again, where the plan wants `wanted`.
  [[nodiscard]] virtual Nanos slice(Nanos wanted) const { return wanted; }
};

/// Names of the plan's jobs, by number.
std::map<std::uint32_t, std::string> names_of(const RunPlan& plan);

/// Adds a result to the run's, with what of the job is not the driver's to know.
void record_job(JobResult result, const workload::Job& job, Run& run);
/// The same of all that run, in the order of the plan's jobs.
void record_jobs(std::span<RunningJob* const> jobs, const RunPlan& plan, Run& run);

}  // namespace mltcp::experiment
