// Planning of slots (see plan.h).
#include "mltcp/experiment/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "mltcp/base/error.h"
#include "mltcp/scheduler/problem.h"

namespace mltcp::experiment {
namespace {

// Jobs that ask for more than their links have fit into longer slots: tried are lengths in steps that grow, up to the
// last, and then finer ones between the last two.
constexpr double first_room = 0.0025;
constexpr double room_growth = 1.5;
constexpr double most_room = 0.5;
constexpr double most_room_of_networks = 0.1;  // of several links: it slows all jobs down, and most links don't need it
constexpr int room_halvings = 5;
constexpr double worth = 3;  // times the share that the fullest link loses: beyond, collisions cost less
// Solutions are tried for sets of so many jobs at most; larger ones stay with what room they have.
constexpr std::size_t most_jobs_with_room = 64;

// Also without any jitter something has to pay for the lateness of a first iteration with its slow start.
constexpr double least_slack = 0.001;

/// Jobs that share links, directly or through others.
struct Component {
  scheduler::Problem problem;
  std::vector<std::size_t> jobs;  ///< by job of the problem
};

std::vector<Component> components_of(std::span<const workload::Job> jobs, std::span<const Profile> profiles) {
  struct Shared {
    std::string name;
    Rate capacity;
    std::vector<std::pair<std::size_t, const scheduler::Demand*>> uses;
  };
  std::map<std::size_t, Shared> links;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    if (jobs[job].unaware) continue;
    for (const Profile::Use& use : profiles[job].uses) {
      Shared& link = links[use.link];
      link.name = use.name;
      link.capacity = use.capacity;
      if (!use.demand.bursts.empty()) link.uses.emplace_back(job, &use.demand);
    }
  }
  std::erase_if(links, [](const auto& link) { return link.second.uses.size() < 2; });

  // The smallest job of each component, found by following smaller ones.
  std::vector<std::size_t> smaller(jobs.size());
  std::iota(smaller.begin(), smaller.end(), std::size_t{0});
  const auto root = [&](std::size_t job) {
    while (smaller[job] != job) job = smaller[job] = smaller[smaller[job]];
    return job;
  };
  for (const auto& [number, link] : links)
    for (const auto& [job, demand] : link.uses) {
      const auto [low, high] = std::minmax({root(job), root(link.uses.front().first)});
      smaller[high] = low;
    }

  std::map<std::size_t, Component> found;
  std::vector<std::uint32_t> index(jobs.size());
  std::vector<bool> placed(jobs.size());
  for (const auto& [number, link] : links) {
    Component& component = found[root(link.uses.front().first)];
    scheduler::Problem::Link& as_problem = component.problem.links.emplace_back();
    as_problem.name = link.name;
    as_problem.capacity = link.capacity;
    for (const auto& [job, demand] : link.uses) {
      if (!placed[job]) {
        placed[job] = true;
        index[job] = static_cast<std::uint32_t>(component.jobs.size());
        component.jobs.push_back(job);
        component.problem.jobs.push_back({jobs[job].name, profiles[job].period, {}});
      }
      as_problem.uses.push_back({index[job], *demand});
    }
  }
  std::vector<Component> result;
  result.reserve(found.size());
  for (auto& [number, component] : found) result.push_back(std::move(component));
  return result;
}

/// 0 to below the period.
Nanos modulo(Nanos time, Nanos period) {
  const std::int64_t rest = time.count % period.count;
  return Nanos(rest < 0 ? rest + period.count : rest);
}

/// How much later each job of the component starts, so that its iterations begin on the solution's shifts plus one
/// common shift; returns that one.
Nanos least_delays(const Component& component, const scheduler::Solution& solution, std::span<const workload::Job> jobs,
                   std::vector<Nanos>& delays) {
  double least = -1;
  Nanos best;
  // One of the jobs need not wait.
  for (std::size_t candidate = 0; candidate < component.jobs.size(); ++candidate) {
    const Nanos common = jobs[component.jobs[candidate]].start - solution.shifts[candidate];
    double sum = 0;
    std::vector<Nanos> these;
    for (std::size_t i = 0; i < component.jobs.size(); ++i) {
      these.push_back(modulo(solution.shifts[i] + common - jobs[component.jobs[i]].start, solution.slots.periods[i]));
      sum += these.back().seconds();
    }
    if (least >= 0 && sum >= least) continue;
    least = sum;
    best = common;
    for (std::size_t i = 0; i < these.size(); ++i) delays[component.jobs[i]] = these[i];
  }
  return best;
}

scheduler::SolveOptions options_of(const ScheduleSettings& settings) {
  scheduler::SolveOptions options;
  options.max_stretch = settings.max_stretch;
  options.drift = settings.tolerance;
  return options;
}

/// As the settings say, or what the jitter of the jobs needs and the room to fit together.
double slack_of(const ScheduleSettings& settings, const Component& component, std::span<const workload::Job> jobs,
                std::span<const Profile> profiles) {
  if (settings.slack) return *settings.slack;
  scheduler::SolveOptions options = options_of(settings);
  for (const std::size_t job : component.jobs) {
    const double jitter = jobs[job].jitter.seconds() / profiles[job].period.seconds();
    options.slack = std::max(options.slack, slack_for(std::hypot(profiles[job].deviation, jitter), settings.tolerance));
  }
  return options.slack + room_for(component.problem, options);
}

}  // namespace

double room_for(const scheduler::Problem& problem, const scheduler::SolveOptions& options) {
  if (problem.jobs.size() > most_jobs_with_room) return 0;
  const auto worst = [&](double room) {
    scheduler::SolveOptions with = options;
    with.slack += room;
    with.robust = false;
    const scheduler::Solution solution = scheduler::solve(problem, with);
    double score = solution.slots.within_limit ? 1 : 0;
    for (const scheduler::LinkSolution& link : solution.links) score = std::min(score, link.score);
    return score;
  };
  const double lost = 1 - worst(0);
  if (lost <= 0) return 0;
  const double most = std::min(problem.links.size() > 1 ? most_room_of_networks : most_room, worth * lost);
  double too_little = 0;
  double enough = 0;
  for (double step = first_room; enough == 0; step *= room_growth) {
    const double room = std::min(too_little + step, most);
    if (worst(room) >= 1)
      enough = room;
    else if (room >= most)
      return 0;
    else
      too_little = room;
  }
  for (int i = 0; i < room_halvings; ++i) {
    const double middle = (too_little + enough) / 2;
    (worst(middle) >= 1 ? enough : too_little) = middle;
  }
  return enough;
}

double slack_for(double sigma, double tolerance) {
  const double odds = sigma * sigma / (2 * tolerance);
  return odds > 0 && odds < 1 ? std::max(odds * std::log(1 / odds), least_slack) : least_slack;
}

double slack_for(const ScheduleSettings& settings, std::span<const workload::Job> jobs,
                 std::span<const Profile> profiles) {
  double most = 0;
  for (const Component& component : components_of(jobs, profiles))
    most = std::max(most, slack_of(settings, component, jobs, profiles));
  return most;
}

Schedule plan_jobs(const ScheduleSettings& settings, std::span<const workload::Job> jobs,
                   std::span<const Profile> profiles, double least_score) {
  Schedule schedule;
  schedule.slots.resize(jobs.size());
  schedule.delays.resize(jobs.size());
  schedule.groups.resize(jobs.size());
  std::iota(schedule.groups.begin(), schedule.groups.end(), std::size_t{0});
  std::size_t links = 0;
  ScheduleSummary& summary = schedule.summary;
  summary.score = summary.upper_bound = 0;
  for (const Component& component : components_of(jobs, profiles)) {
    for (const std::size_t job : component.jobs) schedule.groups[job] = component.jobs.front();
    scheduler::SolveOptions options = options_of(settings);
    options.slack = slack_of(settings, component, jobs, profiles);
    scheduler::Solution solution = scheduler::solve(component.problem, options);
    if (!settings.slack && solution.score < 1) {
      // Room was found without the search for more margin, which leaves less work for the score.
      options.robust = false;
      if (scheduler::Solution other = scheduler::solve(component.problem, options); other.score > solution.score)
        solution = std::move(other);
    }
    const auto weight = static_cast<double>(component.problem.links.size());
    links += component.problem.links.size();
    summary.score += solution.score * weight;
    summary.upper_bound += solution.upper_bound * weight;
    summary.optimal = summary.optimal && solution.optimal;
    // Slots that are much longer than the jobs' iterations would cost more than collisions do.
    if (!solution.slots.within_limit) {
      summary.unplanned += component.jobs.size();
      continue;
    }
    std::vector<bool> fits(component.jobs.size(), true);
    for (std::size_t l = 0; l < component.problem.links.size(); ++l)
      for (const scheduler::Problem::Use& use : component.problem.links[l].uses)
        if (solution.links[l].score < least_score) fits[use.job] = false;
    if (std::find(fits.begin(), fits.end(), true) != fits.end())
      summary.stretch = std::max(summary.stretch, solution.slots.stretch);
    const Nanos common = least_delays(component, solution, jobs, schedule.delays);
    for (std::size_t i = 0; i < component.jobs.size(); ++i) {
      const std::size_t job = component.jobs[i];
      if (!fits[i]) {
        schedule.delays[job] = {};
        ++summary.unplanned;
        continue;
      }
      PhasePlan& plan = schedule.slots[job].emplace();
      plan.slot = solution.shifts[i] + common + profiles[job].first_send;
      plan.period = solution.slots.periods[i];
      plan.tolerance = settings.tolerance;
      plan.correction = settings.correction;
      plan.clock_bound = settings.clock_bound;
      // A step has to outrun the slack, which works against it.
      const double own = plan.period.seconds() / profiles[job].period.seconds() - 1;
      plan.gradual_step = std::clamp(settings.gradual_step, std::min(2 * own, 1.0), 1.0);
      if (const std::string wrong = objection_to(plan); !wrong.empty())
        throw InputError(fmt::format("the slots of job \"{}\" can't be kept: {}", jobs[job].name, wrong));
    }
  }
  if (links > 0) {
    summary.score /= static_cast<double>(links);
    summary.upper_bound /= static_cast<double>(links);
  } else {
    summary.score = summary.upper_bound = 1;
  }
  summary.links = links;
  return schedule;
}

}  // namespace mltcp::experiment
