// Detects a file's schema, and renders its page (see report_file.h).
#include "mltcp/lab/experiment/report/report_file.h"

#include <fmt/format.h>

#include <array>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/files/file_kind.h"
#include "mltcp/lab/experiment/fit/schedule_file.h"
#include "mltcp/lab/experiment/report/report.h"
#include "mltcp/lab/experiment/report/schedule_report.h"

namespace mltcp::experiment {
namespace {

constexpr TextFile kReportFile{"a file that `mltcp run --json FILE` wrote, or sweep, cluster or schedule",
                               std::size_t{1} << 30};

}  // namespace

ReportFile parse_report_file(std::string_view text, const std::string& name) {
  // If the file has no schema, the reader of results reports the problem.
  const std::string schema = schema_of_json(text).value_or(std::string(kResultsSchema));
  if (schema == kResultsSchema) return parse_json(text, name);
  if (schema == kSweepSchema) return parse_sweep(text, name);
  if (schema == kClusterSchema) return parse_cluster(text, name);
  if (schema == kScheduleSchema) return parse_schedule(text, name);
  if (schema == kSeriesSchema)
    throw InputError(one_line(
        fmt::format("{}: these are series; give the results of the same run, with this file as --series", name)));
  for (const std::string_view known : {kResultsSchema, kSweepSchema, kClusterSchema, kScheduleSchema}) {
    const std::string_view kind = known.substr(0, known.find('/') + 1);
    if (schema.starts_with(kind))
      throw InputError(
          one_line(fmt::format("{}: schema is {}, a version that this mltcp does not read (it reads \"{}\"); use the "
                               "mltcp that wrote the file, or write the file again",
                               name, in_quotes(schema), known)));
  }
  throw InputError(
      one_line(fmt::format("{}: schema is {}, for which there is no report; give a --json file of mltcp run, gen, "
                           "testbed, sweep, cluster or schedule",
                           name, in_quotes(schema))));
}

ReportFile read_report_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  return parse_report_file(read_text_file(path, one_line(name), kReportFile), name);
}

std::string_view schema_of(const ReportFile& file) {
  constexpr std::array<std::string_view, 4> schemas{kResultsSchema, kSweepSchema, kClusterSchema, kScheduleSchema};
  return schemas[file.index()];
}

std::string render_page(const ReportFile& file, const SeriesFile* series) {
  struct Renderer {
    const SeriesFile* series;
    std::string operator()(const Results& results) const { return render_report(results, series); }
    std::string operator()(const SweepFile& sweep) const { return render_sweep(sweep); }
    std::string operator()(const ClusterFile& cluster) const { return render_cluster(cluster); }
    std::string operator()(const ScheduleResult& schedule) const { return render_schedule(schedule); }
  };
  return std::visit(Renderer{series}, file);
}

}  // namespace mltcp::experiment
