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

/// Reads the file. Throws InputError if the file cannot be read or has another schema. Also throws it if columns are
/// missing, of the wrong type or of unequal length. The error is one line that names file, position, cause and remedy.
SeriesFile read_series(const std::filesystem::path& path);
/// Parses `text` like read_series(). Messages use `name` as the file's name.
SeriesFile parse_series(std::string_view text, const std::string& name);

/// Returns whether `series` was recorded in `run`.
bool belongs(const RunSeries& series, const Run& run);

/// Returns a table with a row for each connection and time. All cells of a column have the same type. Unknown cells are
/// empty.
std::string connections_csv(const SeriesFile& series);
/// Returns a table with a row for each link and time.
std::string links_csv(const SeriesFile& series);

/// Returns a trace with the iterations of jobs as slices, and counter tracks for the states of connections and links.
/// Times in the file are microseconds. `results` must contain the same runs in the same order.
std::string series_trace(const SeriesFile& series, const Results& results);

}  // namespace mltcp::experiment
