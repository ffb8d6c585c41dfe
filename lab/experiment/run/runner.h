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
  /// Number of parallel runs in virtual time (isolated jobs, then policies); 0 for one per core. Does not affect
  /// results. With a plan file or `between_slices`, policies run sequentially.
  std::uint32_t threads = 1;
  /// Whether each job is also measured alone. If not, isolated times and slow-downs are unknown, and no policy may plan
  /// slots.
  bool isolated = true;
  /// Path of a plan file (plan_file.h), or empty. Policies with a schedule follow and watch the file instead of
  /// planning.
  std::string plan_file;
  /// Memos for plan_jobs(), by policy. Runs of the same jobs may share a memo, with any start times. A policy without
  /// an entry has no memo. Null if no policy has a memo.
  std::map<std::string, PlanMemo>* plan_memos = nullptr;
  bool metered = true;  ///< datapath flow only: whether to record each job's use of the links over time
  /// Called with one line for each problem with the plan file, or with measurements during a run.
  std::function<void(const std::string& problem)> report;
  /// Called after each run except the last, with all completed runs, so that the caller can save them in case a later
  /// run fails. Calls of this function and of the progress callback are serialised.
  std::function<void(const Results& so_far)> finished;
  /// Polled by any thread. Returns the reason to stop, such as "interrupted by the user", or an empty text to continue.
  /// The function itself may be empty.
  std::function<std::string()> interrupted;
  /// Called before the jobs start, and then every 50 ms of the experiment's time. The experiment's time stands still
  /// during a call. `time` is 0 or more. The plan file is checked after each call.
  std::function<void(const std::string& policy, Nanos time)> between_slices;
  /// Series to record in each policy's run. Recording does not change results. An interval of 0 means a 200th of the
  /// median isolated iteration time, but at least one round trip.
  std::optional<SeriesOptions> series;
  /// Receives the series of the completed runs, in the order of the runs. May be null.
  std::vector<RunSeries>* recorded = nullptr;
  /// Captures the packets of each policy's run, but not those of isolated jobs. If there are several policies, each has
  /// its own file, with the policy appended to the file's name.
  std::optional<capture::CaptureOptions> capture;
  /// Called after each capture with a line for people, and with whether the capture contains all packets. Calls are
  /// serialised.
  std::function<void(const std::string& line, bool is_complete)> captured;
};

/// Returns the shortest useful interval of series: the transmission time of a packet on the bottleneck.
Nanos shortest_series_interval(const Experiment& experiment);

/// Throws what run_experiment() would throw at its beginning: InputError if an option or the plan file is unsuitable.
void check(const Experiment& experiment, const Datapath& datapath, const RunOptions& options);

/// Executes all runs of `experiment`. Throws InputError if an algorithm cannot run on this datapath, RunError if a job
/// fails or makes no progress. In virtual time, equal experiments give bit-identical results. If interrupted, returns
/// the results of the completed policies, and lists all other policies in `unfinished`. Throws RunError if no policy
/// was completed.
Results run_experiment(const Experiment& experiment, Datapath& datapath, const Progress& progress = {},
                       const RunOptions& options = {});

}  // namespace mltcp::experiment
