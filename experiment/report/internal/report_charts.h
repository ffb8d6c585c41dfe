// What the report's charts show, computed and cut down to what a page can hold: the page's script and the pictures of
// report_picture.h draw the same numbers. Not installed.
#pragma once

#include <array>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "mltcp/experiment/report/internal/report_view.h"

namespace mltcp::experiment {

/// One band of a stack: bytes per bin of a job; or, with more jobs than colours, of the bins in which so many jobs sent
/// at once.
struct Band {
  std::string name;
  std::string colour;  ///< a variable of report.css without its dashes: "job-0", "heat-3"
  std::vector<Bytes> bytes;
};
struct Bands {
  Nanos bin;
  Nanos from;       ///< of the first bin
  bool by_count{};  ///< bands are numbers of jobs
  std::vector<Band> bands;
};
/// Of a run with View::has_usage(), the whole of it.
Bands bands_of(const View& view, std::size_t run);
/// Those of [span.from, span.to), bins joined so that there are at most `columns`, which is above 0.
Bands cut(const Bands& bands, TimeSpan span, std::size_t columns);
/// The rate that a band chart's axis ends at: the link's, or the most that was reached. Bits per second.
double top_rate(const View& view, std::size_t run);

/// Slow-down by iteration under one policy, over its jobs; iterations joined in groups of `group`.
struct PolicyLine {
  std::string name;
  std::string colour;
  std::string dash;
  std::vector<double> mean;
  std::vector<double> least;
  std::vector<double> most;
};
struct PolicyLines {
  std::size_t group = 1;
  std::size_t iterations = 0;  ///< of the longest run
  std::vector<PolicyLine> lines;
};
/// Of the runs whose slow-downs are known.
PolicyLines policy_lines(const View& view, std::size_t columns);

/// Steps of the heat map: a slow-down of at most the n-th has colour "heat-n", one beyond all the last.
inline constexpr std::array<double, 6> kHeatSteps{1.02, 1.05, 1.1, 1.25, 1.5, 2};

/// The charts of a page. Each is one JSON object for charts.js; its member "name" names files that it is saved to.
class ChartList {
 public:
  /// An element that charts.js fills; `height` in pixels. The caption and label are HTML.
  std::string add(const nlohmann::json& chart, std::string_view caption, std::string_view label, int height);
  /// The tables of links that the reader can choose from.
  void set_links(const nlohmann::json& links);
  /// For the script, the index of a chart that no element of its own shows.
  std::size_t add_hidden(const nlohmann::json& chart);
  [[nodiscard]] std::string data() const;  ///< as it may stand in a script element

  explicit ChartList(std::string_view experiment);
  ~ChartList();
  ChartList(const ChartList&) = delete;
  ChartList& operator=(const ChartList&) = delete;

 private:
  std::unique_ptr<nlohmann::json> data_;  // so that this header needs no more than its name
};

nlohmann::json usage_chart(const View& view, std::size_t run, TimeSpan span, std::size_t columns,
                           std::string_view name);
nlohmann::json lanes_chart(const View& view, std::size_t run, TimeSpan span, std::string_view name);
/// A line a job.
nlohmann::json iterations_chart(const View& view, std::size_t run);
/// Jobs of the run whose isolated times are alike, so that their offsets mean something: places in its jobs.
std::vector<std::size_t> same_period(const Run& run);
nlohmann::json offset_chart(const View& view, std::size_t run);
/// A row a job.
nlohmann::json heat_chart(const View& view, std::size_t run);
/// A line a policy, like the next.
nlohmann::json policies_chart(const View& view);
/// The share of all jobs' iterations whose slow-down is at most so much; null where none is known.
nlohmann::json distribution_chart(const View& view);

/// A colour for the n-th of several lines, and dashes where colours come again.
std::string line_colour(std::size_t n);
std::string line_dash(std::size_t n);
/// A line of the distribution: values and the percent of all that are at most so much.
nlohmann::json distribution_line(std::size_t n, const std::string& name, const std::vector<double>& sorted);

}  // namespace mltcp::experiment
