// Replayed traces as a Chrome trace (the JSON format of chrome://tracing and Perfetto, "Trace Event Format"): each rank
// as it was recorded, and as it was replayed.
#pragma once

#include <span>
#include <string>

#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/workload/execution_graph.h"
#include "mltcp/lab/workload/graph_program.h"

namespace mltcp::experiment {

/// A job to be drawn.
struct DrawnReplay {
  const workload::ExecutionGraph* graph = nullptr;
  const workload::GraphPrograms* programs = nullptr;
  const JobResult* result = nullptr;
};

/// Complete events ("X") of nodes, from time 0: the replayed steps as recorded, and the latest iteration of the replay.
/// Each rank has two processes, "JOB recorded: rank 0" and "JOB replayed: rank 0", with a thread for each lane.
std::string replay_timeline(std::span<const DrawnReplay> jobs);

}  // namespace mltcp::experiment
