// The data of the report's charts, reduced to what a page can show. The page's script and report_picture.h draw them.
// This header is not installed.
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

/// One band of a stacked chart of bytes per bin. A band belongs to a job. If there are more jobs than colours, a band
/// belongs to a number of jobs: it contains the bins in which this many jobs sent simultaneously.
struct Band {
  std::string name;
  std::string colour;  ///< CSS variable of report.css without its dashes, such as "job-0" or "heat-3"
  std::vector<Bytes> bytes;
};
struct Bands {
  Nanos bin;
  Nanos from;       ///< time of the first bin
  bool by_count{};  ///< true if each band stands for a number of simultaneous jobs, false if for one job
  std::vector<Band> bands;
};
/// Returns the bands of the whole run. Requires View::has_usage(run).
Bands bands_of(const View& view, std::size_t run);
/// Returns the part of `bands` in [span.from, span.to), with bins merged so that there are at most `columns`. `columns`
/// must be above 0.
Bands cut(const Bands& bands, TimeSpan span, std::size_t columns);
/// Returns the upper end of a band chart's axis, in bits per second. This is the link's rate, or the maximum recorded
/// rate of all jobs together if the link's rate is unknown.
double top_rate(const View& view, std::size_t run);

/// Slow-downs of several jobs: mean, minimum and maximum of each group of successive iterations.
struct SlowdownLine {
  std::vector<double> mean;
  std::vector<double> least;
  std::vector<double> most;
};
SlowdownLine slowdown_line(const std::vector<const JobResult*>& jobs, std::size_t group);

/// The slow-downs of the jobs under one policy, in groups of PolicyLines::group iterations.
struct PolicyLine : SlowdownLine {
  std::string name;
  std::string colour;
  std::string dash;
};
struct PolicyLines {
  std::size_t group = 1;
  std::size_t iterations = 0;  ///< number of iterations of the longest run
  std::vector<PolicyLine> lines;
};
/// Returns a line for each run whose slow-downs are known. A line has at most `columns` groups.
PolicyLines policy_lines(const View& view, std::size_t columns);

/// Steps of the heat map. Colour "heat-n", with n from 0, stands for slow-downs up to kHeatSteps[n] and above the
/// previous step. The last colour stands for slow-downs above all steps.
inline constexpr std::array<double, 6> kHeatSteps{1.02, 1.05, 1.1, 1.25, 1.5, 2};

/// The charts of a page, each a JSON object for charts.js. Member "name" of a chart names the files saved from it.
class ChartList {
 public:
  /// Adds a chart and returns the HTML element that charts.js fills. `height` is in pixels. `caption` and `label` are
  /// HTML.
  std::string add(const nlohmann::json& chart, std::string_view caption, std::string_view label, int height);
  /// Sets the data of the links among which the reader can choose.
  void set_links(const nlohmann::json& links);
  /// Adds a chart that has no element on the page. Returns its index, which the page's script uses.
  std::size_t add_hidden(const nlohmann::json& chart);
  [[nodiscard]] std::string data() const;  ///< JSON text of all charts, safe in a script element

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
/// Returns a chart of iterations with one line per job.
nlohmann::json iterations_chart(const View& view, std::size_t run);
/// Returns the indices of the largest set of jobs with similar isolated iteration times. Offsets between such jobs are
/// meaningful.
std::vector<std::size_t> same_period(const Run& run);
nlohmann::json offset_chart(const View& view, std::size_t run);
/// Returns a heat map of slow-downs with one row per job.
nlohmann::json heat_chart(const View& view, std::size_t run);
/// Returns the slow-downs of all iterations of `jobs`, in ascending order.
std::vector<double> sorted_slowdowns(const std::vector<const JobResult*>& jobs);
/// Returns the maximum number of iterations of any job.
std::size_t max_iterations(const std::vector<const JobResult*>& jobs);

/// Returns a chart of slow-downs with one line per policy.
nlohmann::json policies_chart(const View& view);
/// Returns the cumulative distribution of slow-downs over all jobs' iterations, or null if no slow-down is known.
nlohmann::json distribution_chart(const View& view);

/// Returns the cumulative distribution of each job's iteration times under one policy, or null if there are none.
nlohmann::json times_chart(const View& view, std::size_t run);

/// line_colour() returns the colour of the n-th line. line_dash() returns its dash pattern, which is empty until
/// colours repeat.
std::string line_colour(std::size_t n);
std::string line_dash(std::size_t n);
/// Returns an entry of a legend, as HTML.
std::string legend_entry(std::string_view colour, std::string_view dash, const std::string& name);

/// Range of an axis's values.
struct AxisRange {
  double from = std::numeric_limits<double>::infinity();
  double to = -std::numeric_limits<double>::infinity();
  void add(double value) {
    from = std::min(from, value);
    to = std::max(to, value);
  }
  /// Returns the axis with free space at both ends: the larger of `margin` (a share of the range) and `min_margin`.
  [[nodiscard]] nlohmann::json axis(std::string_view label, std::string_view suffix, double margin,
                                    double min_margin) const;
};

/// Returns a line of slow-downs by iteration.
nlohmann::json line_of(const SlowdownLine& line, std::string_view name, std::string_view colour, std::string_view dash);
/// Returns a chart of lines from line_of(), over `length` iterations in groups of `group`. `y` is the axis of
/// slow-downs.
nlohmann::json slowdown_lines(std::string_view name, std::size_t length, std::size_t group, const nlohmann::json& y,
                              const nlohmann::json& series);
/// Returns the n-th line of a distribution: values, and for each value the percentage of values that do not exceed it.
nlohmann::json distribution_line(std::size_t n, const std::string& name, const std::vector<double>& sorted);
/// Returns a chart of lines from distribution_line(); `x` is the axis of the distributed values.
nlohmann::json distribution_lines(std::string_view name, const nlohmann::json& x, const nlohmann::json& series);
/// Returns a chart that shows slow-downs as dots in rows.
nlohmann::json slowdown_dots(std::string_view name, const AxisRange& range, const nlohmann::json& rows,
                             const nlohmann::json& series);

}  // namespace mltcp::experiment
