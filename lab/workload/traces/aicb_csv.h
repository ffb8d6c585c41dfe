// Reader of the communications that AICB writes as CSV ("physical" workloads, and its logs of runs): a line for each
// call of a rank, of which all ranks have the same.
//
//   [rank0 ~ rank127]                                                           which ranks; may be missing
//   comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count
//   CommType.all_reduce,CommGroup.tp_group,2,16777216,forward.MegatronEmbedding,None,None,,None,None,None,1
//   CommType.epoch_end,None,None,0,,None,None,,None,None,None,1                 ends an iteration
//
// Columns are found by their names. Groups are those of Megatron-LM: tensor-parallel ranks are next to each other, then
// data-parallel ones, then pipeline stages; experts' groups divide the data-parallel ones. What is done before the
// first iteration (stages "init...") is left out. Calls follow each other. Computations have times where AICB was told
// them (nanoseconds), or measured them (milliseconds, in logs, in which communications have times too). Sizes of
// all-gathers and reduce-scatters are those of the whole. Messages between pipeline stages are left out: the file does
// not tell whose they are.
#pragma once

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

extern const TraceFormat kAicbFormat;

}  // namespace mltcp::workload
