// Runs an experiment: each job in isolation, then all jobs together under each policy. Policies "schedule" and
// "mltcp+schedule" plan slots from the isolated profiles (plan.h), or follow a plan file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/files/experiment.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/run/plan.h"
#include "mltcp/lab/experiment/series/series_recorder.h"
#include "mltcp/transport/capture/capture_options.h"

namespace mltcp::experiment {

/// Called with the fraction of the work done, 0 to 1, and a description of the current work ("policy mltcp").
using Progress = std::function<void(double fraction, const std::string& what)>;

struct RunOptions {
  /// Number of parallel runs in virtual time (isolated jobs, then policies); 0: one per core. Does not affect results.
  /// With a plan file or `between_slices`, policies run sequentially.
  std::uint32_t threads = 1;
  /// Path of a plan file (plan_file.h) that policies with a schedule follow and watch instead of planning; empty: none.
  std::string plan_file;
  /// By policy, the memo for plan_jobs(), shared by runs of the same jobs with any starts. A missing policy has none.
  /// Null: no policy has one.
  std::map<std::string, PlanMemo>* plan_memos = nullptr;
  bool metered = true;  ///< datapath flow: record each job's use of the links over time
  /// Called with problems of the plan file and of measurements during runs: one line each.
  std::function<void(const std::string& problem)> report;
  /// Called with all completed runs after each run but the last, so that they can be saved in case a later one fails.
  /// Calls are serialised, as are those of the progress callback.
  std::function<void(const Results& so_far)> finished;
  /// Polled by any thread; a non-empty text, the reason ("interrupted by the user"), stops the work. May be empty.
  std::function<std::string()> interrupted;
  /// Called before the jobs start and then every 50 ms of the experiment's time, which stands still meanwhile; `time`
  /// is 0 or more. The plan file is checked afterwards.
  std::function<void(const std::string& policy, Nanos time)> between_slices;
  /// Series to record of each policy's run; results are the same with and without. An interval of 0 becomes a 200th of
  /// the jobs' median iteration alone, and at least a round trip.
  std::optional<SeriesOptions> series;
  /// Receives the series, if any: those of the completed runs, in their order.
  std::vector<RunSeries>* recorded = nullptr;
  /// Captures the packets of each policy's run, but not of isolated jobs. If there are several policies, each has a
  /// file of its own, with the policy appended to the name.
  std::optional<capture::CaptureOptions> capture;
  /// Called after each capture with a line for people, and whether it has all packets. Calls are serialised.
  std::function<void(const std::string& line, bool is_complete)> captured;
};

/// The shortest useful interval of series: the time of a packet on the bottleneck.
Nanos shortest_series_interval(const Experiment& experiment);

/// Throws what run_experiment() would throw at its beginning: InputError for unsuitable options or plan file.
void check(const Experiment& experiment, const Datapath& datapath, const RunOptions& options);

/// Executes all runs of `experiment`. Throws InputError if an algorithm cannot run on this datapath, RunError if a job
/// fails or makes no progress. In virtual time equal experiments give bit-identical results. When interrupted, returns
/// the results of the completed policies, with the others in `unfinished`; throws RunError if none was complete.
Results run_experiment(const Experiment& experiment, Datapath& datapath, const Progress& progress = {},
                       const RunOptions& options = {});

}  // namespace mltcp::experiment
