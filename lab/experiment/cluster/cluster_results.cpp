// Results of clusters (see cluster_results.h).
#include "mltcp/lab/experiment/cluster/cluster_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "mltcp/base/json/json_fields.h"
#include "mltcp/lab/experiment/cluster/cluster_results_fields.h"

namespace mltcp::experiment {
namespace {

constexpr double kNanosPerSecond = 1e9;

double seconds(Nanos time) { return static_cast<double>(time.count) / kNanosPerSecond; }

/// Returns the nearest-rank percentile of ascending values; 0 if `values` is empty.
template <typename T>
double percentile(const std::vector<T>& values, double percent) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(values.size())));
  return static_cast<double>(values[std::max<std::size_t>(rank, 1) - 1]);
}

template <typename T>
double mean(const std::vector<T>& values) {
  double sum = 0;
  for (const T value : values) sum += static_cast<double>(value);
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// Returns `reference` / `value` as text such as "1.60x"; "-" if either is 0.
std::string gain(double reference, double value) {
  if (value <= 0 || reference <= 0) return "-";
  const double gain = reference / value;
  return gain < 9.95 ? fmt::format("{:.2f}x", gain) : fmt::format("{:.0f}x", gain);
}

}  // namespace

std::string headline(const ClusterResults& results) {
  std::size_t jobs = 0;
  std::size_t on_one_host = 0;
  std::size_t seeds = 0;
  for (const ClusterRun& run : results.runs)
    if (run.scheme == results.runs.front().scheme) {
      jobs = run.jobs.size();
      on_one_host =
          static_cast<std::size_t>(std::ranges::count_if(run.jobs, [](const auto& job) { return job.workers == 1; }));
      ++seeds;
    }
  return fmt::format(
      "{}: {} hosts{}, {:.3g}:1 oversubscribed, {} level, {}, time scale {}, rate scale {}, {} jobs{}, {} seed{}",
      results.name, results.hosts, results.gpus_per_host == 1 ? "" : fmt::format(" of {} GPUs", results.gpus_per_host),
      results.oversubscription, results.level, results.cc, results.time_scale, results.rate_scale, jobs,
      on_one_host == 0 ? "" : fmt::format(" ({} on one host each)", on_one_host), seeds, seeds == 1 ? "" : "s");
}

Cells cells_of(const ClusterResults& results) {
  const std::vector<SchemeSummary> summaries = summarize(results);
  const bool packets = results.level == "packet";
  Cells cells;
  cells.left = 1;
  cells.rows.push_back({"scheme", "JCT s", "JCT gain", "JCT p99", "JCT p99 gain", "slow-down", "gain", "p95", "p99",
                        "p99 gain", packets ? "marks" : "contended", packets ? "fewer" : "less", "busy", "shared",
                        "score", "moves"});
  if (summaries.empty()) return cells;
  const auto at =
      std::ranges::find_if(summaries, [](const SchemeSummary& summary) { return summary.scheme == "locality"; });
  const SchemeSummary& reference = at == summaries.end() ? summaries.front() : *at;
  for (const SchemeSummary& s : summaries) {
    const bool scored = s.competed_links > 0;
    cells.rows.push_back(
        {s.scheme, fmt::format("{:.3g}", s.completion_mean), gain(reference.completion_mean, s.completion_mean),
         fmt::format("{:.3g}", s.completion_p99), gain(reference.completion_p99, s.completion_p99),
         fmt::format("{:.3f}", s.slowdown_mean), gain(reference.slowdown_mean, s.slowdown_mean),
         fmt::format("{:.2f}", s.slowdown_p95), fmt::format("{:.2f}", s.slowdown_p99),
         gain(reference.slowdown_p99, s.slowdown_p99),
         packets ? fmt::format("{:.1f}", s.marks_per_iteration) : fmt::format("{:.1f}%", 100 * s.contended),
         packets ? gain(reference.marks_per_iteration, s.marks_per_iteration) : gain(reference.contended, s.contended),
         fmt::format("{:.0f}%", 100 * s.busy_hosts), scored ? fmt::format("{:.1f}", s.competed_links) : "-",
         scored ? fmt::format("{:.3f}", s.score) : "-", scored ? fmt::format("{:.0f}", s.moves) : "-"});
  }
  return cells;
}

std::vector<SchemeSummary> summarize(const ClusterResults& results) {
  std::vector<SchemeSummary> summaries;
  for (std::size_t first = 0; first < results.runs.size();) {
    SchemeSummary& summary = summaries.emplace_back();
    summary.scheme = results.runs[first].scheme;
    std::vector<double> completions;
    std::vector<float> slowdowns;
    double runs = 0;
    double marks = 0;
    summary.score = 0;
    for (; first < results.runs.size() && results.runs[first].scheme == summary.scheme; ++first) {
      const ClusterRun& run = results.runs[first];
      ++runs;
      for (const ClusterJobResult& job : run.jobs) {
        completions.push_back(seconds(job.completion()));
        summary.running_mean += seconds(job.end - job.start);
        summary.moves += job.moves;
        summary.corrections += static_cast<double>(job.corrections);
      }
      slowdowns.insert(slowdowns.end(), run.slowdowns.begin(), run.slowdowns.end());
      marks += static_cast<double>(run.marked_packets);
      summary.contended += run.contended;
      summary.makespan += seconds(run.makespan);
      summary.score += run.mean_score;
      summary.competed_links += run.competed_links;
      summary.busy_hosts += run.busy_hosts;
    }
    std::ranges::sort(completions);
    std::ranges::sort(slowdowns);
    summary.jobs = completions.size();
    summary.iterations = slowdowns.size();
    summary.completion_mean = mean(completions);
    summary.completion_p95 = percentile(completions, 95);
    summary.completion_p99 = percentile(completions, 99);
    summary.running_mean /= static_cast<double>(summary.jobs);
    summary.slowdown_mean = mean(slowdowns);
    summary.slowdown_p95 = percentile(slowdowns, 95);
    summary.slowdown_p99 = percentile(slowdowns, 99);
    if (summary.iterations > 0) summary.marks_per_iteration = marks / static_cast<double>(summary.iterations);
    for (double* value : {&summary.contended, &summary.makespan, &summary.score, &summary.competed_links,
                          &summary.busy_hosts, &summary.moves, &summary.corrections})
      *value /= runs;
  }
  return summaries;
}

std::vector<double> InPercentiles::written(const std::vector<float>& values) {
  std::vector<double> percentiles;
  for (std::size_t percent = 0; percent < kPercentiles; ++percent)
    percentiles.push_back(percentile(values, static_cast<double>(percent)));
  return percentiles;
}

void InPercentiles::read(const JsonObject& json, const char* key, std::vector<float>& percentiles) {
  const std::vector<double> values = json.reals(key);
  if (values.size() != kPercentiles)
    json.fail(json.path_of(key), fmt::format("is not a list of {} numbers", kPercentiles));
  percentiles.assign(values.begin(), values.end());
}

std::string to_json(const ClusterResults& results) {
  using Json = nlohmann::ordered_json;
  Json out{{"schema", kClusterSchema}};
  Json fields = written(results);
  for (auto& [name, value] : fields.items()) {
    if (name == "runs") out["schemes"] = written(summarize(results));
    out[name] = std::move(value);
  }
  return json_text(out, 1);
}

}  // namespace mltcp::experiment
