// The page of a sweep (see sweep_report.h).
#include "mltcp/lab/experiment/report/sweep_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "mltcp/base/json/json_object.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/report/internal/experiment_settings.h"
#include "mltcp/lab/experiment/report/internal/html.h"
#include "mltcp/lab/experiment/report/internal/report_charts.h"
#include "mltcp/lab/experiment/report/internal/report_page.h"
#include "mltcp/lab/experiment/report/internal/report_text.h"

namespace mltcp::experiment {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDrawnPoints = 120;  // maximum number of points of a chart
constexpr std::size_t kMaxListed = 1000;      // maximum number of points of the table
constexpr std::size_t kMaxFailures = 50;
constexpr double kMaxInterval = 0.1;  // maximum half-width of an interval that fits on the chart

Estimate estimate_from(const JsonObject& json) { return {json.real("mean"), json.later_real("ci95")}; }

std::optional<Estimate> later_estimate(const JsonObject& json, std::string_view key) {
  if (!json.has(key) || json.is_null(key)) return std::nullopt;
  return estimate_from(json.object(key));
}

SweepRow row_from(const JsonObject& json) {
  SweepRow row;
  row.policy = json.text("policy");
  row.jobs = json.whole("jobs");
  row.seeds = json.whole("seeds");
  row.slowdown = estimate_from(json.object("slowdown"));
  const JsonObject half = json.object("second_half_slowdown");
  row.second_half = estimate_from(half);
  row.second_half_worst_seed = half.real("worst_seed");
  row.second_half_worst_job = half.real("worst_job");
  row.p99 = estimate_from(json.object("p99_slowdown"));
  const JsonObject interleaved = json.object("interleaved");
  row.interleaved = interleaved.whole("seeds");
  row.interleaved_median = interleaved.later_real("from_median");
  if (!interleaved.is_null("from_worst")) row.interleaved_worst = interleaved.whole("from_worst");
  row.gain = later_estimate(json, "gain_mean");
  row.utilization = json.real("utilization");
  row.dropped_packets = json.real("dropped_packets");
  row.marked_packets = json.real("ecn_marked_packets");
  row.max_queue_bytes = json.whole("max_queue_bytes");
  return row;
}

// Returns the factors whose values differ between points.
std::vector<std::size_t> varying(const SweepFile& sweep) {
  std::vector<std::size_t> factors;
  for (std::size_t f = 0; f < sweep.factors.size(); ++f)
    if (std::ranges::any_of(sweep.points, [&](const SweepFile::Point& point) {
          return point.values[f] != sweep.points.front().values[f];
        }))
      factors.push_back(f);
  return factors;
}

std::string name_of(const SweepFile& sweep, const SweepFile::Point& point, const std::vector<std::size_t>& factors) {
  if (factors.empty()) return sweep.name;
  std::vector<std::string> values;
  for (const std::size_t f : factors) values.push_back(point.values[f]);
  return fmt::format("{}", fmt::join(values, " · "));
}

// Returns the key as HTML that allows line breaks, since "bottleneck.buffer" is a wide column.
std::string breakable(const std::string& key) {
  std::string text;
  for (const char c : escaped(key)) {
    text += c;
    if (c == '.' || c == '_') text += "<wbr>";
  }
  return text;
}

const SweepRow* fair_of(const SweepFile::Point& point) {
  for (const SweepRow& row : point.rows)
    if (row.policy == kBaselinePolicy) return &row;
  return point.rows.empty() ? nullptr : &point.rows.front();
}

// Returns whether the confidence intervals are too wide to decide which slow-down is larger.
bool uncertain(const Estimate& a, const Estimate& b) {
  return a.ci95 && b.ci95 && std::abs(a.mean - b.mean) < *a.ci95 + *b.ci95;
}

struct Tally {
  std::size_t better = 0;
  std::size_t same = 0;
  std::size_t worse = 0;
  std::size_t open = 0;  // number of better or worse points with too few seeds to be certain
  std::string beside;
  double best = 0;  // maximum share of time saved at a point
  double worst = 0;
};

std::string lead(const SweepFile& sweep) {
  std::vector<std::string> policies;
  std::map<std::string, Tally> tallies;
  for (const SweepFile::Point& point : sweep.points) {
    const SweepRow* fair = fair_of(point);
    for (const SweepRow& row : point.rows) {
      if (&row == fair) continue;
      add_once(policies, row.policy);
      Tally& tally = tallies[row.policy];
      tally.beside = fair->policy;
      const Change change = change_of(fair->slowdown.mean, row.slowdown.mean);
      if (change == Change::unknown) continue;
      const double saved = 1 - row.slowdown.mean / fair->slowdown.mean;
      tally.best = std::max(tally.best, saved);
      tally.worst = std::min(tally.worst, saved);
      if (change == Change::same) {
        ++tally.same;
        continue;
      }
      ++(change == Change::better ? tally.better : tally.worse);
      if (uncertain(fair->slowdown, row.slowdown)) ++tally.open;
    }
  }
  std::string out;
  for (const std::string& policy : policies) {
    const Tally& tally = tallies[policy];
    const std::size_t all = tally.better + tally.same + tally.worse;
    out += fmt::format("<li><b>{}</b>, compared with <b>{}</b>: ", escaped(policy), escaped(tally.beside));
    std::vector<std::string> parts;
    const auto part = [&](std::size_t count, std::string_view classes, std::string_view word, const std::string& max) {
      if (count > 0)
        parts.push_back(
            fmt::format("<b class=\"{}\">{}</b> at {} of {}{}", classes, word, count, plural(all, "point"), max));
    };
    part(tally.better, "better", "better", fmt::format(" (by up to {} of the time)", percent_text(tally.best)));
    part(tally.worse, "worse", "worse", fmt::format(" (by up to {} of the time)", percent_text(-tally.worst)));
    part(tally.same, "same", "no difference", "");
    out += parts.empty() ? "nothing to compare" : listed(parts);
    if (tally.open > 0)
      out += fmt::format("; at {} of these there are too few seeds to be sure, because the 95% intervals overlap",
                         tally.open);
    out += ".</li>";
  }
  if (out.empty()) return "";
  return fmt::format("<ul class=\"lead\">{}</ul>\n", out);
}

std::string alarms(const SweepFile& sweep) {
  std::size_t missing = 0;
  std::size_t failed = 0;
  for (const SweepFile::Point& point : sweep.points) {
    missing += point.missing;
    failed += point.failures.size();
  }
  std::string out;
  if (missing > 0)
    out += fmt::format(
        "<p class=\"alarm\"><b>Unfinished.</b> {} without a record; run the sweep again to continue it.</p>\n",
        missing == 1 ? std::string("1 run is") : fmt::format("{} runs are", missing));
  if (failed > 0)
    out += fmt::format("<p class=\"alarm\"><b>{} failed</b> and {} left out; the reasons are listed below.</p>\n",
                       plural(failed, "run"), failed == 1 ? "is" : "are");
  return out;
}

std::string estimate_text(const Estimate& estimate) {
  return estimate.ci95 ? fmt::format("{:.3f}× <span class=\"unit\">±{:.3f}</span>", estimate.mean, *estimate.ci95)
                       : fmt::format("{:.3f}×", estimate.mean);
}

std::string mean_count(double count) { return count_text(static_cast<std::uint64_t>(std::max(0.0, count) + 0.5)); }

std::string chart(const SweepFile& sweep, const std::vector<std::size_t>& factors, ChartList& charts) {
  std::vector<std::string> policies;
  for (const SweepFile::Point& point : sweep.points)
    for (const SweepRow& row : point.rows) add_once(policies, row.policy);
  Json rows = Json::array();
  Json series = Json::array();
  for (std::size_t p = 0; p < policies.size(); ++p)
    series.push_back({{"name", policies[p]}, {"colour", line_colour(p)}, {"v", Json::array()}, {"ci", Json::array()}});
  AxisRange range;
  range.add(1);
  for (std::size_t i = 0; i < std::min(sweep.points.size(), kMaxDrawnPoints); ++i) {
    const SweepFile::Point& point = sweep.points[i];
    rows.push_back(name_of(sweep, point, factors));
    for (std::size_t p = 0; p < policies.size(); ++p) {
      const auto row = std::ranges::find_if(point.rows, [&](const SweepRow& of) { return of.policy == policies[p]; });
      const bool known = row != point.rows.end();
      series[p]["v"].push_back(known ? Json(row->slowdown.mean) : Json());
      series[p]["ci"].push_back(known && row->slowdown.ci95 ? Json(*row->slowdown.ci95) : Json());
      if (!known) continue;
      // Confidence intervals from few seeds may be much wider than the rest of the chart, so the chart cuts them off.
      const double ci = std::min(row->slowdown.ci95.value_or(0), kMaxInterval);
      range.add(std::max(row->slowdown.mean - ci, 1 - kMaxInterval));
      range.to = std::max(range.to, row->slowdown.mean + ci);
    }
  }
  if (rows.empty()) return "";
  const std::size_t drawn = rows.size();
  std::string legend;
  for (const Json& line : series)
    legend += legend_entry(line["colour"].get<std::string>(), "", line["name"].get<std::string>());
  const Json spec = slowdown_dots("sweep", range, rows, series);
  const int each = static_cast<int>(std::clamp<std::size_t>(policies.size() * 9, 20, 60));
  return fmt::format(
      "<section id=\"points\" class=\"needs-js\"><h2>How much slower than alone, at each point</h2>\n<p>A row is a "
      "point "
      "of the sweep{}; the dashed line is as fast as alone, and the further left, the better. Bars are 95% intervals "
      "of "
      "the mean over seeds.{}</p>\n<ul class=\"legend\">{}</ul>\n{}</section>\n",
      factors.empty() ? ""
                      : fmt::format(" ({})", escaped(fmt::format("{}",
                                                                 [&] {
                                                                   std::vector<std::string> names;
                                                                   for (const std::size_t f : factors)
                                                                     names.push_back(sweep.factors[f]);
                                                                   return fmt::format("{}", fmt::join(names, " · "));
                                                                 }()))),
      drawn < sweep.points.size() ? fmt::format(" These are the first {} of {} points.", drawn, sweep.points.size())
                                  : "",
      legend,
      charts.add(spec, "Mean slow-down", "Slow-down of each policy at each point",
                 static_cast<int>(drawn) * each + 46));
}

// Returns the policy of all rows, or nullopt if rows differ.
std::optional<std::string> only_policy(const SweepFile& sweep) {
  std::vector<std::string> policies;
  for (const SweepFile::Point& point : sweep.points)
    for (const SweepRow& row : point.rows) add_once(policies, row.policy);
  if (policies.size() != 1) return std::nullopt;
  return policies.front();
}

// Returns whether a point sets `key`, a part of `key`, or a key that contains `key`.
bool set_by_a_point(const SweepFile& sweep, const std::string& key) {
  return std::ranges::any_of(sweep.set, [&](const std::string& set) {
    return set == key || set.starts_with(key + ".") || key.starts_with(set + ".");
  });
}

// Returns the paragraph "The same everywhere". It lists the constant values of the sweep, and the experiment's settings
// of the network and of the run. The jobs' settings are omitted, because they would be too long.
std::string everywhere(const SweepFile& sweep, const std::vector<std::size_t>& factors) {
  std::vector<std::string> settings;
  const auto add = [&](const std::string& key, const std::string& value) {
    settings.push_back(fmt::format("{} <b>{}</b>", breakable(key), escaped(value)));
  };
  if (const auto policy = only_policy(sweep)) add("policy", *policy);
  if (!sweep.points.empty())
    for (std::size_t f = 0; f < sweep.factors.size(); ++f)
      if (std::ranges::find(factors, f) == factors.end()) add(sweep.factors[f], sweep.points.front().values[f]);
  if (const auto experiment = settings_of(sweep.provenance))
    for (const Setting& setting : *experiment) {
      const std::string& key = setting.key;
      const bool of_all = key == "cc" || key == "datapath" || key == "iterations" || key.starts_with("bottleneck.") ||
                          key.starts_with("topology.");
      if (of_all && !set_by_a_point(sweep, key)) add(key, setting.value);
    }
  if (settings.empty()) return "";
  return fmt::format("<p class=\"everywhere\">The same everywhere: {}.</p>\n", fmt::join(settings, " · "));
}

std::string rows_table(const SweepFile& sweep, const std::vector<std::size_t>& factors) {
  std::vector<std::string> columns;
  for (const std::size_t f : factors) columns.push_back(breakable(sweep.factors[f]));
  // Omits the policy column if all rows have the same policy. If no factor varies, the column stays as the name of each
  // row.
  const bool policies = factors.empty() || !only_policy(sweep);
  if (policies) columns.emplace_back("Policy");
  columns.insert(columns.end(), {"Slow-down", "vs fair", "Slow-down, 2nd half", "Slow-down, p99", "Interleaved",
                                 "From iteration", "At worst", "Link used", "Drops", "Marks"});
  std::string rows;
  for (std::size_t i = 0; i < std::min(sweep.points.size(), kMaxListed); ++i) {
    const SweepFile::Point& point = sweep.points[i];
    const SweepRow* fair = fair_of(point);
    for (const SweepRow& row : point.rows) {
      rows += fmt::format("<tr{}>", &row == &point.rows.front() ? " class=\"first\"" : "");
      for (const std::size_t f : factors)
        rows += fmt::format("<th scope=\"row\"><span class=\"unit on-card\">{} </span>{}</th>",
                            escaped(sweep.factors[f]), escaped(point.values[f]));
      if (policies)
        rows +=
            fmt::format("<th scope=\"row\"><span class=\"unit on-card\">policy </span>{}</th>", escaped(row.policy));
      rows += cell("Slow-down", fmt::format("<b>{}</b>", estimate_text(row.slowdown)));
      std::string beside = "–";
      if (const Change change = change_of(fair->slowdown.mean, row.slowdown.mean); &row != fair) {
        if (change == Change::same) beside = "no difference";
        if (change == Change::better || change == Change::worse)
          beside = fmt::format("<b class=\"{}\">{} {}</b>{}", class_of(change), change == Change::better ? "▲" : "▼",
                               change_text(fair->slowdown.mean, row.slowdown.mean),
                               uncertain(fair->slowdown, row.slowdown) ? " <span class=\"unit\">unsure</span>" : "");
      }
      rows += cell("vs fair", beside);
      rows +=
          cell("Slow-down, 2nd half", estimate_text(row.second_half)) + cell("Slow-down, p99", estimate_text(row.p99));
      const bool several = row.jobs > 1;
      rows += cell("Interleaved", several ? fmt::format("{} of {}", row.interleaved, plural(row.seeds, "seed")) : "–");
      rows +=
          cell("From iteration", several && row.interleaved_median ? fmt::format("{}", *row.interleaved_median) : "–");
      rows += cell("At worst", several && row.interleaved_worst ? fmt::format("{}", *row.interleaved_worst) : "–");
      rows += cell("Link used", percent_text(row.utilization)) + cell("Drops", mean_count(row.dropped_packets)) +
              cell("Marks", mean_count(row.marked_packets)) + "</tr>\n";
    }
  }
  const std::string more = fmt::format("<p>These are the first {} of {} points; all are in the file.</p>\n", kMaxListed,
                                       sweep.points.size());
  return "<section id=\"numbers\"><h2>In numbers</h2>\n" + everywhere(sweep, factors) +
         table("Points and policies, means over seeds", columns, rows) +
         (sweep.points.size() > kMaxListed ? more : "") + "</section>\n";
}

std::string failures(const SweepFile& sweep, const std::vector<std::size_t>& factors) {
  std::string items;
  std::size_t all = 0;
  for (const SweepFile::Point& point : sweep.points)
    for (const auto& [seed, reason] : point.failures)
      if (++all <= kMaxFailures)
        items += fmt::format("<li><b>{}</b>, seed {}: {}</li>", escaped(name_of(sweep, point, factors)), seed,
                             escaped(reason));
  if (all == 0) return "";
  if (all > kMaxFailures) items += fmt::format("<li>{} more</li>", all - kMaxFailures);
  return "<section id=\"failures\"><h2>Failed runs</h2><ul>" + items + "</ul></section>\n";
}

}  // namespace

SweepFile parse_sweep(std::string_view text, const std::string& file) {
  const std::string cure = "give a file that `mltcp sweep --json FILE` wrote, or write it again";
  const nlohmann::json json = parsed(text, file, cure);
  const JsonObject root(json, file, cure, "");
  if (root.text("schema") != kSweepSchema) root.fail("schema", fmt::format("is not \"{}\"", kSweepSchema));
  SweepFile sweep;
  sweep.name = root.text("name");
  sweep.seeds = root.length("seeds");
  sweep.factors = root.texts("factors");
  for (const JsonObject& entry : root.objects("points")) {
    SweepFile::Point point;
    point.values = entry.texts("values");
    if (entry.has("set"))
      for (const std::string& key : entry.object("set").keys()) sweep.set.insert(key);
    if (point.values.size() != sweep.factors.size())
      entry.fail(entry.path_of("values"), fmt::format("are not the {} of the factors", sweep.factors.size()));
    for (const JsonObject& row : entry.objects("policies")) point.rows.push_back(row_from(row));
    point.missing = entry.whole("missing_seeds");
    for (const JsonObject& failure : entry.objects("failures"))
      point.failures.emplace_back(failure.whole("seed"), failure.text("reason"));
    sweep.points.push_back(std::move(point));
  }
  sweep.provenance = provenance_of(root);
  return sweep;
}

std::string render_sweep(const SweepFile& sweep) {
  ChartList charts(sweep.name);
  const auto factors = varying(sweep);
  std::string body = alarms(sweep);
  const bool empty =
      std::ranges::all_of(sweep.points, [](const SweepFile::Point& point) { return point.rows.empty(); });
  if (empty) {
    body += "<p class=\"lead\">This sweep has no results yet.</p>\n";
  } else {
    body += lead(sweep);
    body += "<dl class=\"facts\">" + fact("Points", std::to_string(sweep.points.size())) +
            fact("Seeds", std::to_string(sweep.seeds)) + "</dl>\n";
    body += chart(sweep, factors, charts) + rows_table(sweep, factors);
  }
  body += failures(sweep, factors);
  const std::string words =
      "<p>Slow-down: mean iteration ÷ an iteration of the same job alone on the same network, as the mean over the "
      "jobs of a seed, and of that the mean over the seeds; ± is half of the 95% interval of Student's t. Differences "
      "from policy fair below 1% are called none; those whose intervals overlap, unsure. Interleaved: the seeds in "
      "which all jobs interleave; from iteration: their median; at worst: the last of them.</p>\n";
  return page_of("MLTCP sweep", sweep.name, body, words, sweep.provenance, charts, "");
}

}  // namespace mltcp::experiment
