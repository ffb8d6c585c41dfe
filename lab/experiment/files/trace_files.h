// Traces that a command was given, which may be files of another kind.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "mltcp/lab/workload/graph_phases.h"
#include "mltcp/lab/workload/traces/read_traces.h"
#include "mltcp/lab/workload/traces/trace_summary.h"

namespace mltcp::experiment {

/// As workload::read_traces(), but for a file of another kind that mltcp knows the error says which, and what takes it
/// (file_kind.h).
workload::ExecutionGraph read_job_traces(std::span<const std::filesystem::path> paths,
                                         const workload::TraceOptions& options);

/// What is seen of such traces.
workload::GraphSummary summarise_job_traces(std::span<const std::filesystem::path> paths,
                                            const workload::TraceView& view);

/// Whether a file is a measured profile, by how it begins.
bool is_measured_profile(const std::filesystem::path& file);

/// What a job is called whose trace is this file or folder: its name without what tells the format, how it is packed
/// and the rank. "bert.3.et.gz" is of "bert", "mlcommons_1.0.2.tgz" of "mlcommons_1.0.2".
std::string job_name_of(const std::filesystem::path& file);

}  // namespace mltcp::experiment
