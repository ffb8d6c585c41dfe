// Result file: statistics of iteration times, the two questions asked of a run (from when on are its jobs
// interleaved, how much do their bursts overlap), and JSON in both directions (nlohmann-json).
#include "mltcp/experiment/results/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/experiment/results/internal/json_object.h"
#include "mltcp/experiment/results/internal/provenance_json.h"

namespace mltcp::experiment {

namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // fields of a written file keep the order they are set in

constexpr double kWide = 0.05;  // the tolerance of interleaved_from_5pct

Nanos mean_of(std::span<const Nanos> times) {
  if (times.empty()) return {};
  Uint128 sum = 0;
  for (const Nanos time : times) sum += static_cast<std::uint64_t>(time.count);
  return Nanos(static_cast<std::int64_t>((sum + times.size() / 2) / times.size()));
}

// `sorted` is not empty, `percent` is above 0 and at most 100.
Nanos percentile(std::span<const Nanos> sorted, std::size_t percent) {
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

double ratio(Nanos a, Nanos b) {
  return b.count > 0 ? static_cast<double>(a.count) / static_cast<double>(b.count) : 0.0;
}

void derive_slowdown(JobResult& job) { job.slowdown = ratio(job.mean, job.isolated); }

// What interleaved_from() asks of one job, for suffixes of its iterations.
struct SlowIterations {
  std::vector<std::size_t> later;   // [i]: slow iterations among i, i+1, ...; one more element than iterations
  std::size_t after_last_pair = 0;  // 1 + index of the last slow iteration that follows a slow one
  std::vector<Nanos> ends;          // of the slow iterations

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

  // Whether the iterations from `first` on may count as interleaved.
  [[nodiscard]] bool interleaved_at(std::size_t first, const InterleaveRule& rule) const {
    const std::size_t count = later.size() - 1 - first;
    if (count == 0 || (first > 0 && count < rule.least_iterations)) return false;
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
  std::sort(sorted.begin(), sorted.end());
  const std::span<const Nanos> later = times.subspan(times.size() / 2);
  std::vector<Nanos> sorted_later(later.begin(), later.end());
  std::sort(sorted_later.begin(), sorted_later.end());
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
  std::sort(candidates.begin(), candidates.end());
  std::vector<std::size_t> first(jobs.size());
  for (const Nanos time : candidates) {
    bool interleaved = true;
    for (std::size_t j = 0; j < jobs.size() && interleaved; ++j) {
      if (jobs[j].unaware) continue;
      const auto& starts = jobs[j].starts;
      first[j] = static_cast<std::size_t>(std::lower_bound(starts.begin(), starts.end(), time) - starts.begin());
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
  constexpr std::int64_t most_percent = 2;
  return run.stalls && run.duration.count > 0 && run.stalls->total.count / most_percent > run.duration.count / 100;
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

/// How many jobs use the link in each of the bins that start in [from, to) and that some job has: the first bin's
/// number, and the users. See overlap_share().
std::pair<std::size_t, std::vector<std::uint32_t>> users_by_bin(const Usage& usage, Nanos from, Nanos to) {
  if (usage.bin.count <= 0 || to <= from) return {};
  const auto bin_at = [&](Nanos time) {  // the first bin that starts at `time` or later
    const std::int64_t count = std::max<std::int64_t>(time.count, 0);
    return static_cast<std::size_t>(count / usage.bin.count + (count % usage.bin.count != 0 ? 1 : 0));
  };
  const std::size_t first = bin_at(from);
  std::size_t used = 0;  // no job has bins from here on
  for (const auto& [name, bins] : usage.jobs) used = std::max(used, bins.size());
  const std::size_t last = std::min(bin_at(to), used);
  if (first >= last) return {};
  std::vector<std::uint32_t> users(last - first);
  for (const auto& [name, bins] : usage.jobs) {
    const double burst = least_of_a_burst(bins);
    for (std::size_t b = first; b < std::min(last, bins.size()); ++b) {
      if (bins[b] > 0 && static_cast<double>(bins[b]) >= burst) ++users[b - first];
    }
  }
  return {first, std::move(users)};
}

}  // namespace

double least_of_a_burst(std::span<const Bytes> bins) {
  constexpr double share = 0.05;
  return bins.empty() ? 0 : share * static_cast<double>(*std::max_element(bins.begin(), bins.end()));
}

std::optional<double> overlap_share(const Usage& usage, Nanos from, Nanos to) {
  const std::vector<std::uint32_t> users = users_by_bin(usage, from, to).second;
  const auto busy = std::count_if(users.begin(), users.end(), [](auto n) { return n > 0; });
  const auto shared = std::count_if(users.begin(), users.end(), [](auto n) { return n > 1; });
  if (busy == 0) return std::nullopt;
  return static_cast<double>(shared) / static_cast<double>(busy);
}

std::optional<double> mean_users(const Usage& usage, Nanos from, Nanos to) {
  const std::vector<std::uint32_t> users = users_by_bin(usage, from, to).second;
  const auto busy = std::count_if(users.begin(), users.end(), [](auto n) { return n > 0; });
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
  const bool all_unaware = std::all_of(run.jobs.begin(), run.jobs.end(), [](const auto& job) { return job.unaware; });
  for (const JobResult& job : run.jobs) {
    if (job.unaware && !all_unaware) continue;
    if (job.iterations.empty() || job.starts.size() != job.iterations.size()) return {};
    span.from = std::min(span.from, job.starts.front());
    span.to = std::min(span.to, job.starts.back() + job.iterations.back());
  }
  span.to = std::max(span.to, span.from);  // a job may have finished before another one starts
  return span;
}

// ---- writing ----

namespace {

OrderedJson to_json(const std::vector<Nanos>& times) {
  OrderedJson list = OrderedJson::array();
  for (const Nanos time : times) list.push_back(time.count);
  return list;
}

OrderedJson to_json(const RankTimes& rank) {
  OrderedJson json{{"rank", rank.rank}};
  if (rank.host) json["host"] = *rank.host;
  json["mean_ns"] = rank.mean.count;
  json["p50_ns"] = rank.p50.count;
  json["p99_ns"] = rank.p99.count;
  if (rank.communication.count > 0) json["communication_ns"] = rank.communication.count;
  return json;
}

OrderedJson to_json(const JobResult& job) {
  OrderedJson json;
  json["name"] = job.name;
  json["isolated_ns"] = job.isolated.count;
  json["start_ns"] = to_json(job.starts);
  json["iteration_ns"] = to_json(job.iterations);
  json["mean_ns"] = job.mean.count;
  json["p50_ns"] = job.p50.count;
  json["p99_ns"] = job.p99.count;
  json["second_half_mean_ns"] = job.second_half_mean.count;
  json["second_half_p99_ns"] = job.second_half_p99.count;
  json["slowdown"] = job.slowdown;
  json["interleaved_from"] = nullptr;
  if (job.interleaved_from) json["interleaved_from"] = *job.interleaved_from;
  json["interleaved_from_5pct"] = nullptr;
  if (job.interleaved_from_5pct) json["interleaved_from_5pct"] = *job.interleaved_from_5pct;
  json["time_shift_ns"] = job.time_shift.count;
  json["bytes"] = job.bytes;
  json["retransmitted_packets"] = job.retransmitted_packets;
  json["verified_messages"] = job.verified_messages;
  json["checksum_errors"] = job.checksum_errors;
  if (!job.first_error.empty()) json["first_checksum_error"] = job.first_error;
  json["compute_ns"] = job.compute.count;
  json["bytes_per_iteration"] = job.bytes_per_iteration;
  if (!job.iteration_compute.empty()) json["iteration_compute_ns"] = to_json(job.iteration_compute);
  if (!job.cc.empty()) json["cc"] = job.cc;
  if (job.gate_waited.count > 0) json["gate_waited_ns"] = job.gate_waited.count;
  if (job.gate_corrections > 0) json["gate_corrections"] = job.gate_corrections;
  if (!job.plan_dropped.empty()) json["plan_dropped"] = job.plan_dropped;
  if (job.unaware) json["unaware"] = true;
  if (job.communication.count > 0) {
    json["communication_ns"] = job.communication.count;
    json["algorithm_bandwidth_bps"] = job.algorithm_bandwidth.bits_per_second;
    json["bus_bandwidth_bps"] = job.bus_bandwidth.bits_per_second;
  }
  for (const RankTimes& rank : job.ranks) json["ranks"].push_back(to_json(rank));
  return json;
}

template <typename AnyLink>
void add_contention(const AnyLink& link, OrderedJson& json) {
  if (link.contended.count == 0) return;
  json["contended_ns"] = link.contended.count;
  json["contended_bytes"] = link.contended_bytes;
}

OrderedJson to_json(const Bottleneck& bottleneck) {
  OrderedJson json;
  if (!bottleneck.name.empty()) json["name"] = bottleneck.name;
  json["utilization"] = bottleneck.utilization;
  json["ecn_marked_packets"] = bottleneck.ecn_marked_packets;
  json["dropped_packets"] = bottleneck.dropped_packets;
  json["max_queue_bytes"] = bottleneck.max_queue_bytes;
  for (const auto& [key, packets] : {std::pair{"lost_packets", bottleneck.lost_packets},
                                     std::pair{"duplicated_packets", bottleneck.duplicated_packets},
                                     std::pair{"corrupted_packets", bottleneck.corrupted_packets},
                                     std::pair{"reordered_packets", bottleneck.reordered_packets}})
    if (packets > 0) json[key] = packets;
  add_contention(bottleneck, json);
  json["rate_bps"] = bottleneck.rate.bits_per_second;
  OrderedJson jobs = OrderedJson::object();
  for (const auto& [name, bins] : bottleneck.usage.jobs) jobs[name] = bins;
  json["usage"] = {{"bin_ns", bottleneck.usage.bin.count}, {"jobs", std::move(jobs)}};
  return json;
}

OrderedJson to_json(const LinkResult& link) {
  OrderedJson json{{"name", link.name},
                   {"rate_bps", link.rate.bits_per_second},
                   {"utilization", link.utilization},
                   {"ecn_marked_packets", link.ecn_marked_packets},
                   {"dropped_packets", link.dropped_packets},
                   {"max_queue_bytes", link.max_queue_bytes}};
  if (link.pauses > 0) json["pauses"] = link.pauses;
  add_contention(link, json);
  return json;
}

OrderedJson to_json(const ScheduleSummary& schedule) {
  OrderedJson slots = OrderedJson::array();
  for (const ScheduleSummary::Slot& slot : schedule.slots)
    slots.push_back({{"job", slot.job},
                     {"period_ns", slot.period.count},
                     {"offset_ns", slot.offset.count},
                     {"time_shift_ns", slot.time_shift.count},
                     {"stretch", slot.stretch}});
  OrderedJson json{{"links", schedule.links},
                   {"score", schedule.score},
                   {"upper_bound", schedule.upper_bound},
                   {"optimal", schedule.optimal},
                   {"stretch", schedule.stretch},
                   {"replanned", schedule.replanned},
                   {"repaired", schedule.repaired},
                   {"unplanned_jobs", schedule.unplanned},
                   {"slots", std::move(slots)},
                   {"without_slots", schedule.without_slots},
                   {"reasons", schedule.reasons}};
  if (schedule.cut_off) json["cut_off"] = true;
  return json;
}

OrderedJson to_json(const HostLosses& losses) {
  return {{"host", losses.host},
          {"missed_packets", losses.missed_packets},
          {"port_errors", losses.port_errors},
          {"handover_full_packets", losses.handover_full_packets},
          {"rejected_packets", losses.rejected_packets},
          {"unsent_packets", losses.unsent_packets}};
}

OrderedJson to_json(const Run& run) {
  OrderedJson json;
  json["policy"] = run.policy;
  json["cc"] = run.cc;
  if (!run.cc_parameters.empty()) json["cc_parameters"] = run.cc_parameters;
  json["datapath"] = run.datapath;
  json["seed"] = run.seed;
  json["duration_ns"] = run.duration.count;
  json["jobs"] = OrderedJson::array();
  for (const JobResult& job : run.jobs) json["jobs"].push_back(to_json(job));
  if (!run.links_unknown) json["bottleneck"] = to_json(run.bottleneck);
  for (const LinkResult& link : run.links) json["links"].push_back(to_json(link));
  if (run.schedule) json["schedule"] = to_json(*run.schedule);
  if (run.stalls) json["stalls"] = {{"longest_ns", run.stalls->longest.count}, {"total_ns", run.stalls->total.count}};
  if (run.clock_uncertainty) json["clock_uncertainty_ns"] = run.clock_uncertainty->count;
  for (const HostLosses& host : run.hosts) json["hosts"].push_back(to_json(host));
  for (const LinkOutage& outage : run.link_outages)
    json["link_outages"].push_back({{"host", outage.host},
                                    {"port", outage.port},
                                    {"start_ns", outage.start.count},
                                    {"duration_ns", outage.duration.count}});
  if (run.clock) {
    json["begun_ns"] = run.clock->from.count;
    json["ended_ns"] = run.clock->to.count;
  }
  return json;
}

std::string dumped(const OrderedJson& json) { return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace); }

// nlohmann's own indentation puts every number on a line of its own, which makes a list of 10,000 unreadable.
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
  OrderedJson json;
  json["schema"] = kResultsSchema;
  json["experiment"] = results.experiment;
  json["runs"] = OrderedJson::array();
  for (const Run& run : results.runs) json["runs"].push_back(to_json(run));
  if (!results.unfinished.empty()) json["unfinished_policies"] = results.unfinished;
  if (results.provenance) json["provenance"] = to_json(*results.provenance);
  write_indented(json, out, "");
  out << '\n';
}

// ---- reading ----

namespace {

constexpr TextFile kResultFile{"a file that `mltcp run --json FILE` wrote", std::size_t{1} << 30};
constexpr double kMostSlowdown = 1e9;  // beyond it a number is no measurement, and no column holds it

using Object = JsonObject;

RankTimes rank_from(const Object& json) {
  RankTimes rank;
  rank.rank = json.number("rank");
  if (json.has("host")) rank.host = json.number("host");
  rank.mean = json.nanos("mean_ns");
  rank.p50 = json.nanos("p50_ns");
  rank.p99 = json.nanos("p99_ns");
  rank.communication = json.later_nanos("communication_ns");
  return rank;
}

JobResult job_from(const Object& json) {
  JobResult job;
  job.name = json.text("name");
  job.isolated = json.nanos("isolated_ns");
  job.starts = json.nanos_list("start_ns");
  job.iterations = json.nanos_list("iteration_ns");
  if (job.starts.size() != job.iterations.size()) {
    json.fail(json.place_of("start_ns"), "and iteration_ns differ in length");
  }
  if (!std::is_sorted(job.starts.begin(), job.starts.end())) json.fail(json.place_of("start_ns"), "is not ascending");
  job.mean = json.nanos("mean_ns");
  job.p50 = json.nanos("p50_ns");
  job.p99 = json.nanos("p99_ns");
  job.time_shift = json.nanos("time_shift_ns");
  job.bytes = json.whole("bytes");
  job.retransmitted_packets = json.whole("retransmitted_packets");
  if (json.has("slowdown")) {
    job.slowdown = json.real("slowdown", kMostSlowdown);
  } else {
    derive_slowdown(job);
  }
  job.second_half_mean = json.has("second_half_mean_ns") ? json.nanos("second_half_mean_ns")
                                                         : iteration_stats(job.iterations).second_half_mean;
  job.second_half_p99 = json.has("second_half_p99_ns") ? json.nanos("second_half_p99_ns")
                                                       : iteration_stats(job.iterations).second_half_p99;
  for (const auto& [key, from] : {std::pair{"interleaved_from", &job.interleaved_from},
                                  std::pair{"interleaved_from_5pct", &job.interleaved_from_5pct}}) {
    if (!json.has(key) || json.is_null(key)) continue;
    *from = json.whole(key);
    // The series may be left out (records of sweeps).
    if (!job.iterations.empty() && **from >= job.iterations.size())
      json.fail(json.place_of(key), fmt::format("is not one of the {} iterations", job.iterations.size()));
  }
  job.verified_messages = json.later_whole("verified_messages");
  job.checksum_errors = json.later_whole("checksum_errors");
  job.compute = json.later_nanos("compute_ns");
  job.bytes_per_iteration = json.later_whole("bytes_per_iteration");
  if (json.has("iteration_compute_ns")) {
    job.iteration_compute = json.nanos_list("iteration_compute_ns");
    if (job.iteration_compute.size() != job.iterations.size())
      json.fail(json.place_of("iteration_compute_ns"), "and iteration_ns differ in length");
  }
  if (json.has("cc")) job.cc = json.text("cc");
  job.gate_waited = json.later_nanos("gate_waited_ns");
  job.gate_corrections = json.later_whole("gate_corrections");
  if (json.has("plan_dropped")) job.plan_dropped = json.text("plan_dropped");
  if (json.has("unaware")) job.unaware = json.truth("unaware");
  if (json.has("first_checksum_error")) job.first_error = json.text("first_checksum_error");
  job.communication = json.later_nanos("communication_ns");
  job.algorithm_bandwidth = Rate(json.later_whole("algorithm_bandwidth_bps"));
  job.bus_bandwidth = Rate(json.later_whole("bus_bandwidth_bps"));
  if (json.has("ranks"))
    for (const Object& rank : json.objects("ranks")) job.ranks.push_back(rank_from(rank));
  return job;
}

LinkResult link_from(const Object& json) {
  LinkResult link;
  link.name = json.text("name");
  link.rate = Rate(json.whole("rate_bps"));
  link.utilization = json.real("utilization", 1);
  link.ecn_marked_packets = json.whole("ecn_marked_packets");
  link.dropped_packets = json.whole("dropped_packets");
  link.max_queue_bytes = json.whole("max_queue_bytes");
  link.pauses = json.later_whole("pauses");
  link.contended = json.later_nanos("contended_ns");
  link.contended_bytes = json.later_whole("contended_bytes");
  return link;
}

Bottleneck bottleneck_from(const Object& json) {
  Bottleneck bottleneck;
  if (json.has("name")) bottleneck.name = json.text("name");
  bottleneck.utilization = json.real("utilization", 1);
  bottleneck.ecn_marked_packets = json.whole("ecn_marked_packets");
  bottleneck.dropped_packets = json.whole("dropped_packets");
  bottleneck.max_queue_bytes = json.whole("max_queue_bytes");
  bottleneck.lost_packets = json.later_whole("lost_packets");
  bottleneck.duplicated_packets = json.later_whole("duplicated_packets");
  bottleneck.corrupted_packets = json.later_whole("corrupted_packets");
  bottleneck.reordered_packets = json.later_whole("reordered_packets");
  bottleneck.contended = json.later_nanos("contended_ns");
  bottleneck.contended_bytes = json.later_whole("contended_bytes");
  bottleneck.rate = Rate(json.later_whole("rate_bps"));
  if (json.has("usage")) {
    const Object usage = json.object("usage");
    bottleneck.usage.bin = usage.nanos("bin_ns");
    const Object jobs = usage.object("jobs");
    for (const std::string& name : jobs.keys()) bottleneck.usage.jobs[name] = jobs.whole_list(name);
  }
  return bottleneck;
}

Run run_from(const Object& json) {
  Run run;
  run.policy = json.text("policy");
  run.cc = json.text("cc");
  if (json.has("cc_parameters")) {
    const Object parameters = json.object("cc_parameters");
    for (const std::string& key : parameters.keys()) run.cc_parameters[key] = parameters.text(key);
  }
  run.datapath = json.text("datapath");
  run.seed = json.whole("seed");
  bool derive_interleaving = false;
  bool derive_5pct = false;
  for (const Object& job : json.objects("jobs")) {
    run.jobs.push_back(job_from(job));
    derive_interleaving |= !job.has("interleaved_from");
    derive_5pct |= !job.has("interleaved_from_5pct");
  }
  const InterleaveRule rule =
      json.has("stalls") || run.datapath == "hosts" ? InterleaveRule::real_time() : InterleaveRule::virtual_time();
  if (derive_interleaving) {
    const auto from = interleaved_from(run.jobs, rule);
    for (std::size_t j = 0; j < run.jobs.size(); ++j) run.jobs[j].interleaved_from = from[j];
  }
  if (derive_5pct) {
    const auto from = interleaved_from_5pct(run.jobs, rule);
    for (std::size_t j = 0; j < run.jobs.size(); ++j) run.jobs[j].interleaved_from_5pct = from[j];
  }
  run.links_unknown = run.datapath == "hosts" && !json.has("bottleneck");
  if (!run.links_unknown) run.bottleneck = bottleneck_from(json.object("bottleneck"));
  if (json.has("links"))
    for (const Object& link : json.objects("links")) run.links.push_back(link_from(link));
  run.duration = json.later_nanos("duration_ns");
  if (json.has("schedule")) {
    const Object schedule = json.object("schedule");
    run.schedule = ScheduleSummary{schedule.whole("links"),
                                   schedule.real("score", 1, -kMostSlowdown),
                                   schedule.real("upper_bound", 1, -kMostSlowdown),
                                   schedule.truth("optimal"),
                                   schedule.real("stretch", kMostSlowdown),
                                   schedule.whole("replanned"),
                                   schedule.whole("unplanned_jobs"),
                                   {},
                                   {},
                                   {}};
    if (schedule.has("repaired")) run.schedule->repaired = schedule.whole("repaired");
    if (schedule.has("cut_off")) run.schedule->cut_off = schedule.truth("cut_off");
    if (schedule.has("reasons")) run.schedule->reasons = schedule.texts("reasons");
    if (schedule.has("slots"))
      for (const Object& slot : schedule.objects("slots"))
        run.schedule->slots.push_back({slot.text("job"), slot.nanos("period_ns"), slot.nanos("offset_ns"),
                                       slot.nanos("time_shift_ns"), slot.real("stretch", kMostSlowdown, -1)});
    if (schedule.has("without_slots")) run.schedule->without_slots = schedule.texts("without_slots");
  }
  if (json.has("begun_ns")) run.clock = TimeSpan{json.nanos("begun_ns"), json.nanos("ended_ns")};
  if (json.has("clock_uncertainty_ns")) run.clock_uncertainty = json.nanos("clock_uncertainty_ns");
  if (json.has("hosts")) {
    for (const Object& host : json.objects("hosts")) {
      run.hosts.push_back({host.number("host"), host.whole("missed_packets"), host.whole("port_errors"),
                           host.whole("handover_full_packets"), host.whole("rejected_packets"),
                           host.whole("unsent_packets")});
    }
  }
  if (json.has("link_outages")) {
    for (const Object& outage : json.objects("link_outages"))
      run.link_outages.push_back(
          {outage.number("host"), outage.text("port"), outage.nanos("start_ns"), outage.nanos("duration_ns")});
  }
  if (json.has("stalls")) {
    const Object stalls = json.object("stalls");
    run.stalls = Stalls{stalls.nanos("longest_ns"), stalls.nanos("total_ns")};
  }
  return run;
}

}  // namespace

Results parse_json(std::string_view text, const std::string& name) {
  const std::string cure = "give a file that `mltcp run --json FILE` wrote, or write it anew";
  const Json json = parsed(text, name, cure);
  const Object root(json, name, cure, "");
  const std::string schema = root.text("schema");
  if (schema != kResultsSchema) {
    root.fail("schema", fmt::format("is {} and not \"{}\"",
                                    Json(schema).dump(-1, ' ', true, Json::error_handler_t::replace), kResultsSchema));
  }
  Results results;
  results.experiment = root.text("experiment");
  for (const Object& run : root.objects("runs")) results.runs.push_back(run_from(run));
  if (root.has("unfinished_policies")) results.unfinished = root.texts("unfinished_policies");
  results.provenance = provenance_of(root);
  return results;
}

Results read_json(const std::filesystem::path& path) {
  const std::string name = path.string();
  return parse_json(read_text_file(path, name, kResultFile), name);
}

}  // namespace mltcp::experiment
