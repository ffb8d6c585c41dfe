// See trace_summary.h.
#include "trace_summary.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/lab/experiment/files/trace_files.h"
#include "mltcp/lab/workload/profile.h"
#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::tools {
namespace {

/// The rank of the graph that is wanted.
std::uint32_t chosen_rank(const workload::ExecutionGraph& graph, const TraceRequest& request) {
  std::uint32_t first = 0;
  while (first + 1 < graph.ranks.size() && graph.ranks[first].nodes.empty()) ++first;
  if (!request.rank) return first;
  if (*request.rank >= graph.ranks.size() || graph.ranks[*request.rank].nodes.empty())
    throw InputError(fmt::format("--rank {}: there is no trace of it; one of rank {} is there", *request.rank, first));
  return *request.rank;
}

}  // namespace

workload::GraphSummary summarise_traces(const TraceRequest& request) {
  const std::vector<std::filesystem::path> paths(request.files.begin(), request.files.end());
  workload::TraceOptions options;
  options.ranks = request.ranks;
  options.as_recorded = true;
  options.rank = request.rank.value_or(0);
  options.data_ranks = request.workers;
  options.network = request.network;
  options.also_known = request.also_known;
  const workload::ExecutionGraph graph = experiment::read_job_traces(paths, options);
  if ((request.network || request.workers != 0) && graph.format != workload::kTwelveColumns)
    throw InputError("--network, --workers: this trace tells what was sent, and by whom; leave them out");
  workload::PhaseOptions phases;
  phases.rank = chosen_rank(graph, request);
  phases.link = request.link;
  phases.compute_scale = request.compute_scale;
  phases.bytes_scale = request.bytes_scale;
  return workload::summarise(graph, phases);
}

bool is_measured_profile(const std::string& file) {
  const std::filesystem::path path(file);
  std::error_code error;
  // A pipe is not looked into: what has been read of it is gone.
  if (!std::filesystem::is_regular_file(path, error) || workload::format_of(path) != nullptr) return false;
  constexpr TextFile kind{"a trace or a demand profile", std::size_t{1} << 30};
  return workload::is_profile(read_text_file(path, file, kind));
}

}  // namespace mltcp::tools
