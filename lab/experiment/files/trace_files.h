// Reads the traces given to a command, with helpful errors for files of other kinds.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "mltcp/lab/workload/graph_phases.h"
#include "mltcp/lab/workload/traces/read_traces.h"
#include "mltcp/lab/workload/traces/trace_summary.h"

namespace mltcp::experiment {

/// Like workload::read_traces(). If a file is of another known kind, the error names that kind and the command for it
/// (file_kind.h).
workload::ExecutionGraph read_job_traces(std::span<const std::filesystem::path> paths,
                                         const workload::TraceOptions& options);

/// Returns a summary of the traces that read_job_traces() reads.
workload::GraphSummary summarise_job_traces(std::span<const std::filesystem::path> paths,
                                            const workload::TraceView& view);

/// Returns whether a file is a measured profile, according to its first line.
bool is_measured_profile(const std::filesystem::path& file);

/// Returns a name for a job whose trace is this file or folder: the file name without format, compression and rank.
/// "bert.3.et.gz" gives "bert", "mlcommons_1.0.2.tgz" gives "mlcommons_1.0.2".
std::string job_name_of(const std::filesystem::path& file);

}  // namespace mltcp::experiment
