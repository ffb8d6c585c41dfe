// The page of results: its texts, and the order of its charts and tables.
#include "mltcp/lab/experiment/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "mltcp/lab/experiment/report/internal/html.h"
#include "mltcp/lab/experiment/report/internal/report_charts.h"
#include "mltcp/lab/experiment/report/internal/report_page.h"
#include "mltcp/lab/experiment/report/internal/report_tables.h"
#include "mltcp/lab/experiment/report/internal/report_view.h"
#include "mltcp/lab/experiment/report/internal/series_charts.h"

namespace mltcp::embedded {
extern const std::string_view report_js;
}  // namespace mltcp::embedded

namespace mltcp::experiment {

namespace {

constexpr std::size_t kWindowColumns = 1200;
constexpr std::size_t kMaxBins = 600'000;  // maximum number of recorded bins on the page, over all runs
constexpr int kWindowHeight = 170;
constexpr int kChartHeight = 240;

std::string bold(const std::string& name) { return fmt::format("<b>{}</b>", escaped(name)); }

// ---- Summary ----

std::string alarms(const View& view) {
  const auto& results = view.results;
  std::string out;
  if (!results.unfinished.empty()) {
    std::vector<std::string> names;
    for (const std::string& policy : results.unfinished) names.push_back(bold(policy));
    out += fmt::format(
        "<p class=\"alarm\"><b>Unfinished.</b> The experiment was ended before {} had been run: this page lacks "
        "{}.</p>\n",
        listed(names), results.unfinished.size() == 1 ? "it" : "them");
  }
  std::vector<std::string> damaged;
  std::vector<std::string> held_up;
  for (std::size_t r = 0; r < results.runs.size(); ++r) {
    const Run& run = results.runs[r];
    if (std::ranges::any_of(run.jobs, [](const auto& job) { return job.checksum_errors > 0; }))
      damaged.push_back(bold(view.labels[r]));
    if (disturbed(run))
      held_up.push_back(fmt::format("{} for {}", bold(view.labels[r]),
                                    percent_text(run.stalls->total.seconds() / run.duration.seconds())));
  }
  if (!damaged.empty())
    out += fmt::format("<p class=\"alarm\"><b>Messages arrived damaged</b> under {}.</p>\n", listed(damaged));
  if (!held_up.empty())
    out += fmt::format(
        "<p class=\"alarm\"><b>The machine was busy</b> and held up {} of the time: these results say little about the "
        "network; run again on a quiet machine.</p>\n",
        listed(held_up));
  return out;
}

// The link's record shows when jobs send. Without a record, times are from the jobs' own clocks, where communication
// includes waiting.
std::string_view verb_of(const View& view, std::size_t run) { return view.has_usage(run) ? "send" : "communicate"; }

// Returns a sentence that compares a run with its reference, with equal emphasis for better and worse.
std::string sentence(const View& view, std::size_t run, std::size_t beside) {
  const RunSummary& now = view.summaries[run];
  const RunSummary& before = view.summaries[beside];
  const std::string name = bold(view.labels[run]);
  const std::string other = bold(view.labels[beside]);
  std::string text;
  switch (change_of(before.slowdown, now.slowdown)) {
    case Change::better:
    case Change::worse:
      text = fmt::format(
          "{0} is <b class=\"{1}\">{1}</b> than {2}: the mean slow-down is {3} instead of {4}, {5} per iteration.",
          name, class_of(change_of(before.slowdown, now.slowdown)), other, slowdown_text(now.slowdown),
          slowdown_text(before.slowdown), change_text(*before.slowdown, *now.slowdown));
      break;
    case Change::same:
      text = fmt::format("{} makes <b class=\"same\">no difference</b> to {}: the mean slow-down is {} and {}.", name,
                         other, slowdown_text(now.slowdown), slowdown_text(before.slowdown));
      break;
    case Change::unknown:
      return fmt::format("{} cannot be compared with {}: a job's time alone is unknown.", name, other);
  }
  if (now.several && before.several)
    text += fmt::format(" Its jobs {}; under {} they {}.", interleaving(now), other, interleaving(before));
  const auto at_once = view.jobs_at_once(run, view.second_half(run));
  const auto before_at_once = view.jobs_at_once(beside, view.second_half(beside));
  if (at_once && before_at_once)
    text += fmt::format(" In the second half, {} of them {} at once on average, and {} under {}.", jobs_text(*at_once),
                        verb_of(view, run), jobs_text(*before_at_once), other);
  return text;
}

std::string lead(const View& view) {
  const auto& runs = view.results.runs;
  if (runs.empty()) return "<p class=\"lead\">This result file has no runs.</p>\n";
  std::string out;
  for (std::size_t r = 0; r < runs.size(); ++r)
    if (const std::size_t beside = view.reference(r); beside != r)
      out += fmt::format("<li>{}</li>", sentence(view, r, beside));
  if (!out.empty()) return fmt::format("<ul class=\"lead\">{}</ul>\n", out);
  const RunSummary& only = view.summaries.front();
  if (!only.slowdown) return "";
  return fmt::format("<p class=\"lead\">Under {}, the only policy here, the mean slow-down is {}{}.</p>\n",
                     bold(view.labels.front()), slowdown_text(only.slowdown),
                     only.several ? ", and jobs " + interleaving(only) : "");
}

// Returns one tile per policy, with the two summary numbers of its run.
std::string tiles(const View& view) {
  std::string out;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    const std::size_t beside = view.reference(r);
    const RunSummary& summary = view.summaries[r];
    const std::optional<double> before = view.summaries[beside].slowdown;
    const Change change = beside == r ? Change::unknown : change_of(before, summary.slowdown);
    out += fmt::format("<li class=\"tile {}\"><h3>{}</h3><p class=\"big\">{}</p>", class_of(change),
                       escaped(view.labels[r]), slowdown_text(summary.slowdown));
    const std::string other = escaped(view.labels[beside]);
    switch (change) {
      case Change::better:
        out +=
            fmt::format("<p class=\"change\">▲ better than {}: {}</p>", other, change_text(*before, *summary.slowdown));
        break;
      case Change::worse:
        out +=
            fmt::format("<p class=\"change\">▼ worse than {}: {}</p>", other, change_text(*before, *summary.slowdown));
        break;
      case Change::same:
        out += fmt::format("<p class=\"change\">= no difference from {}</p>", other);
        break;
      case Change::unknown:
        if (beside == r && view.results.runs.size() > 1)
          out += "<p class=\"change\">the others are compared with this</p>";
    }
    out += fmt::format("<p>{}</p>", interleaved_text(summary));
    if (const auto at_once = view.jobs_at_once(r, view.second_half(r)))
      out += fmt::format("<p><b>{} jobs {} at once</b> on average in the 2nd half</p>", jobs_text(*at_once),
                         verb_of(view, r));
    if (const auto shared = view.overlap(r, view.second_half(r)); shared && summary.several)
      out += fmt::format("<p>bursts overlap {} of busy time in the 2nd half</p>", percent_text(*shared));
    out += "</li>\n";
  }
  return "<p class=\"tiles-note\">Mean slow-down of the jobs (1.00× is as fast as alone), and from when on they are "
         "interleaved:</p>\n<ul class=\"tiles\">" +
         out + "</ul>\n";
}

std::string facts(const View& view) {
  std::vector<std::string> ccs;
  std::vector<std::string> datapaths;
  std::vector<std::string> seeds;
  std::vector<std::string> rates;
  std::size_t fewest = SIZE_MAX;
  std::size_t max = 0;
  for (const Run& run : view.results.runs) {
    add_once(ccs, escaped(run.cc));
    add_once(datapaths, escaped(run.datapath));
    add_once(seeds, std::to_string(run.seed));
    if (!run.bottleneck.rate.is_zero()) add_once(rates, rate_text(run.bottleneck.rate));
    for (const JobResult& job : run.jobs) {
      fewest = std::min(fewest, job.iterations.size());
      max = std::max(max, job.iterations.size());
    }
  }
  std::string out;
  if (!view.jobs.empty()) out += fact("Jobs", std::to_string(view.jobs.size()));
  if (!rates.empty()) out += fact("Bottleneck", listed(rates));
  out += fact("Congestion control", listed(ccs));
  out += fact("Datapath", listed(datapaths));
  out += fact("Seed", listed(seeds));
  if (max > 0) out += fact("Iterations", fewest == max ? std::to_string(max) : fmt::format("{} to {}", fewest, max));
  return "<dl class=\"facts\">" + out + "</dl>\n";
}

// ---- Charts ----

std::string jobs_legend(const View& view) {
  std::string out;
  for (std::size_t j = 0; j < view.jobs.size(); ++j) out += legend_entry(fmt::format("job-{}", j), "", view.jobs[j]);
  return "<ul class=\"legend\">" + out + "</ul>\n";
}

std::string legend_of(const nlohmann::json& chart) {
  std::string out;
  for (const auto& series : chart["series"])
    out +=
        legend_entry(series["colour"].get<std::string>(), series.value("dash", ""), series["name"].get<std::string>());
  return "<ul class=\"legend\">" + out + "</ul>\n";
}

// Returns the caption of a run's panel: how long bursts overlap, and how many jobs send or communicate at once.
std::string overlap_caption(const View& view, std::size_t run, TimeSpan span, std::string_view window) {
  if (view.blurred(run)) return fmt::format("{}, recorded too coarsely to show overlap", window);
  const auto shared = view.overlap(run, span);
  if (!shared) return fmt::format("{}: <b>the link is idle</b>", window);
  const std::string overlap = fmt::format("<b>bursts overlap {}</b> of the busy time", percent_text(*shared));
  const auto at_once = view.jobs_at_once(run, span);
  return at_once ? fmt::format("{}: <b>{} jobs {} at once</b> on average, {}", window, jobs_text(*at_once),
                               verb_of(view, run), overlap)
                 : fmt::format("{}: {}", window, overlap);
}

int rows_height(std::size_t rows, int min) {
  const int each = rows <= 40 ? 15 : rows <= 100 ? 8 : 4;
  return std::clamp(static_cast<int>(rows) * each + 46, min, 900);
}

/// Returns the text about the use of the link. `shares` and `counts` contain a text for each policy: for how long two
/// or more jobs send simultaneously, and how many jobs do so. `recorded` is true if the numbers are from the link's
/// record.
std::string link_prose(const View& view, const std::vector<std::string>& shares, const std::vector<std::string>& counts,
                       bool recorded) {
  std::string out;
  if (!shares.empty() && view.jobs.size() > 1)
    out += fmt::format("In the second half of the run, two or more jobs {} at once for {}. ",
                       recorded ? "send" : "communicate", listed(shares));
  if (!counts.empty())
    out += fmt::format(
        "This share is the same whether two jobs overlap or all {}, but n overlapping jobs get only 1/n of the link "
        "each. While any job {}, <b>the average number of jobs at once</b> is: {}. ",
        view.jobs.size(), recorded ? "sends" : "communicates", listed(counts));
  if (recorded && !view.many())
    out +=
        "Each colour is a job. Where colours are on top of each other, the jobs share the link and slow each other "
        "down; where they are side by side, each job has the link to itself. ";
  if (recorded && view.many())
    out += fmt::format(
        "{} jobs are too many for a colour each: the colour shows how many jobs send at once, and so share the link "
        "and slow each other down. ",
        view.jobs.size());
  return out + fmt::format("Each panel shows {} of the run.", prose_time(view.window));
}

// Returns the section "Use of the link over time".
std::string link_section(const View& view, ChartList& charts) {
  std::vector<std::string> shares;
  std::vector<std::string> counts;
  bool coarse = false;
  bool recorded = false;
  bool by_clocks = false;
  std::string rows;
  nlohmann::json first_chart;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    const Run& run = view.results.runs[r];
    const std::string name = escaped(view.labels[r]);
    rows += fmt::format("<h3>{}</h3>", name);
    if (!view.has_usage(r) && !view.has_lanes(r)) {
      rows += "<p>The use of the link was not recorded in this run.</p>\n";
      continue;
    }
    if (const auto later = view.overlap(r, view.second_half(r)))
      shares.push_back(fmt::format("{}{} under {}", percent_text(*later),
                                   !shares.empty()     ? ""
                                   : view.has_usage(r) ? " of the link's busy time"
                                                       : " of the time in which any does",
                                   bold(view.labels[r])));
    if (const auto later = view.jobs_at_once(r, view.second_half(r)))
      counts.push_back(fmt::format("{} under {}", jobs_text(*later), bold(view.labels[r])));
    rows += "<div class=\"pair\">";
    for (const bool first : {true, false}) {
      const TimeSpan span = first ? view.first_window(r) : view.last_window(r);
      const char* window = first ? "First iterations" : "Last iterations";
      const std::string label = fmt::format("{} under {}: use of the link over time", window, name);
      if (view.has_usage(r)) {
        const auto chart = usage_chart(view, r, span, kWindowColumns, first ? "link-first" : "link-last");
        if (!recorded) first_chart = chart;
        recorded = true;
        rows += charts.add(chart, overlap_caption(view, r, span, window), label, kWindowHeight);
      } else {
        by_clocks = true;
        rows += charts.add(lanes_chart(view, r, span, first ? "clocks-first" : "clocks-last"),
                           fmt::format("{}, by the jobs' own clocks", overlap_caption(view, r, span, window)), label,
                           rows_height(run.jobs.size(), 110));
      }
    }
    rows += "</div>\n";
    coarse |= view.blurred(r);
  }
  if (!recorded && !by_clocks) return "";
  std::string out = "<section id=\"link\"><h2>Use of the link over time</h2>\n<p>";
  out += link_prose(view, shares, counts, recorded);
  if (by_clocks)
    out +=
        " <em>The link itself was not recorded, so bars are drawn by the jobs' own clocks: a bar is an iteration "
        "without its compute time, from the end of the computation to the end of the iteration. A bar includes "
        "waiting, and lacks bytes sent during the computation; clocks of different hosts may differ.</em>";
  if (coarse)
    out +=
        " <em>The use of the link was recorded in bins that are long compared with an iteration, as the run is long: "
        "bursts look blurred, and their overlap is unknown. Run fewer iterations to see it.</em>";
  out += "</p>\n";
  if (recorded) out += view.many() ? legend_of(first_chart) : jobs_legend(view);
  return out + rows + "</section>\n";
}

// Returns the panels below the use of the link, for all runs. The attribute data-panels of a run's button lists the
// run's charts.
std::string series_panels(const SeriesCharts& series, std::size_t runs) {
  if (!series.any()) return "";
  std::string out;
  for (std::size_t panel = 0; panel < SeriesCharts::kPanels.size(); ++panel) {
    bool any = false;
    for (std::size_t r = 0; r < runs; ++r) any |= series.has(r, panel);
    if (!any) continue;
    const auto& [name, caption] = SeriesCharts::kPanels[panel];
    out += fmt::format(
        "<figure><figcaption>{}</figcaption><div class=\"chart panel\" data-panel=\"{}\" role=\"img\" "
        "aria-label=\"{} over the whole run\"></div></figure>\n",
        caption, name, name);
  }
  return out;
}

std::string explorer_section(const View& view, ChartList& charts, const SeriesCharts& series) {
  std::string buttons;
  std::string legend = jobs_legend(view);
  bool chosen = false;
  bool by_connections = false;  ///< true if the link of any run was not recorded
  const std::size_t runs = std::max<std::size_t>(1, view.results.runs.size());
  const std::size_t bands = view.many() ? 4 : std::max<std::size_t>(1, view.jobs.size());
  const std::size_t columns = std::max<std::size_t>(1000, kMaxBins / runs / bands);
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    if (!view.has_usage(r) && !series.has_sent(r)) continue;
    by_connections |= !view.has_usage(r);
    // The page first shows the first run of policy mltcp, because jobs interleave over time under this policy.
    const bool shown = !chosen && view.results.runs[r].policy == "mltcp";
    chosen |= shown;
    const auto shows =
        view.has_usage(r) ? usage_chart(view, r, view.spans[r], columns, "link") : series.sent(r, "sent");
    if (view.many()) legend = legend_of(shows);
    const std::size_t chart = charts.add_hidden(shows);
    std::string panels;
    for (std::size_t panel = 0; panel < SeriesCharts::kPanels.size(); ++panel)
      if (series.has(r, panel))
        panels += fmt::format("{}{}:{}", panels.empty() ? "" : " ", SeriesCharts::kPanels[panel].name,
                              charts.add_hidden(series.chart(r, panel)));
    buttons += fmt::format("<button type=\"button\" data-of=\"{}\" data-panels=\"{}\" aria-pressed=\"{}\">{}</button>",
                           chart, panels, shown, escaped(view.labels[r]));
  }
  if (buttons.empty()) return "";
  std::string words =
      "To zoom in, drag over a part of the chart, or turn the wheel after a click (or with Ctrl). By keyboard: arrows "
      "move, + and − zoom, 0 shows all, like a double click. Zoomed out, each column of the link's use is the average "
      "over the bins it covers";
  if (by_connections)
    words +=
        ". The use of the link was not recorded: the first chart shows what each job's connections sent, including "
        "retransmissions";
  if (series.any()) words += "; other lines are drawn from the lowest to the highest sample in their columns";
  if (series.max_joined() > 1)
    words += fmt::format(". A point of these lines joins up to {} rows of the series", series.max_joined());
  return fmt::format(
      "<section id=\"whole\" class=\"needs-js\"><h2>The whole run</h2>\n<p>{}.</p>\n{}"
      "<div class=\"bar\"><span class=\"group\" id=\"pick\">{}</span><span class=\"group\" id=\"move\">"
      "<button type=\"button\" data-move=\"left\" aria-label=\"Earlier\">←</button>"
      "<button type=\"button\" data-move=\"right\" aria-label=\"Later\">→</button>"
      "<button type=\"button\" data-move=\"in\" aria-label=\"Zoom in\">+</button>"
      "<button type=\"button\" data-move=\"out\" aria-label=\"Zoom out\">−</button>"
      "<button type=\"button\" data-move=\"all\">All</button></span></div>\n"
      "<div id=\"looked-into\" tabindex=\"0\" role=\"group\" aria-label=\"Charts of the whole run: arrows move, plus "
      "and minus zoom, 0 shows all\">"
      "<div class=\"chart\" id=\"explorer\" role=\"img\" aria-label=\"Use of the link over the whole run\"></div>\n"
      "{}</div></section>\n",
      words, legend, buttons, series_panels(series, view.results.runs.size()));
}

std::string policies_section(const View& view, ChartList& charts) {
  const auto lines = policies_chart(view);
  const auto distribution = distribution_chart(view);
  if (lines.is_null() || distribution.is_null()) return "";
  return fmt::format(
      "<section id=\"policies\" class=\"needs-js\"><h2>How much slower than alone</h2>\n<p>A line is the mean over the "
      "jobs of a policy; the shade around it goes from the least to the most slowed down. On the right, or below, the "
      "share of all iterations whose slow-down is at most the value on the axis: the further left, the "
      "better.</p>\n{}<div class=\"pair\">{}{}</div></section>\n",
      legend_of(lines),
      charts.add(lines, "Slow-down by iteration", "Slow-down by iteration for each policy", kChartHeight),
      charts.add(distribution, "Slow-downs of all iterations", "Distribution of slow-downs for each policy",
                 kChartHeight));
}

// Returns the distribution of each job's iteration times, with one panel per policy.
std::string time_distributions(const View& view, ChartList& charts) {
  std::string panels;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    const auto chart = times_chart(view, r);
    if (chart.is_null()) continue;
    panels += charts.add(chart, fmt::format("<b>{}</b>: iteration times", escaped(view.labels[r])),
                         "Distribution of each job's iteration times under " + escaped(view.labels[r]), kChartHeight);
  }
  return panels;
}

std::string jobs_section(const View& view, ChartList& charts) {
  std::string panels;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    const Run& run = view.results.runs[r];
    if (std::ranges::all_of(run.jobs, [](const auto& job) { return job.iterations.empty(); })) continue;
    const std::string caption =
        fmt::format("<b>{}</b>: {}", escaped(view.labels[r]), interleaved_text(view.summaries[r]));
    const std::string label = "Each job's iterations under " + escaped(view.labels[r]);
    panels += view.many() ? charts.add(heat_chart(view, r), caption, label, rows_height(run.jobs.size(), 180))
                          : charts.add(iterations_chart(view, r), caption, label, kChartHeight);
  }
  if (panels.empty()) return "";
  if (!view.many()) panels += time_distributions(view, charts);
  if (!view.many())
    return fmt::format(
        "<section id=\"iterations\" class=\"needs-js\"><h2>How long each job's iterations took</h2>\n<p>One line per "
        "job. The dashed line is the job alone on the same network: the best possible. A dotted vertical line marks "
        "the iteration from which on all jobs stay within 2% of it. Below, the share of each job's iterations that "
        "took at most the time on the axis: the steeper, the more regular.</p>\n{}<div "
        "class=\"pair\">{}</div></section>\n",
        jobs_legend(view), panels);
  std::string steps;
  for (std::size_t n = 0; n < kHeatSteps.size(); ++n)
    steps +=
        legend_entry(fmt::format("heat-{}", n), "", fmt::format("{} {:.4g}×", n == 0 ? "up to" : "to", kHeatSteps[n]));
  steps += legend_entry(fmt::format("heat-{}", kHeatSteps.size()), "",
                        fmt::format("beyond {:.4g}×", kHeatSteps[kHeatSteps.size() - 1]));
  return fmt::format(
      "<section id=\"heat\"><h2>How much each job was slowed down</h2>\n<div class=\"needs-js\"><p>A row is a job, a "
      "column is an iteration, and the colour is its slow-down.</p>\n<ul class=\"legend\">{}</ul>\n<div "
      "class=\"pair\">{}</div></div>\n{}</section>\n",
      steps, panels, worst_table(view));
}

std::string offset_section(const View& view, ChartList& charts) {
  if (view.many()) return "";
  std::string panels;
  std::vector<std::string> references;
  std::vector<std::size_t> shown;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    const Run& run = view.results.runs[r];
    const auto group = same_period(run);
    if (group.empty()) continue;
    for (const std::size_t j : group) {
      const std::size_t id = view.job_id(run.jobs[j].name);
      if (j != group.front() && std::ranges::find(shown, id) == shown.end()) shown.push_back(id);
    }
    add_once(references, bold(run.jobs[group.front()].name));
    panels += charts.add(offset_chart(view, r), bold(view.labels[r]),
                         "Offset between the jobs over iterations under " + escaped(view.labels[r]), kChartHeight);
  }
  if (panels.empty()) return "";
  std::string entries;
  for (const std::size_t j : shown) entries += legend_entry(fmt::format("job-{}", j), "", view.jobs[j]);
  return fmt::format(
      "<section id=\"offset\" class=\"needs-js\"><h2>How far apart the jobs start</h2>\n<p>The time between a start of "
      "{} and the nearest start of another job of the same period, as a share of an iteration: 0 when both start "
      "together, 0.5 when they are as far apart as possible. A line that levels off means that the job has "
      "settled.</p>\n<ul class=\"legend\">{}</ul>\n<div class=\"pair\">{}</div></section>\n",
      listed(references), entries, panels);
}

std::string links_section(const View& view, ChartList& charts) {
  const std::string all = links_table(view);
  if (all.empty()) return "";
  charts.set_links(links_data(view));
  std::vector<std::string> recorded;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r)
    if (view.has_usage(r) && !view.results.runs[r].bottleneck.name.empty())
      add_once(recorded, bold(view.results.runs[r].bottleneck.name));
  return fmt::format(
      "<section id=\"links\"><h2>The links</h2>\n<div class=\"needs-js\"><p><label>Link <select "
      "id=\"link-picker\"></select></label></p>\n<div class=\"wide\"><table class=\"cards\" "
      "id=\"link-table\"><thead></thead><tbody></tbody></table></div>\n<p id=\"link-note\">The use of this link over "
      "time was not recorded: a result file has that only for the busiest shared link{}.</p></div>\n{}</section>\n",
      recorded.empty() ? "" : fmt::format(" (here {})", listed(recorded)), all);
}

std::string numbers_section(const View& view) {
  std::string tables = transport_table(view);
  std::string jobs = iterations_table(view);
  if (!view.jobs.empty()) jobs += jobs_table(view);
  if (view.many())
    jobs = fmt::format("<details><summary>Each of the {} jobs, under each policy</summary>\n{}</details>\n",
                       view.jobs.size(), jobs);
  return "<section id=\"numbers\"><h2>In numbers</h2>\n" + tables + jobs + ranks_table(view) + "</section>\n";
}

}  // namespace

std::string render_report(const Results& results, const SeriesFile* series) {
  const View view(results);
  const SeriesCharts series_charts(view, series);
  ChartList charts(results.experiment);
  std::string body = alarms(view) + lead(view);
  if (!results.runs.empty()) {
    body += tiles(view) + facts(view);
    body += link_section(view, charts) + policies_section(view, charts) + jobs_section(view, charts);
    body += explorer_section(view, charts, series_charts) + offset_section(view, charts) + links_section(view, charts);
    body += numbers_section(view);
  }
  return page_of("MLTCP report", results.experiment, body, words_of_results(), results.provenance, charts,
                 embedded::report_js);
}

}  // namespace mltcp::experiment
