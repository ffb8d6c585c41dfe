// The page of a cluster (see cluster_report.h).
#include "mltcp/lab/experiment/report/cluster_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "mltcp/base/json/json_fields.h"
#include "mltcp/lab/experiment/cluster/cluster_results_fields.h"
#include "mltcp/lab/experiment/report/internal/html.h"
#include "mltcp/lab/experiment/report/internal/report_charts.h"
#include "mltcp/lab/experiment/report/internal/report_page.h"
#include "mltcp/lab/experiment/report/internal/report_text.h"

namespace mltcp::experiment {

static void complete(const JsonObject& json, ClusterJobResult& job) {
  if (job.start < job.arrival || job.end < job.start)
    json.fail(json.path_of("end_ns"), "is before the job's start, or its start is before its arrival");
}

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxWorst = 5;

// Returns the baseline: the scheme "locality" if present, otherwise the first scheme. The table of `mltcp cluster` uses
// the same baseline.
const SchemeSummary& reference(const ClusterFile& cluster) {
  const auto at =
      std::ranges::find_if(cluster.schemes, [](const SchemeSummary& scheme) { return scheme.scheme == "locality"; });
  return at == cluster.schemes.end() ? cluster.schemes.front() : *at;
}

std::string seconds_text(double seconds) { return fmt::format("{:.3g} s", seconds); }

// Returns a change as text, such as "▲ 16% less time". The mark is ▲ for better and ▼ for worse.
std::string beside_text(double before, double now) {
  const Change change = change_of(before, now);
  if (change == Change::same) return "no difference";
  if (change == Change::unknown) return "–";
  return fmt::format("<b class=\"{}\">{} {}</b>", class_of(change), change == Change::better ? "▲" : "▼",
                     change_text(before, now));
}

// Returns the first sentences of the page, on mean and tail. Better and worse have equal emphasis, since a scheme that
// helps most jobs may slow down the slowest jobs.
std::string lead(const ClusterFile& cluster) {
  const SchemeSummary& before = reference(cluster);
  std::string out;
  for (const SchemeSummary& now : cluster.schemes) {
    if (&now == &before) continue;
    const Change mean = change_of(before.slowdown_mean, now.slowdown_mean);
    const Change tail = change_of(before.slowdown_p99, now.slowdown_p99);
    if (mean == Change::unknown || tail == Change::unknown) continue;
    std::string text = fmt::format(
        "Compared with <b>{}</b>, <b>{}</b> is {}. The mean slow-down of an iteration is {}; its 99th percentile (p99) "
        "is {}.",
        escaped(before.scheme), escaped(now.scheme), verdicts(mean, "on average", tail, "in the tail"),
        slowdown_beside(before.slowdown_mean, now.slowdown_mean),
        slowdown_beside(before.slowdown_p99, now.slowdown_p99));
    const Change completion = change_of(before.completion_mean, now.completion_mean);
    if (completion == Change::same) text += " Jobs are done in the same time, from arrival to end, on average.";
    if (completion == Change::better || completion == Change::worse)
      text += fmt::format(" From arrival to end a job takes {} on average.",
                          change_text(before.completion_mean, now.completion_mean));
    out += fmt::format("<li>{}</li>", text);
  }
  return out.empty() ? "" : fmt::format("<ul class=\"lead\">{}</ul>\n", out);
}

std::string tiles(const ClusterFile& cluster) {
  const SchemeSummary& before = reference(cluster);
  std::string out;
  for (const SchemeSummary& scheme : cluster.schemes) {
    const bool beside = &scheme != &before;
    const auto number = [&](std::string_view what, double old, double now) {
      const Change change = beside ? change_of(old, now) : Change::unknown;
      return measure(change, what, slowdown_text(now),
                     !beside                                               ? "the others are compared with this"
                     : change == Change::better || change == Change::worse ? change_text(old, now)
                     : change == Change::same                              ? "no difference"
                                                                           : "");
    };
    out += fmt::format("<li class=\"tile several\"><h3>{}</h3>{}{}<p>jobs done after {} on average</p></li>\n",
                       escaped(scheme.scheme), number("mean slow-down", before.slowdown_mean, scheme.slowdown_mean),
                       number("p99 slow-down", before.slowdown_p99, scheme.slowdown_p99),
                       seconds_text(scheme.completion_mean));
  }
  return "<p class=\"tiles-note\">Slow-down of an iteration (1.00× is as fast as alone): the mean, and the 99th "
         "percentile (p99), which one in a hundred exceeds; and how long jobs take from arrival to end:</p>\n"
         "<ul class=\"tiles\">" +
         out + "</ul>\n";
}

std::string scheme_table(const ClusterFile& cluster) {
  const SchemeSummary& before = reference(cluster);
  const bool packets = cluster.level == "packet";
  const std::string than = fmt::format("vs {}", escaped(before.scheme));
  // Each name includes quantity and unit, since completion times and slow-downs both have a mean and a p99.
  const std::vector<std::string> columns{"Scheme",
                                         "Job completion time, mean, s",
                                         fmt::format("Mean completion {}", than),
                                         "Job completion time, p99, s",
                                         fmt::format("p99 completion {}", than),
                                         "Iteration slow-down, mean, ×",
                                         fmt::format("Mean slow-down {}", than),
                                         "Iteration slow-down, p99, ×",
                                         fmt::format("p99 slow-down {}", than),
                                         packets ? "Marks per iteration" : "Contended bytes",
                                         "Hosts busy",
                                         "Shared links",
                                         "Score",
                                         "Moves"};
  std::string rows;
  for (const SchemeSummary& s : cluster.schemes) {
    const bool beside = &s != &before;
    const auto compared = [&](double old, double now) { return beside ? beside_text(old, now) : std::string("–"); };
    const bool scored = s.competed_links > 0;
    const std::vector<std::string> cells{
        seconds_text(s.completion_mean),
        compared(before.completion_mean, s.completion_mean),
        seconds_text(s.completion_p99),
        compared(before.completion_p99, s.completion_p99),
        fmt::format("<b>{}</b>", slowdown_text(s.slowdown_mean)),
        compared(before.slowdown_mean, s.slowdown_mean),
        fmt::format("<b>{}</b>", slowdown_text(s.slowdown_p99)),
        compared(before.slowdown_p99, s.slowdown_p99),
        packets ? fmt::format("{:.1f}", s.marks_per_iteration) : percent_text(s.contended),
        percent_text(s.busy_hosts),
        scored ? fmt::format("{:.1f}", s.competed_links) : "–",
        scored ? fmt::format("{:.3f}", s.score) : "–",
        scored ? fmt::format("{:.0f}", s.moves) : "–"};
    rows += fmt::format("<tr class=\"first\"><th scope=\"row\"><span class=\"name\">{}</span></th>", escaped(s.scheme));
    for (std::size_t n = 0; n < cells.size(); ++n) rows += cell(columns[n + 1], cells[n]);
    rows += "</tr>\n";
  }
  return table("The schemes", columns, rows);
}

std::string distribution(const ClusterFile& cluster, ChartList& charts) {
  Json series = Json::array();
  std::string legend;
  AxisRange range;
  range.add(1);
  for (std::size_t n = 0; n < cluster.schemes.size(); ++n) {
    const std::string& scheme = cluster.schemes[n].scheme;
    std::vector<double> xs(kPercentiles);
    double seeds = 0;
    for (const ClusterRun& run : cluster.runs) {
      if (run.scheme != scheme) continue;
      ++seeds;
      for (std::size_t p = 0; p < kPercentiles; ++p) xs[p] += static_cast<double>(run.slowdowns[p]);
    }
    if (seeds == 0) continue;
    Json ys = Json::array();
    for (std::size_t p = 0; p < kPercentiles; ++p) {
      xs[p] /= seeds;
      ys.push_back(p);
    }
    range.add(xs.front());
    range.add(xs.back());
    legend += legend_entry(line_colour(n), "", scheme);
    series.push_back({{"name", scheme}, {"colour", line_colour(n)}, {"dash", line_dash(n)}, {"x", xs}, {"v", ys}});
  }
  if (series.empty()) return "";
  const Json spec =
      distribution_lines("distribution", range.axis("slow-down of an iteration", "×", 0.02, 0.005), series);
  return fmt::format(
      "<section id=\"distribution\" class=\"needs-js\"><h2>Slow-downs of all iterations</h2>\n<p>The share of the "
      "iterations of all jobs whose slow-down is at most the value on the axis: the further left, the better. With "
      "several seeds, each percentile is the mean over them.</p>\n<ul class=\"legend\">{}</ul>\n{}</section>\n",
      legend, charts.add(spec, "Iterations with at most this slow-down", "Distribution of slow-downs by scheme", 300));
}

std::string worst_table(const ClusterFile& cluster) {
  const auto slowdown = [](const ClusterJobResult& job) {
    return job.isolated.count > 0 ? static_cast<double>(job.mean.count) / static_cast<double>(job.isolated.count) : 0;
  };
  std::string rows;
  for (const SchemeSummary& scheme : cluster.schemes) {
    std::vector<std::pair<const ClusterRun*, const ClusterJobResult*>> jobs;
    for (const ClusterRun& run : cluster.runs)
      if (run.scheme == scheme.scheme)
        for (const ClusterJobResult& job : run.jobs) jobs.emplace_back(&run, &job);
    std::ranges::stable_sort(jobs,
                             [&](const auto& a, const auto& b) { return slowdown(*a.second) > slowdown(*b.second); });
    jobs.resize(std::min(jobs.size(), kMaxWorst));
    rows += "</tbody><tbody>";
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const auto& [run, job] = jobs[j];
      rows += fmt::format("<tr{}>", j == 0 ? " class=\"first\"" : "");
      if (j == 0)
        rows += fmt::format("<th scope=\"rowgroup\" rowspan=\"{}\"><span class=\"name\">{}</span></th>", jobs.size(),
                            escaped(scheme.scheme));
      rows += fmt::format("<th scope=\"row\">{} {}</th>", escaped(job->type), job->number) +
              cell("Seed", std::to_string(run->seed)) + cell("Workers", std::to_string(job->workers)) +
              cell("Iterations", std::to_string(job->iterations)) +
              cell("Waited", job->start > job->arrival ? prose_time(job->start - job->arrival) : "not") +
              cell("Done after", prose_time(job->completion())) +
              cell("Slow-down, mean", fmt::format("<b>{}</b>", slowdown_text(slowdown(*job)))) + "</tr>\n";
    }
  }
  return table("The jobs slowed down most under each scheme",
               {"Scheme", "Job", "Seed", "Workers", "Iterations", "Waited", "Done after", "Slow-down, mean"}, rows,
               "cards grouped");
}

std::size_t seeds_of(const ClusterFile& cluster) {
  std::set<std::uint64_t> seeds;
  for (const ClusterRun& run : cluster.runs) seeds.insert(run.seed);
  return seeds.size();
}

}  // namespace

ClusterFile parse_cluster(std::string_view text, const std::string& file) {
  const std::string cure = "give a file that `mltcp cluster --json FILE` wrote, or write it again";
  const nlohmann::json json = parsed(text, file, cure);
  const JsonObject root(json, file, cure, "");
  if (root.text("schema") != kClusterSchema) root.fail("schema", fmt::format("is not \"{}\"", kClusterSchema));
  ClusterFile cluster;
  read(root, static_cast<ClusterResults&>(cluster));
  for (const JsonObject& scheme : root.later_objects("schemes")) read(scheme, cluster.schemes.emplace_back());
  return cluster;
}

std::string render_cluster(const ClusterFile& cluster) {
  ChartList charts(cluster.name);
  std::string body;
  if (!cluster.unfinished.empty()) {
    std::vector<std::string> names;
    for (const auto& run : cluster.unfinished)
      names.push_back(fmt::format("<b>{}</b> with seed {}", escaped(run.scheme), run.seed));
    constexpr std::size_t max = 10;
    if (names.size() > max) {
      const std::string more = fmt::format("{} more", names.size() - max);
      names.resize(max);
      names.push_back(more);
    }
    body +=
        fmt::format("<p class=\"alarm\"><b>Unfinished.</b> The command was ended before {}: this page lacks it.</p>\n",
                    listed(names));
  }
  if (cluster.schemes.empty()) {
    body += "<p class=\"lead\">This file has no runs.</p>\n";
  } else {
    body += lead(cluster) + tiles(cluster);
    body += "<dl class=\"facts\">" + fact("Hosts", std::to_string(cluster.hosts)) +
            fact("Oversubscribed", fmt::format("{:.3g}:1", cluster.oversubscription)) +
            fact("Level", escaped(cluster.level)) +
            (cluster.level == "packet" ? fact("Congestion control", escaped(cluster.cc)) : "") +
            fact("Time scale", fmt::format("{:.4g}", cluster.time_scale)) +
            fact("Rate scale", fmt::format("{:.4g}", cluster.rate_scale)) +
            fact("Jobs", std::to_string(cluster.runs.empty() ? 0 : cluster.runs.front().jobs.size())) +
            fact("Seeds", std::to_string(seeds_of(cluster))) + "</dl>\n";
    body += distribution(cluster, charts);
    body +=
        "<section id=\"numbers\"><h2>In numbers</h2>\n" + scheme_table(cluster) + worst_table(cluster) + "</section>\n";
  }
  const std::string words =
      "<p>Slow-down: an iteration ÷ an iteration of the same job alone; differences below 1% are called none. Its mean "
      "and its 99th percentile (p99, the tail) are over all iterations of all jobs; those of completion times over all "
      "jobs. Done after, or completion time: from a job's arrival until the end of its last iteration, including the "
      "wait for hosts. Contended bytes: the share of the bytes between switches that were sent while several jobs "
      "shared a full link. Score: how well the jobs on shared links fit together, over time, where a scheduler ran. "
      "Moves: times that a job was given other slots.</p>\n";
  return page_of("MLTCP cluster", cluster.name, body, words, cluster.provenance, charts, "");
}

}  // namespace mltcp::experiment
