// Reader of PyTorch's execution traces (ExecutionTraceObserver): the operators that a rank ran, with their tensors, as
// JSON; schemas 1.0.x and 1.1.x.
//
//   communication  nodes record_param_comms: collective, tensors, group and root or peer, in `inputs` or `attrs`; of
//                  traces without such nodes, those called nccl:NAME
//   waiting        record_param_comms of "wait": what follows comes after the collective that it waits for
//   groups         node "## process_group:init ##"; without one, all ranks of the job
//   steps          nodes ProfilerStep#N; what is before the first belongs to it
//   rank           as communication names it, or by the file's name: trace_3.json
//
// There are no times in this format, so other operators are left out.
#pragma once

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

extern const TraceFormat kPytorchEt;

}  // namespace mltcp::workload
