// Plans slots (see plan.h).
#include "mltcp/lab/experiment/run/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/scheduler/problem.h"

namespace mltcp::experiment {
namespace {

// Jobs whose demand exceeds their links' capacity need longer slots. The search tries lengths in growing steps until
// one suffices, and then lengths between the last two.
constexpr double kFirstMargin = 0.0025;
constexpr double kMarginGrowth = 1.5;
constexpr int kMarginHalvings = 5;
// Maximum number of connected jobs for which longer slots are searched.
constexpr std::size_t kMaxJobsWithMargin = 64;

// Slots need slack even without jitter, because slow start makes the first iteration late.
constexpr double kMinSlack = 0.001;
// Lateness up to this share of the period is not repaired, because detecting it takes about as long as the overlap that
// it causes.
constexpr double kMinTolerance = 0.01;
// If jobs overlap even in their slots, lateness spreads among them and forecasts are less accurate. Such slots must
// save at least this share of the cost of sharing.
constexpr double kMinSaving = 0.25;

// Running jobs get slots that they reach soon, rather than better slots, if these do not repay the longer delay in this
// number of iterations.
constexpr double kIterationsOfPlan = 12;

/// Number of step meetings that count as one node of the solver (scheduler/internal/search.cpp).
constexpr std::uint64_t kMeetingsPerNode = 64;

/// Jobs that share links, directly or through other jobs.
struct Component {
  scheduler::Problem problem;
  std::vector<std::size_t> jobs;  ///< for each job of the problem, its number among all jobs
  /// The problem with the unaware jobs that use its links, after all other jobs; for forecasts.
  scheduler::Problem traffic;
  std::vector<ForecastJob> forecast_jobs;  ///< for each job of `traffic`; without slots
};

std::vector<Component> components_of(std::span<const workload::Job> jobs, std::span<const Profile> profiles) {
  struct Shared {
    std::string name;
    Rate capacity;
    std::vector<std::pair<std::size_t, const scheduler::Demand*>> uses;
    std::vector<std::pair<std::size_t, const scheduler::Demand*>> unaware;
  };
  std::map<std::size_t, Shared> links;
  for (std::size_t job = 0; job < jobs.size(); ++job)
    for (const Profile::Use& use : profiles[job].uses) {
      if (use.demand.bursts.empty()) continue;
      Shared& link = links[use.link];
      link.name = use.name;
      link.capacity = use.capacity;
      (jobs[job].unaware ? link.unaware : link.uses).emplace_back(job, &use.demand);
    }
  std::erase_if(links, [](const auto& link) { return link.second.uses.size() < 2; });

  // For each job, a job of its component with a smaller or equal number. Following these numbers leads to the
  // component's smallest job.
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
  const auto forecast_job = [&](std::size_t job) {
    return ForecastJob{
        profiles[job].first_send, jobs[job].jitter.seconds() / profiles[job].period.seconds(), {}, jobs[job].unaware};
  };
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
        component.forecast_jobs.push_back(forecast_job(job));
      }
      as_problem.uses.push_back({index[job], *demand});
    }
  }
  for (auto& [number, component] : found) component.traffic = component.problem;
  // For each component, the number of its links so far, and the index in `traffic` of each unaware job so far.
  std::map<const Component*, std::size_t> links_done;
  std::map<const Component*, std::map<std::size_t, std::uint32_t>> unaware;
  for (const auto& [number, link] : links) {
    Component& component = found[root(link.uses.front().first)];
    // An unaware job whose links belong to several components is a job of each.
    std::map<std::size_t, std::uint32_t>& own = unaware[&component];
    for (const auto& [job, demand] : link.unaware) {
      const auto [at, added] = own.try_emplace(job, static_cast<std::uint32_t>(component.traffic.jobs.size()));
      if (added) {
        component.traffic.jobs.push_back({jobs[job].name, profiles[job].period, {}});
        component.forecast_jobs.push_back(forecast_job(job));
      }
      component.traffic.links[links_done[&component]].uses.push_back({at->second, *demand});
    }
    ++links_done[&component];
  }
  std::vector<Component> result;
  result.reserve(found.size());
  for (auto& [number, component] : found) result.push_back(std::move(component));
  return result;
}

/// Sets `delays`, the delay of each job's start, so that the job's iterations begin at the solution's shift plus a
/// common shift. Returns the common shift.
Nanos min_delays(const Component& component, const scheduler::Solution& solution, std::span<const workload::Job> jobs,
                 std::vector<Nanos>& delays) {
  double min = -1;
  Nanos best;
  // With the best common shift, at least one job is not delayed.
  for (std::size_t candidate = 0; candidate < component.jobs.size(); ++candidate) {
    const Nanos common = jobs[component.jobs[candidate]].start - solution.shifts[candidate];
    double sum = 0;
    std::vector<Nanos> these;
    for (std::size_t i = 0; i < component.jobs.size(); ++i) {
      these.push_back(modulo(solution.shifts[i] + common - jobs[component.jobs[i]].start, solution.slots.periods[i]));
      sum += these.back().seconds();
    }
    if (min >= 0 && sum >= min) continue;
    min = sum;
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

/// Returns the standard deviation of the job's iterations, as a share of its period.
double deviation_of(const workload::Job& job, const Profile& profile) {
  return std::hypot(profile.deviation, job.jitter.seconds() / profile.period.seconds());
}

/// Returns the slack that the jitter of the jobs requires.
double slack_of(const ScheduleSettings& settings, const Component& component, std::span<const workload::Job> jobs,
                std::span<const Profile> profiles) {
  if (settings.slack) return *settings.slack;
  double slack = 0;
  for (const std::size_t job : component.jobs)
    slack = std::max(slack, slack_for(deviation_of(jobs[job], profiles[job]), settings.tolerance));
  return slack;
}

/// Returns the lowest score of any link; 1 if no jobs overlap.
double lowest_score(const scheduler::Solution& solution) {
  double score = 1;
  for (const scheduler::LinkSolution& link : solution.links) score = std::min(score, link.score);
  return score;
}

/// Returns the maximum share of the period by which slots may be longer than with `slack`. Slots do not pay if they
/// cost more than sharing. Slots longer than twice an iteration do not pay either. Jobs that need such slots keep the
/// link busy all the time, with or without slots.
double max_margin(double slack, const Forecast& sharing) {
  return std::clamp(sharing.mean - 1, 0.0, scheduler::kMaxSlack - slack);
}

/// Slots that are compared with other slots, and their forecast.
struct Candidate {
  scheduler::Solution solution;
  std::vector<PhasePlan> plans;  ///< plan of each job of the component; iterations begin on the solution's shifts
  std::shared_ptr<const scheduler::Timetable> timetable;
  Forecast forecast;
  std::string objection;  ///< why these slots do not pay; empty if they do
};

/// Searches slots for one component.
class Planning {
 public:
  Planning(const ScheduleSettings& settings, std::span<const workload::Job> jobs, std::span<const Profile> profiles,
           const PlanOptions& options, const Component& component)
      : settings_(settings),
        jobs_(jobs),
        profiles_(profiles),
        options_(options),
        component_(component),
        repaired_(options.repaired && component.jobs.size() <= kMaxRepairedJobs),
        fair_(forecast_sharing(component.traffic, component.forecast_jobs, std::nullopt)),
        sharing_(without_slots()) {
    for (const std::size_t job : component.jobs) held_.push_back(profiles[job].first_send);
  }

  [[nodiscard]] bool repaired() const { return repaired_; }
  /// Returns the forecast without slots.
  [[nodiscard]] const Forecast& sharing() const { return sharing_; }
  /// Returns the work done, in the unit of kMaxPlanWork.
  [[nodiscard]] std::uint64_t work() const { return work_; }
  /// Returns whether a work limit was reached, so that some slots were not tried or a forecast is incomplete.
  [[nodiscard]] bool cut_off() const { return cut_off_; }

  /// Returns slots of the same lengths as `found` that running jobs reach with little delay. Sets `delays`, the delay
  /// of each job's next iteration, by job number, and `common`, which is to be added to the solution's shifts. Returns
  /// no value if such slots do not pay.
  std::optional<Candidate> near(const Candidate& found, std::vector<Nanos>& delays, Nanos& common) {
    Candidate result = found;
    std::vector<Nanos>& shifts = result.solution.shifts;
    common = Nanos::never();
    for (const std::size_t job : component_.jobs) common = std::min(common, jobs_[job].start);
    for (std::size_t i = 0; i < shifts.size(); ++i)
      shifts[i] = modulo(jobs_[component_.jobs[i]].start - common, result.solution.slots.periods[i]);
    const std::vector<Nanos> before = shifts;
    make_plans(result);
    part_first_slots(result);
    for (std::size_t i = 0; i < shifts.size(); ++i) {
      delays[component_.jobs[i]] = shifts[i] - before[i];
      shifts[i] = modulo(shifts[i], result.solution.slots.periods[i]);
    }
    const scheduler::Solution reached = scheduler::evaluate(component_.problem, result.solution.slots, shifts);
    result.solution.links = reached.links;
    result.solution.score = reached.score;
    make_plans(result);
    if (!result.objection.empty()) return {};
    return result;
  }

  /// Returns the best slots found. If they do not pay, `objection` says why.
  Candidate best() {
    const double needed = repaired_ && !settings_.slack ? kMinSlack : slack_of(settings_, component_, jobs_, profiles_);
    Candidate best = candidate(needed);
    if (settings_.slack) return best;
    if (lowest_score(best.solution) >= 1 && best.solution.slots.within_limit) return best;
    // Tries slots that are long enough for the whole demand. If no length is enough, tries slots that are only somewhat
    // longer. They may cost less than the overlaps that they avoid.
    scheduler::SolveOptions options = options_of(settings_);
    options.slack = needed;
    const double max = max_margin(needed, fair_);
    if (exhausted()) return best;
    const double enough = margin_for(component_.problem, options, max, &work_);
    const auto take_better = [&](Candidate other) {
      const bool worth = other.objection.empty();
      if (worth != best.objection.empty() ? worth : cost(other) < cost(best)) best = std::move(other);
    };
    if (enough > 0) {
      exhausted();  // sets cut_off_ if the work limit is reached, since shorter slots might have sufficed
      take_better(candidate(needed + enough));
      return best;
    }
    double margin = 0;
    for (double step = kFirstMargin; (margin += step) < max && !exhausted(); step *= kMarginGrowth)
      take_better(candidate(needed + margin));
    return best;
  }

 private:
  /// Returns the forecast without slots. Under MLTCP, slots must pay compared with MLTCP without slots, and compared
  /// with fair sharing. So mean and tail are each the minimum of both forecasts. But a job that MLTCP makes
  /// slower than fair sharing may be as slow with slots, except under policy turns, which is to make no job slower.
  [[nodiscard]] Forecast without_slots() const {
    if (!options_.sharing) return fair_;
    Forecast own = forecast_sharing(component_.traffic, component_.forecast_jobs, options_.sharing);
    own.mean = std::min(own.mean, fair_.mean);
    own.tail = std::min(own.tail, fair_.tail);
    for (std::size_t j = 0; j < own.jobs.size(); ++j)
      own.jobs[j] = options_.turns ? fair_.jobs[j] : std::max(own.jobs[j], fair_.jobs[j]);
    return own;
  }
  /// Returns by how much mean and tail together exceed isolation. The value is increased if slots overlap, since the
  /// forecast is then less accurate. It is infinite if slots exceed the limit on stretch.
  static double cost(const Candidate& candidate) {
    if (!candidate.solution.slots.within_limit) return std::numeric_limits<double>::infinity();
    const double above = candidate.forecast.mean + candidate.forecast.tail - 2;
    return lowest_score(candidate.solution) >= 1 ? above : above / (1 - kMinSaving);
  }

  /// Returns whether the work limit is reached, so that the best slots so far are used.
  bool exhausted() {
    if (work_ <= kMaxPlanWork) return false;
    cut_off_ = true;
    return true;
  }

  Candidate candidate(double slack) {
    Candidate result;
    scheduler::SolveOptions options = options_of(settings_);
    options.slack = slack;
    result.solution = scheduler::solve(component_.problem, options);
    work_ += result.solution.nodes * kMeetingsPerNode;
    if (!settings_.slack && result.solution.score < 1 && !exhausted()) {
      // A search for robust slots has less work left for improving the score. So candidate() also tries a search that
      // ignores robustness, as margin_for() does.
      options.robust = false;
      scheduler::Solution other = scheduler::solve(component_.problem, options);
      work_ += other.nodes * kMeetingsPerNode;
      if (other.score > result.solution.score) result.solution = std::move(other);
    }
    result.timetable = std::make_shared<const scheduler::Timetable>(component_.problem, result.solution.slots, held_);
    make_plans(result);
    if (repaired_ && lowest_score(result.solution) < 1 && result.solution.slots.within_limit) {
      // The solver considers the whole circle, not only first slots. But jobs that overlap in their first slots are all
      // late from then on. So candidate() also tries disjoint first slots.
      Candidate apart = result;
      part_first_slots(apart);
      make_plans(apart);
      if (cost(apart) < cost(result)) result = std::move(apart);
    }
    return result;
  }

  /// Repairs the first slot of each job, in the order of slots, as if the job were about to miss its slot.
  static void part_first_slots(Candidate& candidate) {
    std::vector<Nanos>& shifts = candidate.solution.shifts;
    std::vector<std::uint32_t> order(shifts.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(
        order, [&](std::uint32_t a, std::uint32_t b) { return candidate.plans[a].slot < candidate.plans[b].slot; });
    for (const std::uint32_t job : order) {
      const Nanos slot = shifts[job] + candidate.timetable->held(job);
      const scheduler::Repair repair = candidate.timetable->repair(shifts, job, slot);
      for (std::size_t i = 0; i < shifts.size(); ++i) shifts[i] += repair.delays[i];
    }
  }

  /// Sets plans, forecast and objection from the solution's shifts.
  void make_plans(Candidate& candidate) {
    const scheduler::Solution& solution = candidate.solution;
    std::vector<ForecastJob> jobs = component_.forecast_jobs;
    candidate.plans.clear();
    for (std::uint32_t i = 0; i < component_.jobs.size(); ++i) {
      const std::size_t job = component_.jobs[i];
      PhasePlan& plan = candidate.plans.emplace_back();
      plan.slot = solution.shifts[i] + profiles_[job].first_send;
      plan.period = solution.slots.periods[i];
      plan.tolerance = settings_.tolerance;
      plan.correction = settings_.correction;
      plan.clock_bound = settings_.clock_bound;
      plan.is_disjoint = lowest_score(solution) >= 1;
      // A step must exceed the slack, since slack counteracts the step.
      const double own = plan.period.seconds() / profiles_[job].period.seconds() - 1;
      plan.gradual_step = std::clamp(settings_.gradual_step, std::min(2 * own, 1.0), 1.0);
      if (const std::string wrong = objection_to(plan); !wrong.empty())
        throw InputError(fmt::format("the slots of job \"{}\" cannot be kept: {}", jobs_[job].name, wrong));
      if (repaired_) {
        // A job is late if its delay exceeds the free time behind its slot. A delay within the uncertainty of the
        // clocks does not count.
        const double period = plan.period.seconds();
        const Nanos max = Nanos::from_seconds(period * settings_.tolerance);
        const double margin = candidate.timetable->margin_behind(solution.shifts, i, max).seconds() / period;
        const double clocks = (settings_.clock_bound + Nanos(1)).seconds() / period;
        plan.tolerance = std::min(settings_.tolerance, std::max({margin, kMinTolerance, clocks}));
      }
      jobs[i].slots = plan;
    }
    if (solution.slots.within_limit) {
      candidate.forecast =
          forecast_slots(component_.traffic, jobs, options_.sharing, repaired_ ? candidate.timetable.get() : nullptr);
      work_ += candidate.forecast.work;
      cut_off_ = cut_off_ || !candidate.forecast.complete;
    }
    candidate.objection = objection_to_slots(candidate);
  }

  [[nodiscard]] std::string objection_to_slots(const Candidate& candidate) const {
    if (!candidate.solution.slots.within_limit)
      return fmt::format(
          "no slots suit the periods: they would be {:.1f}% longer than iterations, but max_stretch is {:.1f}%",
          100 * candidate.solution.slots.stretch, 100 * settings_.max_stretch);
    const Forecast& slots = candidate.forecast;
    const bool fit = lowest_score(candidate.solution) >= 1;
    if (!slots.known || !sharing_.known) {
      if (fit) return {};
      return "the jobs do not fit together, and are too many and too different to predict the effect of slots";
    }
    const double saved = fair_.mean - slots.mean;
    const double min = fit ? -kForecastError : kMinSaving * (fair_.mean - 1);
    const double max_tail = fit ? fair_.tail + kForecastError : fair_.tail;
    if (saved >= min && slots.tail <= max_tail && slots.mean <= sharing_.mean + kForecastError &&
        slots.tail <= sharing_.tail + kForecastError) {
      for (std::size_t j = 0; j < component_.jobs.size(); ++j)
        if (slots.jobs[j] > sharing_.jobs[j] + kForecastError)
          return fmt::format(
              "slots would harm job {}: its iterations would take {:.3f} times their time alone; with {} {:.3f}",
              in_quotes(jobs_[component_.jobs[j]].name), slots.jobs[j],
              options_.sharing && !options_.turns ? "MLTCP or fair sharing, at most" : "fair sharing,",
              sharing_.jobs[j]);
      return {};
    }
    std::string why = fmt::format(
        "slots do not help enough: iterations would take {:.3f} times their time alone, the longest of the later half "
        "{:.3f}; without slots {:.3f} and {:.3f}",
        slots.mean, slots.tail, sharing_.mean, sharing_.tail);
    if (saved > 0 && saved < min)
      why += fmt::format(", and slots in which jobs overlap must save {:.0f}% of the cost of fair sharing",
                         100 * kMinSaving);
    return why;
  }

  const ScheduleSettings& settings_;
  std::span<const workload::Job> jobs_;
  std::span<const Profile> profiles_;
  const PlanOptions& options_;
  const Component& component_;
  std::vector<Nanos> held_;  ///< for each job of the component, time from the start of an iteration to its slot
  const bool repaired_;
  const Forecast fair_;     ///< under fair sharing, without slots
  const Forecast sharing_;  ///< without_slots()
  std::uint64_t work_ = 0;
  bool cut_off_ = false;
};

/// Result of the search for one component.
struct Found {
  Component component;
  Candidate best;
  Forecast sharing;
  bool cut_off = false;
  bool repaired = false;
  std::uint64_t work = 0;
};

std::vector<Found> search(const ScheduleSettings& settings, std::span<const workload::Job> jobs,
                          std::span<const Profile> profiles, const PlanOptions& options) {
  std::vector<Found> result;
  for (Component& component : components_of(jobs, profiles)) {
    Planning planning(settings, jobs, profiles, options, component);
    Candidate best = planning.best();
    result.push_back({std::move(component), std::move(best), planning.sharing(), planning.cut_off(),
                      planning.repaired(), planning.work()});
  }
  return result;
}

/// Returns the result of search(), or the memo's result if the memo has one for these jobs. The result does not depend
/// on when jobs start.
std::shared_ptr<const std::vector<Found>> found_for(const ScheduleSettings& settings,
                                                    std::span<const workload::Job> jobs,
                                                    std::span<const Profile> profiles, const PlanOptions& options) {
  const auto searched = [&] {
    return std::make_shared<const std::vector<Found>>(search(settings, jobs, profiles, options));
  };
  if (options.memo == nullptr) return searched();
  PlanMemo& memo = *options.memo;
  std::vector<Nanos> jitters;
  for (const workload::Job& job : jobs) jitters.push_back(job.unaware ? Nanos::never() : job.jitter);
  const std::lock_guard lock(memo.mutex);
  if (memo.found && memo.jitters == jitters && std::ranges::equal(memo.profiles, profiles))
    return std::static_pointer_cast<const std::vector<Found>>(memo.found);
  auto found = searched();
  ++memo.searches;
  memo.profiles.assign(profiles.begin(), profiles.end());
  memo.jitters = std::move(jitters);
  memo.found = found;
  return found;
}

}  // namespace

double margin_for(const scheduler::Problem& problem, const scheduler::SolveOptions& options, double max,
                  std::uint64_t* work) {
  std::uint64_t own = 0;
  std::uint64_t& done = work != nullptr ? *work : own;
  if (problem.jobs.size() > kMaxJobsWithMargin || max <= 0) return 0;
  const auto fits = [&](double margin) {
    scheduler::SolveOptions with = options;
    with.slack += margin;
    with.robust = false;
    const scheduler::Solution solution = scheduler::solve(problem, with);
    done += solution.nodes * kMeetingsPerNode;
    return solution.slots.within_limit && lowest_score(solution) >= 1;
  };
  if (fits(0)) return 0;
  double too_little = 0;
  double enough = 0;
  for (double step = kFirstMargin; enough == 0; step *= kMarginGrowth) {
    if (done > kMaxPlanWork) return 0;
    const double margin = std::min(too_little + step, max);
    if (fits(margin))
      enough = margin;
    else if (margin >= max)
      return 0;
    else
      too_little = margin;
  }
  for (int i = 0; i < kMarginHalvings && done <= kMaxPlanWork; ++i) {
    const double middle = (too_little + enough) / 2;
    (fits(middle) ? enough : too_little) = middle;
  }
  return enough;
}

double slack_for(double sigma, double tolerance) {
  const double odds = sigma * sigma / (2 * tolerance);
  return odds > 0 && odds < 1 ? std::max(odds * std::log(1 / odds), kMinSlack) : kMinSlack;
}

double slack_for(const ScheduleSettings& settings, std::span<const workload::Job> jobs,
                 std::span<const Profile> profiles) {
  double max = 0;
  for (const Component& component : components_of(jobs, profiles)) {
    scheduler::SolveOptions options = options_of(settings);
    options.slack = slack_of(settings, component, jobs, profiles);
    double slack = options.slack;
    if (!settings.slack) {
      const Forecast sharing = forecast_sharing(component.traffic, component.forecast_jobs, std::nullopt);
      slack += margin_for(component.problem, options, max_margin(slack, sharing));
    }
    max = std::max(max, slack);
  }
  return max;
}

Schedule plan_jobs(const ScheduleSettings& settings, std::span<const workload::Job> jobs,
                   std::span<const Profile> profiles, const PlanOptions& options) {
  Schedule schedule;
  schedule.slots.resize(jobs.size());
  schedule.delays.resize(jobs.size());
  schedule.groups.resize(jobs.size());
  schedule.planned.resize(jobs.size());
  schedule.reasons.assign(jobs.size(), "it shares no link with another job");
  std::iota(schedule.groups.begin(), schedule.groups.end(), std::size_t{0});
  std::size_t links = 0;
  ScheduleSummary& summary = schedule.summary;
  summary.score = summary.upper_bound = 0;
  const auto found = found_for(settings, jobs, profiles, options);
  for (const Found& one : *found) {
    const Component& component = one.component;
    Candidate best = one.best;
    const std::size_t group = component.jobs.front();
    for (const std::size_t job : component.jobs) schedule.groups[job] = group;
    Nanos common = min_delays(component, best.solution, jobs, schedule.delays);
    if (options.running && best.objection.empty()) {
      std::vector<Nanos> delays = schedule.delays;
      Nanos start;
      auto near = Planning(settings, jobs, profiles, options, component).near(best, delays, start);
      // The time that a plan costs, in periods of a job: once for delays, and again in each of the next iterations.
      const auto loss = [&](const Candidate& candidate, std::span<const Nanos> waits) {
        double sum = 0;
        for (std::size_t i = 0; i < component.jobs.size(); ++i)
          sum += waits[component.jobs[i]].seconds() / profiles[component.jobs[i]].period.seconds() +
                 kIterationsOfPlan * candidate.forecast.jobs[i];
        return sum;
      };
      if (near && loss(*near, delays) < loss(best, schedule.delays)) {
        best = std::move(*near);
        schedule.delays = std::move(delays);
        common = start;
      }
    }
    const scheduler::Solution& solution = best.solution;
    const auto weight = static_cast<double>(component.problem.links.size());
    links += component.problem.links.size();
    summary.score += solution.score * weight;
    summary.upper_bound += solution.upper_bound * weight;
    summary.optimal = summary.optimal && solution.optimal;
    summary.cut_off = summary.cut_off || one.cut_off;
    schedule.planned[group] = {
        component.jobs, best.timetable, best.forecast, one.sharing, lowest_score(best.solution) >= 1,
        one.repaired,   one.work};
    if (!best.objection.empty()) {
      summary.unplanned += component.jobs.size();
      for (const std::size_t job : component.jobs) {
        schedule.reasons[job] = best.objection;
        schedule.delays[job] = Nanos();
      }
      continue;
    }
    summary.stretch = std::max(summary.stretch, solution.slots.stretch);
    for (std::size_t i = 0; i < component.jobs.size(); ++i) {
      const std::size_t job = component.jobs[i];
      PhasePlan& plan = schedule.slots[job].emplace(best.plans[i]);
      plan.slot += common;
      schedule.reasons[job].clear();
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
