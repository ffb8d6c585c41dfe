// Writes files of time series (see series_output.h).
#include "series_output.h"

#include <fmt/format.h>

#include "command_line.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "option_values.h"
#include "output_file.h"

namespace mltcp::tools {
namespace {

enum class Format { columns, tables, trace };

Format format_of(const std::string& file) {
  for (const std::string_view end : {".trace.json", ".perfetto.json", ".perfetto-trace"})
    if (file.ends_with(end)) return Format::trace;
  if (file.ends_with(".json")) return Format::columns;
  if (file.ends_with(".csv")) return Format::tables;
  throw InputError(one_line(
      fmt::format("--series: the format of {} is not known; let its name end with .json (columns, for mltcp report), "
                  ".csv (two tables) or .trace.json (for ui.perfetto.dev)",
                  in_quotes(file))));
}

}  // namespace

void add_series_options(Options& options, SeriesArguments& arguments) {
  options.add("--series", arguments.file,
              "Write time series of every connection and link, in the format that the name ends with: .json (columns, "
              "for mltcp report), .csv (two tables) or .trace.json (Perfetto) (docs/reference/series.md)");
  options.add("--series-interval", arguments.interval,
              "Time between samples; default: a 200th of an iteration, and at least a round-trip time");
}

std::vector<std::string> series_files(const std::string& file) {
  if (format_of(file) != Format::tables) return {file};
  const std::string stem = file.substr(0, file.size() - std::string_view(".csv").size());
  return {stem + ".connections.csv", stem + ".links.csv"};
}

std::optional<experiment::SeriesOptions> check_series(const SeriesArguments& arguments, const std::string& input,
                                                      const std::vector<std::optional<std::string>>& others) {
  if (!arguments.file) {
    if (arguments.interval) throw InputError("--series-interval: needs a file of series; add --series FILE");
    return std::nullopt;
  }
  if (arguments.file->empty()) throw InputError("--series: the name is empty; name a file, e.g. series.json");
  for (const std::string& file : series_files(*arguments.file)) {
    check_writable(file, input);
    for (const std::optional<std::string>& other : others)
      if (other) check_distinct({file, other}, "--series and the other files");
  }
  experiment::SeriesOptions options;
  if (arguments.interval) {
    options.interval = of_option("--series-interval", *arguments.interval, parse_duration);
    if (options.interval.count <= 0)
      throw InputError("--series-interval is 0; give a time, e.g. 100us, or leave it out");
  }
  return options;
}

void write_series(const std::string& file, const experiment::SeriesFile& series, const experiment::Results& results) {
  const std::vector<std::string> files = series_files(file);
  switch (format_of(file)) {
    case Format::columns:
      return write_file(file, experiment::series_json(series));
    case Format::trace:
      return write_file(file, experiment::series_trace(series, results));
    case Format::tables:
      write_file(files.front(), experiment::connections_csv(series));
      write_file(files.back(), experiment::links_csv(series));
  }
}

}  // namespace mltcp::tools
