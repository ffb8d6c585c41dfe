// Writes the file "mltcp.schedule/1" (see compatibility.h). The file contains the names of jobs and links instead of
// their indices.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "mltcp/base/json/json_object.h"
#include "mltcp/base/json/provenance.h"
#include "mltcp/lab/experiment/fit/compatibility.h"

namespace mltcp::experiment {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const ScheduleResult& schedule, const ScheduleResult::Link& link) {
  ordered_json jobs = ordered_json::array();
  for (const ScheduleResult::Use& use : link.uses) {
    const ScheduleResult::ScheduledJob& job = schedule.jobs[use.job];
    ordered_json demand = ordered_json::array();
    for (const scheduler::Burst& burst : use.demand.bursts)
      demand.push_back({burst.from.count, burst.to.count, burst.rate.bits_per_second});
    jobs.push_back({{"name", job.name},
                    {"period_ns", job.period.count},
                    {"slot_period_ns", job.slot_period.count},
                    {"stretch", job.stretch()},
                    {"repetitions", use.repetitions},
                    {"rotation_rad", use.rotation},
                    {"time_shift_ns", job.time_shift.count},
                    {"demand", std::move(demand)}});
  }
  ordered_json result{{"name", link.name},
                      {"capacity_bps", link.capacity.bits_per_second},
                      {"perimeter_ns", link.solution.perimeter.count},
                      {"angles", schedule.angles},
                      {"score", link.solution.score},
                      {"upper_bound", link.solution.upper_bound},
                      {"optimal", link.solution.optimal},
                      {"competed", link.competed},
                      {"unshifted_score", link.unshifted_score},
                      {"margin_ns", link.solution.margin.count},
                      {"drift_score", link.solution.drift_score},
                      {"jobs", std::move(jobs)}};
  if (link.competed) {
    result["component"] = link.component;
    result["within_limit"] = schedule.components[link.component].within_limit;
  }
  if (!link.removals.empty()) {
    ordered_json& removals = result["removals"] = ordered_json::array();
    for (const ScheduleResult::Removal& removal : link.removals)
      removals.push_back({{"without", schedule.jobs[removal.job].name},
                          {"score", removal.score},
                          {"upper_bound", removal.upper_bound}});
  }
  if (!link.pair_scores.empty()) {
    ordered_json& pairs = result["pair_scores"] = ordered_json::array();
    for (std::size_t a = 0; a < link.uses.size(); ++a)
      for (std::size_t b = a + 1; b < link.uses.size(); ++b)
        pairs.push_back({{"jobs", {schedule.jobs[link.uses[a].job].name, schedule.jobs[link.uses[b].job].name}},
                         {"score", link.pair_scores[a][b]}});
  }
  return result;
}

}  // namespace

std::string to_json(const ScheduleResult& schedule) {
  ordered_json links = ordered_json::array();
  for (const ScheduleResult::Link& link : schedule.links) links.push_back(json_of(schedule, link));
  ordered_json jobs = ordered_json::array();
  ordered_json unaware = ordered_json::array();
  for (const ScheduleResult::ScheduledJob& job : schedule.jobs) {
    if (job.unaware) {
      unaware.push_back(job.name);
      continue;
    }
    jobs.push_back({{"name", job.name},
                    {"time_shift_ns", job.time_shift.count},
                    {"period_ns", job.period.count},
                    {"slot_period_ns", job.slot_period.count},
                    {"stretch", job.stretch()},
                    {"component", job.component}});
  }
  ordered_json components = ordered_json::array();
  for (const ScheduleResult::Component& component : schedule.components) {
    ordered_json names = ordered_json::array();
    for (const std::uint32_t job : component.jobs) names.push_back(schedule.jobs[job].name);
    components.push_back({{"jobs", std::move(names)},
                          {"perimeter_ns", component.perimeter.count},
                          {"stretch", component.stretch},
                          {"within_limit", component.within_limit},
                          {"loops", component.loops},
                          {"lost", component.lost}});
  }
  ordered_json joint = ordered_json::array();
  for (const ScheduleResult::Loop& loop : schedule.joint) {
    ordered_json names = ordered_json::array();
    ordered_json on = ordered_json::array();
    for (const std::uint32_t job : loop.jobs) names.push_back(schedule.jobs[job].name);
    for (const std::uint32_t link : loop.links) on.push_back(schedule.links[link].name);
    joint.push_back({{"loops", loop.count}, {"jobs", std::move(names)}, {"links", std::move(on)}});
  }
  ordered_json root{{"schema", kScheduleSchema},
                    {"experiment", schedule.experiment},
                    {"demand", schedule.measured ? "measured" : "ideal"},
                    {"drift", schedule.drift},
                    {"score", schedule.score},
                    {"upper_bound", schedule.upper_bound},
                    {"optimal", schedule.optimal},
                    {"loops", schedule.loops},
                    {"lost", schedule.lost},
                    {"links", std::move(links)},
                    {"jobs", std::move(jobs)},
                    {"unaware", std::move(unaware)},
                    {"components", std::move(components)},
                    {"joint", std::move(joint)},
                    {"warnings", schedule.warnings}};
  if (schedule.enough_slack) root["enough_slack"] = *schedule.enough_slack;
  if (schedule.enough_stretch) root["enough_max_stretch"] = *schedule.enough_stretch;
  if (const auto& both = schedule.enough_together)
    root["enough_together"] = {{"slack", both->slack}, {"max_stretch", both->max_stretch}};
  if (schedule.provenance) root["provenance"] = to_json(*schedule.provenance);
  return json_text(root, 2);
}

}  // namespace mltcp::experiment
