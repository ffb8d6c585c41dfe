// Reads and writes marks in AdminComment (see slurm_mark.h).
#include "mltcp/scheduler/service/slurm_mark.h"

#include <fmt/format.h>

#include "mltcp/base/error.h"
#include "mltcp/base/json/json_fields.h"
#include "mltcp/scheduler/service/scheduler_service.h"

namespace mltcp::service {

static constexpr auto fields_of(const SlurmMark::Plan* /*type*/) {
  using T = SlurmMark::Plan;
  return list_of<T>(field("number", &T::number), field("hosts", &T::hosts), left_out(&T::slots),
                    field("slot_unix_ns", &T::slot_unix_ns, WrittenWith{&T::slots}),
                    field("slot_period_ns", &T::slot_period_ns, WrittenWith{&T::slots}),
                    field("time_shift_ns", &T::time_shift_ns, WrittenWith{&T::slots}),
                    field("reason", &T::reason, WrittenUnless{&T::slots}),
                    field("score", &T::score, InJson{.min = -1e18, .max = 1}), field("revision", &T::revision));
}

static void complete(const JsonObject& json, SlurmMark::Plan& plan) {
  plan.slots = json.has("slot_unix_ns");
  for (const char* key : {"slot_period_ns", "time_shift_ns"})
    if (json.has(key) != plan.slots) json.fail(key, "does not go with slot_unix_ns");
  if (json.has("reason") == plan.slots) json.fail("reason", "does not go with slot_unix_ns");
}

static constexpr auto fields_of(const SlurmMark* /*type*/) {
  using T = SlurmMark;
  return list_of<T>(left_out(&T::before), left_out(&T::behind), left_out(&T::profile),
                    field("reason", &T::reason, kIfSet), field("held", &T::held, kIfSet),
                    field("asked_nodes", &T::asked_nodes, kIfSet), field("plan", &T::plan, kIfSet));
}

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOpening = "mltcp:";
// Limits of a mark that is read. job_submit.lua writes smaller marks, but an administrator may have written a larger
// one.
constexpr std::size_t kLongest = std::size_t{1} << 20;
constexpr JsonLimits kLimits{.depth = 6, .values = 100'000};

/// Shortens `text` to 180 bytes. Replaces characters that are not printable ASCII, or would end a string or an object
/// for spank_mltcp.c.
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
  const std::string name;
  SlurmMark mark;
  try {
    const nlohmann::json json = parsed(text, name, name, kLimits);
    const JsonObject object(json, name, name, "");
    read(object, mark);
    static_cast<void>(object.at("profile"));
    mark.profile = Json::parse(text).at("profile").dump();  // ordered_json keeps the order of keys
  } catch (const InputError&) {
    return std::nullopt;
  }
  mark.before = comment.substr(0, begin);
  mark.behind = comment.substr(end + 1);
  return mark;
}

std::string to_text(const SlurmMark& mark) {
  Json object{{"profile", Json::parse(mark.profile)}};
  object.update(written(mark));
  if (!mark.reason.empty()) object["reason"] = plain(mark.reason);
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
  Json phases = Json::array();
  for (const workload::Phase& phase : profile.job.phases) {
    Json& entry = phases.emplace_back();
    if (phase.kind == workload::Phase::Kind::compute) {
      entry["compute_ns"] = phase.compute.count;
    } else {
      entry["communicate_bytes"] = phase.bytes;
      if (!phase.rate.is_zero()) entry["rate_bps"] = phase.rate.bits_per_second;
      if (phase.overlap) entry["overlap"] = true;
    }
  }
  Json object{{"phases", std::move(phases)}};
  if (!profile.job.rate.is_zero()) object["rate_bps"] = profile.job.rate.bits_per_second;
  if (profile.period.count > 0) object["period_ns"] = profile.period.count;
  if (profile.job.flows != 1) object["flows"] = profile.job.flows;
  return object.dump();
}

}  // namespace mltcp::service
