// Reader of the flows of HPCC's simulator (flow.txt; Li et al., SIGCOMM 2019) and of the ns-3 simulators after it:
//
//   2                                  the number of flows
//   0 1 3 100 200000000 2.000000000    source, destination, priority group, port, bytes, start in seconds
//   4 1 3 100 1000 2.000500000
//
// A flow is a message at its start; times count from the first one. Nodes are numbered as in the topology's file, from
// 0 to the highest that has a flow. Priority groups and ports have no effect.
#pragma once

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

extern const TraceFormat kHpccFlows;

}  // namespace mltcp::workload
