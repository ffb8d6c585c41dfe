// Writes files of time series (docs/reference/series.md). The name of a file selects its format.
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
  std::optional<std::string> file;      ///< file name, whose extension selects the format
  std::optional<std::string> interval;  ///< interval, as in "1 ms"; default: chosen for each run
};

void add_series_options(Options& options, SeriesArguments& arguments);

/// Returns the names of the files that write_series() writes. For CSV there are two. Throws InputError if the extension
/// is unknown.
std::vector<std::string> series_files(const std::string& file);

/// Returns what a run has to record, or nothing if no series are wanted. Throws InputError if a value is invalid, or if
/// the file cannot be written, is `input`, or is one of `others` ("--json results.json").
std::optional<experiment::SeriesOptions> check_series(const SeriesArguments& arguments, const std::string& input,
                                                      const std::vector<std::optional<std::string>>& others);

/// Writes the series. Throws RunError on failure.
void write_series(const std::string& file, const experiment::SeriesFile& series, const experiment::Results& results);

}  // namespace mltcp::tools
