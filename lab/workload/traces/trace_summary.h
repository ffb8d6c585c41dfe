// Summarises one rank of recorded traces as the phases of a job. Used for experiment and cluster files, the scheduler's
// service, mltcp inspect and mltcp advise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/collective.h"
#include "mltcp/lab/workload/graph_phases.h"
#include "mltcp/lab/workload/traces/read_traces.h"
#include "mltcp/lab/workload/traces/training_loop.h"

namespace mltcp::workload {

struct TraceView {
  std::uint32_t ranks = 0;              ///< number of ranks of the job; 0: as stated in the trace
  std::optional<std::uint32_t> rank{};  ///< rank to summarise; default: the first rank with a trace
  Rate link{100'000'000'000};           ///< rate of the link, as PhaseOptions::link
  double compute_scale = 1;             ///< factor by which computation is scaled; above 0
  double bytes_scale = 1;               ///< factor by which bytes are scaled; above 0
  /// Whether to summarise one worker on a link, as in a job with the key `trace`. See TraceOptions::one_worker and
  /// PhaseOptions::any_link.
  bool one_worker = false;
  /// For traces in 12 columns: number of workers that reduce weight gradients. For other traces with one_worker: number
  /// of workers in each collective. 0: as stated in the trace.
  std::uint32_t workers = 0;
  // Used only for traces in 12 columns (is_training_loop()). See TraceOptions.
  std::optional<Network> network{};
  GatherSize gather_size = GatherSize::total;
  std::string_view also_known{};  ///< see TraceOptions::also_known
};

/// Returns the options with which traces must be read for this view.
TraceOptions options_of(const TraceView& view);
/// Summarises a graph that was read with options_of(view). Throws InputError if the rank has no nodes.
GraphSummary summary_of(const ExecutionGraph& graph, const TraceView& view);
/// Summarises the text of one file. `name` is used in messages. Throws InputError "NAME: cause; cure".
GraphSummary summarise_trace_text(std::string_view text, const std::string& name, const TraceView& view);

}  // namespace mltcp::workload
