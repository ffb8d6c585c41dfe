// Summarises one rank of recorded traces as the phases of a job, for experiment and cluster files, the scheduler's
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
  std::uint32_t ranks = 0;              ///< of the job; 0: as in the trace
  std::optional<std::uint32_t> rank{};  ///< the rank to summarise; default: the first one with a trace
  Rate link{100'000'000'000};           ///< as PhaseOptions::link
  double compute_scale = 1;             ///< above 0
  double bytes_scale = 1;               ///< above 0
  /// Whether it is one worker on a link, as in a job with the key `trace`: see TraceOptions and PhaseOptions::any_link.
  bool one_worker = false;
  /// Traces in 12 columns: workers that reduce weight gradients. Other traces, with one_worker: workers in each
  /// collective. 0: as in the trace.
  std::uint32_t workers = 0;
  // Only for traces in 12 columns (is_training_loop()). See TraceOptions.
  std::optional<Network> network{};
  GatherSize gather_size = GatherSize::total;
  std::string_view also_known{};  ///< see TraceOptions
};

/// Options to read traces for such a view.
TraceOptions options_of(const TraceView& view);
/// Summarises a graph that was read with these options. Throws InputError if the rank has no nodes.
GraphSummary summary_of(const ExecutionGraph& graph, const TraceView& view);
/// Summarises the text of one file; `name` is used in messages. Throws InputError "NAME: cause; cure".
GraphSummary summarise_trace_text(std::string_view text, const std::string& name, const TraceView& view);

}  // namespace mltcp::workload
