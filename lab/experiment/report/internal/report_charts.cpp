// Computes the data of the report's charts (see report_charts.h).
#include "mltcp/lab/experiment/report/internal/report_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "mltcp/lab/experiment/report/internal/html.h"

namespace mltcp::experiment {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxPoints = 1000;  // maximum number of points of a line; charts have fewer columns of pixels
constexpr std::size_t kMaxCells = 400;    // maximum number of columns of a heat map
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

std::string job_colour(std::size_t job) { return fmt::format("job-{}", job % kMaxColours); }

std::size_t group_of(std::size_t values, std::size_t columns) {
  return std::max<std::size_t>(1, (values + columns - 1) / columns);
}

double slowdown_at(const JobResult& job, std::size_t i) {
  return static_cast<double>(job.iterations[i].count) / static_cast<double>(job.isolated.count);
}

// Returns the mean of each group of `values`, and the group's minimum and maximum if groups have several values.
// Ignores values that are not finite.
Json grouped(const std::vector<double>& values, std::size_t group) {
  Json means = Json::array();
  Json min = Json::array();
  Json max = Json::array();
  for (std::size_t from = 0; from < values.size(); from += group) {
    double sum = 0;
    double low = kInfinite;
    double high = -kInfinite;
    std::size_t count = 0;
    for (std::size_t i = from; i < std::min(values.size(), from + group); ++i) {
      if (!std::isfinite(values[i])) continue;
      sum += values[i];
      low = std::min(low, values[i]);
      high = std::max(high, values[i]);
      ++count;
    }
    means.push_back(count > 0 ? Json(rounded(sum / static_cast<double>(count))) : Json());
    min.push_back(count > 0 ? Json(rounded(low)) : Json());
    max.push_back(count > 0 ? Json(rounded(high)) : Json());
  }
  Json line{{"v", std::move(means)}};
  if (group > 1) {
    line["lo"] = std::move(min);
    line["hi"] = std::move(max);
  }
  return line;
}

// Returns the name of the file to which a chart is saved.
std::string file_name(std::string_view kind, const std::string& label) {
  std::string name(kind);
  if (label.empty()) return name;
  name += '-';
  for (const char c : label) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+';
    if (plain) {
      name += c;
    } else if (name.back() != '-') {
      name += '-';
    }
  }
  while (name.back() == '-') name.pop_back();
  return name;
}

Json iteration_axis(std::size_t length) {
  return {{"label", "iteration"}, {"from", 0}, {"to", std::max<std::size_t>(1, length - 1)}, {"whole", true}};
}

/// Returns a line at slow-down 1 on the axis `along`.
Json level_rule(const char* along) { return {{along, 1}, {"colour", "ink"}, {"dash", "5 4"}}; }

Json line_of_job(const View& view, const JobResult& job, const std::vector<double>& values, std::size_t group) {
  Json line = grouped(values, group);
  line["name"] = job.name;
  line["colour"] = job_colour(view.job_id(job.name));
  return line;
}

// The scale of iterations on charts, common to all runs. Values are slow-downs, or iteration times if the isolated time
// of any job is unknown.
struct IterationScale {
  bool slowdowns = true;
  AxisRange range;
  explicit IterationScale(const View& view) {
    for (const Run& run : view.results.runs)
      for (const JobResult& job : run.jobs) slowdowns = slowdowns && job.isolated.count > 0;
    for (const Run& run : view.results.runs)
      for (const JobResult& job : run.jobs)
        for (std::size_t i = 0; i < job.iterations.size(); ++i) range.add(value(view, job, i));
    if (slowdowns) range.add(1);
  }
  [[nodiscard]] double value(const View& view, const JobResult& job, std::size_t i) const {
    return slowdowns ? slowdown_at(job, i) : static_cast<double>(job.iterations[i].count) / view.unit.nanos;
  }
  [[nodiscard]] Json axis(const View& view) const {
    return range.axis(slowdowns ? std::string("slow-down") : fmt::format("iteration, {}", view.unit.name),
                      slowdowns ? "×" : "", 0.06, range.to * 0.01);
  }
};

}  // namespace

std::string line_colour(std::size_t n) { return fmt::format("line-{}", n % kMaxColours); }
std::string line_dash(std::size_t n) {
  constexpr std::array<const char*, 4> dashes{"", "7 4", "2 3", "9 3 2 3"};
  return dashes[n / kMaxColours % dashes.size()];
}

Bands bands_of(const View& view, std::size_t run) {
  const Usage& usage = view.results.runs[run].bottleneck.usage;
  Bands result;
  result.bin = usage.bin;
  result.by_count = view.many();
  if (!result.by_count) {
    for (std::size_t j = 0; j < view.jobs.size(); ++j)
      if (const auto bins = usage.jobs.find(view.jobs[j]); bins != usage.jobs.end())
        result.bands.push_back({view.jobs[j], job_colour(j), bins->second});
    return result;
  }
  std::size_t length = 0;
  for (const auto& [name, bins] : usage.jobs) length = std::max(length, bins.size());
  std::vector<Bytes> total(length);
  std::vector<std::uint32_t> users(length);
  for (const auto& [name, bins] : usage.jobs) {
    if (bins.empty()) continue;
    const double burst = min_of_a_burst(bins);
    for (std::size_t b = 0; b < bins.size(); ++b) {
      total[b] += bins[b];
      if (bins[b] > 0 && static_cast<double>(bins[b]) >= burst) ++users[b];
    }
  }
  struct Step {
    const char* name;
    const char* colour;
    std::uint32_t max;
  };
  constexpr std::array<Step, 4> steps{{{"one job sends", "count-0", 1},
                                       {"2 jobs at once", "count-1", 2},
                                       {"3 or 4 at once", "count-2", 4},
                                       {"5 or more at once", "count-3", UINT32_MAX}}};
  std::uint32_t min = 0;
  for (const Step& step : steps) {
    Band band{step.name, step.colour, std::vector<Bytes>(length)};
    for (std::size_t b = 0; b < length; ++b)
      if (users[b] >= min && users[b] <= step.max) band.bytes[b] = total[b];
    min = step.max + 1;
    result.bands.push_back(std::move(band));
  }
  return result;
}

Bands cut(const Bands& bands, TimeSpan span, std::size_t columns) {
  Bands result{bands.bin, {}, bands.by_count, {}};
  const std::int64_t bin = bands.bin.count;
  const std::int64_t first = std::max<std::int64_t>(span.from.count, 0) / bin;
  const std::int64_t last = std::max(first, (span.to.count + bin - 1) / bin);
  const auto group = static_cast<std::int64_t>(group_of(static_cast<std::size_t>(last - first), columns));
  result.bin = Nanos(bin * group);
  result.from = Nanos(first * bin);
  for (const Band& band : bands.bands) {
    Band joined{band.name, band.colour, {}};
    for (std::int64_t from = first; from < last; from += group) {
      Bytes sum = 0;
      for (std::int64_t b = from; b < from + group && b < static_cast<std::int64_t>(band.bytes.size()); ++b)
        sum += band.bytes[static_cast<std::size_t>(b)];
      joined.bytes.push_back(sum);
    }
    result.bands.push_back(std::move(joined));
  }
  return result;
}

double top_rate(const View& view, std::size_t run) {
  const Bottleneck& link = view.results.runs[run].bottleneck;
  if (!link.rate.is_zero()) return static_cast<double>(link.rate.bits_per_second);
  std::vector<Bytes> total;
  for (const auto& [name, bins] : link.usage.jobs) {
    total.resize(std::max(total.size(), bins.size()));
    for (std::size_t b = 0; b < bins.size(); ++b) total[b] += bins[b];
  }
  Bytes max = 1;
  for (const Bytes bytes : total) max = std::max(max, bytes);
  return static_cast<double>(max) * 8e9 / static_cast<double>(std::max<std::int64_t>(link.usage.bin.count, 1));
}

PolicyLines policy_lines(const View& view, std::size_t columns) {
  PolicyLines result;
  for (const Run& run : view.results.runs)
    result.iterations = std::max(result.iterations, max_iterations(judged_jobs(run)));
  result.group = group_of(result.iterations, columns);
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    if (!view.summaries[r].slowdown) continue;
    const SlowdownLine line = slowdown_line(judged_jobs(view.results.runs[r]), result.group);
    if (!line.mean.empty()) result.lines.push_back({line, view.labels[r], line_colour(r), line_dash(r)});
  }
  return result;
}

SlowdownLine slowdown_line(const std::vector<const JobResult*>& jobs, std::size_t group) {
  SlowdownLine line;
  const std::size_t length = max_iterations(jobs);
  for (std::size_t from = 0; from < length; from += group) {
    double sum = 0;
    AxisRange range;
    std::size_t count = 0;
    for (const JobResult* job : jobs)
      for (std::size_t i = from; i < std::min(job->iterations.size(), from + group); ++i) {
        const double value = slowdown_at(*job, i);
        sum += value;
        range.add(value);
        ++count;
      }
    line.mean.push_back(sum / static_cast<double>(count));
    line.least.push_back(range.from);
    line.most.push_back(range.to);
  }
  return line;
}

std::size_t max_iterations(const std::vector<const JobResult*>& jobs) {
  std::size_t max = 0;
  for (const JobResult* job : jobs) max = std::max(max, job->iterations.size());
  return max;
}

std::vector<double> sorted_slowdowns(const std::vector<const JobResult*>& jobs) {
  std::vector<double> values;
  for (const JobResult* job : jobs)
    for (std::size_t i = 0; i < job->iterations.size(); ++i) values.push_back(slowdown_at(*job, i));
  std::ranges::sort(values);
  return values;
}

// ---- Parts of charts ----

Json AxisRange::axis(std::string_view label, std::string_view suffix, double margin, double min_margin) const {
  const double beside = std::max((to - from) * margin, min_margin);
  return {{"label", label}, {"from", std::max(0.0, from - beside)}, {"to", to + beside}, {"suffix", suffix}};
}

std::string legend_entry(std::string_view colour, std::string_view dash, const std::string& name) {
  if (dash.empty())
    return fmt::format("<li><i class=\"swatch\" style=\"background:var(--{})\"></i>{}</li>", colour, escaped(name));
  return fmt::format(
      "<li><svg class=\"dash\" width=\"24\" height=\"8\"><path d=\"M0 4h24\" stroke=\"var(--{})\" stroke-width=\"2\" "
      "stroke-dasharray=\"{}\"/></svg>{}</li>",
      colour, dash, escaped(name));
}

Json line_of(const SlowdownLine& line, std::string_view name, std::string_view colour, std::string_view dash) {
  const auto list = [](const std::vector<double>& values) {
    Json numbers = Json::array();
    for (const double value : values) numbers.push_back(rounded(value));
    return numbers;
  };
  return {{"name", name},         {"colour", colour},       {"dash", dash},
          {"v", list(line.mean)}, {"lo", list(line.least)}, {"hi", list(line.most)}};
}

Json slowdown_lines(std::string_view name, std::size_t length, std::size_t group, const Json& y, const Json& series) {
  return {{"kind", "lines"},
          {"name", name},
          {"x", iteration_axis(length)},
          {"y", y},
          {"group", group},
          {"series", series},
          {"rules", Json::array({level_rule("y")})}};
}

Json distribution_lines(std::string_view name, const Json& x, const Json& series) {
  return {{"kind", "lines"},  {"name", name},
          {"x", x},           {"y", {{"label", "of the iterations"}, {"from", 0}, {"to", 102}, {"suffix", "%"}}},
          {"series", series}, {"rules", Json::array()}};
}

Json slowdown_dots(std::string_view name, const AxisRange& range, const Json& rows, const Json& series) {
  return {{"kind", "dots"}, {"name", name},     {"x", range.axis("slow-down", "×", 0.08, 0.01)},
          {"rows", rows},   {"series", series}, {"rules", Json::array({level_rule("x")})}};
}

// ---- Charts of a page ----

ChartList::ChartList(std::string_view experiment) : data_(std::make_unique<Json>()) {
  *data_ = {
      {"title", experiment}, {"experiment", file_name("mltcp", std::string(experiment))}, {"charts", Json::array()}};
}
ChartList::~ChartList() = default;

void ChartList::set_links(const Json& links) { (*data_)["links"] = links; }

std::size_t ChartList::add_hidden(const Json& chart) {
  (*data_)["charts"].push_back(chart);
  return (*data_)["charts"].size() - 1;
}

std::string ChartList::add(const Json& chart, std::string_view caption, std::string_view label, int height) {
  return fmt::format(
      "<figure><figcaption>{}</figcaption><div class=\"chart\" data-chart=\"{}\" style=\"height:{}px\" role=\"img\" "
      "aria-label=\"{}\"></div></figure>\n",
      caption, add_hidden(chart), height, label);
}

std::string ChartList::data() const { return script_safe(*data_); }

Json usage_chart(const View& view, std::size_t run, TimeSpan span, std::size_t columns, std::string_view name) {
  const Bands bands = cut(bands_of(view, run), span, columns);
  Json series = Json::array();
  for (const Band& band : bands.bands)
    series.push_back({{"name", band.name}, {"colour", band.colour}, {"v", band.bytes}});
  return {{"kind", "bands"},
          {"name", file_name(name, view.labels[run])},
          {"from", span.from.count},
          {"to", span.to.count},
          {"longest", view.spans[run].to.count},
          {"t0", bands.from.count},
          {"dt", bands.bin.count},
          {"rate", view.results.runs[run].bottleneck.rate.bits_per_second},
          {"top", top_rate(view, run)},
          {"series", std::move(series)}};
}

Json lanes_chart(const View& view, std::size_t run, TimeSpan span, std::string_view name) {
  Json rows = Json::array();
  for (const JobResult& job : view.results.runs[run].jobs) {
    Json bars = Json::array();
    for (const TimeSpan bar : communications(job, span)) {
      bars.push_back(bar.from.count);
      bars.push_back(bar.to.count);
    }
    rows.push_back({{"name", job.name},
                    {"colour", view.many() ? "job-0" : job_colour(view.job_id(job.name))},
                    {"v", std::move(bars)}});
  }
  return {{"kind", "lanes"},     {"name", file_name(name, view.labels[run])}, {"from", span.from.count},
          {"to", span.to.count}, {"longest", view.spans[run].to.count},       {"rows", std::move(rows)}};
}

Json iterations_chart(const View& view, std::size_t run) {
  const IterationScale scale(view);
  const Run& of = view.results.runs[run];
  std::size_t length = 1;
  for (const JobResult& job : of.jobs) length = std::max(length, job.iterations.size());
  const std::size_t group = group_of(length, kMaxPoints);
  Json series = Json::array();
  for (const JobResult& job : of.jobs) {
    std::vector<double> values;
    for (std::size_t i = 0; i < job.iterations.size(); ++i) values.push_back(scale.value(view, job, i));
    series.push_back(line_of_job(view, job, values, group));
  }
  Json rules = Json::array();
  if (scale.slowdowns) rules.push_back(level_rule("y"));
  if (const auto from = view.summaries[run].interleaved; from && *from > 0)
    rules.push_back({{"x", *from}, {"colour", "soft"}, {"dash", "2 3"}});
  return {{"kind", "lines"},
          {"name", file_name("iterations", view.labels[run])},
          {"x", iteration_axis(length)},
          {"y", scale.axis(view)},
          {"group", group},
          {"series", std::move(series)},
          {"rules", std::move(rules)}};
}

std::vector<std::size_t> same_period(const Run& run) {
  std::vector<std::size_t> best;
  for (std::size_t a = 0; a < run.jobs.size(); ++a) {
    std::vector<std::size_t> group;
    for (std::size_t b = a; b < run.jobs.size(); ++b) {
      const auto difference = std::abs(run.jobs[a].isolated.count - run.jobs[b].isolated.count);
      if (run.jobs[a].isolated.count > 0 && !run.jobs[b].starts.empty() && !run.jobs[a].starts.empty() &&
          difference <= run.jobs[a].isolated.count / 50)
        group.push_back(b);
    }
    if (group.size() > 1 && group.size() > best.size()) best = group;
  }
  return best;
}

Json offset_chart(const View& view, std::size_t run) {
  const Run& of = view.results.runs[run];
  const auto group = same_period(of);
  const JobResult& first = of.jobs[group.front()];
  std::size_t length = 1;
  Json series = Json::array();
  for (const std::size_t j : group) length = std::max(length, of.jobs[j].starts.size());
  const std::size_t joined = group_of(length, kMaxPoints);
  for (std::size_t g = 1; g < group.size(); ++g) {
    const JobResult& job = of.jobs[group[g]];
    std::vector<double> values;
    std::size_t at = 0;
    for (const Nanos start : job.starts) {
      while (at + 1 < first.starts.size() && first.starts[at + 1] <= start) ++at;
      const double share = static_cast<double>((start - first.starts[at]).count) /
                           static_cast<double>(std::max<std::int64_t>(first.iterations[at].count, 1));
      // If the share is outside 0 to 1, the first job does not run at that time.
      values.push_back(share >= 0 && share <= 1 ? std::min(share, 1 - share) : kNone);
    }
    series.push_back(line_of_job(view, job, values, joined));
  }
  return {{"kind", "lines"},
          {"name", file_name("offset", view.labels[run])},
          {"x", iteration_axis(length)},
          {"y", {{"label", "share of an iteration"}, {"from", 0}, {"to", 0.52}, {"suffix", ""}}},
          {"group", joined},
          {"series", std::move(series)},
          {"rules", Json::array()}};
}

Json heat_chart(const View& view, std::size_t run) {
  const Run& of = view.results.runs[run];
  std::size_t length = 1;
  for (const JobResult& job : of.jobs) length = std::max(length, job.iterations.size());
  const std::size_t group = group_of(length, kMaxCells);
  Json rows = Json::array();
  Json values = Json::array();
  for (const JobResult& job : of.jobs) {
    rows.push_back(job.name);
    Json row = Json::array();
    for (std::size_t from = 0; from < job.iterations.size() && job.isolated.count > 0; from += group) {
      const std::size_t to = std::min(job.iterations.size(), from + group);
      double sum = 0;
      for (std::size_t i = from; i < to; ++i) sum += slowdown_at(job, i);
      row.push_back(std::round(sum / static_cast<double>(to - from) * 1e3) / 1e3);
    }
    values.push_back(std::move(row));
  }
  return {{"kind", "heat"},
          {"name", file_name("heat", view.labels[run])},
          {"x", {{"label", "iteration"}, {"from", 0}, {"to", length}, {"whole", true}}},
          {"group", group},
          {"steps", kHeatSteps},
          {"rows", std::move(rows)},
          {"v", std::move(values)}};
}

Json policies_chart(const View& view) {
  const PolicyLines lines = policy_lines(view, kMaxPoints);
  if (lines.lines.empty()) return {};
  Json series = Json::array();
  AxisRange range;
  range.add(1);
  for (const PolicyLine& line : lines.lines) {
    for (const double value : line.least) range.add(value);
    for (const double value : line.most) range.add(value);
    series.push_back(line_of(line, line.name, line.colour, line.dash));
  }
  return slowdown_lines("slow-down", lines.iterations, lines.group, range.axis("slow-down", "×", 0.06, 0.01), series);
}

Json distribution_line(std::size_t n, const std::string& name, const std::vector<double>& sorted) {
  constexpr std::size_t steps = 250;
  Json xs = Json::array();
  Json ys = Json::array();
  for (std::size_t s = 0; s <= steps; ++s) {
    const std::size_t at = std::min(sorted.size() - 1, s * sorted.size() / steps);
    xs.push_back(rounded(sorted[at]));
    ys.push_back(std::round(1e5 * static_cast<double>(at + 1) / static_cast<double>(sorted.size())) / 1e3);
  }
  return {
      {"name", name}, {"colour", line_colour(n)}, {"dash", line_dash(n)}, {"x", std::move(xs)}, {"v", std::move(ys)}};
}

Json distribution_chart(const View& view) {
  Json series = Json::array();
  AxisRange range;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    if (!view.summaries[r].slowdown) continue;
    const std::vector<double> values = sorted_slowdowns(judged_jobs(view.results.runs[r]));
    if (values.empty()) continue;
    range.add(values.front());
    range.add(values.back());
    series.push_back(distribution_line(r, view.labels[r], values));
  }
  if (series.empty()) return {};
  return distribution_lines("distribution", range.axis("slow-down of an iteration", "×", 0.02, 0.005), series);
}

Json times_chart(const View& view, std::size_t run) {
  AxisRange range;  // range over all runs, so that all panels have the same scale
  for (const Run& one : view.results.runs)
    for (const JobResult& job : one.jobs)
      for (const Nanos time : job.iterations) range.add(static_cast<double>(time.count) / view.unit.nanos);
  Json series = Json::array();
  for (const JobResult& job : view.results.runs[run].jobs) {
    if (job.iterations.empty()) continue;
    std::vector<double> values;
    for (const Nanos time : job.iterations) values.push_back(static_cast<double>(time.count) / view.unit.nanos);
    std::ranges::sort(values);
    Json line = distribution_line(0, job.name, values);
    line["colour"] = job_colour(view.job_id(job.name));
    line["dash"] = "";
    series.push_back(std::move(line));
  }
  if (series.empty()) return {};
  return distribution_lines(file_name("times", view.labels[run]),
                            range.axis(fmt::format("iteration, {}", view.unit.name), "", 0.02, range.to * 0.005),
                            series);
}

}  // namespace mltcp::experiment
