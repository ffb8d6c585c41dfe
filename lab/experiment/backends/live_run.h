// The interface of a run: jobs that have been set up on some backend. Datapath::run() drives it.
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

/// One run. Call its functions once each in this order, except for run() and the const ones; record() is optional.
class LiveRun {
 public:
  virtual ~LiveRun() = default;

  /// The jobs, in the order of the plan; owned by this object.
  [[nodiscard]] virtual std::span<RunningJob* const> jobs() const = 0;

  /// Returns when all connections are open. Throws RunError if that fails.
  virtual void connect() = 0;
  /// Chooses the experiment's time 0, in the future.
  virtual Nanos choose_epoch() = 0;
  /// From `epoch` on, run() records series in `recorder`, which must outlive this object. Recording does not change the
  /// run. Throws InputError if the backend has no series.
  virtual void record(SeriesRecorder& recorder, Nanos epoch);
  /// Each job starts at `epoch` plus its own start time.
  virtual void start(Nanos epoch) = 0;
  /// Runs until `until` or until all jobs are done; returns whether they are. Throws RunError if a job fails.
  virtual bool run(Nanos until) = 0;
  /// Adds the backend's own results to `run`, whose jobs are in the order of plan.jobs. Returns the links' final state,
  /// for RunPlan::finished.
  virtual std::vector<JobNetwork::LinkView> finish(Run& run) = 0;

  [[nodiscard]] virtual Nanos now() const = 0;
  /// If no job ends an iteration for this long, the run is given up.
  [[nodiscard]] virtual Nanos patience() const = 0;
  /// Makes run() call `tell` when an iteration has ended. Returns false if unsupported: then the caller must poll.
  virtual bool tells_progress(std::function<void()> /*tell*/) { return false; }
  /// Makes run() call `ask` every 65536 events, as a slice of a large network or an iteration of a large job takes
  /// minutes. `ask` may throw to end the run.
  void ask_with(std::function<void()> ask) { ask_ = std::move(ask); }
  /// Time that run() should advance before `RunPlan::between` is called again, if the plan asks for `wanted`.
  [[nodiscard]] virtual Nanos slice(Nanos wanted) const { return wanted; }

 protected:
  /// Call for each event of run().
  void on_event() {
    constexpr std::uint32_t between = 1U << 16;
    if (++events_ % between == 0 && ask_) ask_();
  }

 private:
  std::function<void()> ask_;
  std::uint32_t events_ = 0;
};

/// Names of the plan's jobs, by number.
std::map<std::uint32_t, std::string> names_of(const RunPlan& plan);

/// Adds a job's result to the run's, with the fields that do not come from its driver.
void record_job(JobResult result, const workload::Job& job, Run& run);
/// The same for all jobs, in the order of the plan.
void record_jobs(std::span<RunningJob* const> jobs, const RunPlan& plan, Run& run);

}  // namespace mltcp::experiment
