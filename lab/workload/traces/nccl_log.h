// Reader of what NCCL logs with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=COLL (better INIT,COLL): the calls of collectives
// with their sizes, in their order; several ranks in a file, or a file for each (NCCL_DEBUG_FILE=nccl.%h.%p).
//
//   host:PID:TID [GPU] NCCL INFO ncclCommInitRank comm 0x55d0 rank 3 nranks 8 cudaDev 3 ... commId 0x7a41 - Init
//   COMPLETE host:PID:TID [GPU] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f00 recvbuff 0x7f00 count 7382228 datatype
//   7 op 0
//                                root 0 comm 0x55d0 [nranks=8] stream 0x55e0          (one line)
//
// Whatever a launcher or a clock writes before the host is skipped. Newer versions add "task N globalrank N", older
// ones have no commId. There are no times: nodes have no length, and nothing is computed between them. Sends and
// receives in a row with the same opCount are of one group and run at once.
#pragma once

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

extern const TraceFormat kNcclLogFormat;

}  // namespace mltcp::workload
