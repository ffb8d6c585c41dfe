// Files of time series (docs/reference/series.md): formats by file name, and writing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/series/series_file.h"
#include "mltcp/lab/experiment/series/series_recorder.h"

namespace mltcp::tools {

class Options;

struct SeriesArguments {
  std::optional<std::string> file;      ///< its extension selects the format
  std::optional<std::string> interval;  ///< a time; default: chosen for the run
};

void add_series_options(Options& options, SeriesArguments& arguments);

/// The files that are written; two for CSV. Throws InputError if the name's format is unknown.
std::vector<std::string> series_files(const std::string& file);

/// What to record, or nothing. Throws InputError for bad values, or if a file cannot be written or is one of `others`
/// ("--json results.json"); `input` must not be overwritten.
std::optional<experiment::SeriesOptions> check_series(const SeriesArguments& arguments, const std::string& input,
                                                      const std::vector<std::optional<std::string>>& others);

/// Throws RunError.
void write_series(const std::string& file, const experiment::SeriesFile& series, const experiment::Results& results);

}  // namespace mltcp::tools
