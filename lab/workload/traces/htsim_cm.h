// Reader of htsim's connection matrices (.cm): who sends how much to whom, and when, as a graph of messages.
//
//   Nodes 16
//   Connections 2
//   Triggers 1
//   0->13 id 1 start 0 size 2000000 send_done_trigger 1        a flow: its start in picoseconds
//   13->2 id 2 trigger 1 size 2000000                          starts when the trigger fires
//   trigger id 1 oneshot                                       or: multishot; barrier count 2
//
// A flow is a message from its source to its destination. Its start is a computation before it on both (FlowStarts):
// the flows of a node that have one begin in the order of their starts. A trigger fires when what names it has been
// delivered (send_done_trigger and recv_done_trigger alike), a barrier when as many have as it counts, a multishot one
// for one flow after the other, as they are listed. What starts on one node because of another's end waits for a
// message of a byte from there. Priorities and failures have no effect.
#pragma once

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

extern const TraceFormat kHtsimFormat;

}  // namespace mltcp::workload
