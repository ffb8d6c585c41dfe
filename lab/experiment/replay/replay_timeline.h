// Replayed traces as a Chrome trace (the JSON format of chrome://tracing and Perfetto, "Trace Event Format"): each rank
// as it was recorded, and as it was replayed.
#pragma once

#include <span>
#include <string>

#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/workload/execution_graph.h"
#include "mltcp/lab/workload/graph_program.h"

namespace mltcp::experiment {

/// A replayed job to draw.
struct DrawnReplay {
  const workload::ExecutionGraph* graph = nullptr;
  const workload::GraphPrograms* programs = nullptr;
  const JobResult* result = nullptr;
};

/// Returns the nodes as complete events ("X"), from time 0. Shows the replayed steps as they were recorded, and as they
/// were replayed in the last iteration for which the job has timelines. Each rank has two processes, "JOB recorded:
/// rank 0" and "JOB replayed: rank 0", with a thread for each lane.
std::string replay_timeline(std::span<const DrawnReplay> jobs);

}  // namespace mltcp::experiment
