// Reader of what Nsight Systems exports as SQLite (nsys export --type sqlite): kernels of a GPU, the calls that
// launched them, and NVTX ranges of the program and of NCCL, of which the graph is made as of a trace of PyTorch's
// profiler (kineto_graph.h). Tables and columns are those of NVIDIA's "SQLite Schema Reference"; what a version lacks
// is left out.
//
//   steps           ranges of NVTX named "iteration 12", "step 3" and so on: of the names that differ in digits only,
//                   those that cover most time
//   communication   kernels of NCCL. Which call a kernel belongs to, NVTX tells: the calls of a thread since the
//   kernels
//                   before are those of the kernels that it launches next, by kind and in order
//   sizes, groups   the payload of the range of the call: "Message size [bytes]", "NCCL communicator ID", "Peer rank",
//                   as JSON (jsonText) or as bytes (binaryData) with their schema. What a communicator has of ranks,
//                   and which rank is the own one, the payload of ncclCommInitRank tells
//   one rank        of several processes or GPUs, the first with most kernels of NCCL
//
// A file is untrusted: it is opened from memory, read-only; views, triggers, virtual tables, computed columns,
// functions and everything but reading tables are refused, and work is bounded by its size.
#pragma once

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

extern const TraceFormat kNsightSqlite;

}  // namespace mltcp::workload
