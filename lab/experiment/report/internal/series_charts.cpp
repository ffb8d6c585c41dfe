// Computes the data of the charts of recorded series (see series_charts.h).
#include "mltcp/lab/experiment/report/internal/series_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "mltcp/lab/experiment/report/internal/report_charts.h"

namespace mltcp::experiment {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxNumbers = 800'000;  // maximum number of values in all panels of a page together: about 4 MB
constexpr std::size_t kMaxPoints = 16'000;  // maximum number of points of a line: several for each pixel of any screen
constexpr std::size_t kFewestPoints = 500;
// Number of steps to which values are rounded; a step is smaller than a pixel of a panel.
constexpr double kSteps = 4095;

// Indices of SeriesCharts::kPanels.
constexpr std::size_t kQueue = 0;
constexpr std::size_t kCwnd = 1;
constexpr std::size_t kGain = 2;
constexpr std::size_t kRatio = 3;
constexpr std::size_t kRtt = 4;

// Returns the values as multiples of `max` / kSteps, rounded to whole numbers.
Json in_steps(const std::vector<double>& values, double max) {
  Json steps = Json::array();
  for (const double value : values)
    steps.push_back(max > 0 ? static_cast<std::int64_t>(std::lround(std::clamp(value / max, 0.0, 1.0) * kSteps)) : 0);
  return steps;
}

// Returns how much a counter grew over each group of `group` rows.
std::vector<std::uint64_t> growth(const RunSeries& run, std::size_t link, std::uint64_t LinkState::*counter,
                                  std::size_t group) {
  std::vector<std::uint64_t> result;
  std::uint64_t before = 0;
  for (std::size_t from = 0; from < run.times.size(); from += group) {
    const std::size_t last = std::min(run.times.size(), from + group) - 1;
    const std::uint64_t now = std::max(before, run.link(last, link).*counter);
    result.push_back(now - before);
    before = now;
  }
  return result;
}

}  // namespace

SeriesCharts::SeriesCharts(const View& view, const SeriesFile* series) : view_(view) {
  std::size_t lines = 1;
  for (const Run& run : view.results.runs) {
    runs_.push_back(nullptr);
    if (series == nullptr) continue;
    for (const RunSeries& one : series->runs)
      if (belongs(one, run) && !one.times.empty()) runs_.back() = &one;
    // Each point needs two numbers. There is one line for the queue, one for its counters, and one for each job in each
    // of the other panels.
    if (runs_.back() != nullptr) lines += 2 * (2 + (view.many() ? 2 : run.jobs.size()) * (kPanels.size() - 1));
  }
  points_ = std::clamp(kMaxNumbers / lines, kFewestPoints, kMaxPoints);
}

bool SeriesCharts::any() const {
  return std::ranges::any_of(runs_, [](const RunSeries* run) { return run != nullptr; });
}

bool SeriesCharts::has(std::size_t run, std::size_t panel) const {
  const RunSeries* series = runs_[run];
  if (series == nullptr) return false;
  if (panel == kQueue) return series->packets && !series->links.empty();
  return !series->connections.empty() && (series->packets || panel == kGain || panel == kRatio);
}

std::size_t SeriesCharts::group(const RunSeries& run) const {
  return std::max<std::size_t>(1, (run.times.size() + points_ - 1) / points_);
}

std::size_t SeriesCharts::max_joined() const {
  std::size_t max = 1;
  for (const RunSeries* run : runs_)
    if (run != nullptr) max = std::max(max, group(*run));
  return max;
}

std::size_t SeriesCharts::link_of(std::size_t run) const {
  const RunSeries& series = *runs_[run];
  const std::string& name = view_.results.runs[run].bottleneck.name;
  std::size_t busiest = 0;
  for (std::size_t l = 0; l < series.links.size(); ++l) {
    if (series.links[l].name == name) return l;
    const std::size_t last = series.times.size() - 1;
    if (series.link(last, l).sent_bytes > series.link(last, busiest).sent_bytes) busiest = l;
  }
  return busiest;
}

SeriesCharts::Values SeriesCharts::rows_of_job(const RunSeries& run, const std::string& job, std::size_t panel) const {
  std::vector<std::size_t> connections;
  for (std::size_t c = 0; c < run.connections.size(); ++c)
    if (run.connections[c].job == job) connections.push_back(c);
  Values values;
  values.least.reserve(run.times.size());
  values.most.reserve(run.times.size());
  for (std::size_t row = 0; row < run.times.size(); ++row) {
    double min = 0;
    double max = 0;
    for (std::size_t n = 0; n < connections.size(); ++n) {
      const ConnectionState& state = run.connection(row, connections[n]);
      switch (panel) {
        case kCwnd:
          min += state.cwnd_least_bytes;
          max += state.cwnd_most_bytes;
          break;
        case kRtt:
          min = std::max(min, static_cast<double>(state.rtt.count));
          max = std::max(max, static_cast<double>(state.rtt_max.count));
          break;
        default: {  // range over a job's workers, which may be at different points of their iterations
          const double value = panel == kGain ? state.gain : state.bytes_ratio;
          min = n == 0 ? value : std::min(min, value);
          max = std::max(max, value);
        }
      }
    }
    values.least.push_back(min);
    values.most.push_back(max);
  }
  return values;
}

SeriesCharts::Values SeriesCharts::joined(const Values& rows, std::size_t group) {
  Values result;
  for (std::size_t from = 0; from < rows.least.size(); from += group) {
    const auto first = static_cast<std::ptrdiff_t>(from);
    const auto last = static_cast<std::ptrdiff_t>(std::min(rows.least.size(), from + group));
    result.least.push_back(*std::min_element(rows.least.begin() + first, rows.least.begin() + last));
    result.most.push_back(*std::max_element(rows.most.begin() + first, rows.most.begin() + last));
  }
  return result;
}

/// Returns the maximum over all runs, so that all policies have the same scale.
double SeriesCharts::max_of(std::size_t panel) const {
  double max = 0;
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    if (!has(r, panel)) continue;
    const RunSeries& run = *runs_[r];
    if (panel == kQueue) {
      const std::size_t link = link_of(r);
      for (std::size_t row = 0; row < run.times.size(); ++row)
        max = std::max(max, static_cast<double>(run.link(row, link).queue_most_bytes));
      continue;
    }
    for (const std::string& job : view_.jobs)
      for (const double value : rows_of_job(run, job, panel).most) max = std::max(max, value);
  }
  return max;
}

Json SeriesCharts::sent(std::size_t run, std::string_view name) const {
  const RunSeries& series = *runs_[run];
  const std::size_t rows = group(series);
  const Nanos bin = series.interval * static_cast<std::int64_t>(rows);
  const std::size_t connections = series.connections.size();
  // Row 0 has no predecessor, so the first bin starts with row 1. The last bin may be incomplete.
  const auto bytes_of = [&](const auto& is_of) {
    std::vector<Bytes> bins;
    for (std::size_t from = 1; from < series.times.size(); from += rows) {
      const std::size_t last = std::min(series.times.size(), from + rows) - 1;
      Bytes& bytes = bins.emplace_back(0);
      for (std::size_t c = 0; c < connections; ++c) {
        const Bytes before = series.connection(from - 1, c).sent_bytes;
        if (is_of(series.connections[c])) bytes += std::max(series.connection(last, c).sent_bytes, before) - before;
      }
    }
    return bins;
  };
  const std::vector<Bytes> all = bytes_of([](const SeriesConnection&) { return true; });
  Json bands = Json::array();
  if (view_.many())
    bands.push_back({{"name", "all jobs"}, {"colour", "line-7"}, {"v", all}});
  else
    for (std::size_t j = 0; j < view_.jobs.size(); ++j)
      bands.push_back({{"name", view_.jobs[j]},
                       {"colour", fmt::format("job-{}", j)},
                       {"v", bytes_of([&](const SeriesConnection& one) { return one.job == view_.jobs[j]; })}});
  const double rate = static_cast<double>(view_.results.runs[run].bottleneck.rate.bits_per_second);
  const double max = static_cast<double>(*std::ranges::max_element(all)) * 8e9 /
                     static_cast<double>(std::max<std::int64_t>(1, bin.count));
  return {{"kind", "bands"},
          {"name", name},
          {"from", 0},
          {"to", series.times.back().count},
          {"longest", series.times.back().count},
          {"t0", 0},
          {"dt", bin.count},
          {"rate", view_.results.runs[run].bottleneck.rate.bits_per_second},
          {"top", std::max({rate, max, 1.0})},
          {"series", std::move(bands)}};
}

Json SeriesCharts::chart(std::size_t run, std::size_t panel) const {
  struct Axis {
    const char* label;
    double scale;  ///< size of one unit of the axis
  };
  const double max = panel == kRatio ? 1 : std::max(max_of(panel), 1e-9);
  const auto in_bytes = [&] { return max >= 2e6 ? Axis{"MB", 1e6} : max >= 2e3 ? Axis{"kB", 1e3} : Axis{"bytes", 1}; };
  const auto in_time = [&] { return max >= 2e6 ? Axis{"ms", 1e6} : max >= 2e3 ? Axis{"µs", 1e3} : Axis{"ns", 1}; };
  const Axis axis = panel == kQueue || panel == kCwnd ? in_bytes()
                    : panel == kRtt                   ? in_time()
                    : panel == kGain                  ? Axis{"gain", 1}
                                                      : Axis{"share", 1};
  const RunSeries& series = *runs_[run];
  const std::size_t joined_rows = group(series);
  Json lines = Json::array();
  const auto add = [&](const std::string& name, const std::string& colour, const Values& values) {
    Json line{{"name", name}, {"colour", colour}, {"v", in_steps(values.most, max)}};
    if (values.least != values.most) line["lo"] = in_steps(values.least, max);
    lines.push_back(std::move(line));
  };
  Json ticks = Json::array();
  if (panel == kQueue) {
    const std::size_t link = link_of(run);
    Values rows;
    for (std::size_t row = 0; row < series.times.size(); ++row) {
      rows.least.push_back(static_cast<double>(series.link(row, link).queue_bytes));
      rows.most.push_back(static_cast<double>(series.link(row, link).queue_most_bytes));
    }
    add("queue", "line-7", joined(rows, joined_rows));
    ticks.push_back({{"name", "marked"},
                     {"colour", "line-4"},
                     {"v", growth(series, link, &LinkState::marked_packets, joined_rows)}});
    ticks.push_back({{"name", "dropped"},
                     {"colour", "line-1"},
                     {"v", growth(series, link, &LinkState::dropped_packets, joined_rows)}});
  } else if (!view_.many()) {
    for (std::size_t j = 0; j < view_.jobs.size(); ++j)
      add(view_.jobs[j], fmt::format("job-{}", j), joined(rows_of_job(series, view_.jobs[j], panel), joined_rows));
  } else {
    // With more jobs than colours, shows the range and the mean of all jobs.
    Values all;
    Values mean;
    for (const std::string& job : view_.jobs) {
      const Values of_job = rows_of_job(series, job, panel);
      if (all.least.empty()) {
        all = of_job;
        mean.most.assign(of_job.most.size(), 0);
      }
      for (std::size_t row = 0; row < of_job.most.size(); ++row) {
        all.least[row] = std::min(all.least[row], of_job.least[row]);
        all.most[row] = std::max(all.most[row], of_job.most[row]);
        mean.most[row] += of_job.most[row] / static_cast<double>(view_.jobs.size());
      }
    }
    mean.least = mean.most;
    add("all jobs, from the least to the most", "line-7", joined(all, joined_rows));
    add("mean", "line-1", joined(mean, joined_rows));
  }
  return {{"kind", "series"},
          {"name", fmt::format("{}-{}", kPanels[panel].name, view_.results.runs[run].policy)},
          {"from", view_.spans[run].from.count},
          {"to", view_.spans[run].to.count},
          {"longest", view_.spans[run].to.count},
          {"t0", 0},
          {"dt", series.interval.count * static_cast<std::int64_t>(joined_rows)},
          {"label", axis.label},
          {"top", max / axis.scale},
          {"steps", kSteps},
          {"series", std::move(lines)},
          {"ticks", std::move(ticks)}};
}

}  // namespace mltcp::experiment
