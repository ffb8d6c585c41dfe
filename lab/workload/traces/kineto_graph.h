// Reader of traces of PyTorch's profiler (Kineto; what is read of the file is described in kineto_events.h): of
// each rank a file, or an archive or folder of them. What a GPU did becomes a graph that, if every communication takes
// as long as recorded, takes as long as recorded itself.
//
//   steps           "ProfilerStep#N", as the GPU runs them (kineto_steps.h); a trace that has none is one step
//   computation     the time between two points at which a communication begins or one is waited for, whatever runs on
//                   the GPU then, all its streams together; nothing, too: a GPU that waits for the host to launch a
//                   kernel is no less busy for the network
//   communication   a kernel of NCCL or its kind: its stream is its lane, and it waits for the one before on that
//                   stream and for the computation up to its start; if it was queued behind the one before, only for
//                   what had been launched before it. Operations that one kernel carries out are nodes that wait for
//                   the same, and not for each other
//   waiting         the GPU waits for a communication if a kernel that could have begun before begins within 25 us of
//                   its end, or if a call of the host that waits for the GPU returns within 50 us; that time is not
//                   computation but waiting for it. So is what is left of the last step when the host is done
//   dependencies    computation may depend on a communication without having been held up by it. Where the profiler
//                   recorded "Stream Wait Event" (enable_cuda_sync_events), that tells. Otherwise calls of
//                   cudaStreamWaitEvent outside of those that launch communications are taken for the waits of
//                   PyTorch's Work.wait(): for the communications of a step in the order of their launch, as far as
//                   the times of what was launched after a call do not contradict. And a step depends on what the one
//                   before has communicated by then
#pragma once

#include "mltcp/lab/workload/traces/graph_builder.h"
#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

struct KinetoEvents;

extern const TraceFormat kKinetoFormat;

/// The graph of events of one rank, from whatever they were read; what of them is used is marked.
PartialGraph graph_of_events(GraphBuilder& builder, KinetoEvents& events);

}  // namespace mltcp::workload
