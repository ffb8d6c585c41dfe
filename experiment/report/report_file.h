// Any file that `mltcp report` takes: which of the commands' schemas it has is found out before it is read.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

#include "mltcp/experiment/fit/compatibility.h"
#include "mltcp/experiment/report/cluster_report.h"
#include "mltcp/experiment/report/sweep_report.h"
#include "mltcp/experiment/results/results.h"

namespace mltcp::experiment {

using ReportFile = std::variant<Results, SweepFile, ClusterFile, ScheduleResult>;

/// Throws InputError, in one line that names file, place, what is wrong and the cure, for a file that can't be read,
/// has a schema or version that this program doesn't know, or breaks its schema.
ReportFile read_report_file(const std::filesystem::path& path);

/// The same from text; `name` stands for the file in messages.
ReportFile parse_report_file(std::string_view text, const std::string& name);

/// The schema of what it holds: "mltcp.results/1".
std::string_view schema_of(const ReportFile& file);

/// Its page.
std::string render_page(const ReportFile& file);

}  // namespace mltcp::experiment
