// Compares a replayed trace with its recording: when each node began and ended, how long steps and collectives took.
#pragma once

#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/workload/execution_graph.h"
#include "mltcp/lab/workload/graph_program.h"

namespace mltcp::experiment {

/// When the nodes of a rank ran, in one iteration; never() for those that were not replayed or do nothing.
using NodeTimes = std::vector<TimeSpan>;

/// Times in one of the iterations for which the result has timelines; by program and node. A node begins with its first
/// operation. A node that only receives begins when the nodes that it waits for have ended.
std::vector<NodeTimes> node_times(const workload::ExecutionGraph& graph, const workload::GraphPrograms& programs,
                                  const JobResult& result, std::size_t iteration);
/// Number of iterations for which the result has timelines.
std::size_t iterations_with_times(const workload::GraphPrograms& programs, const JobResult& result);

/// A step lasts from the end of the previous step (the first step: the beginning of the iteration) to the end of its
/// last node (the last step: the end of the iteration). Lengths are means over all iterations with timelines. Without
/// timelines (hosts) a step's length is known only if it is the only step, and collectives are unknown.
ReplayResult summarize_replay(const workload::ExecutionGraph& graph, const workload::GraphPrograms& programs,
                              const JobResult& result);

}  // namespace mltcp::experiment
