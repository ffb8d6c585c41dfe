// A replayed trace beside its recording: when each node began and ended, how long steps and collectives took.
#pragma once

#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/workload/execution_graph.h"
#include "mltcp/lab/workload/graph_program.h"

namespace mltcp::experiment {

/// When the nodes of a rank ran, in one iteration; never() for those that were not replayed or do nothing.
using NodeTimes = std::vector<TimeSpan>;

/// Of one of the iterations of which the result has timelines; by program and node. A node begins with its first
/// operation, and a message is received from when the rank could do nothing but wait for it.
std::vector<NodeTimes> node_times(const workload::ExecutionGraph& graph, const workload::GraphPrograms& programs,
                                  const JobResult& result, std::size_t iteration);
/// Number of iterations of which the result has timelines.
std::size_t iterations_with_times(const workload::GraphPrograms& programs, const JobResult& result);

/// A step lasts from the end of the one before, the first one from the iteration's beginning, to the end of its last
/// node, the last one to that of the iteration; the mean over all iterations with timelines.
/// Without them (hosts) a step is known if it is the only one, and collectives are not.
ReplayResult summarize_replay(const workload::ExecutionGraph& graph, const workload::GraphPrograms& programs,
                              const JobResult& result);

}  // namespace mltcp::experiment
