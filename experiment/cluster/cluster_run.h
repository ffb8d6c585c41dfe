// Runs clusters: jobs arrive, wait for hosts, are placed, run, and leave, once for each scheme and seed.
//
// A scheme is how jobs are placed and driven; everything else is the same for all schemes of a seed: which jobs arrive
// when, and how long each computes in which iteration. Jobs wait in one queue, first come first served, without
// backfilling: while the first doesn't fit, nobody is placed. A host runs one worker. The workers of a job form a ring,
// host by host in the order of the placement.
//
// Placement. Random and locality: the first that the generator of that kind gives (scheduler/placement.h). Compatible:
// of the candidates of all kinds, scored as in CASSINI (arXiv 2308.00852, section 4.2; scheduler/cluster.h), the one
// with the least sum of 1 - score over all links that jobs share, and of those the most local one. CASSINI takes the
// highest mean score; but by the mean a placement that shares many links well beats one that shares a few. With
// "schedule", jobs that compete for links, and hang together only through links on which they fit (min_score), get
// slots (transport/phase_gate.h), as they join or when somebody joins or leaves later; others have none.
//
// What the scheduler knows of a job: its phases, stretched to the period that one iteration takes on a network of its
// own, as measured at the same level before the run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/experiment/cluster/cluster_file.h"
#include "mltcp/experiment/cluster/cluster_results.h"

namespace mltcp::experiment {

struct ClusterRunSettings {
  std::uint32_t threads = 0;  ///< runs at a time; 0: one a core
  /// Told the share of the work that is done, and what is being done. Not called by two threads at a time.
  std::function<void(double fraction, const std::string& what)> progress;
  /// Asked now and then, by any thread; a text, who ended it ("interrupted by its user"), ends all runs where they are,
  /// and the results are those of the runs that were complete before.
  std::function<std::string()> interrupted;
  /// Told of each run but the last that it is complete, for those who would keep what there is: `so_far` makes results
  /// of all that are, and copies them. Runs that end meanwhile wait. Not called by two threads at a time.
  std::function<void(const std::function<const ClusterResults&()>& so_far)> finished;
};

/// Throws InputError or RunError, as run_experiment(); RunError too if it is interrupted before any run is complete.
ClusterResults run_cluster(const ClusterExperiment& experiment, const ClusterRunSettings& settings = {});

}  // namespace mltcp::experiment
