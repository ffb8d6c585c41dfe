// Reads any file that `mltcp report` accepts. The schema of the file is detected first.
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

/// Reads a file. Throws InputError if the file cannot be read, has an unknown schema or version, or violates its
/// schema. The error is one line that names file, position, cause and remedy.
ReportFile read_report_file(const std::filesystem::path& path);

/// Parses `text` like read_report_file(). Messages use `name` as the file's name.
ReportFile parse_report_file(std::string_view text, const std::string& name);

/// Returns the schema of the file, for example "mltcp.results/1".
std::string_view schema_of(const ReportFile& file);

/// Renders the file's page. `series` may be null. Only pages of results show `series`.
std::string render_page(const ReportFile& file, const SeriesFile* series = nullptr);

}  // namespace mltcp::experiment
