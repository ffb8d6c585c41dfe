// Converts an experiment into a scheduling problem and solves it (see compatibility.h).
#include "mltcp/lab/experiment/fit/compatibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/backends/flow_level.h"
#include "mltcp/lab/experiment/run/isolated_profile.h"
#include "mltcp/lab/experiment/run/plan.h"
#include "mltcp/lab/workload/inspection.h"
#include "mltcp/lab/workload/worker_hosts.h"
#include "mltcp/scheduler/affinity.h"
#include "mltcp/scheduler/cluster.h"

namespace mltcp::experiment {
namespace {

// Maximum number of bursts of all jobs on a link's perimeter. At this limit, the search takes half a minute.
constexpr double kMaxBurstsOnPerimeter = 200'000;

// Limits for the search for a sufficient slack or stretch. This search computes many approximate solutions.
constexpr double kHelpStep = 0.001;
constexpr double kMaxBurstsWithHelp = 2'000;
constexpr std::uint64_t kHelpNodes = 200;

using scheduler::Burst;
using scheduler::Demand;
using scheduler::Problem;

// Returns `share` as a percentage. A share above 0 is never shown as 0.
std::string percent(double share) {
  if (share <= 0 || share >= 0.001) return fmt::format("{:.1f}%", 100 * share);
  return share < 0.0001 ? "less than 0.01%" : fmt::format("{:.2f}%", 100 * share);
}

// Returns the rate with four digits, because further digits of a measured rate are noise.
std::string rounded(Rate rate) {
  std::uint64_t unit = 1;
  while (rate.bits_per_second / unit >= 10'000) unit *= 10;
  return to_text(Rate((rate.bits_per_second + unit / 2) / unit * unit));
}

Rate peaks(const std::vector<ScheduleResult::Use>& uses) {
  std::uint64_t sum = 0;
  for (const ScheduleResult::Use& use : uses) sum += peak(use.demand).bits_per_second;
  return Rate(sum);
}

/// An InputError whose text already contains the position in the file.
struct PlacedError : InputError {
  using InputError::InputError;
};

class Scheduling {
 public:
  Scheduling(const Experiment& experiment, const ScheduleOptions& options)
      : experiment_(experiment), options_(options) {
    result_.experiment = experiment.name;
    result_.measured = options.measure;
    result_.angles = options.solve.angles;
    result_.drift = options.solve.drift;
    if (experiment.topology) result_.topology = experiment.topology->topology;
    for (std::uint32_t number = 0; number < experiment.jobs.size(); ++number) {
      const workload::Job& job = experiment.jobs[number];
      ScheduleResult::ScheduledJob& slot = result_.jobs.emplace_back();
      slot.name = job.name;
      slot.unaware = job.unaware;
      if (!job.unaware) aware_.push_back(number);
    }
    if (aware_.empty())
      fail(0, "every job is unaware, so no job keeps to a schedule", "remove unaware = true from at least one job");
    if (aware_.size() < result_.jobs.size()) warn_of_unaware();
  }

  ScheduleResult run() {
    if (options_.measure)
      profiles_ = profile_jobs(
          experiment_, *make_sim_datapath(),
          [this](double fraction, const std::string& job) { tell(0.4 * fraction, "measuring " + job); }, 0);
    if (options_.add_margin) {
      ScheduleSettings settings = experiment_.schedule;
      settings.max_stretch = options_.solve.max_stretch;  // the option may differ from the file's setting
      options_.solve.slack = slack_for(settings, experiment_.jobs, profiles_);
    }
    tell(0.4, "solving");
    solve();
    for (const ScheduleResult::Component& component : result_.components)
      if (!component.within_limit)
        result_.warnings.push_back(fmt::format(
            "no short perimeter fits the periods of {} jobs, including {}: their slots are up to {} longer than their "
            "iterations; raise --max-repetitions, or place jobs with the same period together",
            component.jobs.size(), in_quotes(result_.jobs[component.jobs.front()].name), percent(component.stretch)));
    for (std::size_t i = 0; i < result_.links.size(); ++i) {
      tell(0.5 + 0.4 * static_cast<double>(i) / static_cast<double>(result_.links.size()), result_.links[i].name);
      judge(result_.links[i]);
    }
    look_for_help();
    return std::move(result_);
  }

 private:
  void tell(double fraction, const std::string& what) const {
    if (options_.progress) options_.progress(fraction, what);
  }

  void solve() {
    if (experiment_.topology)
      schedule_topology();
    else
      schedule_dumbbell();
  }

  // Returns whether these options make all jobs compatible. Solves the whole problem in the same way as the schedule.
  [[nodiscard]] bool fits_with(const scheduler::SolveOptions& options) const {
    Scheduling other(*this);
    other.options_.solve = options;
    other.result_.links.clear();
    other.result_.components.clear();
    other.solve();
    return std::ranges::all_of(other.result_.links,
                               [](const ScheduleResult::Link& link) { return link.solution.score >= 1; }) &&
           std::ranges::all_of(other.result_.components,
                               [](const ScheduleResult::Component& component) { return component.within_limit; });
  }

  // Finds by trial the slack or stretch that makes the jobs of the worst link compatible. Checks whether this value
  // suffices for all links.
  void look_for_help() {
    if (result_.links.empty()) return;
    const ScheduleResult::Link& worst = result_.links[worst_first(result_).front()];
    if (worst.solution.score >= 1 || worst.uses.size() > kMaxJudgedJobs) return;
    double bursts = 0;
    double load = 0;  // mean load of the link as a fraction of its capacity
    for (const ScheduleResult::Use& use : worst.uses) {
      bursts += static_cast<double>(use.demand.bursts.size()) * use.repetitions;
      load += bits(use.demand) / use.demand.period.seconds() / static_cast<double>(worst.capacity.bits_per_second);
    }
    if (bursts > kMaxBurstsWithHelp) return;
    tell(0.9, "possible improvements");
    const Problem problem = problem_of(worst);
    const auto solution = [&](double slack, double stretch) {
      scheduler::SolveOptions options = options_.solve;
      options.slack = slack;
      options.max_stretch = stretch;
      options.robust = false;
      options.node_limit = std::min(options.node_limit, kHelpNodes);
      return scheduler::solve(problem, options);
    };
    const auto in_steps = [](double share) { return static_cast<int>(std::ceil(share / kHelpStep - 1e-9)); };
    // More slack changes the perimeter, which can make compatible jobs incompatible again. The search therefore raises
    // the slack in growing steps until the jobs are compatible. It then uses binary search within the last step.
    const auto min_slack = [&](double stretch) -> std::optional<double> {
      const auto fits = [&](int steps) {
        const scheduler::Solution found = solution(steps * kHelpStep, stretch);
        return found.slots.within_limit && found.links.front().score >= 1;
      };
      const int max = in_steps(kMaxHelp);
      int too_little = std::max(in_steps(options_.solve.slack), in_steps(load - 1) - 1);
      int enough = too_little;
      for (int step = 1;; step = (3 * step + 1) / 2) {
        if (too_little >= max) return std::nullopt;
        enough = std::min(too_little + step, max);
        if (fits(enough)) break;
        too_little = enough;
      }
      while (enough - too_little > 1) {
        const int middle = (too_little + enough) / 2;
        (fits(middle) ? enough : too_little) = middle;
      }
      return enough * kHelpStep;
    };
    scheduler::SolveOptions options = options_.solve;
    if (const auto slack = min_slack(options.max_stretch)) {
      options.slack = *slack;
      if (fits_with(options)) result_.enough_slack = slack;
    }

    options = options_.solve;
    // Values of max_stretch with which a perimeter within the limit exists. Not minimal, because slack also stretches
    // slots.
    std::vector<double> rhythms;
    for (const double stretch : {0.03, 0.05, 0.1, 0.2, kMaxHelp}) {
      if (stretch <= options_.solve.max_stretch) continue;
      const scheduler::Solution found = solution(options_.solve.slack, stretch);
      if (!found.slots.within_limit) continue;
      const double min = in_steps(found.slots.stretch - options_.solve.slack) * kHelpStep;
      rhythms.push_back(stretch);
      if (found.links.front().score < 1) continue;
      for (const double tried : {min, stretch}) {
        options.max_stretch = tried;
        if (result_.enough_stretch || tried <= options_.solve.max_stretch || !fits_with(options)) continue;
        result_.enough_stretch = tried;
      }
      break;
    }
    if (result_.enough_slack || result_.enough_stretch) return;
    for (const double rhythm : rhythms) {
      const auto slack = min_slack(rhythm);
      if (!slack) continue;
      options.max_stretch = rhythm;
      options.slack = *slack;
      if (!fits_with(options)) continue;
      result_.enough_together = {*slack, rhythm};
      return;
    }
  }

  void warn_of_unaware() {
    std::string names;
    for (const ScheduleResult::ScheduledJob& job : result_.jobs)
      if (job.unaware) names += (names.empty() ? "" : ", ") + in_quotes(job.name);
    result_.warnings.push_back(
        fmt::format("these jobs are unaware and have no slot, so scores do not count what they send: {}", names));
  }

  // Returns the demand of the job in isolation: measured, or ideal on a link of `rate`.
  Demand demand(std::uint32_t number, Rate rate) {
    bool changed = false;
    Demand demand;
    if (options_.measure) {
      demand = busiest(number).demand;
    } else {
      demand = demand_of(experiment_.jobs[number], rate, &changed);
    }
    changed = limit_bursts(demand.bursts, options_.max_bursts) || changed;
    ScheduleResult::ScheduledJob& job = result_.jobs[number];
    job.period = demand.period;
    job.first_send = options_.measure ? profiles_[number].first_send : demand.bursts.front().from;
    if (changed)
      result_.warnings.push_back(
          fmt::format("job {} has more than {} bursts in an iteration; bursts that are close together are combined "
                      "into one with their mean rate",
                      in_quotes(experiment_.jobs[number].name), options_.max_bursts));
    return demand;
  }

  // Returns the job's use of the link on which it sends most. On this link, the job's acknowledgements and stray
  // packets have the least effect.
  [[nodiscard]] const Profile::Use& busiest(std::uint32_t number) const {
    const auto& uses = profiles_[number].uses;
    const auto max =
        std::ranges::max_element(uses, [](const auto& a, const auto& b) { return bits(a.demand) < bits(b.demand); });
    if (max == uses.end() || max->demand.bursts.empty())
      throw RunError(fmt::format("job {} alone sends nothing that can be measured; leave --measure out",
                                 in_quotes(experiment_.jobs[number].name)));
    return *max;
  }

  // Refuses a link if the periods of its jobs are so different that the search for the shortest perimeter would take
  // minutes. This function knows the jobs' positions in the file, for the error message. The solver has a separate
  // limit of a million bursts for its memory and for the perimeter that it chooses. That perimeter may be longer than
  // the shortest one, so the solver may still refuse jobs that pass this check.
  void check_spread(std::string_view link, const std::vector<std::uint32_t>& numbers,
                    const std::vector<std::size_t>& bursts) const {
    const auto longer = [&](std::uint32_t a, std::uint32_t b) {
      return result_.jobs[a].period < result_.jobs[b].period;
    };
    const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end(), longer);
    double sum = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      sum += static_cast<double>(bursts[i]) *
             std::floor(result_.jobs[*most].period.seconds() / result_.jobs[numbers[i]].period.seconds());
    if (sum <= kMaxBurstsOnPerimeter) return;
    fail(*least,
         fmt::format("its iterations of {} and those of job {} ({}) share link {}, whose perimeter then has {:.0f} "
                     "bursts, more than {:.0f}",
                     to_text(result_.jobs[*least].period), in_quotes(result_.jobs[*most].name),
                     to_text(result_.jobs[*most].period), in_quotes(link), sum, kMaxBurstsOnPerimeter),
         "set unaware = true for one of the two jobs, or give them iteration times that differ less");
  }

  [[noreturn]] void fail(std::uint32_t number, std::string_view cause, std::string_view cure) const {
    const std::string what = fmt::format("{}; {}", cause, cure);
    if (number < experiment_.places.size())
      throw PlacedError(one_line(fmt::format("{}: {}", experiment_.places[number], what)));
    throw InputError(one_line(fmt::format("job {}: {}", in_quotes(experiment_.jobs[number].name), what)));
  }

  void schedule_dumbbell() {
    ScheduleResult::Link& link = result_.links.emplace_back();
    link.name = "bottleneck";
    link.capacity = experiment_.bottleneck.rate;
    for (const std::uint32_t number : aware_) {
      const Rate own = experiment_.jobs[number].rate;
      ScheduleResult::Use& use = link.uses.emplace_back();
      use.job = number;
      use.demand = demand(number, own.is_zero() ? link.capacity : own);
      if (peak(use.demand) > link.capacity)
        result_.warnings.push_back(
            fmt::format("job {} alone needs {} of link {}, which has {}, so no time shift makes it fit; lower its rate",
                        in_quotes(result_.jobs[number].name), to_text(peak(use.demand)), in_quotes(link.name),
                        to_text(link.capacity)));
    }
    link.competed = peaks(link.uses) > link.capacity;
    if (!link.competed) {
      // The jobs never exceed the capacity together, so they need no slots.
      for (const std::uint32_t number : aware_) {
        ScheduleResult::ScheduledJob& job = result_.jobs[number];
        job.slot_period = job.period;
        job.component = static_cast<std::uint32_t>(result_.components.size());
        ScheduleResult::Component& component = result_.components.emplace_back();
        component.jobs = {number};
        component.perimeter = job.period;
      }
      link.solution.margin = longest_slot(link);
      return;
    }
    std::vector<std::size_t> bursts;
    for (const ScheduleResult::Use& use : link.uses) bursts.push_back(use.demand.bursts.size());
    check_spread(link.name, aware_, bursts);
    const scheduler::Solution solution = scheduler::solve(problem_of(link), options_.solve);
    for (std::size_t i = 0; i < aware_.size(); ++i) {
      result_.jobs[aware_[i]].slot_period = solution.slots.periods[i];
      result_.jobs[aware_[i]].time_shift = solution.shifts[i];
    }
    link.solution = solution.links.front();
    ScheduleResult::Component& component = result_.components.emplace_back();
    component.jobs = aware_;
    component.perimeter = solution.slots.perimeter;
    component.stretch = solution.slots.stretch;
    component.within_limit = solution.slots.within_limit;
    result_.score = link.solution.score;
    result_.upper_bound = link.solution.upper_bound;
    result_.optimal = link.solution.optimal;
  }

  // The flows of a job on the network.
  struct Routed {
    std::vector<std::vector<std::uint32_t>> paths;  // links of each flow, for the flows of all workers
    std::map<std::uint32_t, std::uint32_t> flows;   // number of the job's flows on each link
    Demand demand;                                  // demand of one flow
  };

  Routed route(const FlowFabric& fabric, const workload::Placement& placement) {
    const workload::Job& job = experiment_.jobs[placement.job];
    Routed routed;
    JobSpec sender;
    sender.job = job;
    sender.number = placement.job;
    sender.workers = placement.workers;
    sender.seed = experiment_.seed;
    for (std::uint32_t worker = 0; worker < placement.workers.size(); ++worker)
      for (FlowPath& path : fabric.route(sender, worker)) {
        routed.paths.push_back(std::move(path.data));
        for (const std::uint32_t link : routed.paths.back()) ++routed.flows[link];
      }
    // The flows of a job share each link evenly. The link that allows the lowest rate limits the worker's rate.
    Rate rate = experiment_.topology->host_rate();
    if (!job.rate.is_zero()) rate = std::min(rate, job.rate);
    const Rate wanted = rate;
    std::uint32_t slowest = 0;
    for (const auto& [link, flows] : routed.flows) {
      const Rate most(fabric.links[link].rate.bits_per_second / flows * job.flows);
      if (most >= rate) continue;
      rate = most;
      slowest = link;
    }
    if (rate < wanted && !options_.measure) {
      const std::string link = in_quotes(fabric.links[slowest].name);
      const std::string cause =
          routed.flows[slowest] > 1
              ? fmt::format("{} flows of job {} share link {}, which", routed.flows[slowest], in_quotes(job.name), link)
              : fmt::format("link {} on the path of job {}", link, in_quotes(job.name));
      result_.warnings.push_back(
          fmt::format("{} lets a worker send at only {}, not {}; the schedule assumes the lower rate", cause,
                      to_text(rate), to_text(wanted)));
    }
    routed.demand = demand(placement.job, rate);
    std::uint32_t share = job.flows;
    if (options_.measure)
      for (const auto& [link, flows] : routed.flows)
        if (fabric.links[link].name == busiest(placement.job).name) share = flows;
    for (Burst& burst : routed.demand.bursts)
      burst.rate = Rate(std::max<std::uint64_t>(burst.rate.bits_per_second / share, 1));
    return routed;
  }

  void schedule_topology() {
    const fabric::SwitchedNetworkConfig& config = *experiment_.topology;
    const FlowFabric fabric = flow_fabric(config);
    scheduler::ClusterOptions options;
    options.solve = options_.solve;
    options.max_slot_stretch = 0;  // only solve.max_stretch limits the stretch
    scheduler::Cluster cluster(*config.topology, options);
    const std::vector<workload::Placement> placements = workload::place(experiment_.jobs, config.hosts());
    std::vector<scheduler::ClusterJob> jobs;
    std::vector<Rate> flow_peaks;
    std::map<scheduler::Topology::Link, scheduler::UsedLink> used;
    for (const std::uint32_t number : aware_) {
      const Routed routed = route(fabric, placements[number]);
      scheduler::ClusterJob& job = jobs.emplace_back();
      job.name = experiment_.jobs[number].name;
      job.demand = routed.demand;
      flow_peaks.push_back(peak(routed.demand));
      for (const auto& [link, flows] : routed.flows) {
        scheduler::UsedLink& use = used[link];
        use.link = link;
        use.capacity = fabric.links[link].rate;
        use.uses.push_back({static_cast<std::uint32_t>(jobs.size() - 1), flows});
      }
      std::size_t flow = 0;
      for (const workload::WorkerHosts& worker : placements[number].workers)
        for (std::uint32_t i = 0; i < experiment_.jobs[number].flows; ++i)
          job.flows.push_back({worker.from, worker.to, 1, routed.paths[flow++]});
    }
    std::vector<scheduler::UsedLink> links;
    for (auto& [link, use] : used) {
      if (scheduler::competes(use, flow_peaks)) {
        std::vector<std::uint32_t> on_it;
        std::vector<std::size_t> bursts;
        for (const scheduler::LinkUse& of : use.uses) {
          on_it.push_back(aware_[of.job]);
          bursts.push_back(jobs[of.job].demand.bursts.size());
        }
        check_spread(cluster.topology().link_name(link), on_it, bursts);
      }
      links.push_back(std::move(use));
    }
    const scheduler::AffinityGraph graph = scheduler::affinity_graph(links, flow_peaks);
    take(cluster, cluster.schedule(std::move(jobs)));
    name_loops(graph);
  }

  void take(const scheduler::Cluster& cluster, const scheduler::ClusterSolution& solution) {
    std::map<std::string, std::uint32_t, std::less<>> numbers;
    for (const std::uint32_t number : aware_) numbers.emplace(result_.jobs[number].name, number);
    std::vector<std::uint32_t> number_of;
    for (const auto& job : solution.jobs) {
      number_of.push_back(numbers.find(job.name)->second);
      ScheduleResult::ScheduledJob& slot = result_.jobs[number_of.back()];
      slot.period = job.period;
      slot.slot_period = job.slot_period;
      slot.time_shift = job.time_shift;
      slot.component = job.component;
    }
    for (const auto& component : solution.components) {
      ScheduleResult::Component& taken = result_.components.emplace_back();
      for (const std::uint32_t job : component.jobs) taken.jobs.push_back(number_of[job]);
      std::ranges::sort(taken.jobs);
      taken.perimeter = component.perimeter;
      taken.stretch = component.stretch;
      taken.within_limit = component.within_limit;
      taken.loops = component.loops;
      taken.lost = component.lost;
    }
    for (const auto& link : solution.links) {
      ScheduleResult::Link& taken = result_.links.emplace_back();
      taken.name = cluster.topology().link_name(link.link);
      taken.capacity = link.capacity;
      taken.competed = link.competed;
      taken.component = link.component;
      taken.solution = link.solution;
      for (const scheduler::LinkUse& use : link.uses)
        taken.uses.push_back({number_of[use.job], scheduler::multiplied(cluster.job(use.job).demand, use.flows), 0, 0});
    }
    result_.score = solution.score;
    result_.upper_bound = solution.upper_bound;
    result_.optimal = solution.optimal;
    result_.loops = solution.loops;
    result_.lost = solution.lost;
    link_numbers_.clear();
    for (std::uint32_t i = 0; i < solution.links.size(); ++i) link_numbers_.emplace(solution.links[i].link, i);
  }

  // Stores the loops of the graph in `result_`. The jobs of the graph are those that are not `unaware`, in order.
  void name_loops(const scheduler::AffinityGraph& graph) {
    for (const scheduler::AffinityGraph::Group& group : graph.groups) {
      if (group.loops == 0) continue;
      ScheduleResult::Loop& loop = result_.joint.emplace_back();
      loop.count = group.loops;
      for (const std::uint32_t job : group.jobs) loop.jobs.push_back(aware_[job]);
      for (const std::uint32_t vertex : group.vertices)
        for (const std::uint32_t link : graph.vertices[vertex].links)
          if (const auto known = link_numbers_.find(link); known != link_numbers_.end())
            loop.links.push_back(known->second);
      std::ranges::sort(loop.links);
    }
  }

  [[nodiscard]] Nanos longest_slot(const ScheduleResult::Link& link) const {
    Nanos longest;
    for (const ScheduleResult::Use& use : link.uses) longest = std::max(longest, result_.jobs[use.job].slot_period);
    return longest;
  }

  // Returns the scheduling problem of only this link, with jobs in the order of `link.uses`.
  [[nodiscard]] Problem problem_of(const ScheduleResult::Link& link) const {
    Problem problem;
    Problem::Link& only = problem.links.emplace_back();
    only.name = link.name;
    only.capacity = link.capacity;
    for (const ScheduleResult::Use& use : link.uses) {
      only.uses.push_back({static_cast<std::uint32_t>(problem.jobs.size()), use.demand});
      problem.jobs.push_back({result_.jobs[use.job].name, use.demand.period, std::nullopt});
    }
    return problem;
  }

  // Fills in the values of a link that follow from the time shifts: rotations, the score without shifts, removals and
  // pair scores. Computes links with equal demands only once.
  void judge(ScheduleResult::Link& link) {
    if (!link.competed) return;
    scheduler::Slots slots;
    slots.perimeter = link.solution.perimeter;
    for (ScheduleResult::Use& use : link.uses) {
      const ScheduleResult::ScheduledJob& job = result_.jobs[use.job];
      use.repetitions = static_cast<std::uint32_t>(slots.perimeter.count / job.slot_period.count);
      use.rotation = scheduler::rotation(job.time_shift, slots.perimeter);
      slots.repetitions.push_back(use.repetitions);
      slots.periods.push_back(job.slot_period);
      slots.stretch = std::max(slots.stretch, job.stretch());
    }
    std::string question = fmt::format("{}", link.capacity.bits_per_second);
    for (const ScheduleResult::Use& use : link.uses) {
      question += fmt::format(";{} {}", use.demand.period.count, result_.jobs[use.job].slot_period.count);
      for (const Burst& burst : use.demand.bursts)
        question += fmt::format(" {} {} {}", burst.from.count, burst.to.count, burst.rate.bits_per_second);
    }
    const auto [known, is_new] = judged_.try_emplace(std::move(question));
    Judgement& judgement = known->second;
    const Problem problem = problem_of(link);
    if (is_new) {
      const std::vector<Nanos> unshifted(link.uses.size());
      judgement.unshifted_score = scheduler::evaluate(problem, slots, unshifted, options_.solve).links.front().score;
    }
    link.unshifted_score = judgement.unshifted_score;
    if (link.solution.score >= 1 || link.uses.size() > kMaxJudgedJobs) return;
    if (!judgement.has_removals) {
      judgement.has_removals = true;
      judgement.removals = scheduler::removals(problem, options_.solve);
      std::vector<Demand> demands;
      for (const ScheduleResult::Use& use : link.uses) demands.push_back(use.demand);
      judgement.pair_scores = scheduler::pair_scores(demands, link.capacity, options_.solve);
    }
    for (const scheduler::Removal& removal : judgement.removals)
      link.removals.push_back({link.uses[removal.job].job, removal.score, removal.upper_bound});
    link.pair_scores = judgement.pair_scores;
  }

  struct Judgement {
    double unshifted_score = 1;
    bool has_removals = false;
    std::vector<scheduler::Removal> removals;  // jobs are indices in ScheduleResult::Link::uses
    std::vector<std::vector<double>> pair_scores;
  };

  const Experiment& experiment_;
  ScheduleOptions options_;
  std::vector<std::uint32_t> aware_;  // numbers of the jobs that get slots
  std::vector<Profile> profiles_;     // profiles of the jobs; empty if demands are not measured
  std::map<std::string, Judgement> judged_;
  std::map<scheduler::Topology::Link, std::uint32_t> link_numbers_;  // index in `result_.links` of each link
  ScheduleResult result_;
};

}  // namespace

PlanFile plan_of(const ScheduleResult& schedule, const ScheduleSettings& settings) {
  PlanFile plan;
  plan.serial = 1;
  plan.clock_bound = settings.clock_bound;
  plan.tolerance = settings.tolerance;
  plan.correction = settings.correction;
  plan.gradual_step = settings.gradual_step;
  std::vector<bool> competes(schedule.jobs.size());
  for (const ScheduleResult::Link& link : schedule.links)
    for (const ScheduleResult::Use& use : link.uses)
      if (link.competed && schedule.components[link.component].within_limit) competes[use.job] = true;
  for (std::size_t number = 0; number < schedule.jobs.size(); ++number) {
    const ScheduleResult::ScheduledJob& job = schedule.jobs[number];
    if (!competes[number]) continue;
    plan.jobs.push_back({job.name, job.slot_period, modulo(job.time_shift + job.first_send, job.slot_period)});
    // Slack makes the next slot later relative to the job in each iteration, so a gradual step must exceed the slack.
    plan.gradual_step = std::clamp(2 * job.stretch(), plan.gradual_step, 1.0);
  }
  return plan;
}

ScheduleResult make_schedule(const Experiment& experiment, const ScheduleOptions& options) {
  try {
    for (const workload::Job& job : experiment.jobs)
      if (job.ranked() && !options.measure)
        throw InputError(fmt::format(
            "job {}: the link use of a pattern of communication must be measured; add --measure", in_quotes(job.name)));
    return Scheduling(experiment, options).run();
  } catch (const PlacedError&) {
    throw;
  } catch (const InputError& error) {
    // Errors of the solver have no position in the file; they concern the whole file. An example is a period that is
    // too long with its slack.
    if (experiment.file.empty()) throw;
    throw InputError(one_line(fmt::format("{}: {}", experiment.file, error.what())));
  }
}

std::string score_text(double score) {
  const std::string text = fmt::format("{:.4f}", score);
  return score < 1 && text == "1.0000" ? "0.9999" : text;
}

std::vector<std::size_t> worst_first(const ScheduleResult& schedule) {
  std::vector<std::size_t> order(schedule.links.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const auto key = [&](const ScheduleResult::Link& link) {
      return std::tuple(!link.competed, link.solution.score, link.solution.margin);
    };
    return key(schedule.links[a]) < key(schedule.links[b]);
  });
  return order;
}

std::string help_of(const ScheduleResult& schedule) {
  std::vector<std::string> options;
  if (schedule.enough_slack) options.push_back(fmt::format("--slack {:.3g}", *schedule.enough_slack));
  if (schedule.enough_stretch) options.push_back(fmt::format("--max-stretch {:.3g}", *schedule.enough_stretch));
  if (const auto& both = schedule.enough_together)
    options.push_back(fmt::format("--slack {:.3g} --max-stretch {:.3g}", both->slack, both->max_stretch));
  return fmt::format("{}", fmt::join(options, " or "));
}

std::string verdict(const ScheduleResult& schedule, const ScheduleResult::Link& link) {
  const scheduler::LinkSolution& solution = link.solution;
  if (!link.competed)
    return fmt::format("any time shifts work: together the jobs never need more than {} of {}",
                       rounded(peaks(link.uses)), to_text(link.capacity));
  if (solution.score >= 1) {
    const std::string_view fits = "fully compatible: with these time shifts the jobs never need more than the link has";
    if (solution.margin.count == 0)
      return fmt::format("{}, but without margin: a job that leaves its slot collides", fits);
    return fmt::format("{}, as long as each keeps its slot to within {:.3f} ms", fits, solution.margin.millis());
  }
  std::string text =
      fmt::format("not compatible: {} {} of what the link can carry is needed beyond its capacity",
                  solution.optimal ? "at best" : "with the best shifts found", percent(1 - solution.score));
  const std::string min = percent(std::max(0.0, 1 - solution.upper_bound));
  if (!solution.optimal && min != percent(1 - solution.score)) text += fmt::format(" (no shifts get below {})", min);
  if (const std::string options = help_of(schedule); !options.empty())
    text += fmt::format(
        "; with {} all jobs fit, in longer slots{}", options,
        schedule.measured ? "" : " (by ideal demand; add --measure to use the demand that mltcp run would see)");
  if (link.removals.empty() || link.uses.size() < 2) return text;
  const ScheduleResult::Removal& best = link.removals.front();
  std::string others;
  std::size_t alike = 0;
  for (std::size_t i = 1; i < link.removals.size() && link.removals[i].score >= best.score; ++i)
    if (++alike <= 3) others += (alike == 1 ? " (or " : ", ") + in_quotes(schedule.jobs[link.removals[i].job].name);
  if (alike > 3) others += fmt::format(" and {} more", alike - 3);
  if (alike > 0) others += ")";
  return text + fmt::format("; without job {}{} the score of the others is {:.3f}",
                            in_quotes(schedule.jobs[best.job].name), others, best.score);
}

}  // namespace mltcp::experiment
