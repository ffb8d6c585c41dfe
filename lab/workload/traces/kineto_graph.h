// Reader of traces of PyTorch's profiler (Kineto; kineto_events.h describes which parts are read): one file per rank,
// or an archive or folder of them. A GPU's work becomes a graph that takes as long as recorded if every communication
// does.
//
//   steps           "ProfilerStep#N", as the GPU runs them (kineto_steps.h); a trace that has none is one step
//   computation     the time between two points at which a communication begins or is waited for, whatever runs on the
//                   GPU's streams. Idle time counts, too: for the network, a GPU that waits for the host to launch a
//                   kernel is as busy as one that computes
//   communication   a kernel of NCCL or a similar library. Its stream is its lane. It waits for the one before on that
//                   stream and for the computation up to its start; if it was queued after the one before, only for
//                   kernels launched before it. Operations of one kernel are nodes that wait for the same nodes, and
//                   not for each other
//   waiting         the GPU waits for a communication if a kernel that could have begun before begins within 25 us of
//                   its end, or if a call of the host that waits for the GPU returns within 50 us. That time is not
//                   computation; nor is the rest of the last step after the host's last call
//   dependencies    computation may depend on a communication that did not hold it up. If the profiler recorded
//                   "Stream Wait Event" (enable_cuda_sync_events), these are the dependencies. Otherwise calls of
//                   cudaStreamWaitEvent outside of calls that launch communications are taken for PyTorch's
//                   Work.wait(): they wait for the communications of a step in the order of their launch, unless the
//                   times of kernels launched after a call contradict. A step also depends on the communications of
//                   the step before that have ended by then
#pragma once

#include "mltcp/lab/workload/traces/graph_builder.h"
#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

struct KinetoEvents;

extern const TraceFormat kKinetoFormat;

/// The graph of one rank's events, from any source. Marks the events that it uses.
PartialGraph graph_of_events(GraphBuilder& builder, KinetoEvents& events);

}  // namespace mltcp::workload
