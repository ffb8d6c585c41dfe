// The JSON of the interface (see api_json.h).
#include "mltcp/scheduler/service/internal/api_json.h"

#include <utility>

#include "mltcp/scheduler/service/slurm_mark.h"

namespace mltcp::service {
namespace {

constexpr std::size_t kMaxHosts = 65'536;

}  // namespace

JobRequest request_from(const JsonReader& reader, Rate host_rate) {
  JobRequest request;
  request.id = reader.text("id");
  if (is_slurm_id(request.id))
    reader.fail("id", "ids of this form are those of Slurm's jobs, and what has one and is none has ended",
                "give another");
  if (reader.has("name")) request.name = reader.text("name");
  request.workers = static_cast<std::uint32_t>(reader.whole("workers", 1, kMaxWorkers));
  if (reader.has("flows"))
    request.flows = static_cast<std::uint32_t>(reader.whole("flows", 1, std::int64_t{kMaxFlows}));
  if (reader.has("allowed_hosts")) request.allowed_hosts = reader.texts("allowed_hosts", kMaxHosts);
  if (reader.has("max_per_host"))
    request.max_per_host = static_cast<std::uint32_t>(reader.whole("max_per_host", 0, kMaxWorkers));
  const JobProfile profile = profile_from_json(reader.object("profile"));
  request.demand = demand_of(profile, host_rate);
  if (!reader.has("flows")) request.flows = std::max<std::uint32_t>(1, profile.job.flows);
  if (!reader.has("name")) request.name = profile.job.name;
  return request;
}

Json to_json(const JobPlan& plan) {
  Json json{{"id", plan.id},
            {"number", plan.number},
            {"hosts", plan.hosts},
            {"slots", plan.slots},
            {"slot_unix_ns", plan.slot_unix_ns},
            {"slot_period_ns", plan.slot_period.count},
            {"time_shift_ns", plan.time_shift.count},
            {"first_send_ns", plan.first_send.count},
            {"score", plan.score},
            {"revision", plan.revision}};
  if (!plan.slots) json["reason"] = plan.reason;
  return json;
}

Json to_json(const RunningJob& job) {
  Json bursts = Json::array();
  for (const scheduler::Burst& burst : job.request.demand.bursts)
    bursts.push_back(
        {{"from_ns", burst.from.count}, {"to_ns", burst.to.count}, {"rate_bps", burst.rate.bits_per_second}});
  return {{"id", job.request.id},
          {"name", job.request.name},
          {"workers", job.request.workers},
          {"flows", job.request.flows},
          {"demand", {{"period_ns", job.request.demand.period.count}, {"bursts", std::move(bursts)}}},
          {"plan", to_json(job.plan)}};
}

Json to_json(const RankedPlacement& placement) {
  Json json{{"hosts", placement.hosts},
            {"kind", placement.kind},
            {"score", placement.score},
            {"upper_bound", placement.upper_bound},
            {"optimal", placement.optimal},
            {"excess", placement.excess},
            {"stretch", placement.stretch},
            {"own_score", placement.own_score},
            {"time_shift_ns", placement.time_shift.count},
            {"slot_period_ns", placement.slot_period.count},
            {"moves", placement.moves}};
  if (!placement.worst_link.empty())
    json["worst_link"] = {{"name", placement.worst_link}, {"score", placement.worst_score}};
  return json;
}

std::string to_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace mltcp::service
