// Fuzzes the readers of result files: the files from which mltcp report makes pages (results, sweeps, clusters and
// schedules), and series. The target reads results or series, writes them, and reads them again. Both readings must
// give the same content.
//
// Input: a byte that chooses the reader, then the text.
#include <sstream>

#include "mltcp/endpoint/live/snapshot.h"
#include "mltcp/lab/experiment/report/report_file.h"
#include "mltcp/lab/experiment/series/series_file.h"
#include "target.h"

namespace mltcp::fuzz {
namespace {

using namespace experiment;

std::string written(const Results& results) {
  std::ostringstream text;
  write_json(results, text);
  return text.str();
}

}  // namespace

void fuzz_results(Input input) {
  Program program(input);
  const std::uint8_t reader = program.byte();
  const std::string text = program.text();
  switch (reader % 4) {
    case 0:
    case 1:
      is_read([&] {
        const ReportFile file = parse_report_file(text, "r.json");
        require(!render_page(file).empty(), "an empty page");
        if (const auto* results = std::get_if<Results>(&file)) {
          const std::string once = written(*results);
          require(written(parse_json(once, "again")) == once, "results are not read as they were written");
        }
      });
      return;
    case 2:
      is_read([&] {
        const SeriesFile series = parse_series(text, "s.json");
        const std::string once = series_json(series);
        require(series_json(parse_series(once, "again")) == once, "series are not read as they were written");
        static_cast<void>(connections_csv(series));
        static_cast<void>(links_csv(series));
      });
      return;
    default:
      is_read([&] {
        const std::string once = live::to_json(live::snapshot_from(text));
        require(live::to_json(live::snapshot_from(once)) == once, "a snapshot is not read as it was written");
      });
      return;
  }
}

}  // namespace mltcp::fuzz
