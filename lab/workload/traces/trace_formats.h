// Trace formats without their own headers. The .cpp file of each reader describes its format.
#pragma once

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

extern const TraceFormat kAicbFormat;
extern const TraceFormat kAstraTextFormat;
extern const TraceFormat kChakra;
extern const TraceFormat kChakraJson;
extern const TraceFormat kFlightRecorder;
extern const TraceFormat kHpccFlows;
extern const TraceFormat kHtsimFormat;
extern const TraceFormat kNcclInspectorFormat;
extern const TraceFormat kNcclLogFormat;
extern const TraceFormat kNsightSqlite;
extern const TraceFormat kParam;
extern const TraceFormat kPytorchEt;

}  // namespace mltcp::workload
