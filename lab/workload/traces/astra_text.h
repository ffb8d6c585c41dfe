// The 12-column text of ASTRA-sim 1.0, LIBRA, SimAI and AICB (layer_trace.h) as a graph: one iteration of its
// training loop (training_loop.h), all ranks alike.
//
// Ranks that share a layer (tensor parallel) are next to each other, those that hold the same part of the model apart
// by the size of that group; experts are spread over groups of ranks next to each other among the latter. Sizes of
// groups are the header's; without one, TraceOptions::ranks reduce gradients, or LIBRA's communicator file tells
// (libra.h). A job of too many ranks is cut down to one group that reduces gradients.
#pragma once

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

extern const TraceFormat kAstraTextFormat;

}  // namespace mltcp::workload
