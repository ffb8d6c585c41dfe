// Reader of dumps of PyTorch's Flight Recorder, the ring buffer of the last operations of a rank's process groups: the
// pickle that a watchdog or torch._C._distributed_c10d._dump_nccl_trace() writes, or the JSON of
// _dump_nccl_trace_json() and of the debug server, versions 1 and 2.
//
//   {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}, "entries": [
//     {"record_id": 7, "process_group": ["0", "default_pg"], "collective_seq_id": 8, "p2p_seq_id": 0, "op_id": 8,
//      "profiling_name": "nccl:all_reduce", "time_created_ns": 1724781437000000000, "duration_ms": 0.5,
//      "input_sizes": [[3, 4]], "input_dtypes": ["Float"], "output_sizes": [[3, 4]], "output_dtypes": ["Float"],
//      "state": "completed", "is_p2p": false}, ...]}
//
// An entry is a collective, or "nccl:send 0->1" or "nccl:recv 1<-0" with ranks of the group. "nccl:coalesced" ends the
// entries that were launched together, and is no operation beside them.
//
// Times are of creation, on the host, in nanoseconds since 1970. With durations (TORCH_NCCL_ENABLE_TIMING=1) an
// operation begins when it is created and the one before in its group has ended, and time in which none runs is
// computation, which waits for those before it. Without, the time from one creation to the next is computation, and an
// operation goes on beside the first computation that follows it; the second waits for it.
#pragma once

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

extern const TraceFormat kFlightRecorder;

}  // namespace mltcp::workload
