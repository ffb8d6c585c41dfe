// Reads any file that `mltcp report` accepts: detects its schema first.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

#include "mltcp/lab/experiment/fit/compatibility.h"
#include "mltcp/lab/experiment/report/cluster_report.h"
#include "mltcp/lab/experiment/report/sweep_report.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/series/series_file.h"

namespace mltcp::experiment {

using ReportFile = std::variant<Results, SweepFile, ClusterFile, ScheduleResult>;

/// Throws InputError with one line that names file, position, cause and cure, if the file cannot be read, has an
/// unknown schema or version, or violates its schema.
ReportFile read_report_file(const std::filesystem::path& path);

/// The same from text; `name` is used as the file's name in messages.
ReportFile parse_report_file(std::string_view text, const std::string& name);

/// The schema of the file, for example "mltcp.results/1".
std::string_view schema_of(const ReportFile& file);

/// Renders the file's page; `series`, if any, are for that of results.
std::string render_page(const ReportFile& file, const SeriesFile* series = nullptr);

}  // namespace mltcp::experiment
