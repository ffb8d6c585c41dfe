// Runs an experiment: each job alone to know what isolated means, then all jobs together under each policy. Policies
// "schedule" and "mltcp+schedule" make a plan of what each job did alone (plan.h), or follow one from a file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "mltcp/experiment/backends/datapath.h"
#include "mltcp/experiment/files/experiment.h"
#include "mltcp/experiment/results/results.h"

namespace mltcp::experiment {

/// Told how far the work is: `fraction` from 0 to 1, and what is being done ("policy mltcp").
using Progress = std::function<void(double fraction, const std::string& what)>;

struct RunOptions {
  /// Runs at a time where time is virtual: jobs alone, then policies; 0: one a core. Results are the same to the bit.
  /// With a plan file, or `between_slices`, policies run one after the other.
  std::uint32_t threads = 1;
  /// Policies with a schedule follow this plan file (plan_file.h), which is watched, instead of computing a plan;
  /// empty: they compute one. A path.
  std::string plan_file;
  /// Told what is wrong with the plan file while runs go on, and with measurements: one line each.
  std::function<void(const std::string& problem)> report;
  /// Told all runs that are complete after each but the last, for those who would keep them if another one failed. Not
  /// called by two threads at a time; the same goes for the progress.
  std::function<void(const Results& so_far)> finished;
  /// Asked now and then, by any thread; a text, who ended it ("interrupted by its user"), ends the work where it is.
  /// Empty: nobody did.
  std::function<std::string()> interrupted;
  /// Called before the jobs start and then every 50 ms of the experiment's time, which stands still meanwhile; `time`
  /// is 0 or more. The plan file is looked at afterwards.
  std::function<void(const std::string& policy, Nanos time)> between_slices;
};

/// Throws what run_experiment() would throw at its beginning: InputError for options, or a plan file, that don't suit.
/// For those who have something to say before it runs.
void check(const Experiment& experiment, const Datapath& datapath, const RunOptions& options);

/// Does all runs of `experiment`. Throws InputError if an algorithm can't run there, RunError if a job can't go on
/// or makes no progress. Runs in virtual time give the same results from the same experiment, bit for bit. When it is
/// interrupted, the results are those of the policies that were complete before, `unfinished` names the others, and
/// RunError is thrown if none was complete.
Results run_experiment(const Experiment& experiment, Datapath& datapath, const Progress& progress = {},
                       const RunOptions& options = {});

}  // namespace mltcp::experiment
