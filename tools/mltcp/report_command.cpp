// `mltcp report`: makes pages and pictures from result files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/nearest.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/files/file_kind.h"
#include "mltcp/lab/experiment/report/report_comparison.h"
#include "mltcp/lab/experiment/report/report_file.h"
#include "mltcp/lab/experiment/report/report_picture.h"
#include "output_file.h"

namespace mltcp::tools {
namespace {

struct ReportArguments {
  std::vector<std::string> results;  ///< one result file, or two to compare
  /// File for the page; default: the name of the results with .html, or both names if there are two.
  std::optional<std::string> output;
  std::optional<std::string> svg;     ///< file for a picture in place of the page, or "-" for standard output
  std::optional<std::string> chart;   ///< kind of the picture; default: usage
  std::vector<std::string> policies;  ///< policies in the picture; empty: the default of its kind
  std::optional<std::string> series;  ///< file with the series of the same run
};

void add_options(Options& options, ReportArguments& arguments) {
  options
      .add("RESULTS.json", arguments.results,
           "Files that --json of mltcp run, gen, testbed, sweep, cluster or schedule wrote; two files of run, gen or "
           "testbed are compared")
      .required()
      .words(1, 2);
  options.add("-o,--output", arguments.output,
              "File of the page; default: the name of the results with .html, or both names for two files; - is "
              "standard output");
  options.add("--svg", arguments.svg, "Write a picture to this file instead of a page; - is standard output");
  options.add("--chart", arguments.chart,
              "With --svg: usage (each job's use of the link over time) or iterations (slow-downs); default usage");
  options.add_list("--policy", arguments.policies,
                   "With --svg: policies that are shown, separated by commas; default: usage shows the first and the "
                   "last, iterations shows all");
  options.add("--series", arguments.series,
              "Also show charts of these series: the .json file that --series of the same mltcp run wrote "
              "(docs/reference/series.md)");
}

using experiment::Results;

// Returns the default path of the page, which is in the folder of the first result file. For two result files, the
// page's name contains both names.
std::filesystem::path default_page(const std::vector<std::string>& results) {
  std::filesystem::path page = results.front();
  if (results.size() > 1) {
    const std::filesystem::path other = results.back();
    return page.replace_filename(page.stem().string().append("-").append(other.stem().string()).append(".html"));
  }
  if (page.extension() == ".json")
    page.replace_extension(".html");
  else
    page += ".html";
  return page;
}

const Results& comparable(const experiment::ReportFile& file, const std::string& name) {
  const Results* results = std::get_if<Results>(&file);
  if (results == nullptr)
    throw InputError(one_line(fmt::format(
        "{}: this is {}, but only \"{}\" can be compared; give two files that mltcp run, gen or testbed wrote", name,
        in_quotes(experiment::schema_of(file)), experiment::kResultsSchema)));
  return *results;
}

experiment::ReportFile read_results(const std::string& name) {
  try {
    return experiment::read_report_file(name);
  } catch (const InputError&) {
    std::error_code error;
    if (std::filesystem::is_regular_file(name, error)) {  // a pipe cannot be read again
      constexpr TextFile results{"a file that --json of mltcp run, gen, testbed, sweep, cluster or schedule wrote",
                                 std::size_t{1} << 30};
      using experiment::FileKind;
      experiment::refuse_other_kind(
          read_text_file(name, name, results), name, results.what,
          {FileKind::results, FileKind::sweep_results, FileKind::cluster_results, FileKind::schedule});
    }
    throw;
  }
}

void check_options(const ReportArguments& arguments) {
  if (arguments.output && arguments.output->empty())
    throw InputError("--output: the name is empty; name a file, or - for standard output");
  if (arguments.series && (arguments.svg || arguments.results.size() > 1))
    throw InputError("--series: needs a page of one file of results; leave it out, or give one file and no --svg");
  if (!arguments.svg) {
    if (arguments.chart) throw InputError("--chart: needs a picture; add --svg FILE");
    if (!arguments.policies.empty()) throw InputError("--policy: needs a picture; add --svg FILE");
    return;
  }
  if (arguments.chart && std::ranges::find(experiment::kPictures, *arguments.chart) == experiment::kPictures.end()) {
    const std::vector<std::string> known(experiment::kPictures.begin(), experiment::kPictures.end());
    const auto meant = nearest(*arguments.chart, known);
    throw InputError(fmt::format(
        "--chart: {} is not known; {}", in_quotes(*arguments.chart),
        meant ? fmt::format("did you mean \"{}\"?", *meant) : fmt::format("give one of {}", fmt::join(known, ", "))));
  }
  if (arguments.svg->empty()) throw InputError("--svg: the name is empty; name a file, or - for standard output");
  if (arguments.output) throw InputError("--svg and --output: exclude each other; leave one of them out");
  if (arguments.results.size() > 1) throw InputError("--svg: a picture shows one file of results; give one file");
}

int write_picture(const ReportArguments& arguments) {
  const std::string& name = arguments.results.front();
  check_writable(*arguments.svg, name);
  const experiment::ReportFile file = read_results(name);
  const Results* results = std::get_if<Results>(&file);
  if (results == nullptr)
    throw InputError(
        one_line(fmt::format("{}: this is {}, and --svg cannot draw it; give a file that mltcp run, gen or testbed "
                             "wrote, or leave out --svg to write a page",
                             name, in_quotes(experiment::schema_of(file)))));
  experiment::PictureOptions options;
  if (arguments.chart) options.chart = *arguments.chart;
  options.policies = arguments.policies;
  std::string picture;
  try {
    picture = experiment::render_picture(*results, options);
  } catch (const InputError& error) {
    throw InputError(one_line(fmt::format("{}: {}", name, error.what())));
  }
  write_file(*arguments.svg, picture);
  if (*arguments.svg != "-") fmt::print("{}\n", *arguments.svg);
  return 0;
}

/// Reads the series. Throws InputError if none of them belongs to a run of `file`.
experiment::SeriesFile series_of(const std::string& name, const experiment::ReportFile& file,
                                 const std::string& results_name) {
  const Results* results = std::get_if<Results>(&file);
  if (results == nullptr)
    throw InputError(one_line(fmt::format("--series: only results of mltcp run have series, but {} is {}; leave it out",
                                          results_name, in_quotes(experiment::schema_of(file)))));
  experiment::SeriesFile series = experiment::read_series(name);
  const bool any = std::ranges::any_of(series.runs, [&](const experiment::RunSeries& one) {
    return std::ranges::any_of(results->runs,
                               [&](const experiment::Run& run) { return experiment::belongs(one, run); });
  });
  if (!any)
    throw InputError(one_line(fmt::format(
        "{}: none of its runs is in {}; give the file that --series of the same mltcp run wrote", name, results_name)));
  return series;
}

int report(const ReportArguments& arguments) {
  check_options(arguments);
  if (arguments.svg) return write_picture(arguments);
  const std::string& first = arguments.results.front();
  const std::filesystem::path page =
      arguments.output ? std::filesystem::path(*arguments.output) : default_page(arguments.results);
  const experiment::ReportFile file = read_results(first);
  std::string text;
  if (arguments.results.size() == 1) {
    std::optional<experiment::SeriesFile> series;
    if (arguments.series) series = series_of(*arguments.series, file, first);
    text = experiment::render_page(file, series ? &*series : nullptr);
  } else {
    const std::string& second = arguments.results.back();
    std::error_code unknown;  // ignored, because the reader reports files that it cannot read
    if (std::filesystem::equivalent(first, second, unknown))
      throw InputError(one_line(fmt::format(
          "{}: given twice; give the results of another run as the second file, or this file once to write its page",
          second)));
    const experiment::ReportFile other = read_results(second);
    check_writable(page.string(), second);
    text = experiment::render_comparison({first, &comparable(file, first)}, {second, &comparable(other, second)});
  }
  check_writable(page.string(), first);
  if (arguments.series) check_writable(page.string(), *arguments.series);
  write_file(page.string(), text);
  if (page != "-") fmt::print("{}\n", page.string());
  return 0;
}

}  // namespace

void add_report_command(CommandLine& line) {
  line.add<ReportArguments>("report",
                            "Write a self-contained HTML page of results, or a picture (docs/how-to/report.md)",
                            add_options, report);
}

}  // namespace mltcp::tools
