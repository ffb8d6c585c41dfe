// Reads profiles of jobs (see job_profile.h).
#include "mltcp/scheduler/service/job_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/json/json_object.h"
#include "mltcp/lab/experiment/files/job_file.h"
#include "mltcp/lab/experiment/run/demand.h"
#include "mltcp/lab/workload/inspection.h"
#include "mltcp/lab/workload/profile.h"
#include "mltcp/lab/workload/traces/trace_summary.h"
#include "mltcp/scheduler/service/scheduler_service.h"

namespace mltcp::service {
namespace {

using workload::Phase;

// Values above these limits are refused, because they must be mistakes. Experiment files have the same limits.
constexpr Bytes kMaxPhaseBytes = 1'000'000'000'000'000;
constexpr std::uint64_t kMaxCompute = 24ULL * 3600 * 1'000'000'000;
constexpr std::size_t kMaxPhases = 10'000;
constexpr std::uint32_t kMaxTraceWorkers = 1'000'000;
constexpr double kMaxScale = 1e6;
constexpr JsonLimits kProfileLimits{8, 4 * kMaxPhases + 1000};

constexpr std::string_view kUsage =
    "give compute_ns and communicate_bytes, or phases, or toml, or trace, or csv (docs/reference/scheduler-api.md)";

/// Returns the time at `key` in nanoseconds, which must be at least `min`; 0 if the key is missing.
Nanos time_of(const JsonObject& json, std::string_view key, std::uint64_t min) {
  return Nanos(json.has(key) ? static_cast<std::int64_t>(json.whole(key, kMaxCompute, min)) : 0);
}

Rate rate_of(const JsonObject& json) {
  return Rate(json.has("rate_bps") ? json.whole("rate_bps", scheduler::kHighestRate.bits_per_second, 1) : 0);
}

void add_computing(const JsonObject& json, std::vector<Phase>& phases) {
  Phase phase;
  phase.compute = time_of(json, "compute_ns", 0);
  if (phase.compute.count > 0) phases.push_back(phase);
}

void add_communication(const JsonObject& json, std::vector<Phase>& phases) {
  Phase phase;
  phase.kind = Phase::Kind::communicate;
  phase.bytes = json.whole("communicate_bytes", kMaxPhaseBytes, 1);
  phase.rate = rate_of(json);
  phase.overlap = json.has("overlap") && json.truth("overlap");
  phases.push_back(phase);
}

std::vector<Phase> read_phases(const JsonObject& json) {
  std::vector<Phase> phases;
  for (const JsonObject& one : json.objects("phases", kMaxPhases)) {
    one.only({"compute_ns", "communicate_bytes", "rate_bps", "overlap"});
    const bool compute = one.has("compute_ns");
    if (compute == one.has("communicate_bytes"))
      one.refuse("", "needs compute_ns or communicate_bytes, and not both", "give one of the two");
    for (const std::string_view key : {"rate_bps", "overlap"})
      if (compute && one.has(key)) one.refuse(key, "applies to communication", "leave it out of a phase that computes");
    (compute ? add_computing : add_communication)(one, phases);
  }
  return phases;
}

std::vector<Phase> read_trace(const JsonObject& json) {
  const JsonObject trace = json.object("trace");
  trace.only({"text", "workers", "network", "gather_size", "compute_scale", "bytes_scale"});
  workload::TraceView view;
  view.one_worker = true;
  if (trace.has("workers")) view.workers = trace.number("workers", kMaxTraceWorkers, 2);
  if (trace.has("network")) {
    view.network = workload::network_from(trace.text("network"));
    if (!view.network) trace.refuse("network", "is not known", "give \"weight-gradient\", \"inter-server\" or \"all\"");
  }
  if (trace.has("gather_size")) {
    const std::string written = trace.text("gather_size");
    if (written != "total" && written != "shard")
      trace.refuse("gather_size", "is not known", "give \"total\" or \"shard\"");
    view.gather_size = written == "total" ? workload::GatherSize::total : workload::GatherSize::shard;
  }
  if (trace.has("compute_scale")) view.compute_scale = trace.real("compute_scale", kMaxScale, 1 / kMaxScale);
  if (trace.has("bytes_scale")) view.bytes_scale = trace.real("bytes_scale", kMaxScale, 1 / kMaxScale);
  const workload::GraphSummary summary = workload::summarise_trace_text(trace.text("text"), trace.where("text"), view);
  for (const std::string_view key : {"network", "gather_size"})
    if (trace.has(key) && !workload::is_training_loop(summary))
      trace.refuse(key, "does not apply to a trace that records the sent bytes", "leave it out");
  return workload::to_job(summary, "job").phases;
}

void check_size(std::string_view text, const std::string& where) {
  if (text.size() > kMaxProfileBytes)
    throw InputError(fmt::format("{}: it has {} bytes; give at most {}", where, text.size(), kMaxProfileBytes));
}

/// Throws InputError if the job sends nothing, or if its iteration computes for too long or sends too much. The sums
/// have 128 bits, because the sums of workload::Job could overflow.
void check_sums(const workload::Job& job, const std::string& where) {
  Uint128 nanos = 0;
  Uint128 bytes = 0;
  for (const Phase& phase : job.phases) {
    nanos += static_cast<std::uint64_t>(phase.compute.count);
    bytes += phase.bytes;
  }
  if (bytes == 0) throw InputError(fmt::format("{}: the job sends nothing; {}", where, kUsage));
  if (nanos > kMaxCompute || bytes > kMaxPhaseBytes)
    throw InputError(fmt::format("{}: an iteration computes for {:.6g} s and sends {:.6g} B; give at most {} and {}",
                                 where, static_cast<double>(nanos) * 1e-9, static_cast<double>(bytes),
                                 to_text(Nanos(std::int64_t{kMaxCompute})), bytes_to_text(kMaxPhaseBytes)));
}

}  // namespace

JobProfile profile_from_json(const JsonObject& json) {
  constexpr std::string_view ways[] = {"communicate_bytes", "phases", "toml", "trace", "csv"};
  std::string_view way;
  for (const std::string_view key : ways) {
    if (!json.has(key)) continue;
    if (!way.empty()) json.refuse(key, fmt::format("can't be given together with {}", way), "keep one of the two");
    way = key;
  }
  if (way.empty()) json.refuse("", "is no profile of a job", kUsage);
  JobProfile profile;
  const std::string where = json.where(way);
  if (way == "communicate_bytes") {
    json.only({"compute_ns", "communicate_bytes", "rate_bps", "period_ns", "flows"});
    add_computing(json, profile.job.phases);
    add_communication(json, profile.job.phases);
  } else {
    json.only({way, "rate_bps", "period_ns", "flows"});
    if (way == "phases")
      profile.job.phases = read_phases(json);
    else if (way == "toml")
      profile.job = experiment::parse_job(json.text(way), where);
    else if (way == "trace")
      profile.job.phases = read_trace(json);
    else
      profile.job.phases = workload::to_phases(workload::parse_profile(json.text(way), where));
  }
  if (json.has("rate_bps")) profile.job.rate = rate_of(json);
  if (json.has("flows")) profile.job.flows = json.number("flows", kMaxFlows, 1);
  profile.period = time_of(json, "period_ns", 1);
  check_sums(profile.job, where);
  return profile;
}

JobProfile profile_from_json(std::string_view text, const std::string& where) {
  check_size(text, where);
  const std::string cure = "docs/reference/scheduler-api.md describes the keys of a profile";
  const nlohmann::json json = parsed(text, where, cure, kProfileLimits);
  return profile_from_json(JsonObject(json, where, cure, ""));
}

JobProfile profile_from_toml(std::string_view text, const std::string& where) {
  check_size(text, where);
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
  // No other job shares the link here, so the rate of the job also serves as the rate of the link.
  const Nanos ideal = workload::ideal_iteration(job, job.rate).length;
  if (const Nanos length = std::max(ideal, profile.period); length < kShortestIteration)
    throw InputError(fmt::format("profile: an iteration takes {}; give one of {} ns or more, or join several into one",
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
