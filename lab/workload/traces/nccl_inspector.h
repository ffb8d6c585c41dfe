// Reader of what NCCL's Inspector writes (a profiler plug-in that comes with NCCL): JSON objects one after the other, a
// file a process. Of each, "coll_perf" or "p2p_perf": operation, size, sequence number and the time that it took; of
// its "header", the communicator, the rank in it and its size, which from format 4.3 on stands once before many (in
// "dump_stats"). With NCCL_INSPECTOR_DUMP_VERBOSE=1 there is when each began, too, and the time between becomes
// computation. Operations that the Inspector was set to leave out, or overwrote, are missed and counted by their
// numbers.
#pragma once

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

extern const TraceFormat kNcclInspectorFormat;

}  // namespace mltcp::workload
