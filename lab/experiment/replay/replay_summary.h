// Compares a replayed trace with its recording: when each node began and ended, how long steps and collectives took.
#pragma once

#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/workload/execution_graph.h"
#include "mltcp/lab/workload/graph_program.h"

namespace mltcp::experiment {

/// Times of a rank's nodes in one iteration, by node. The times of a node that was not replayed or does nothing are
/// never().
using NodeTimes = std::vector<TimeSpan>;

/// Returns the times of all nodes, by program. `iteration` is an index of the iterations for which `result` has
/// timelines. A node begins with its first operation. A node that only receives begins when the nodes that it waits for
/// have ended.
std::vector<NodeTimes> node_times(const workload::ExecutionGraph& graph, const workload::GraphPrograms& programs,
                                  const JobResult& result, std::size_t iteration);
/// Returns the number of iterations for which `result` has timelines.
std::size_t iterations_with_times(const workload::GraphPrograms& programs, const JobResult& result);

/// Returns the recorded and replayed lengths of steps and collectives. Replayed lengths are means over all iterations
/// with timelines. A step lasts from the end of the previous step to the end of its last node. The first step begins
/// with the iteration, and the last step ends with the iteration. Without timelines (datapath hosts), a step's length
/// is known only if it is the only step, and collectives are unknown.
ReplayResult summarize_replay(const workload::ExecutionGraph& graph, const workload::GraphPrograms& programs,
                              const JobResult& result);

}  // namespace mltcp::experiment
