// The page of a schedule: fills its template (report/schedule.html) with text, tables and data.
#include "mltcp/lab/experiment/report/schedule_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <vector>

#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/report/internal/html.h"
#include "mltcp/lab/experiment/report/internal/network_drawing.h"
#include "mltcp/lab/experiment/report/internal/report_text.h"

namespace mltcp::embedded {
extern const std::string_view schedule_html;
extern const std::string_view report_css;
extern const std::string_view schedule_css;
extern const std::string_view schedule_js;
}  // namespace mltcp::embedded

namespace mltcp::experiment {
namespace {

// Scores are coloured in steps. Each step has a name and a minimum score. The first step is for links on which shifts
// do not matter. The colours are .s0, .s1 and so on in schedule.css.
struct Step {
  std::string_view name;
  double from;
};
constexpr std::array<Step, 5> kSteps{{{"any time shifts work", 2},
                                      {"fully compatible: 1", 1},
                                      {"0.95 to below 1", 0.95},
                                      {"0.85 to 0.95", 0.85},
                                      {"below 0.85", -1e300}}};

std::size_t step_of(const ScheduleResult::Link& link) {
  if (!link.competed) return 0;
  std::size_t step = 1;
  while (step + 1 < kSteps.size() && link.solution.score < kSteps[step].from) ++step;
  return step;
}

std::string millis(Nanos time) { return fmt::format("{:.3f}", time.millis()); }

std::string lead(const ScheduleResult& schedule) {
  std::size_t compatible = 0;
  const auto competed =
      static_cast<std::size_t>(std::ranges::count_if(schedule.links, [](const auto& link) { return link.competed; }));
  for (const ScheduleResult::Link& link : schedule.links) compatible += link.solution.score >= 1 ? 1 : 0;
  std::string out = "<p class=\"lead\">";
  if (schedule.links.empty()) return out + "No link is used by two jobs: every job may begin at any time.</p>\n";
  if (schedule.links.size() == 1) {
    std::string text = verdict(schedule, schedule.links.front());
    if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return out + escaped(text) + ".</p>\n";
  }
  out +=
      fmt::format("{} of {} that jobs share are fully compatible", compatible, plural(schedule.links.size(), "link"));
  if (competed < schedule.links.size())
    out += fmt::format(", {} of them with any time shifts", schedule.links.size() - competed);
  out += fmt::format(". The mean score is {}, {}.", score_text(schedule.score),
                     schedule.optimal ? "and no shifts in these slots give a higher one"
                                      : fmt::format("and no shifts in these slots give more than {}",
                                                    score_text(schedule.upper_bound)));
  return out + "</p>\n";
}

std::string network_text(const Topology& topology) {
  const std::string hosts = plural(topology.hosts(), "host");
  if (const auto& shape = topology.leaf_spine_shape())
    return fmt::format("{} leaves, {} spines, {}", shape->leaves, shape->spines, hosts);
  return fmt::format("{} {}, {}", topology.switches(), topology.switches() == 1 ? "switch" : "switches", hosts);
}

std::string facts(const ScheduleResult& schedule) {
  std::string out = "<dl class=\"facts\">";
  std::vector<std::string> unaware;
  for (const ScheduleResult::ScheduledJob& job : schedule.jobs)
    if (job.unaware) unaware.push_back(escaped(job.name));
  out += fact("Jobs", std::to_string(schedule.jobs.size()));
  if (!unaware.empty()) out += fact("Unaware, without a slot", listed(unaware));
  if (schedule.topology) out += fact("Network", network_text(*schedule.topology));
  if (schedule.links.size() == 1)
    for (const ScheduleResult::Link& link : schedule.links) {
      out += fact("Link", fmt::format("{}, {}", escaped(link.name), to_text(link.capacity)));
      out += fact("Score",
                  score_text(link.solution.score) +
                      (link.solution.optimal ? ", proven best"
                                             : fmt::format(", at most {}", score_text(link.solution.upper_bound))));
      out += fact("Unshifted", score_text(link.unshifted_score));
      if (!link.competed) continue;
      out += fact("Margin", fmt::format("{} ms", millis(link.solution.margin)));
      out += fact(fmt::format("If each job drifts by {:.0f}%", 100 * schedule.drift),
                  score_text(link.solution.drift_score));
      out += fact("Perimeter", fmt::format("{} ms", millis(link.solution.perimeter)));
    }
  out += fact("Demand", schedule.measured ? "measured on the simulator" : "ideal: bytes / rate");
  return out + "</dl>\n";
}

std::string link_table(const ScheduleResult& schedule) {
  std::string rows;
  for (const std::size_t i : worst_first(schedule)) {
    const ScheduleResult::Link& link = schedule.links[i];
    const scheduler::LinkSolution& solution = link.solution;
    rows += fmt::format(
        "<tr><th scope=\"row\"><button type=\"button\" class=\"link\" data-link=\"{}\"><i class=\"swatch s{}\"></i>"
        "{}</button></th>{}{}{}{}{}{}{}</tr>\n",
        i, step_of(link), escaped(link.name), cell("Jobs", std::to_string(link.uses.size())),
        cell("Score", fmt::format("<b>{}</b>", score_text(solution.score))),
        cell("Bound", score_text(solution.upper_bound) + (solution.optimal ? ", proven" : "")),
        cell("Unshifted", score_text(link.unshifted_score)), cell("If drifting", score_text(solution.drift_score)),
        cell("Margin, ms", link.competed ? millis(solution.margin) : "–"),
        cell("Perimeter, ms", link.competed ? millis(solution.perimeter) : "–"));
  }
  std::string out =
      "<div class=\"wide tall\" tabindex=\"0\" role=\"region\" aria-label=\"Links\"><table class=\"cards\">"
      "<caption>Links, the worst first</caption><thead><tr>";
  for (const char* column :
       {"Link", "Jobs", "Score", "Bound", "Unshifted", "If drifting", "Margin, ms", "Perimeter, ms"})
    out += fmt::format("<th scope=\"col\">{}</th>", column);
  return out + "</tr></thead>\n<tbody>" + rows + "</tbody></table></div>\n";
}

std::string loops(const ScheduleResult& schedule) {
  if (schedule.joint.empty()) return "";
  constexpr std::size_t max = 12;  // maximum number of names in a sentence
  const auto names = [&](const std::vector<std::uint32_t>& which, const auto& of) {
    std::vector<std::string> list;
    for (std::size_t i = 0; i < std::min(which.size(), max); ++i)
      list.push_back("<b>" + escaped(of[which[i]].name) + "</b>");
    if (which.size() > max) list.push_back(fmt::format("{} more", which.size() - max));
    return listed(list);
  };
  std::string out = fmt::format(
      "<section id=\"loops\"><h2>Loops</h2>\n<p>Where jobs and links form a loop, shifts that are found link by link "
      "cannot be combined. These links were solved together, which costs {} of the sum of the scores that each link "
      "reaches alone.</p><ul>\n",
      score_text(schedule.lost));
  for (const ScheduleResult::Loop& loop : schedule.joint)
    out += fmt::format("<li>{}: {} on {}</li>\n", plural(loop.count, "loop"), names(loop.jobs, schedule.jobs),
                       names(loop.links, schedule.links));
  return out + "</ul></section>\n";
}

bool drawn(const ScheduleResult& schedule) {
  return schedule.topology != nullptr && schedule.topology->nodes() <= kMaxDrawnNodes;
}

std::string network_section(const ScheduleResult& schedule) {
  if (schedule.links.size() < 2) return "";
  std::array<std::size_t, kSteps.size()> counts{};
  for (const ScheduleResult::Link& link : schedule.links) ++counts[step_of(link)];
  std::string legend;
  for (std::size_t s = 0; s < kSteps.size(); ++s)
    legend += fmt::format("<li><i class=\"swatch s{}\"></i>{} <span class=\"unit\">({})</span></li>", s, kSteps[s].name,
                          plural(counts[s], "link"));
  std::string out = "<section id=\"cluster\"><h2>The cluster</h2>\n";
  if (drawn(schedule))
    out += fmt::format(
        "<div class=\"needs-js\"><p>Every line is a link in one direction; coloured links are shared by jobs. Select "
        "one here or in the table to see its circles.</p>\n<ul class=\"legend\">{}<li><i class=\"swatch none\"></i>one "
        "job or none</li></ul>\n<div id=\"network\" class=\"wide\" role=\"img\" aria-label=\"The network with its "
        "shared links coloured by score; the table of links says the same\"></div></div>\n",
        legend);
  return out + link_table(schedule) + "</section>\n";
}

std::string job_table(const ScheduleResult& schedule) {
  const bool rotations = schedule.links.size() == 1 && schedule.links[0].competed;
  std::string out =
      "<table class=\"cards\"><caption>When each job begins</caption><thead><tr><th scope=\"col\">Job</th>";
  std::vector<std::string_view> columns{"Iteration alone, ms", "Slot, ms", "Stretch"};
  if (rotations) columns.insert(columns.end(), {"Repetitions", "Rotation"});
  columns.emplace_back("Time shift, ms");
  for (const std::string_view column : columns) out += fmt::format("<th scope=\"col\">{}</th>", column);
  out += "</tr></thead>\n<tbody>";
  for (std::uint32_t number = 0; number < schedule.jobs.size(); ++number) {
    const ScheduleResult::ScheduledJob& job = schedule.jobs[number];
    out += fmt::format("<tr><th scope=\"row\"><span class=\"name\">{}</span></th>", escaped(job.name));
    if (job.unaware) {
      out += fmt::format("<td colspan=\"{}\">unaware: keeps no plan</td></tr>\n", columns.size());
      continue;
    }
    out += cell(columns[0], millis(job.period)) + cell(columns[1], millis(job.slot_period)) +
           cell(columns[2], fmt::format("{:.2f}%", 100 * job.stretch()));
    if (rotations)
      for (const ScheduleResult::Use& use : schedule.links[0].uses)
        if (use.job == number)
          out += cell("Repetitions", std::to_string(use.repetitions)) +
                 cell("Rotation", fmt::format("{:.1f}°", use.rotation * 180 / std::numbers::pi));
    out += cell("Time shift, ms", fmt::format("<b>{}</b>", millis(job.time_shift))) + "</tr>\n";
  }
  return "<div class=\"wide\">" + out + "</tbody></table></div>\n";
}

std::string removal_table(const ScheduleResult& schedule, const ScheduleResult::Link& link) {
  if (link.removals.empty()) return "";
  std::string out =
      "<div class=\"wide\"><table class=\"cards\"><caption>Score of the other jobs if one is "
      "removed</caption><thead><tr><th scope=\"col\">Without</th><th scope=\"col\">Score</th><th "
      "scope=\"col\">Bound</th></tr></thead>\n<tbody>";
  for (const ScheduleResult::Removal& removal : link.removals)
    out += fmt::format("<tr><th scope=\"row\"><span class=\"name\">{}</span></th>{}{}</tr>\n",
                       escaped(schedule.jobs[removal.job].name), cell("Score", score_text(removal.score)),
                       cell("Bound", score_text(removal.upper_bound)));
  return out + "</tbody></table></div>\n";
}

// Returns the data that the script draws. Equal demands on several links are stored once.
nlohmann::json drawing_data(const ScheduleResult& schedule) {
  nlohmann::json data;
  data["jobs"] = nlohmann::json::array();
  for (const ScheduleResult::ScheduledJob& job : schedule.jobs)
    data["jobs"].push_back({{"name", job.name}, {"slot", job.slot_period.count}, {"shift", job.time_shift.count}});
  data["demands"] = nlohmann::json::array();
  data["links"] = nlohmann::json::array();
  std::map<nlohmann::json, std::size_t> demands;
  for (const ScheduleResult::Link& link : schedule.links) {
    nlohmann::json uses = nlohmann::json::array();
    for (const ScheduleResult::Use& use : link.uses) {
      nlohmann::json bursts = nlohmann::json::array();
      for (const scheduler::Burst& burst : use.demand.bursts)
        bursts.push_back({burst.from.count, burst.to.count, burst.rate.bits_per_second});
      const auto [known, is_new] = demands.try_emplace(bursts, demands.size());
      if (is_new) data["demands"].push_back(std::move(bursts));
      uses.push_back({use.job, known->second});
    }
    nlohmann::json entry{{"name", link.name},
                         {"capacity", link.capacity.bits_per_second},
                         {"perimeter", link.solution.perimeter.count},
                         {"score", score_text(link.solution.score)},
                         {"unshifted", score_text(link.unshifted_score)},
                         {"step", step_of(link)},
                         {"verdict", verdict(schedule, link)},
                         {"uses", std::move(uses)}};
    if (!link.removals.empty()) {
      nlohmann::json& removals = entry["removals"] = nlohmann::json::array();
      for (const ScheduleResult::Removal& removal : link.removals)
        removals.push_back({removal.job, score_text(removal.score)});
    }
    data["links"].push_back(std::move(entry));
  }
  const auto order = worst_first(schedule);
  data["first"] = order.empty() ? 0 : order.front();
  if (drawn(schedule)) data["network"] = drawing_of(*schedule.topology);
  return data;
}

}  // namespace

std::string render_schedule(const ScheduleResult& schedule) {
  const std::string title = schedule.experiment.empty() ? "Unnamed experiment" : escaped(schedule.experiment);
  std::string body = lead(schedule) + facts(schedule) + network_section(schedule);
  if (!schedule.links.empty()) body += "<section id=\"link\" class=\"needs-js\" aria-live=\"polite\"></section>\n";
  body += "<section id=\"numbers\"><h2>In numbers</h2>\n" + job_table(schedule);
  if (schedule.links.size() == 1) body += removal_table(schedule, schedule.links.front());
  body += "</section>\n" + loops(schedule);
  if (!schedule.warnings.empty()) {
    body += "<section id=\"warnings\"><h2>Warnings</h2><ul>";
    for (const std::string& warning : schedule.warnings) body += "<li>" + escaped(warning) + "</li>";
    body += "</ul></section>\n";
  }
  const std::string data = script_safe(drawing_data(schedule));
  const std::string provenance = provenance_text(schedule.provenance);
  return filled(embedded::schedule_html, std::array<Part, 7>{{{"title", title},
                                                              {"provenance", provenance},
                                                              {"body", body},
                                                              {"data", data},
                                                              {"report_css", embedded::report_css},
                                                              {"schedule_css", embedded::schedule_css},
                                                              {"schedule_js", embedded::schedule_js}}});
}

}  // namespace mltcp::experiment
