// Reader of Chakra execution traces, in Protocol Buffers and in JSON.
//
// Protocol Buffers (.et): messages one after the other, each with its length before it as a varint: GlobalMetadata,
// then a Node each. A field of value 0 may be left out; lists of numbers are packed or not. JSON: the same objects one
// after the other, as protobuf's own conversion spells them, or in a list "workload_graph" with keys of its own.
//
//   nodes            COMP_NODE, MEM_LOAD_NODE, MEM_STORE_NODE and others: computations; COMM_SEND_NODE, COMM_RECV_NODE,
//                    COMM_COLL_NODE with attributes; one without any, as the host's part of a collective has none, is a
//                    computation
//   dependencies     data_deps and ctrl_deps; those on nodes that are not in the file are left out, and counted. Where
//                    both together go round in a circle (a host's operation is the caller of what it waits for),
//                    ctrl_deps are left out
//   attributes       comm_type, comm_size, comm_src, comm_dst, comm_tag, comm_root, pg_name or comm_group,
//   involved_dim,
//                    is_cpu_op, of any type of number
//   sizes            bytes that a rank gives: of an all-gather, the shard
//   times            microseconds; nanoseconds in files that were converted from ASTRA-sim's text format, which has
//   cycles
//                    of a GHz: known by the text in their metadata, or by the names that the converter gives
//   groups           ranks whose files name the same group; the whole job where there is one file only
//   ranks            by the file's name: NAME.3.et
//
// Operations of the host take no time where the trace has kernels of a GPU, beside which they run. Communication then
// waits for the kernels that stand before it, as the streams of PyTorch's process groups do.
#pragma once

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

extern const TraceFormat kChakra;
extern const TraceFormat kChakraJson;

}  // namespace mltcp::workload
