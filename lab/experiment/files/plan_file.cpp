// Plan files and their watcher (see plan_file.h).
#include "mltcp/lab/experiment/files/plan_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/json/json_values.h"
#include "mltcp/base/json/provenance.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/files/file_kind.h"
#include "mltcp/scheduler/demand.h"

namespace mltcp::experiment {
namespace {

using Json = nlohmann::json;

constexpr TextFile kPlanText{"a plan", 64U << 20};  // with the texts of what it was made of
constexpr std::int64_t kMaxEpoch = std::int64_t{1} << 61;
constexpr std::int64_t kMaxPeriod = scheduler::kLongestPeriod.count;
constexpr std::size_t kMaxNesting = 8;
constexpr JsonLimits kPlanLimits{.depth = kMaxNesting, .values = 1'000'000};

/// One object of the file, with the place that it stands at.
class Object {
 public:
  Object(const Json& json, const std::string& file, std::string place, std::initializer_list<std::string_view> known)
      : json_(json), file_(file), place_(std::move(place)) {
    if (!json_.is_object()) fail(place_.empty() ? "the file" : place_, "is not an object", "write { ... }");
    for (const auto& entry : json_.items())
      if (std::find(known.begin(), known.end(), entry.key()) == known.end())
        fail(path(entry.key()), "is not known", fmt::format("the fields are {}", fmt::join(known, ", ")));
  }

  [[noreturn]] void fail(std::string_view place, std::string_view cause, std::string_view cure) const {
    throw InputError(one_line(fmt::format("{}: {} {}; {}", file_, place, cause, cure)));
  }
  [[nodiscard]] std::string path(std::string_view key) const {
    return place_.empty() ? std::string(key) : fmt::format("{}: {}", place_, key);
  }
  [[nodiscard]] bool has(std::string_view key) const { return json_.contains(key); }
  [[nodiscard]] const Json& at(std::string_view key) const {
    if (!has(key)) fail(path(key), "is missing", "see docs/plans.md");
    return json_[key];
  }
  [[nodiscard]] std::string text(std::string_view key) const {
    if (!at(key).is_string()) fail(path(key), "is not a text", "put it into quotes");
    return at(key).get<std::string>();
  }
  [[nodiscard]] std::uint64_t whole(std::string_view key, std::int64_t least, std::int64_t most) const {
    const auto value = whole_number(at(key), least, most);
    if (!value) fail(path(key), "is out of range", fmt::format("write a whole number from {} to {}", least, most));
    return static_cast<std::uint64_t>(*value);
  }
  [[nodiscard]] Nanos time(std::string_view key, std::int64_t least, std::int64_t most) const {
    return Nanos(static_cast<std::int64_t>(whole(key, least, most)));
  }
  [[nodiscard]] double number(std::string_view key) const {
    if (!at(key).is_number()) fail(path(key), "is not a number", "write a share of the period, such as 0.05");
    return at(key).get<double>();
  }

 private:
  const Json& json_;
  const std::string& file_;
  std::string place_;
};

Json parse_bounded(std::string_view text, const std::string& file) {
  if (const std::string wrong = beyond_limits(text, kPlanLimits); !wrong.empty())
    throw InputError(fmt::format("{}: the file {}, as no plan does; see docs/plans.md", file, wrong));
  // Of a field that stands there twice JSON takes one in silence.
  std::array<std::set<std::string>, kMaxNesting + 1> fields;  // by depth, of the object that is being read
  const auto once = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const auto at = static_cast<std::size_t>(depth);
    if (event == Json::parse_event_t::object_start && at < kMaxNesting) fields[at + 1].clear();
    if (event == Json::parse_event_t::key && !fields[at].insert(parsed.get<std::string>()).second)
      throw InputError(one_line(
          fmt::format("{}: {} stands there twice; write it once", file, in_quotes(parsed.get<std::string>()))));
    return true;
  };
  try {
    return Json::parse(text, once);
  } catch (const Json::exception& error) {
    throw InputError(one_line(fmt::format("{}: the file is not JSON, {}; see docs/plans.md", file, problem_of(error))));
  }
}

/// A job of the list, by its number from 1 on and its name, if it has one: "job 2, \"vgg\"".
std::string place_of(const Json& job, std::size_t index) {
  const auto name = job.is_object() ? job.find("name") : job.end();
  const bool named = name != job.end() && name->is_string();
  return fmt::format("job {}{}", index + 1, named ? ", " + in_quotes(name->get<std::string>()) : "");
}

}  // namespace

PlanFile parse_plan(std::string_view text, const std::string& file) {
  const Json json = parse_bounded(text, file);
  const Object root(json, file, "",
                    {"schema", "serial", "clock", "epoch_ns", "valid_until_ns", "clock_bound_ns", "tolerance",
                     "correction", "gradual_step", "jobs", "provenance"});
  if (root.text("schema") != kPlanSchema)
    root.fail("schema", fmt::format("is \"{}\"", root.text("schema")), fmt::format("write \"{}\"", kPlanSchema));
  PlanFile plan;
  plan.serial = root.whole("serial", 0, std::numeric_limits<std::int64_t>::max());
  const std::string clock = root.text("clock");
  if (clock != "experiment" && clock != "realtime")
    root.fail("clock", fmt::format("is \"{}\"", clock), "write \"experiment\" or \"realtime\"");
  plan.clock = clock == "realtime" ? PlanFile::Clock::realtime : PlanFile::Clock::experiment;
  plan.epoch = root.time("epoch_ns", 0, kMaxEpoch);
  if (root.has("valid_until_ns")) plan.valid_until = root.time("valid_until_ns", 0, kMaxEpoch);
  if (root.has("clock_bound_ns")) plan.clock_bound = root.time("clock_bound_ns", 0, kMaxPeriod);
  if (root.has("tolerance")) plan.tolerance = root.number("tolerance");
  if (root.has("gradual_step")) plan.gradual_step = root.number("gradual_step");
  if (root.has("correction")) {
    const std::string correction = root.text("correction");
    if (correction != "at-once" && correction != "gradual")
      root.fail("correction", fmt::format("is \"{}\"", correction), "write \"at-once\" or \"gradual\"");
    if (correction == "gradual") plan.correction = PhasePlan::Correction::gradual;
  }
  const Json& jobs = root.at("jobs");
  if (!jobs.is_array()) root.fail("jobs", "is not a list", "write [ { \"name\": ... }, ... ]");
  std::set<std::string> names;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Object entry(jobs[i], file, place_of(jobs[i], i), {"name", "period_ns", "offset_ns"});
    PlanFile::Job& job = plan.jobs.emplace_back();
    job.name = entry.text("name");
    if (!names.insert(job.name).second)
      entry.fail(entry.path("name"), "is that of a job before, too", "name each job once");
    job.period = entry.time("period_ns", 1, kMaxPeriod);
    job.offset = entry.time("offset_ns", 0, kMaxPeriod);
    if (const std::string wrong = objection_to(slots_of(plan, job, Nanos(0))); !wrong.empty())
      throw InputError(one_line(fmt::format("{}: {}: {}", file, place_of(jobs[i], i), wrong)));
  }
  return plan;
}

PlanFile read_plan(const std::filesystem::path& path) {
  const std::string file = path.string();
  const std::string text = read_text_file(path, file, kPlanText);
  try {
    return parse_plan(text, file);
  } catch (const InputError&) {
    refuse_other_kind(text, file, kPlanText.what, {FileKind::plan});
    throw;
  }
}

PhasePlan slots_of(const PlanFile& plan, const PlanFile::Job& job, Nanos zero) {
  PhasePlan slots;
  slots.slot = zero + plan.epoch + job.offset;
  slots.period = job.period;
  slots.tolerance = plan.tolerance;
  slots.correction = plan.correction;
  slots.gradual_step = plan.gradual_step;
  slots.clock_bound = plan.clock_bound;
  if (!plan.valid_until.is_never()) slots.valid_until = zero + plan.valid_until;
  return slots;
}

std::string to_json(const PlanFile& plan, const std::optional<Provenance>& provenance) {
  nlohmann::ordered_json json;
  json["schema"] = kPlanSchema;
  json["serial"] = plan.serial;
  json["clock"] = plan.clock == PlanFile::Clock::realtime ? "realtime" : "experiment";
  json["epoch_ns"] = plan.epoch.count;
  if (!plan.valid_until.is_never()) json["valid_until_ns"] = plan.valid_until.count;
  json["clock_bound_ns"] = plan.clock_bound.count;
  json["tolerance"] = plan.tolerance;
  json["correction"] = plan.correction == PhasePlan::Correction::gradual ? "gradual" : "at-once";
  json["gradual_step"] = plan.gradual_step;
  json["jobs"] = nlohmann::ordered_json::array();
  for (const PlanFile::Job& job : plan.jobs)
    json["jobs"].push_back({{"name", job.name}, {"period_ns", job.period.count}, {"offset_ns", job.offset.count}});
  if (provenance) json["provenance"] = to_json(*provenance);
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void write_plan(const PlanFile& plan, const std::filesystem::path& path) {
  if (const int error = replace_file(path, to_json(plan)); error != 0)
    throw RunError(fmt::format("{}: can't be written: {}", path.string(), std::strerror(error)));
}

std::optional<PlanWatcher::Identity> PlanWatcher::look() const {
  struct stat status {};
  if (stat(path_.c_str(), &status) != 0) return std::nullopt;
  return Identity{std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
                  static_cast<std::uint64_t>(status.st_size), status.st_ino};
}

PlanWatcher::News PlanWatcher::poll(Nanos now) {
  if (now < next_look_) return News::none;
  next_look_ = now + interval_;
  const std::optional<Identity> found = look();
  if (found == seen_) return News::none;
  seen_ = found;
  if (!found) {
    problems_.push_back(fmt::format("{}: the file is gone, and its plan with it", path_.string()));
    if (!plan_) return News::none;
    plan_.reset();
    return News::gone;
  }
  try {
    PlanFile read = read_plan(path_);
    if (plan_ && read == *plan_) return News::none;  // only touched
    if (plan_ && read.serial <= plan_->serial) {
      problems_.push_back(
          fmt::format("{}: another plan with serial {}, after one with {}; count it up with each change",
                      path_.string(), read.serial, plan_->serial));
      return News::none;
    }
    plan_ = std::move(read);
    return News::plan;
  } catch (const InputError& error) {
    problems_.push_back(plan_ ? fmt::format("{}; the plan with serial {} stays", error.what(), plan_->serial)
                              : std::string(error.what()));
    return News::none;
  }
}

}  // namespace mltcp::experiment
