// Files of series: "mltcp.series/1" (JSON, one array per column), tables as CSV, and traces for the Perfetto UI
// (ui.perfetto.dev) and other readers of Chrome's trace event format. docs/reference/series.md describes their columns.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/json/provenance.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/series/series.h"

namespace mltcp::experiment {

struct SeriesFile {
  std::string experiment;
  std::vector<RunSeries> runs;
  std::optional<Provenance> provenance;
};

std::string series_json(const SeriesFile& series);

/// Throws InputError with one line that names file, position, cause and cure, if the file cannot be read, has another
/// schema, or has columns that are missing, of the wrong type or of unequal length.
SeriesFile read_series(const std::filesystem::path& path);
/// The same from text; `name` is used as the file's name in messages.
SeriesFile parse_series(std::string_view text, const std::string& name);

/// Whether a series is that of the run.
bool belongs(const RunSeries& series, const Run& run);

/// A row for each connection and time. Cells of a column have one type; unknown ones are empty.
std::string connections_csv(const SeriesFile& series);
/// A row for each link and time.
std::string links_csv(const SeriesFile& series);

/// Iterations of jobs as slices, and a counter track for each connection's and link's state; times are in the file as
/// microseconds. `results` are those of the same runs, in the same order.
std::string series_trace(const SeriesFile& series, const Results& results);

}  // namespace mltcp::experiment
