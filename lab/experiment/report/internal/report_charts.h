// The data of the report's charts, reduced to what a page can show; drawn by the page's script and by report_picture.h.
// Not installed.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "mltcp/lab/experiment/report/internal/report_view.h"

namespace mltcp::experiment {

/// One band of a stack: bytes per bin of a job; or, with more jobs than colours, of the bins in which a given number of
/// jobs sent simultaneously.
struct Band {
  std::string name;
  std::string colour;  ///< a CSS variable of report.css without its dashes: "job-0", "heat-3"
  std::vector<Bytes> bytes;
};
struct Bands {
  Nanos bin;
  Nanos from;       ///< time of the first bin
  bool by_count{};  ///< bands are numbers of simultaneous jobs
  std::vector<Band> bands;
};
/// Requires View::has_usage() for the run; covers all of it.
Bands bands_of(const View& view, std::size_t run);
/// The part in [span.from, span.to), with bins merged so that there are at most `columns`, above 0.
Bands cut(const Bands& bands, TimeSpan span, std::size_t columns);
/// Upper end of a band chart's axis: the link's rate, or the maximum reached. Bits per second.
double top_rate(const View& view, std::size_t run);

/// Slow-down by iteration over several jobs; iterations are merged in groups.
struct SlowdownLine {
  std::vector<double> mean;
  std::vector<double> least;
  std::vector<double> most;
};
SlowdownLine slowdown_line(const std::vector<const JobResult*>& jobs, std::size_t group);

/// The slow-down of the jobs under one policy; iterations are merged in groups of `group`.
struct PolicyLine : SlowdownLine {
  std::string name;
  std::string colour;
  std::string dash;
};
struct PolicyLines {
  std::size_t group = 1;
  std::size_t iterations = 0;  ///< of the longest run
  std::vector<PolicyLine> lines;
};
/// For the runs with known slow-downs.
PolicyLines policy_lines(const View& view, std::size_t columns);

/// Steps of the heat map: a slow-down up to the n-th has colour "heat-n", a larger one than all the last colour.
inline constexpr std::array<double, 6> kHeatSteps{1.02, 1.05, 1.1, 1.25, 1.5, 2};

/// The charts of a page, each a JSON object for charts.js. Its member "name" is the name of files saved from it.
class ChartList {
 public:
  /// Returns the element that charts.js fills; `height` in pixels. `caption` and `label` are HTML.
  std::string add(const nlohmann::json& chart, std::string_view caption, std::string_view label, int height);
  /// Sets the tables of links from which the reader can choose.
  void set_links(const nlohmann::json& links);
  /// Returns the index, for the script, of a chart without an element of its own.
  std::size_t add_hidden(const nlohmann::json& chart);
  [[nodiscard]] std::string data() const;  ///< safe in a script element

  explicit ChartList(std::string_view experiment);
  ~ChartList();
  ChartList(const ChartList&) = delete;
  ChartList& operator=(const ChartList&) = delete;

 private:
  std::unique_ptr<nlohmann::json> data_;  // a pointer, so that this header needs only a forward declaration
};

nlohmann::json usage_chart(const View& view, std::size_t run, TimeSpan span, std::size_t columns,
                           std::string_view name);
nlohmann::json lanes_chart(const View& view, std::size_t run, TimeSpan span, std::string_view name);
/// One line per job.
nlohmann::json iterations_chart(const View& view, std::size_t run);
/// Indices of the jobs with similar isolated iteration times, so that offsets between them are meaningful.
std::vector<std::size_t> same_period(const Run& run);
nlohmann::json offset_chart(const View& view, std::size_t run);
/// One row per job.
nlohmann::json heat_chart(const View& view, std::size_t run);
/// Slow-downs of all iterations of `jobs`, in order.
std::vector<double> sorted_slowdowns(const std::vector<const JobResult*>& jobs);
/// Number of iterations of the job that has most.
std::size_t most_iterations(const std::vector<const JobResult*>& jobs);

/// One line per policy.
nlohmann::json policies_chart(const View& view);
/// Cumulative distribution of slow-downs over all jobs' iterations; null if none is known.
nlohmann::json distribution_chart(const View& view);

/// Cumulative distribution of each job's iteration times under one policy; null if there are none.
nlohmann::json times_chart(const View& view, std::size_t run);

/// Colour of the n-th line, and a dash pattern once colours repeat.
std::string line_colour(std::size_t n);
std::string line_dash(std::size_t n);
/// An entry of a legend, as HTML.
std::string legend_entry(std::string_view colour, std::string_view dash, const std::string& name);

/// Range of an axis's values.
struct AxisRange {
  double from = std::numeric_limits<double>::infinity();
  double to = -std::numeric_limits<double>::infinity();
  void add(double value) {
    from = std::min(from, value);
    to = std::max(to, value);
  }
  /// The axis, with room at both ends: `room` as a share of the range, at least `least_room`.
  [[nodiscard]] nlohmann::json axis(std::string_view label, std::string_view suffix, double room,
                                    double least_room) const;
};

/// A line of slow-downs by iteration.
nlohmann::json line_of(const SlowdownLine& line, std::string_view name, std::string_view colour, std::string_view dash);
/// A chart of such lines, with the axis of slow-downs, over `length` iterations merged in groups.
nlohmann::json slowdown_lines(std::string_view name, std::size_t length, std::size_t group, const nlohmann::json& y,
                              const nlohmann::json& series);
/// A line of a distribution: values, and the percentage of all that are at most as large.
nlohmann::json distribution_line(std::size_t n, const std::string& name, const std::vector<double>& sorted);
/// A chart of such lines; `x` is the axis of the distributed values.
nlohmann::json distribution_lines(std::string_view name, const nlohmann::json& x, const nlohmann::json& series);
/// Slow-downs as dots, in rows.
nlohmann::json slowdown_dots(std::string_view name, const AxisRange& range, const nlohmann::json& rows,
                             const nlohmann::json& series);

}  // namespace mltcp::experiment
