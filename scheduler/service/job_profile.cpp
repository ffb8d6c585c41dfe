// Profiles of jobs as managers tell them (see job_profile.h).
#include "mltcp/scheduler/service/job_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/files/job_file.h"
#include "mltcp/lab/experiment/run/demand.h"
#include "mltcp/lab/workload/inspection.h"
#include "mltcp/lab/workload/profile.h"
#include "mltcp/lab/workload/traces/trace_summary.h"
#include "mltcp/scheduler/service/internal/json_reader.h"

namespace mltcp::service {
namespace {

using workload::Phase;

// Beyond these a value is assumed to be a mistake, as in experiment files.
constexpr std::int64_t kMaxPhaseBytes = 1'000'000'000'000'000;
constexpr std::int64_t kMaxCompute = 24LL * 3600 * 1'000'000'000;
constexpr std::size_t kMaxPhases = 10'000;
constexpr std::uint32_t kMaxWorkers = 1'000'000;
constexpr double kMaxScale = 1e6;
constexpr JsonLimits kProfileLimits{8, 4 * kMaxPhases + 1000};

constexpr std::string_view kUsage =
    "give compute_ns and communicate_bytes, or phases, or toml, or trace, or csv (docs/scheduler-service.md)";

Phase compute_phase(std::int64_t nanos) {
  Phase phase;
  phase.compute = Nanos(nanos);
  return phase;
}

Phase communicate_phase(std::int64_t bytes, const JsonReader& reader) {
  Phase phase;
  phase.kind = Phase::Kind::communicate;
  phase.bytes = static_cast<Bytes>(bytes);
  if (const auto rate = reader.optional_rate("rate_bps")) phase.rate = *rate;
  return phase;
}

std::vector<Phase> read_phases(const JsonReader& reader) {
  std::vector<Phase> phases;
  for (const JsonReader& one : reader.list("phases", kMaxPhases)) {
    one.only({"compute_ns", "communicate_bytes", "rate_bps", "overlap"});
    const bool compute = one.has("compute_ns");
    if (compute == one.has("communicate_bytes"))
      one.fail("", "a phase computes or communicates", "give one of the two");
    if (compute) {
      for (const std::string_view key : {"rate_bps", "overlap"})
        if (one.has(key)) one.fail(key, "it is about communication", "leave it out of a phase that computes");
      const std::int64_t nanos = one.whole("compute_ns", 0, kMaxCompute);
      if (nanos > 0) phases.push_back(compute_phase(nanos));
      continue;
    }
    phases.push_back(communicate_phase(one.whole("communicate_bytes", 1, kMaxPhaseBytes), one));
    phases.back().overlap = one.optional_truth("overlap").value_or(false);
  }
  return phases;
}

std::vector<Phase> read_trace(const JsonReader& reader) {
  const JsonReader trace = reader.object("trace");
  trace.only({"text", "workers", "network", "gather_size", "compute_scale", "bytes_scale"});
  workload::TraceView view;
  view.one_worker = true;
  if (trace.has("workers")) view.workers = static_cast<std::uint32_t>(trace.whole("workers", 2, kMaxWorkers));
  if (trace.has("network")) {
    view.network = workload::network_from(trace.text("network"));
    if (!view.network)
      trace.fail("network", "it is not known", "give \"weight-gradient\", \"inter-server\" or \"all\"");
  }
  if (trace.has("gather_size")) {
    const std::string& written = trace.text("gather_size");
    if (written != "total" && written != "shard")
      trace.fail("gather_size", "it is not known", "give \"total\" or \"shard\"");
    view.gather_size = written == "total" ? workload::GatherSize::total : workload::GatherSize::shard;
  }
  if (const auto scale = trace.optional_factor("compute_scale", kMaxScale)) view.compute_scale = *scale;
  if (const auto scale = trace.optional_factor("bytes_scale", kMaxScale)) view.bytes_scale = *scale;
  const workload::GraphSummary summary = workload::summarise_trace_text(trace.text("text"), trace.path("text"), view);
  for (const std::string_view key : {"network", "gather_size"})
    if (trace.has(key) && !workload::is_training_loop(summary))
      trace.fail(key, "this trace tells what was sent", "leave it out");
  return workload::to_job(summary, "job").phases;
}

/// In more than 64 bits, unlike the sums of Job.
void check_sums(const workload::Job& job, const std::string& where) {
  Uint128 nanos = 0;
  Uint128 bytes = 0;
  for (const Phase& phase : job.phases) {
    nanos += static_cast<std::uint64_t>(phase.compute.count);
    bytes += phase.bytes;
  }
  if (bytes == 0) throw InputError(fmt::format("{}: the job sends nothing; {}", where, kUsage));
  if (nanos > static_cast<std::uint64_t>(kMaxCompute) || bytes > static_cast<std::uint64_t>(kMaxPhaseBytes))
    throw InputError(fmt::format("{}: an iteration computes for {:.6g} s and sends {:.6g} B; give at most {} and {}",
                                 where, static_cast<double>(nanos) * 1e-9, static_cast<double>(bytes),
                                 to_text(Nanos(kMaxCompute)), bytes_to_text(kMaxPhaseBytes)));
}

}  // namespace

JobProfile profile_from_json(const JsonReader& reader) {
  constexpr std::string_view ways[] = {"communicate_bytes", "phases", "toml", "trace", "csv"};
  std::string_view way;
  for (const std::string_view key : ways) {
    if (!reader.has(key)) continue;
    if (!way.empty()) reader.fail(key, fmt::format("the profile has {} too", way), "keep one of the two");
    way = key;
  }
  if (way.empty()) reader.fail("", "this is no profile of a job", kUsage);
  JobProfile profile;
  const std::string where = reader.path(way);
  if (way == "communicate_bytes") {
    reader.only({"compute_ns", "communicate_bytes", "rate_bps", "period_ns"});
    const std::int64_t nanos = reader.has("compute_ns") ? reader.whole("compute_ns", 0, kMaxCompute) : 0;
    if (nanos > 0) profile.job.phases.push_back(compute_phase(nanos));
    profile.job.phases.push_back(communicate_phase(reader.whole("communicate_bytes", 1, kMaxPhaseBytes), reader));
  } else {
    reader.only({way, "rate_bps", "period_ns"});
    if (way == "phases")
      profile.job.phases = read_phases(reader);
    else if (way == "toml")
      profile.job = experiment::parse_job(reader.text(way), where);
    else if (way == "trace")
      profile.job.phases = read_trace(reader);
    else
      profile.job.phases = workload::to_phases(workload::parse_profile(reader.text(way), where));
  }
  if (const auto rate = reader.optional_rate("rate_bps")) profile.job.rate = *rate;
  if (reader.has("period_ns")) profile.period = Nanos(reader.whole("period_ns", 1, kMaxCompute));
  check_sums(profile.job, where);
  return profile;
}

JobProfile profile_from_json(std::string_view text, const std::string& where) {
  const JsonDocument document(text, where, kMaxProfileBytes, kProfileLimits);
  return profile_from_json(document.root());
}

JobProfile profile_from_toml(std::string_view text, const std::string& where) {
  if (text.size() > kMaxProfileBytes)
    throw InputError(fmt::format("{}: it has {} bytes; give at most {}", where, text.size(), kMaxProfileBytes));
  JobProfile profile;
  profile.job = experiment::parse_job(text, where);
  check_sums(profile.job, where);
  return profile;
}

JobProfile profile_from_text(std::string_view text, const std::string& where) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' ? profile_from_json(text, where)
                                                               : profile_from_toml(text, where);
}

scheduler::Demand demand_of(const JobProfile& profile, Rate host_rate) {
  workload::Job job = profile.job;
  if (job.rate.is_zero() || job.rate > host_rate) job.rate = host_rate;
  // The ideal iteration is bounded by the rate of the link: the job's own.
  const Nanos ideal = workload::ideal_iteration(job, job.rate).length;
  if (const Nanos length = std::max(ideal, profile.period); length < kShortestIteration)
    throw InputError(fmt::format("profile: an iteration takes {}; give one of {} ns or more, or several as one",
                                 to_text(length), kShortestIteration.count));
  if (profile.period.count > 0 && profile.period < ideal)
    throw InputError(
        fmt::format("profile: period_ns: an iteration of {} does not fit into {}; give {} ns or more, or "
                    "leave it out",
                    to_text(ideal), to_text(profile.period), ideal.count));
  scheduler::Demand demand =
      profile.period.count == 0 ? experiment::demand_of(job, job.rate) : experiment::demand_of(job, profile.period);
  experiment::limit_bursts(demand.bursts, kMaxDemandBursts);
  return demand;
}

}  // namespace mltcp::service
