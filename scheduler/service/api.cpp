// Routes requests of the HTTP interface, reads their bodies and writes the answers (see api.h).
#include "mltcp/scheduler/service/api.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <microhttpd.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/json/json_fields.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/scheduler/service/internal/service_fields.h"
#include "mltcp/scheduler/service/slurm_mark.h"

namespace mltcp::service {
namespace {

constexpr std::uint32_t kDefaultCandidates = 10;
constexpr std::uint32_t kMaxCandidates = 1000;
constexpr std::size_t kMaxPlacements = 1000;
constexpr std::size_t kMaxHosts = 65'536;
const std::string kBody = "body";
const std::string kBodyCure = "docs/reference/scheduler-api.md describes the body of this path";

using Json = nlohmann::ordered_json;

std::string path_of(const ApiRequest& request) { return fmt::format("/{}", fmt::join(request.path, "/")); }

struct NoSuchPath {};
struct WrongMethod {
  std::string allowed;
};

void allow(const ApiRequest& request, std::initializer_list<std::string_view> methods) {
  if (std::ranges::find(methods, request.method) == methods.end())
    throw WrongMethod{fmt::format("{}", fmt::join(methods, ", "))};
}

/// Returns the query parameter `key`, a whole number from 0 to `max`; 0 if it is missing.
std::uint64_t number(const ApiRequest& request, std::string_view key, std::uint64_t max) {
  const auto found = request.query.find(key);
  if (found == request.query.end()) return 0;
  const std::string& text = found->second;
  const auto value = number_from<std::uint64_t>(text, 0, max);
  if (!value)
    throw InputError(
        fmt::format("parameter {}: {} is out of range; give a whole number from 0 to {}", key, in_quotes(text), max));
  return *value;
}

void only_parameters(const ApiRequest& request, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : request.query)
    if (std::ranges::find(known, key) == known.end())
      throw InputError(fmt::format("parameter {} is not known; {}", in_quotes(key),
                                   known.size() == 0 ? "leave it out" : fmt::format("use {}", fmt::join(known, ", "))));
}

nlohmann::json body_of(const ApiRequest& request) { return parsed(request.body, kBody, kBodyCure, kBodyLimits); }

JobRequest request_from(const JsonObject& body, Rate host_rate) {
  JobRequest request;
  request.id = body.text("id");
  if (is_slurm_id(request.id))
    body.refuse("id", "has the form of Slurm's jobs, and a job with such an id that Slurm does not run counts as ended",
                "give another");
  request.name = body.later_text("name");
  request.workers = body.number("workers", kMaxWorkers, 1);
  if (body.has("flows")) request.flows = body.number("flows", kMaxFlows, 1);
  if (body.has("allowed_hosts")) request.allowed_hosts = body.texts("allowed_hosts", kMaxHosts);
  if (body.has("max_per_host")) request.max_per_host = body.number("max_per_host", kMaxWorkers);
  const JobProfile profile = profile_from_json(body.object("profile"));
  request.demand = demand_of(profile, host_rate);
  if (!body.has("flows")) request.flows = std::max<std::uint32_t>(1, profile.job.flows);
  if (!body.has("name")) request.name = profile.job.name;
  return request;
}

ApiAnswer json_answer(const Json& json, int status = 200) { return {status, json_text(json), {}}; }

Json to_json(const SchedulerService& service) {
  const Topology& topology = service.topology();
  const std::vector<std::uint32_t> free = service.free_slots();
  Json hosts = Json::array();
  for (Topology::Host host = 0; host < topology.hosts(); ++host)
    hosts.push_back({{"name", service.host_names()[host]}, {"rack", topology.rack(host)}, {"free_slots", free[host]}});
  return {{"slots_per_host", service.slots_per_host()},
          {"host_rate_bps", topology.fastest_host().bits_per_second},
          {"racks", topology.racks()},
          {"switches", topology.switches()},
          {"links", topology.links()},
          {"oversubscription", topology.oversubscription()},
          {"hosts", std::move(hosts)}};
}

std::string decoded(std::string_view text) {
  std::string result(text);
  result.resize(MHD_http_unescape(result.data()));
  return result;
}

/// Returns the part of `text` before the first `end`, and removes this part and `end` from `text`.
std::string_view cut(std::string_view& text, char end) {
  const std::string_view part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

}  // namespace

ApiRequest request_of(std::string method, std::string_view target, std::string body) {
  ApiRequest request{std::move(method), {}, {}, std::move(body)};
  std::string_view path = cut(target, '?');
  // Each part is decoded separately, because an encoded '/' does not separate parts.
  for (static_cast<void>(cut(path, '/')); !path.empty();) request.path.push_back(decoded(cut(path, '/')));
  while (!target.empty()) {
    std::string_view value = cut(target, '&');
    const std::string_view key = cut(value, '=');
    request.query.try_emplace(decoded(key), decoded(value));
  }
  return request;
}

std::string Api::error_body(std::string_view message) { return json_text({{"error", one_line(message)}}); }

ApiAnswer Api::answer(const ApiRequest& request, Nanos now, bool may_wait) {
  ApiAnswer answer = answered(request, now, may_wait);
  // If the request must wait for a plan, the server repeats it later. It is counted when it gets its answer.
  if (!answer.wait) metrics_.count(answer.status);
  return answer;
}

ApiAnswer Api::answered(const ApiRequest& request, Nanos now, bool may_wait) {
  const auto error = [](int status, std::string_view message) { return ApiAnswer{status, error_body(message), {}}; };
  try {
    return routed(request, now, may_wait);
  } catch (const InputError& wrong) {
    return error(400, wrong.what());
  } catch (const NotFound& wrong) {
    return error(404, wrong.what());
  } catch (const NoSuchPath&) {
    return error(404, fmt::format("there is nothing at {}; docs/reference/scheduler-api.md lists the paths",
                                  in_quotes(path_of(request))));
  } catch (const WrongMethod& wrong) {
    return error(405, fmt::format("{} is not for {}; use {}", in_quotes(request.method), in_quotes(path_of(request)),
                                  wrong.allowed));
  } catch (const Conflict& wrong) {
    return error(409, wrong.what());
  } catch (const Unavailable& wrong) {
    return error(503, wrong.what());
  } catch (const std::bad_alloc&) {
    return error(503, "out of memory; ask for less, or try again later");
  } catch (const std::exception& wrong) {
    return error(500, fmt::format("an error of the service: {}; please report it", wrong.what()));
  }
}

ApiAnswer Api::routed(const ApiRequest& request, Nanos now, bool may_wait) {
  const std::vector<std::string>& parts = request.path;
  using Words = std::initializer_list<std::string_view>;
  const auto is = [&](Words path, Words methods) {
    if (!std::ranges::equal(parts, path)) return false;
    allow(request, methods);
    return true;
  };
  if (is({"kubernetes", "filter"}, {"POST"})) return {200, kubernetes_.filter(request.body, now), {}};
  if (is({"kubernetes", "prioritize"}, {"POST"})) return {200, kubernetes_.prioritize(request.body, now), {}};
  const bool is_plan = parts.size() == 4 && parts[0] == "v1" && parts[1] == "jobs" && parts[3] == "plan";
  only_parameters(request, is_plan ? Words{"after", "wait_ms"} : Words{});
  if (is_plan) {
    allow(request, {"GET"});
    return plan(parts[2], request, may_wait);
  }
  if (is({"metrics"}, {"GET"})) return {200, metrics_.text(service_), {}, "text/plain; version=0.0.4; charset=utf-8"};
  if (is({"v1", "health"}, {"GET"}))
    return json_answer({{"status", "ok"},
                        {"jobs", service_.plans().size()},
                        {"revision", service_.revision()},
                        {"epoch_unix_ns", service_.epoch_unix_ns()}});
  if (is({"v1", "topology"}, {"GET"})) return json_answer(to_json(service_));
  if (is({"v1", "placements"}, {"POST"})) return rank(request);
  if (is({"v1", "plans"}, {"GET"})) return json_answer({{"plans", written(service_.plans())}});
  if (is({"v1", "jobs"}, {"GET", "POST"}))
    return request.method == "POST" ? arrive(request) : json_answer({{"jobs", written(service_.jobs())}});
  if (parts.size() == 3 && parts[0] == "v1" && parts[1] == "jobs") {
    allow(request, {"GET", "DELETE"});
    if (request.method == "DELETE")
      return json_answer({{"id", parts[2]}, {"moves", written(service_.depart(parts[2]))}});
    for (const RunningJob& job : service_.jobs())
      if (job.request.id == parts[2]) return json_answer(written(job));
    static_cast<void>(service_.plan(parts[2]));  // throws NotFound for an unknown job
  }
  throw NoSuchPath();
}

ApiAnswer Api::arrive(const ApiRequest& request) {
  const nlohmann::json json = body_of(request);
  const JsonObject body(json, kBody, kBodyCure, "");
  body.only({"id", "name", "workers", "flows", "profile", "allowed_hosts", "max_per_host", "hosts", "assume_room"});
  const JobRequest job = request_from(body, service_.topology().fastest_host());
  std::vector<std::string> hosts;
  if (body.has("hosts")) {
    hosts = body.texts("hosts", kMaxWorkers);
    if (hosts.empty()) body.refuse("hosts", "is empty", "name the host of every worker, or leave it out");
  }
  const bool assumed = body.has("assume_room") && body.truth("assume_room");
  if (assumed && hosts.empty()) body.refuse("assume_room", "needs hosts", "give hosts, too");
  const Arrival arrival =
      service_.arrive(job, hosts, assumed ? SchedulerService::Capacity::assumed : SchedulerService::Capacity::needed);
  return json_answer(written(arrival), arrival.known ? 200 : 201);
}

ApiAnswer Api::rank(const ApiRequest& request) {
  const nlohmann::json json = body_of(request);
  const JsonObject body(json, kBody, kBodyCure, "");
  body.only({"id", "name", "workers", "flows", "profile", "allowed_hosts", "max_per_host", "candidates", "placements"});
  const JobRequest job = request_from(body, service_.topology().fastest_host());
  if (!body.has("placements")) {
    const std::uint32_t candidates =
        body.has("candidates") ? body.number("candidates", kMaxCandidates, 1) : kDefaultCandidates;
    return json_answer({{"placements", written(service_.rank(job, candidates))}});
  }
  if (body.has("candidates"))
    body.refuse("candidates", "can't be given together with placements", "give one of the two");
  std::vector<std::vector<std::string>> placements;
  for (const JsonObject& one : body.objects("placements", kMaxPlacements)) {
    one.only({"hosts"});
    placements.push_back(one.texts("hosts", kMaxWorkers));
  }
  return json_answer({{"placements", written(service_.rank(job, placements))}});
}

ApiAnswer Api::plan(const std::string& id, const ApiRequest& request, bool may_wait) {
  const std::uint64_t after = number(request, "after", std::uint64_t{1} << 62U);
  const std::uint64_t wait_ms = number(request, "wait_ms", static_cast<std::uint64_t>(kLongestWait.count / 1'000'000));
  const JobPlan plan = service_.plan(id);
  ApiAnswer answer = json_answer(written(plan));
  if (may_wait && wait_ms > 0 && plan.revision <= after)
    answer.wait = ApiAnswer::Wait{id, after, Nanos(static_cast<std::int64_t>(wait_ms) * 1'000'000)};
  return answer;
}

}  // namespace mltcp::service
