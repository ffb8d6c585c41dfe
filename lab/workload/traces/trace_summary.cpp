// See trace_summary.h.
#include "mltcp/lab/workload/traces/trace_summary.h"

#include <fmt/format.h>

#include "mltcp/base/error.h"

namespace mltcp::workload {
namespace {

/// Returns the rank of the graph to summarise. Throws InputError if `view` names a rank without a trace.
std::uint32_t chosen_rank(const ExecutionGraph& graph, const TraceView& view) {
  std::uint32_t first = 0;
  while (first + 1 < graph.ranks.size() && graph.ranks[first].nodes.empty()) ++first;
  if (!view.rank) return first;
  if (*view.rank >= graph.ranks.size() || graph.ranks[*view.rank].nodes.empty())
    throw InputError(fmt::format("--rank {}: there is no trace of it; give --rank {}", *view.rank, first));
  return *view.rank;
}

}  // namespace

TraceOptions options_of(const TraceView& view) {
  TraceOptions options;
  options.ranks = view.ranks;
  options.as_recorded = true;
  options.rank = view.rank.value_or(0);
  options.data_ranks = view.workers;
  options.network = view.network;
  options.gather_size = view.gather_size;
  options.one_worker = view.one_worker;
  options.also_known = view.also_known;
  return options;
}

GraphSummary summary_of(const ExecutionGraph& graph, const TraceView& view) {
  PhaseOptions phases;
  phases.rank = chosen_rank(graph, view);
  phases.link = view.link;
  phases.compute_scale = view.compute_scale;
  phases.bytes_scale = view.bytes_scale;
  if (view.one_worker && graph.format == kTwelveColumns)
    phases.any_link = true;
  else if (view.one_worker)
    phases.workers = view.workers;
  return summarise(graph, phases);
}

GraphSummary summarise_trace_text(std::string_view text, const std::string& name, const TraceView& view) {
  return summary_of(parse_trace_graph(text, name, options_of(view)), view);
}

}  // namespace mltcp::workload
