// AdminComment of a job (see slurm_mark.h).
#include "mltcp/scheduler/service/slurm_mark.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "mltcp/base/error.h"
#include "mltcp/base/json.h"
#include "mltcp/scheduler/service/scheduler_service.h"

namespace mltcp::service {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOpening = "mltcp:";
// Marks come from job_submit.lua, which bounds them, and from the driver; administrators may have written others.
constexpr std::size_t kLongest = std::size_t{1} << 20;
constexpr JsonLimits kLimits{.depth = 6, .values = 100'000};

/// Without what would end a string or an object for the reader on the nodes.
std::string plain(std::string_view text) {
  std::string result(text.substr(0, 180));
  for (char& character : result) {
    if (character == '"') character = '\'';
    if (character == '{') character = '(';
    if (character == '}') character = ')';
    if (character == '\\') character = '/';
    if (static_cast<unsigned char>(character) < ' ' || static_cast<unsigned char>(character) > '~') character = '?';
  }
  return result;
}

std::vector<std::string> names_of(const Json& array) {
  std::vector<std::string> names;
  for (const auto& name : array) names.push_back(name.get<std::string>());
  return names;
}

template <typename Number>
Number number_of(const Json& object, const char* key) {
  return whole_number<Number>(object.at(key)).value();
}

SlurmMark::Plan plan_of(const Json& object) {
  SlurmMark::Plan plan;
  plan.number = number_of<std::uint32_t>(object, "number");
  plan.hosts = names_of(object.at("hosts"));
  plan.slots = object.contains("slot_unix_ns");
  if (plan.slots) {
    plan.slot_unix_ns = number_of<std::int64_t>(object, "slot_unix_ns");
    plan.slot_period_ns = number_of<std::int64_t>(object, "slot_period_ns");
    plan.time_shift_ns = number_of<std::int64_t>(object, "time_shift_ns");
  } else {
    plan.reason = object.at("reason").get<std::string>();
  }
  plan.score = object.at("score").get<double>();
  plan.revision = number_of<std::uint64_t>(object, "revision");
  return plan;
}

}  // namespace

bool is_slurm_id(std::string_view id) {
  constexpr std::string_view prefix = "slurm-";
  constexpr std::string_view digits = "0123456789";
  if (!id.starts_with(prefix)) return false;
  id.remove_prefix(prefix.size());
  const std::size_t dash = id.find_first_not_of(digits);
  return dash != 0 && dash != std::string_view::npos && id[dash] == '-' && dash + 1 < id.size() &&
         id.find_first_not_of(digits, dash + 1) == std::string_view::npos;
}

std::optional<SlurmMark> parse_mark(std::string_view comment) {
  const std::size_t begin = comment.find("mltcp:{");
  if (begin == std::string_view::npos || comment.size() > kLongest) return std::nullopt;
  std::size_t end = begin;
  for (std::size_t depth = 0; end < comment.size(); ++end) {
    if (comment[end] == '{') ++depth;
    if (comment[end] == '}' && --depth == 0) break;
  }
  if (end == comment.size()) return std::nullopt;
  const std::string_view text = comment.substr(begin + kOpening.size(), end + 1 - begin - kOpening.size());
  if (!beyond_limits(text, kLimits).empty()) return std::nullopt;
  SlurmMark mark;
  try {
    Json object = Json::parse(text);
    mark.before = comment.substr(0, begin);
    mark.behind = comment.substr(end + 1);
    mark.profile = object.at("profile").dump();
    if (object.contains("reason")) mark.reason = object["reason"].get<std::string>();
    if (object.contains("held")) mark.held = object["held"].get<bool>();
    if (object.contains("asked_nodes")) mark.asked_nodes = names_of(object["asked_nodes"]);
    if (object.contains("plan")) mark.plan = plan_of(object["plan"]);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  } catch (const std::bad_optional_access&) {
    return std::nullopt;
  }
  return mark;
}

std::string to_text(const SlurmMark& mark) {
  Json object;
  object["profile"] = Json::parse(mark.profile);
  if (!mark.reason.empty()) object["reason"] = plain(mark.reason);
  if (mark.held) object["held"] = true;
  if (!mark.asked_nodes.empty()) object["asked_nodes"] = mark.asked_nodes;
  if (mark.plan) {
    Json& plan = object["plan"];
    plan["number"] = mark.plan->number;
    plan["hosts"] = mark.plan->hosts;
    if (mark.plan->slots) {
      plan["slot_unix_ns"] = mark.plan->slot_unix_ns;
      plan["slot_period_ns"] = mark.plan->slot_period_ns;
      plan["time_shift_ns"] = mark.plan->time_shift_ns;
    } else {
      plan["reason"] = plain(mark.plan->reason);
    }
    plan["score"] = mark.plan->score;
    plan["revision"] = mark.plan->revision;
  }
  return mark.before + std::string(kOpening) + object.dump() + mark.behind;
}

SlurmMark::Plan to_mark(const JobPlan& plan) {
  SlurmMark::Plan mark{.number = plan.number, .hosts = plan.hosts, .slots = plan.slots};
  if (plan.slots) {
    mark.slot_unix_ns = plan.slot_unix_ns;
    mark.slot_period_ns = plan.slot_period.count;
    mark.time_shift_ns = plan.time_shift.count;
  } else {
    mark.reason = plain(plan.reason.empty() ? "the scheduler gives it none" : plan.reason);
  }
  mark.score = plan.score;
  mark.revision = plan.revision;
  return mark;
}

std::string to_line(const JobProfile& profile) {
  if (profile.period.count > 0 && profile.period < kShortestIteration)
    throw InputError(fmt::format("profile: period_ns: an iteration takes {}; give {} ns or more",
                                 mltcp::to_text(profile.period), kShortestIteration.count));
  Json object;
  Json& phases = object["phases"] = Json::array();
  for (const workload::Phase& phase : profile.job.phases) {
    Json entry;
    if (phase.kind == workload::Phase::Kind::compute) {
      entry["compute_ns"] = phase.compute.count;
    } else {
      entry["communicate_bytes"] = phase.bytes;
      if (!phase.rate.is_zero()) entry["rate_bps"] = phase.rate.bits_per_second;
      if (phase.overlap) entry["overlap"] = true;
    }
    phases.push_back(std::move(entry));
  }
  if (!profile.job.rate.is_zero()) object["rate_bps"] = profile.job.rate.bits_per_second;
  if (profile.period.count > 0) object["period_ns"] = profile.period.count;
  if (profile.job.flows != 1) object["flows"] = profile.job.flows;
  return object.dump();
}

JobProfile profile_from_line(std::string_view text, const std::string& where) {
  // Only what is well-formed and bounded is taken apart here; about the rest the reader of profiles has better words.
  if (text.find("\"flows\"") == std::string_view::npos || !beyond_limits(text, kLimits).empty())
    return profile_from_text(text, where);
  Json object = Json::parse(text, nullptr, false);
  if (!object.is_object() || !object.contains("flows")) return profile_from_text(text, where);
  const auto flows = whole_number<std::uint32_t>(object["flows"], 1, kMaxFlows);
  if (!flows)
    throw InputError(
        fmt::format("{}: flows: this is out of range; give a whole number from 1 to {}", where, kMaxFlows));
  object.erase("flows");
  JobProfile profile = profile_from_text(object.dump(), where);
  profile.job.flows = *flows;
  return profile;
}

}  // namespace mltcp::service
