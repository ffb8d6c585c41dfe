// Reads, writes and watches plan files (see plan_file.h).
#include "mltcp/lab/experiment/files/plan_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>
#include <limits>
#include <set>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/json/json_object.h"
#include "mltcp/base/json/provenance.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/files/file_kind.h"
#include "mltcp/scheduler/demand.h"

namespace mltcp::experiment {
namespace {

// The size limit is large, because a plan's provenance includes the text of its input files.
constexpr TextFile kPlanText{"a plan", 64U << 20};
constexpr std::int64_t kMaxEpoch = std::int64_t{1} << 61;
constexpr std::int64_t kMaxPeriod = scheduler::kLongestPeriod.count;
constexpr JsonLimits kPlanLimits{.depth = 8, .values = 1'000'000};

Nanos time_of(const JsonObject& json, std::string_view key, std::int64_t max, std::uint64_t min = 0) {
  return Nanos(static_cast<std::int64_t>(json.whole(key, static_cast<std::uint64_t>(max), min)));
}

}  // namespace

PlanFile parse_plan(std::string_view text, const std::string& file) {
  const std::string cure = "see docs/reference/plan-file.md";
  const nlohmann::json json = parsed(text, file, cure, kPlanLimits);
  const JsonObject root(json, file, cure, "");
  root.only({"schema", "serial", "clock", "epoch_ns", "valid_until_ns", "clock_bound_ns", "tolerance", "correction",
             "gradual_step", "jobs", "provenance"});
  if (root.text("schema") != kPlanSchema)
    root.refuse("schema", fmt::format("is \"{}\"", root.text("schema")), fmt::format("write \"{}\"", kPlanSchema));
  PlanFile plan;
  plan.serial = root.whole("serial", std::numeric_limits<std::int64_t>::max());
  const std::string clock = root.text("clock");
  if (clock != "experiment" && clock != "realtime")
    root.refuse("clock", fmt::format("is \"{}\"", clock), "write \"experiment\" or \"realtime\"");
  plan.clock = clock == "realtime" ? PlanFile::Clock::realtime : PlanFile::Clock::experiment;
  plan.epoch = time_of(root, "epoch_ns", kMaxEpoch);
  if (root.has("valid_until_ns")) plan.valid_until = time_of(root, "valid_until_ns", kMaxEpoch);
  if (root.has("clock_bound_ns")) plan.clock_bound = time_of(root, "clock_bound_ns", kMaxPeriod);
  if (root.has("tolerance")) plan.tolerance = root.real("tolerance");
  if (root.has("gradual_step")) plan.gradual_step = root.real("gradual_step");
  if (root.has("correction")) {
    const std::string correction = root.text("correction");
    if (correction != "at-once" && correction != "gradual")
      root.refuse("correction", fmt::format("is \"{}\"", correction), "write \"at-once\" or \"gradual\"");
    if (correction == "gradual") plan.correction = PhasePlan::Correction::gradual;
  }
  std::set<std::string> names;
  for (const JsonObject& entry : root.objects("jobs")) {
    entry.only({"name", "period_ns", "offset_ns"});
    PlanFile::PlannedJob& job = plan.jobs.emplace_back();
    job.name = entry.text("name");
    if (!names.insert(job.name).second) entry.refuse("name", "is the name of an earlier job too", "name each job once");
    job.period = time_of(entry, "period_ns", kMaxPeriod, 1);
    job.offset = time_of(entry, "offset_ns", kMaxPeriod);
    if (const std::string wrong = objection_to(slots_of(plan, job, Nanos(0))); !wrong.empty())
      throw InputError(one_line(fmt::format("{}: job {}: {}", file, in_quotes(job.name), wrong)));
  }
  return plan;
}

PlanFile read_plan(const std::filesystem::path& path) { return load_as(path, kPlanText, {FileKind::plan}, parse_plan); }

PhasePlan slots_of(const PlanFile& plan, const PlanFile::PlannedJob& job, Nanos zero) {
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
  for (const PlanFile::PlannedJob& job : plan.jobs)
    json["jobs"].push_back({{"name", job.name}, {"period_ns", job.period.count}, {"offset_ns", job.offset.count}});
  if (provenance) json["provenance"] = to_json(*provenance);
  return json_text(json, 2);
}

void write_plan(const PlanFile& plan, const std::filesystem::path& path) {
  if (const int error = replace_file(path, to_json(plan)); error != 0)
    throw RunError(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(error)));
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
    problems_.push_back(fmt::format("{}: the file was removed, so its plan no longer applies", path_.string()));
    if (!plan_) return News::none;
    plan_.reset();
    return News::gone;
  }
  try {
    PlanFile read = read_plan(path_);
    if (plan_ && read == *plan_) return News::none;  // only the file's timestamps have changed
    if (plan_ && read.serial <= plan_->serial) {
      problems_.push_back(fmt::format(
          "{}: the plan changed and its serial {} is not above the last one, {}; increase serial with each change",
          path_.string(), read.serial, plan_->serial));
      return News::none;
    }
    plan_ = std::move(read);
    return News::plan;
  } catch (const InputError& error) {
    problems_.push_back(plan_ ? fmt::format("{}; the plan with serial {} still applies", error.what(), plan_->serial)
                              : std::string(error.what()));
    return News::none;
  }
}

}  // namespace mltcp::experiment
