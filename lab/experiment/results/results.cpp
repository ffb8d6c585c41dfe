// Result file: computes statistics of iteration times, from when on the jobs of a run are interleaved, and how much
// their bursts overlap. Reads and writes JSON (nlohmann-json).
#include "mltcp/lab/experiment/results/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>
#include <utility>

#include "mltcp/base/file.h"
#include "mltcp/base/json/json_fields.h"
#include "mltcp/base/json/json_object.h"
#include "mltcp/lab/experiment/results/results_fields.h"

namespace mltcp::experiment {

namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // keeps fields in the order in which they are set

constexpr double kWide = 0.05;  // the tolerance of interleaved_from_5pct

Nanos mean_of(std::span<const Nanos> times) {
  if (times.empty()) return {};
  Uint128 sum = 0;
  for (const Nanos time : times) sum += static_cast<std::uint64_t>(time.count);
  return Nanos(static_cast<std::int64_t>((sum + times.size() / 2) / times.size()));
}

// `sorted` must not be empty. `percent` must be above 0 and at most 100.
Nanos percentile(std::span<const Nanos> sorted, std::size_t percent) {
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

double ratio(Nanos a, Nanos b) {
  return b.count > 0 ? static_cast<double>(a.count) / static_cast<double>(b.count) : 0.0;
}

void derive_slowdown(JobResult& job) { job.slowdown = ratio(job.mean, job.isolated); }

// Data of one job for interleaved_from(): counts of slow iterations.
struct SlowIterations {
  std::vector<std::size_t> later;  // [i]: number of slow iterations among i, i+1, ...; one element more than iterations
  // 1 + index of the last slow iteration that directly follows a slow iteration. 0 if there is none.
  std::size_t after_last_pair = 0;
  std::vector<Nanos> ends;  // end times of the slow iterations

  SlowIterations(const JobResult& job, double tolerance) : later(job.iterations.size() + 1) {
    const double limit = static_cast<double>(job.isolated.count) * (1.0 + tolerance);
    bool next_slow = false;
    for (std::size_t i = job.iterations.size(); i-- > 0;) {
      const Nanos jitter = job.iteration_compute.empty() ? Nanos(0) : job.iteration_compute[i] - job.compute;
      const bool slow = static_cast<double>((job.iterations[i] - jitter).count) > limit;
      later[i] = later[i + 1] + (slow ? 1 : 0);
      if (slow) ends.push_back(job.starts[i] + job.iterations[i]);
      if (slow && next_slow) after_last_pair = std::max(after_last_pair, i + 2);
      next_slow = slow;
    }
  }

  // Returns whether the iterations from `first` on may count as interleaved.
  [[nodiscard]] bool interleaved_at(std::size_t first, const InterleaveRule& rule) const {
    const std::size_t count = later.size() - 1 - first;
    if (count == 0 || (first > 0 && count < rule.min_iterations)) return false;
    if (later[first] == 0) return true;
    const bool starts_slow = later[first] != later[first + 1];
    return !starts_slow && first >= after_last_pair &&
           static_cast<double>(later[first]) <= rule.outlier_fraction * static_cast<double>(count);
  }
};

}  // namespace

IterationStats iteration_stats(std::span<const Nanos> times) {
  if (times.empty()) return {};
  std::vector<Nanos> sorted(times.begin(), times.end());
  std::ranges::sort(sorted);
  const std::span<const Nanos> later = times.subspan(times.size() / 2);
  std::vector<Nanos> sorted_later(later.begin(), later.end());
  std::ranges::sort(sorted_later);
  return {mean_of(times), percentile(sorted, 50), percentile(sorted, 99), mean_of(later), percentile(sorted_later, 99)};
}

std::vector<std::optional<std::uint64_t>> interleaved_from(std::span<const JobResult> jobs, InterleaveRule rule) {
  std::vector<std::optional<std::uint64_t>> result(jobs.size());
  std::vector<SlowIterations> slow;
  std::vector<Nanos> candidates{Nanos(0)};
  for (const JobResult& job : jobs) {
    if (job.unaware) {
      slow.emplace_back(JobResult{}, rule.tolerance);
      continue;
    }
    if (job.isolated.count <= 0 || job.iterations.empty() || job.starts.size() != job.iterations.size()) return result;
    if (!job.iteration_compute.empty() && job.iteration_compute.size() != job.iterations.size()) return result;
    slow.emplace_back(job, rule.tolerance);
    candidates.insert(candidates.end(), slow.back().ends.begin(), slow.back().ends.end());
  }
  std::ranges::sort(candidates);
  std::vector<std::size_t> first(jobs.size());
  for (const Nanos time : candidates) {
    bool interleaved = true;
    for (std::size_t j = 0; j < jobs.size() && interleaved; ++j) {
      if (jobs[j].unaware) continue;
      const auto& starts = jobs[j].starts;
      first[j] = static_cast<std::size_t>(std::ranges::lower_bound(starts, time) - starts.begin());
      interleaved = slow[j].interleaved_at(first[j], rule);
    }
    if (interleaved) {
      for (std::size_t j = 0; j < jobs.size(); ++j)
        if (!jobs[j].unaware) result[j] = first[j];
      break;
    }
  }
  return result;
}

namespace {

std::vector<std::optional<std::uint64_t>> interleaved_from_5pct(std::span<const JobResult> jobs, InterleaveRule rule) {
  rule.tolerance = kWide;
  return interleaved_from(jobs, rule);
}

}  // namespace

bool disturbed(const Run& run) {
  constexpr std::int64_t max_percent = 2;
  return run.stalls && run.duration.count > 0 && run.stalls->total.count / max_percent > run.duration.count / 100;
}

void summarize(Run& run, InterleaveRule rule) {
  const auto from = interleaved_from(run.jobs, rule);
  const auto wide = interleaved_from_5pct(run.jobs, rule);
  for (std::size_t j = 0; j < run.jobs.size(); ++j) {
    JobResult& job = run.jobs[j];
    const IterationStats stats = iteration_stats(job.iterations);
    job.mean = stats.mean;
    job.p50 = stats.p50;
    job.p99 = stats.p99;
    job.second_half_mean = stats.second_half_mean;
    job.second_half_p99 = stats.second_half_p99;
    job.interleaved_from = from[j];
    job.interleaved_from_5pct = wide[j];
    derive_slowdown(job);
  }
}

namespace {

/// Returns the number of the first bin that starts in [from, to), and for each bin from there on, the number of jobs
/// that use the link. The bins end at `to` or with the last bin of any job. See overlap_share().
std::pair<std::size_t, std::vector<std::uint32_t>> users_by_bin(const Usage& usage, Nanos from, Nanos to) {
  if (usage.bin.count <= 0 || to <= from) return {};
  const auto bin_at = [&](Nanos time) {  // the first bin that starts at `time` or later
    const std::int64_t count = std::max<std::int64_t>(time.count, 0);
    return static_cast<std::size_t>(count / usage.bin.count + (count % usage.bin.count != 0 ? 1 : 0));
  };
  const std::size_t first = bin_at(from);
  std::size_t used = 0;  // maximum number of bins of a job
  for (const auto& [name, bins] : usage.jobs) used = std::max(used, bins.size());
  const std::size_t last = std::min(bin_at(to), used);
  if (first >= last) return {};
  std::vector<std::uint32_t> users(last - first);
  for (const auto& [name, bins] : usage.jobs) {
    const double burst = min_of_a_burst(bins);
    for (std::size_t b = first; b < std::min(last, bins.size()); ++b) {
      if (bins[b] > 0 && static_cast<double>(bins[b]) >= burst) ++users[b - first];
    }
  }
  return {first, std::move(users)};
}

}  // namespace

double min_of_a_burst(std::span<const Bytes> bins) {
  constexpr double share = 0.05;
  return bins.empty() ? 0 : share * static_cast<double>(*std::ranges::max_element(bins));
}

std::optional<double> overlap_share(const Usage& usage, Nanos from, Nanos to) {
  const std::vector<std::uint32_t> users = users_by_bin(usage, from, to).second;
  const auto busy = std::ranges::count_if(users, [](auto n) { return n > 0; });
  const auto shared = std::ranges::count_if(users, [](auto n) { return n > 1; });
  if (busy == 0) return std::nullopt;
  return static_cast<double>(shared) / static_cast<double>(busy);
}

std::optional<double> mean_users(const Usage& usage, Nanos from, Nanos to) {
  const std::vector<std::uint32_t> users = users_by_bin(usage, from, to).second;
  const auto busy = std::ranges::count_if(users, [](auto n) { return n > 0; });
  if (busy == 0) return std::nullopt;
  return static_cast<double>(std::accumulate(users.begin(), users.end(), std::uint64_t{0})) / static_cast<double>(busy);
}

std::vector<TimeSpan> overlap_spans(const Usage& usage, Nanos from, Nanos to) {
  const auto [first, users] = users_by_bin(usage, from, to);
  std::vector<TimeSpan> spans;
  for (std::size_t i = 0; i < users.size(); ++i) {
    if (users[i] < 2) continue;
    const Nanos begin = usage.bin * static_cast<std::int64_t>(first + i);
    if (i == 0 || users[i - 1] < 2) spans.push_back({begin, begin});
    spans.back().to = begin + usage.bin;
  }
  return spans;
}

TimeSpan common_span(const Run& run) {
  if (run.jobs.empty()) return {};
  TimeSpan span{Nanos::never(), Nanos::never()};
  const bool all_unaware = std::ranges::all_of(run.jobs, [](const auto& job) { return job.unaware; });
  for (const JobResult& job : run.jobs) {
    if (job.unaware && !all_unaware) continue;
    if (job.iterations.empty() || job.starts.size() != job.iterations.size()) return {};
    span.from = std::min(span.from, job.starts.front());
    span.to = std::min(span.to, job.starts.back() + job.iterations.back());
  }
  span.to = std::max(span.to, span.from);  // a job may finish before another job starts
  return span;
}

// ---- Writing ----

namespace {

std::string dumped(const OrderedJson& json) { return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace); }

// The indentation of nlohmann-json puts every number on its own line, which makes a list of 10,000 numbers unreadable.
void write_indented(const OrderedJson& json, std::ostream& out, const std::string& indent) {
  const bool list_of_structures = json.is_array() && !json.empty() && json.front().is_structured();
  if (json.empty() || !(json.is_object() || list_of_structures)) {
    out << dumped(json);
    return;
  }
  const std::string inner = indent + "  ";
  out << (json.is_object() ? "{" : "[");
  const char* separator = "\n";
  for (const auto& item : json.items()) {
    out << separator << inner;
    if (json.is_object()) out << dumped(item.key()) << ": ";
    write_indented(item.value(), out, inner);
    separator = ",\n";
  }
  out << '\n' << indent << (json.is_object() ? "}" : "]");
}

}  // namespace

void write_json(const Results& results, std::ostream& out) {
  OrderedJson json{{"schema", kResultsSchema}};
  OrderedJson fields = written(results);
  for (auto& item : fields.items()) json[item.key()] = std::move(item.value());
  write_indented(json, out, "");
  out << '\n';
}

// ---- Reading ----

namespace {

constexpr TextFile kResultFile{"a file that `mltcp run --json FILE` wrote", std::size_t{1} << 30};
}  // namespace

// complete() derives missing fields that were added after the first version. read() (json_fields.h) calls it.

static void complete(const JsonObject& json, JobResult& job) {
  if (job.starts.size() != job.iterations.size())
    json.fail(json.path_of("start_ns"), "and iteration_ns differ in length");
  if (!std::ranges::is_sorted(job.starts)) json.fail(json.path_of("start_ns"), "is not ascending");
  if (!json.has("slowdown")) derive_slowdown(job);
  if (!json.has("second_half_mean_ns")) job.second_half_mean = iteration_stats(job.iterations).second_half_mean;
  if (!json.has("second_half_p99_ns")) job.second_half_p99 = iteration_stats(job.iterations).second_half_p99;
  for (const auto& [key, from] : {std::pair{"interleaved_from", job.interleaved_from},
                                  std::pair{"interleaved_from_5pct", job.interleaved_from_5pct}})
    // Records of sweeps contain no iterations, so an index of an iteration cannot be checked.
    if (from && !job.iterations.empty() && *from >= job.iterations.size())
      json.fail(json.path_of(key), fmt::format("is not one of the {} iterations", job.iterations.size()));
  if (json.has("iteration_compute_ns") && job.iteration_compute.size() != job.iterations.size())
    json.fail(json.path_of("iteration_compute_ns"), "and iteration_ns differ in length");
}

static void complete(const JsonObject& json, Run& run) {
  const std::vector<JsonObject> jobs = json.objects("jobs");
  const auto lack = [&](const char* key) {
    return std::ranges::any_of(jobs, [&](const JsonObject& job) { return !job.has(key); });
  };
  const InterleaveRule rule =
      json.has("stalls") || run.datapath == "hosts" ? InterleaveRule::real_time() : InterleaveRule::virtual_time();
  if (lack("interleaved_from")) {
    const auto from = interleaved_from(run.jobs, rule);
    for (std::size_t j = 0; j < run.jobs.size(); ++j) run.jobs[j].interleaved_from = from[j];
  }
  if (lack("interleaved_from_5pct")) {
    const auto from = interleaved_from_5pct(run.jobs, rule);
    for (std::size_t j = 0; j < run.jobs.size(); ++j) run.jobs[j].interleaved_from_5pct = from[j];
  }
  run.links_unknown = !json.has("bottleneck");
  if (run.links_unknown && run.datapath != "hosts") json.fail(json.path_of("bottleneck"), "is missing");
}

Results parse_json(std::string_view text, const std::string& name) {
  const std::string cure = "give a file that `mltcp run --json FILE` wrote, or write it again";
  const Json json = parsed(text, name, cure);
  const JsonObject root(json, name, cure, "");
  const std::string schema = root.text("schema");
  if (schema != kResultsSchema) {
    root.fail("schema", fmt::format("is {} and not \"{}\"",
                                    Json(schema).dump(-1, ' ', true, Json::error_handler_t::replace), kResultsSchema));
  }
  Results results;
  read(root, results);
  return results;
}

Results read_json(const std::filesystem::path& path) {
  const std::string name = path.string();
  return parse_json(read_text_file(path, name, kResultFile), name);
}

}  // namespace mltcp::experiment
