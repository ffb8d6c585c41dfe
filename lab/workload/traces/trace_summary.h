// The one way from recorded traces to the phases of a job, for all that look at one rank of it: experiment and cluster
// files, the scheduler's service, mltcp inspect and mltcp advise.
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
  std::uint32_t ranks = 0;              ///< of the job; 0: as the trace tells
  std::optional<std::uint32_t> rank{};  ///< whose view it is; default: the first that has a trace
  Rate link{100'000'000'000};           ///< as PhaseOptions::link
  double compute_scale = 1;             ///< above 0
  double bytes_scale = 1;               ///< above 0
  /// Whether it is a worker on a link, as of a job with the key `trace`: see TraceOptions and PhaseOptions::any_link.
  bool one_worker = false;
  /// That reduce weight gradients, of a trace in 12 columns; of other traces of one worker, those of each collective;
  /// 0: as the trace tells.
  std::uint32_t workers = 0;
  // Of traces in 12 columns; others have no use for it (is_training_loop()). See TraceOptions.
  std::optional<Network> network{};
  GatherSize gather_size = GatherSize::total;
  std::string_view also_known{};  ///< see TraceOptions
};

/// How traces are read to be looked at so.
TraceOptions options_of(const TraceView& view);
/// Of a graph that was read with these options. Throws InputError if there is nothing of the rank.
GraphSummary summary_of(const ExecutionGraph& graph, const TraceView& view);
/// Of one file's text; `name` stands in messages. Throws InputError "NAME: cause; cure".
GraphSummary summarise_trace_text(std::string_view text, const std::string& name, const TraceView& view);

}  // namespace mltcp::workload
