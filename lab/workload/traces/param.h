// Reader of communication traces of PARAM (its basic form, JSON): a list of what a rank posted.
//
//   {"comms": "all_reduce", "in_msg_size": 1000, "out_msg_size": 1000, "dtype": "float", "pg_id": 0, "world_size": 8,
//    "global_ranks": [...], "root": 0, "req": 5, "startTime_ns": 1000, "markers": ["## step 3 ##"]}
//
//   sizes     elements of `dtype`
//   groups    "init" entries and `global_ranks` by `pg_id`; else `world_size` ranks
//   waiting   "wait" entries: what follows comes after the entry with the same `req`
//   steps     a marker with the word step or iteration in it, where its text changes
//   times     between `startTime_ns` of neighbours the rank computes; what follows a wait is taken for waiting
//   compute   entries with "compute" instead of "comms" have no times: left out
//   rank      by the file's name: rank3.json
#pragma once

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

extern const TraceFormat kParam;

}  // namespace mltcp::workload
