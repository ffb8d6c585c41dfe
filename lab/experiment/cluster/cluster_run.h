// Simulates a cluster, once for each scheme and seed: jobs arrive, wait for hosts, are placed, run, and end.
//
// Schemes differ only in how they place and drive jobs. Arrivals and compute times are the same for all schemes of a
// seed. Jobs wait in a FIFO queue without backfilling: while the first job in the queue does not fit, no job is placed.
// Each worker of a job runs on a different host. Jobs may share a host if it has enough GPUs. The workers of a job form
// a ring, in the order of placement.
//
// Placement. Schemes random and locality use the first candidate of the generator (scheduler/placement.h). Scheme
// compatible scores candidates of all kinds as in CASSINI (arXiv 2308.00852, section 4.2; scheduler/cluster.h). It
// chooses the candidate with the minimum sum of 1 - score over all shared links; between equal candidates, the most
// local one. CASSINI maximises the mean score instead. The mean can prefer a placement that shares many links well to a
// placement that shares few links.
//
// With "schedule", slots (transport/phase_gate.h) are assigned whenever a job starts or ends. Jobs get slots if they
// compete, and if all links that connect them have a score of at least min_score. Other jobs have no slots.
//
// The scheduler's demand of a job consists of the job's phases, stretched to the duration of an iteration on a
// dedicated network. Before the runs, this duration is measured at the same level (packet or flow) as in the runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/cluster/cluster_file.h"
#include "mltcp/lab/experiment/cluster/cluster_results.h"

namespace mltcp::experiment {

struct ClusterRunSettings {
  std::uint32_t threads = 0;  ///< number of runs in parallel; 0 for one per CPU core
  /// Called with the fraction of the work done, 0 to 1, and a description of the progress. Calls are serialised.
  std::function<void(double fraction, const std::string& what)> progress;
  /// Polled, from any thread. If the function returns a non-empty text, which states the reason ("interrupted by the
  /// user"), all runs stop. The results then contain only the completed runs.
  std::function<std::string()> interrupted;
  /// Called after each run except the last, so that results can be saved. `so_far` returns the results of all completed
  /// runs. Other runs that complete during the call wait. Calls are serialised.
  std::function<void(const std::function<const ClusterResults&()>& so_far)> finished;
};

/// Runs all schemes with all seeds. Throws InputError or RunError like run_experiment(), and RunError if interrupted
/// before any run was complete.
ClusterResults run_cluster(const ClusterExperiment& experiment, const ClusterRunSettings& settings = {});

}  // namespace mltcp::experiment
