// Runs clusters: jobs arrive, wait for hosts, are placed, run, and end; once for each scheme and seed.
//
// Schemes differ only in how jobs are placed and driven; arrivals and compute times are the same for all schemes of a
// seed. Jobs wait in a FIFO queue without backfilling: while the first one does not fit, none is placed. A host runs
// one worker. The workers of a job form a ring, in the order of placement.
//
// Placement. Random and locality: the first candidate of the generator (scheduler/placement.h). Compatible: candidates
// of all kinds are scored as in CASSINI (arXiv 2308.00852, section 4.2; scheduler/cluster.h), and the one with the
// minimum sum of 1 - score over all shared links is chosen; if equal, the most local one. CASSINI maximises the mean
// score instead, which prefers a placement that shares many links well to one that shares few. With "schedule", slots
// (transport/phase_gate.h) are assigned whenever a job starts or ends: to jobs that compete and that are connected only
// through links with a score of at least min_score. Other jobs have no slots.
//
// The scheduler's demand of a job: its phases, stretched to the duration of an iteration on a dedicated network,
// measured at the same level before the run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/cluster/cluster_file.h"
#include "mltcp/lab/experiment/cluster/cluster_results.h"

namespace mltcp::experiment {

struct ClusterRunSettings {
  std::uint32_t threads = 0;  ///< number of parallel runs; 0: one per core
  /// Called with the fraction of the work done, and a description of it. Calls are serialised.
  std::function<void(double fraction, const std::string& what)> progress;
  /// Polled by any thread. A non-empty text, the reason ("interrupted by the user"), stops all runs; the results are
  /// then those of the completed runs.
  std::function<std::string()> interrupted;
  /// Called after each run except the last, so that results can be saved. `so_far` copies the results of all completed
  /// runs. Other runs that complete meanwhile wait. Calls are serialised.
  std::function<void(const std::function<const ClusterResults&()>& so_far)> finished;
};

/// Throws InputError or RunError like run_experiment(), and RunError if interrupted before any run was complete.
ClusterResults run_cluster(const ClusterExperiment& experiment, const ClusterRunSettings& settings = {});

}  // namespace mltcp::experiment
