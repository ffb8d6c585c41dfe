// Interface of a run whose jobs have been set up on a backend. Datapath::run() drives it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/backends/run_plan.h"
#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/lab/experiment/engine/running_job.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/series/series_recorder.h"

namespace mltcp::experiment {

/// One run. Call each function once, in the order of declaration. Exceptions: run() and the const functions may be
/// called repeatedly, and record() is optional.
class LiveRun {
 public:
  virtual ~LiveRun() = default;

  /// Returns the jobs in the order of the plan; owned by this object.
  [[nodiscard]] virtual std::span<RunningJob* const> jobs() const = 0;

  /// Opens all connections and returns when they are open. Throws RunError if that fails.
  virtual void connect() = 0;
  /// Returns the experiment's time 0, which is in the future.
  virtual Nanos choose_epoch() = 0;
  /// From `epoch` on, run() records series in `recorder`, which must outlive this object. Recording does not change the
  /// run. Throws InputError if the backend has no series.
  virtual void record(SeriesRecorder& recorder, Nanos epoch);
  /// Schedules each job to start at `epoch` plus the job's own start time.
  virtual void start(Nanos epoch) = 0;
  /// Runs until `until`, or until all jobs are done. Returns whether all jobs are done. Throws RunError if a job fails.
  virtual bool run(Nanos until) = 0;
  /// Adds the backend's own results to `run`, whose jobs are in the order of plan.jobs. Returns the final state of the
  /// links, for RunPlan::finished.
  virtual std::vector<JobNetwork::LinkView> finish(Run& run) = 0;

  [[nodiscard]] virtual Nanos now() const = 0;
  /// Returns the patience of the run: if no job finishes an iteration for this long, the caller gives up the run.
  [[nodiscard]] virtual Nanos patience() const = 0;
  /// Makes run() call `tell` at the end of each iteration. Returns false if unsupported; the caller must then poll.
  virtual bool reports_progress(std::function<void()> /*tell*/) { return false; }
  /// Makes run() call `ask` every 65536 events, because a single call of run() may take minutes. `ask` may throw to end
  /// the run.
  void ask_with(std::function<void()> ask) { ask_ = std::move(ask); }
  /// Returns how much time each call of run() should cover. RunPlan::between is called between these calls. `wanted` is
  /// the interval that the plan requests.
  [[nodiscard]] virtual Nanos slice(Nanos wanted) const { return wanted; }

 protected:
  /// Implementations call this function for each event of run().
  void on_event() {
    constexpr std::uint32_t between = 1U << 16;
    if (++events_ % between == 0 && ask_) ask_();
  }

 private:
  std::function<void()> ask_;
  std::uint32_t events_ = 0;
};

/// Returns the names of the plan's jobs, by job number.
std::map<std::uint32_t, std::string> names_of(const RunPlan& plan);

/// Adds `result` to the run, and fills in the fields that depend on `job` but not on the job's driver.
void record_job(JobResult result, const workload::Job& job, Run& run);
/// Adds the results of all jobs of the run, in the order of the plan.
void record_jobs(std::span<RunningJob* const> jobs, const RunPlan& plan, Run& run);

}  // namespace mltcp::experiment
