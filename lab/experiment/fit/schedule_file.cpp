// Reads schedule files (see schedule_file.h).
#include "mltcp/lab/experiment/fit/schedule_file.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "mltcp/base/json/json_object.h"
#include "mltcp/base/json/json_values.h"

namespace mltcp::experiment {
namespace {

using Indices = std::map<std::string, std::uint32_t>;

std::uint32_t index_of(const JsonObject& json, std::string_view key, const Indices& known, const std::string& name) {
  const auto at = known.find(name);
  if (at == known.end()) json.fail(json.path_of(key), "names something that the file does not have");
  return at->second;
}

ScheduleResult::Use use_from(const JsonObject& json, const Indices& jobs) {
  ScheduleResult::Use use;
  use.job = index_of(json, "name", jobs, json.text("name"));
  use.repetitions = json.number("repetitions");
  use.rotation = json.real("rotation_rad");
  use.demand.period = json.nanos("period_ns");
  for (const auto& burst : json.tuples("demand", 3)) {
    if (burst[1] < burst[0] || burst[1] > static_cast<std::uint64_t>(kMaxTime.count))
      json.fail(json.path_of("demand"), "has a burst that ends before it begins, or after 36 years");
    use.demand.bursts.push_back(
        {Nanos(static_cast<std::int64_t>(burst[0])), Nanos(static_cast<std::int64_t>(burst[1])), Rate(burst[2])});
  }
  return use;
}

ScheduleResult::Link link_from(const JsonObject& json, const Indices& jobs) {
  ScheduleResult::Link link;
  link.name = json.text("name");
  link.capacity = Rate(json.whole("capacity_bps"));
  link.solution.perimeter = json.nanos("perimeter_ns");
  link.solution.score = json.real("score");
  link.solution.upper_bound = json.real("upper_bound");
  link.solution.optimal = json.truth("optimal");
  link.solution.margin = json.nanos("margin_ns");
  link.solution.drift_score = json.real("drift_score");
  link.competed = json.truth("competed");
  link.unshifted_score = json.real("unshifted_score");
  if (json.has("component")) link.component = json.number("component");
  for (const JsonObject& use : json.objects("jobs")) link.uses.push_back(use_from(use, jobs));
  for (const JsonObject& removal : json.later_objects("removals"))
    link.removals.push_back({index_of(removal, "without", jobs, removal.text("without")), removal.real("score"),
                             removal.real("upper_bound")});
  return link;
}

}  // namespace

ScheduleResult parse_schedule(std::string_view text, const std::string& file) {
  const std::string cure = "give a file that `mltcp schedule --json FILE` wrote, or write it again";
  const nlohmann::json json = parsed(text, file, cure);
  const JsonObject root(json, file, cure, "");
  if (root.text("schema") != kScheduleSchema) root.fail("schema", fmt::format("is not \"{}\"", kScheduleSchema));
  ScheduleResult schedule;
  schedule.experiment = root.text("experiment");
  schedule.measured = root.text("demand") == "measured";
  schedule.drift = root.real("drift");
  schedule.score = root.real("score");
  schedule.upper_bound = root.real("upper_bound");
  schedule.optimal = root.truth("optimal");
  schedule.loops = root.number("loops");
  schedule.lost = root.real("lost");
  Indices jobs;
  for (const JsonObject& entry : root.objects("jobs")) {
    ScheduleResult::ScheduledJob job;
    job.name = entry.text("name");
    job.time_shift = entry.nanos("time_shift_ns");
    job.period = entry.nanos("period_ns");
    job.slot_period = entry.nanos("slot_period_ns");
    job.component = entry.number("component");
    jobs.try_emplace(job.name, static_cast<std::uint32_t>(schedule.jobs.size()));
    schedule.jobs.push_back(std::move(job));
  }
  for (const std::string& name : root.texts("unaware")) {
    ScheduleResult::ScheduledJob job;
    job.name = name;
    job.unaware = true;
    jobs.try_emplace(name, static_cast<std::uint32_t>(schedule.jobs.size()));
    schedule.jobs.push_back(std::move(job));
  }
  Indices links;
  for (const JsonObject& entry : root.objects("links")) {
    schedule.links.push_back(link_from(entry, jobs));
    links.try_emplace(schedule.links.back().name, static_cast<std::uint32_t>(schedule.links.size() - 1));
  }
  for (const JsonObject& entry : root.objects("joint")) {
    ScheduleResult::Loop loop;
    loop.count = entry.number("loops");
    for (const std::string& name : entry.texts("jobs")) loop.jobs.push_back(index_of(entry, "jobs", jobs, name));
    for (const std::string& name : entry.texts("links")) loop.links.push_back(index_of(entry, "links", links, name));
    schedule.joint.push_back(std::move(loop));
  }
  schedule.enough_slack = root.later_real("enough_slack");
  schedule.enough_stretch = root.later_real("enough_max_stretch");
  if (root.has("enough_together")) {
    const JsonObject both = root.object("enough_together");
    schedule.enough_together = ScheduleResult::Together{both.real("slack"), both.real("max_stretch")};
  }
  schedule.warnings = root.texts("warnings");
  schedule.provenance = provenance_of(root);
  return schedule;
}

}  // namespace mltcp::experiment
