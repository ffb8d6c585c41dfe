// Reader of traces of PyTorch's profiler (Kineto; kineto_events.h describes which parts are read): one file per rank,
// or an archive or folder of such files. The work of a GPU becomes a graph. If every communication takes as long as
// recorded, so does the graph.
//
//   steps           "ProfilerStep#N", as the GPU runs them (kineto_steps.h); a trace without steps is one step
//   computation     the time between two points at which a communication begins or is waited for, whatever runs on the
//                   GPU's streams. It includes idle time: for the network, a GPU that waits for the host to launch a
//                   kernel is as busy as a GPU that computes
//   communication   a kernel of NCCL or a similar library. Its stream is its lane. It waits for the previous
//                   communication on that stream and for the computation up to its start. If it was queued behind the
//                   previous communication, it waits only for kernels launched before it. Operations of one kernel are
//                   nodes that wait for the same nodes, and not for each other
//   waiting         the GPU waits for a communication in two cases. A kernel that could have begun earlier begins
//                   within 25 us of the end of the communication, or a call of the host that waits for the GPU returns
//                   within 50 us of it. The time of waiting is not computation. The rest of the last step after the
//                   host's last call is not computation either
//   dependencies    computation may depend on a communication without waiting for it. If the profiler recorded "Stream
//                   Wait Event" (enable_cuda_sync_events), these events are the dependencies. Without such events, the
//                   reader interprets calls of cudaStreamWaitEvent as PyTorch's Work.wait(), except calls within
//                   launches of communications. The interpreted calls wait for the communications of a step in the
//                   order of their launch, unless the times of kernels launched after a call contradict this order. A
//                   step also depends on those communications of the previous step that have ended when the step begins
#pragma once

#include "mltcp/lab/workload/traces/graph_builder.h"
#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

struct KinetoEvents;

extern const TraceFormat kKinetoFormat;

/// Returns the graph of one rank's events, which may be from a file of any format. Marks the events that it uses.
PartialGraph graph_of_events(GraphBuilder& builder, KinetoEvents& events);

}  // namespace mltcp::workload
