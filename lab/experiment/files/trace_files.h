// Reads the traces given to a command, which may be files of another kind.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "mltcp/lab/workload/graph_phases.h"
#include "mltcp/lab/workload/traces/read_traces.h"
#include "mltcp/lab/workload/traces/trace_summary.h"

namespace mltcp::experiment {

/// As workload::read_traces(), but if a file is of another known kind, the error names the kind and the command for it
/// (file_kind.h).
workload::ExecutionGraph read_job_traces(std::span<const std::filesystem::path> paths,
                                         const workload::TraceOptions& options);

/// A summary of such traces.
workload::GraphSummary summarise_job_traces(std::span<const std::filesystem::path> paths,
                                            const workload::TraceView& view);

/// Whether a file is a measured profile, according to its first line.
bool is_measured_profile(const std::filesystem::path& file);

/// The name of a job with this file or folder as its trace: the file's name without format, compression and rank.
/// "bert.3.et.gz" gives "bert", "mlcommons_1.0.2.tgz" gives "mlcommons_1.0.2".
std::string job_name_of(const std::filesystem::path& file);

}  // namespace mltcp::experiment
