// Schedules clusters and ranks candidates (see cluster.h).
#include "mltcp/scheduler/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/parallel.h"
#include "mltcp/base/text.h"
#include "mltcp/scheduler/internal/cluster_impl.h"
#include "mltcp/scheduler/internal/descent.h"
#include "mltcp/scheduler/internal/slot_choice.h"
#include "mltcp/scheduler/internal/solving.h"

namespace mltcp::scheduler {
namespace {

constexpr std::size_t kMaxRemembered = 50'000;  // maximum number of cached solutions; each is at most a few kB

/// Descent may examine this number of step meetings for each node of SolveOptions::node_limit.
constexpr double kMeetingsPerNode = 50;

constexpr std::uint32_t kMaxThreads = 1'024;

void check_slot(const RoutedJob& job, Nanos period, Nanos shift) {
  const std::string name = in_quotes(job.job.name);
  if (period < job.period() || period > kLongestPeriod)
    throw InputError(fmt::format("slots of job {} last {}; give its period, {}, or longer", name, to_text(period),
                                 to_text(job.period())));
  if (shift < Nanos() || shift >= period)
    throw InputError(fmt::format("job {} is shifted by {}; give from 0 to less than its slot's {}", name,
                                 to_text(shift), to_text(period)));
}

// Slots that a caller passes to restore() may have no common perimeter that is short enough for the solver.
void check_perimeter(const ClusterState& state, const AffinityGraph::Component& component) {
  std::int64_t common = 1;
  for (const std::uint32_t job : component.jobs) {
    const std::int64_t period = state.slot_periods[job].count;
    const std::int64_t factor = period / std::gcd(common, period);
    if (factor > kLongestPeriod.count / common)
      throw InputError(
          fmt::format("the slots of job {}, {}, have no common multiple with those of the jobs with which it competes; "
                      "give slots of one perimeter, as schedule() and join() do",
                      in_quotes(state.jobs[job]->job.name), to_text(Nanos(period))));
    common *= factor;
  }
}

}  // namespace

void check(const ClusterOptions& options) {
  internal::check(options.solve);
  if (options.solve.node_limit == 0) throw InputError("solve.node_limit is 0; give 1 or more");
  if (options.threads > kMaxThreads)
    throw InputError(fmt::format("threads is {}; give at most {}, or 0 for as many as there are cores", options.threads,
                                 kMaxThreads));
  // The conditions are negated so that NaN is refused.
  if (!(options.join_threshold >= 0 && std::isfinite(options.join_threshold)))
    throw InputError(fmt::format("join_threshold is {}; give the score that a job may lose, 0 or more, such as 0.02",
                                 options.join_threshold));
  if (!(options.max_slot_stretch >= 0 && options.max_slot_stretch <= 1))
    throw InputError(
        fmt::format("max_slot_stretch is {}; give a share of the period from 0 to 1", options.max_slot_stretch));
  if (!(options.min_score >= 0 && options.min_score <= 1))
    throw InputError(fmt::format("min_score is {}; give a score from 0 to 1", options.min_score));
}

std::vector<Flow> ring(std::span<const Topology::Host> workers) {
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const Topology::Host next = workers[(i + 1) % workers.size()];
    if (workers[i] != next) flows.push_back({workers[i], next, 1, {}});
  }
  return flows;
}

std::vector<std::unique_ptr<const RoutedJob>> Cluster::Impl::routed(std::vector<ClusterJob> jobs,
                                                                    bool beside_running) const {
  std::unordered_set<std::string_view> names;
  if (beside_running)
    for (const auto& job : running) names.insert(job->job.name);
  std::vector<std::unique_ptr<const RoutedJob>> result;
  for (ClusterJob& job : jobs) {
    if (job.name.empty()) throw InputError("a job has no name; give every job one of its own");
    result.push_back(std::make_unique<const RoutedJob>(std::move(job), topology, options.routing_seed));
    if (!names.insert(result.back()->job.name).second)
      throw InputError(
          fmt::format("two jobs are called {}; give every job a name of its own", in_quotes(result.back()->job.name)));
  }
  return result;
}

std::vector<const RoutedJob*> Cluster::Impl::with_running(
    const std::vector<std::unique_ptr<const RoutedJob>>& others) const {
  std::vector<const RoutedJob*> jobs;
  for (const auto& job : running) jobs.push_back(job.get());
  for (const auto& job : others) jobs.push_back(job.get());
  return jobs;
}

void Cluster::Impl::forget_if_full() {
  if (remembered_.size() > kMaxRemembered) remembered_.clear();
  if (remembered_slots_.size() > kMaxRemembered) remembered_slots_.clear();
  if (remembered_pairs_.size() > kMaxRemembered) remembered_pairs_.clear();
}

void Cluster::Impl::choose_slots_of(std::span<Asking*> askings) {
  struct Unknown {
    std::string key;
    ClusterState* state = nullptr;
    const AffinityGraph::Component* component = nullptr;
    std::vector<Nanos> slots;
  };
  std::vector<Unknown> all;
  std::unordered_set<std::string> asked;
  for (Asking* asking : askings)
    for (const AffinityGraph::Component& component : asking->state.graph.components)
      if (std::string key = internal::key_of_slots(asking->state, component, options);
          !remembered_slots_.contains(key) && asked.insert(key).second)
        all.push_back({std::move(key), &asking->state, &component, {}});
  // Threads may change the same state, because its components have disjoint jobs.
  in_parallel(options.threads, all.size(), [&](std::size_t i) {
    Unknown& unknown = all[i];
    unknown.slots = internal::slots_worth_most(*unknown.state, *unknown.component,
                                               unknown.state->periods(*unknown.component), options);
  });
  for (Unknown& unknown : all) remembered_slots_.emplace(std::move(unknown.key), std::move(unknown.slots));
  for (Asking* asking : askings)
    for (const AffinityGraph::Component& component : asking->state.graph.components)
      set_slots(asking->state, component);
}

void Cluster::Impl::set_slots(ClusterState& state, const AffinityGraph::Component& component) {
  const std::vector<Nanos> periods = state.periods(component);
  std::string key = internal::key_of_slots(state, component, options);
  auto slots = remembered_slots_.find(key);
  if (slots == remembered_slots_.end())
    slots =
        remembered_slots_.emplace(std::move(key), internal::slots_worth_most(state, component, periods, options)).first;
  internal::set_slot_periods(state, component, periods, slots->second);
}

std::optional<double> Cluster::Impl::cost_of_slots(const ClusterState& state,
                                                   const AffinityGraph::Component& component) const {
  if (!internal::SlotCosts::applies(component, options)) return std::nullopt;
  return internal::SlotCosts(state, component).searched(options);
}

bool Cluster::Impl::set_slots_beside(ClusterState& state, const AffinityGraph::Component& component) {
  const auto added = static_cast<std::uint32_t>(state.jobs.size() - 1);
  const auto jobs = static_cast<double>(component.jobs.size());
  const std::vector<Nanos> running_periods = state.slot_periods;
  set_slots(state, component);
  const std::vector<Nanos> fresh = state.slot_periods;
  std::vector<Nanos> best;
  std::optional<double> min;
  const auto consider = [&](const std::vector<Nanos>& periods) {
    state.slot_periods = periods;
    const std::optional<double> cost = cost_of_slots(state, component);
    if (!best.empty() && !(cost && min && *cost < *min - internal::kCostMargin * jobs)) return;
    best = periods;
    min = cost;
  };
  for (const double stretch : {options.solve.max_stretch, options.max_slot_stretch}) {
    if (stretch == options.max_slot_stretch && !internal::SlotCosts::applies(component, options)) continue;
    std::vector<Nanos> beside = running_periods;
    state.slot_periods = running_periods;
    const std::optional<Nanos> period = period_for(state, added, stretch);
    if (!period) continue;
    beside[added] = *period;
    consider(beside);
  }
  state.slot_periods = fresh;
  if (best.empty()) return false;
  const std::optional<double> anew = cost_of_slots(state, component);
  if (min && anew && *min - *anew > options.join_threshold * jobs) return false;
  state.slot_periods = best;
  return true;
}

void Cluster::Impl::solve_all(const std::vector<AskedBy>& questions, Aim aim) {
  std::vector<AskedBy> unknown;
  std::unordered_set<std::string_view> asked;
  for (const AskedBy& question : questions) {
    const std::string& key = question.first->key;
    const auto known = remembered_.find(key);
    const bool enough = known != remembered_.end() && (known->second.robust || aim == Aim::scores);
    const bool fresh = !enough && asked.insert(key).second;
    if (fresh) unknown.push_back(question);
    ++(fresh ? work.solved : work.remembered);
  }
  // Solve large questions first, to balance the load of the cores.
  std::ranges::stable_sort(
      unknown, [](const AskedBy& a, const AskedBy& b) { return a.first->key.size() > b.first->key.size(); });
  std::vector<Solution> solutions(unknown.size());
  in_parallel(options.threads, unknown.size(), [&](std::size_t i) {
    solutions[i] = solved_by_search_or_descent(*unknown[i].first, *unknown[i].second, aim);
  });
  for (std::size_t i = 0; i < unknown.size(); ++i)
    remembered_[unknown[i].first->key] = {std::make_shared<const Solution>(std::move(solutions[i])),
                                          aim == Aim::shifts};
}

Solution Cluster::Impl::solved_by_search_or_descent(const Question& question, const ClusterState& state,
                                                    Aim aim) const {
  const Problem problem = question.problem(state);
  const Slots slots = state.slots(question.jobs, options.solve);
  SolveOptions how = options.solve;
  how.robust = how.robust && aim == Aim::shifts;
  // The search needs all links on the common perimeter of all jobs, so a link may have too many bursts for the search.
  // Descent gives each link the shorter perimeter of its own jobs.
  const bool small = std::ranges::all_of(problem.links, [&](const Problem::Link& link) {
    return internal::bursts_on(link, slots, slots.perimeter.count) <= internal::kMaxBursts;
  });
  if (how.angles > 0 || (small && question.meetings <= kMaxToSearch)) return solve(problem, slots, how);
  // Descent proves no bound, so the bound follows only from the area of the demands.
  return internal::evaluated(problem, slots,
                             internal::descend(problem, slots, question.start,
                                               kMeetingsPerNode * static_cast<double>(how.node_limit), how.robust),
                             how, aim == Aim::scores);
}

void Cluster::Impl::compose(const Asking& asking, const AffinityGraph::Component& component,
                            std::vector<Nanos>& shifts) const {
  const ClusterState& state = asking.state;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> groups_of;
  for (const std::uint32_t group : component.groups)
    for (const std::uint32_t job : state.graph.groups[group].jobs) groups_of[job].push_back(group);
  std::unordered_set<std::uint32_t> done;
  std::vector<std::uint32_t> reached{component.jobs.front()};
  shifts[reached.front()] = Nanos(0);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const std::uint32_t from = reached[i];
    for (const std::uint32_t group : groups_of[from]) {
      if (!done.insert(group).second) continue;
      const Question& question = asking.of_group(group);
      const std::vector<Nanos>& within = answer(question).shifts;
      const auto place = std::ranges::find(question.jobs, from) - question.jobs.begin();
      // All jobs of the group move by the same time, so the shift of job `from` need not be reduced modulo its period.
      const Nanos moved = shifts[from] - within[static_cast<std::size_t>(place)];
      for (std::size_t k = 0; k < question.jobs.size(); ++k) {
        const std::uint32_t job = question.jobs[k];
        if (job == from) continue;
        shifts[job] = modulo(within[k] + moved, state.slot_periods[job]);
        reached.push_back(job);
      }
    }
  }
}

Scores Cluster::Impl::solved(const Asking& asking) const {
  const AffinityGraph& graph = asking.state.graph;
  Scores scores;
  scores.links.resize(graph.vertices.size());
  for (std::uint32_t group = 0; group < graph.groups.size(); ++group) {
    const Question& question = asking.of_group(group);
    const Solution& solution_of_group = answer(question);
    double sum = 0;
    double bound = 0;
    for (const std::uint32_t vertex : graph.groups[group].vertices) {
      LinkSolution& link = scores.links[vertex];
      link = solution_of_group.links[question.place(vertex)];
      link.upper_bound = std::min(link.upper_bound, bound_of(asking.alone[vertex]));
      link.optimal = link.optimal || link.score >= link.upper_bound - kEqualScores;
      sum += asking.weight(vertex) * link.score;
      bound += asking.weight(vertex) * link.upper_bound;
    }
    bound = std::min(bound, solution_of_group.upper_bound * question.links_per_vertex *
                                static_cast<double>(question.vertices.size()));
    scores.group_upper_bounds.push_back(bound);
    scores.group_optimal.push_back(solution_of_group.optimal || sum >= bound - kEqualScores);
  }
  return scores;
}

Scores Cluster::Impl::evaluated(const Asking& asking, const std::vector<Nanos>& shifts) {
  const ClusterState& state = asking.state;
  const AffinityGraph& graph = state.graph;
  std::vector<AskedBy> questions;
  for (const Question& question : asking.alone) questions.emplace_back(&question, &state);
  solve_all(questions);
  Scores scores;
  scores.links.resize(graph.vertices.size());
  in_parallel(options.threads, graph.vertices.size(), [&](std::size_t vertex) {
    const Question& question = asking.alone[vertex];
    std::vector<Nanos> own;
    for (const std::uint32_t job : question.jobs) own.push_back(shifts[job]);
    LinkSolution& link = scores.links[vertex];
    link =
        evaluate(question.problem(state), state.slots(question.jobs, options.solve), own, options.solve).links.front();
    link.upper_bound = std::min(link.upper_bound, bound_of(question));
    link.optimal = link.optimal || link.score >= link.upper_bound - kEqualScores;
  });
  for (const AffinityGraph::Group& group : graph.groups) {
    double bound = 0;
    bool optimal = true;
    for (const std::uint32_t vertex : group.vertices) {
      bound += asking.weight(vertex) * scores.links[vertex].upper_bound;
      optimal = optimal && scores.links[vertex].optimal;
    }
    scores.group_upper_bounds.push_back(bound);
    scores.group_optimal.push_back(optimal);
  }
  return scores;
}

bool Cluster::Impl::within_limit(const Asking& asking, const AffinityGraph::Component& component, const Slots& slots,
                                 const Scores& scores) const {
  if (slots.within_limit) return true;
  if (slots.stretch > options.max_slot_stretch + options.solve.slack + 1e-9 ||
      !internal::SlotCosts::applies(component, options))
    return false;
  std::vector<double> of_links;
  for (const LinkSolution& link : scores.links) of_links.push_back(link.score);
  const internal::SlotCosts costs(asking.state, component);
  return costs.with(of_links, options.min_score) < costs.without();
}

ClusterSolution Cluster::Impl::described(const Asking& asking, const std::vector<Nanos>& shifts,
                                         const Scores& scores) const {
  const ClusterState& state = asking.state;
  const AffinityGraph& graph = state.graph;
  ClusterSolution result;
  for (std::uint32_t job = 0; job < state.jobs.size(); ++job)
    result.jobs.push_back({state.jobs[job]->job.name, state.jobs[job]->period(), state.slot_periods[job], shifts[job],
                           graph.component_of[job]});
  std::unordered_map<Topology::Link, std::uint32_t> vertex_of;
  for (std::uint32_t vertex = 0; vertex < graph.vertices.size(); ++vertex)
    for (const Topology::Link link : graph.vertices[vertex].links) vertex_of[link] = vertex;
  double sum = 0;
  double bound = 0;
  for (const UsedLink& used : state.links) {
    ClusterSolution::Link& link = result.links.emplace_back();
    link.link = used.link;
    link.capacity = used.capacity;
    link.uses = used.uses;
    const auto vertex = vertex_of.find(used.link);
    link.competed = vertex != vertex_of.end();
    if (link.competed) {
      link.solution = scores.links[vertex->second];
      link.component = graph.component_of[used.uses.front().job];
    } else {
      Nanos shortest = Nanos::never();
      for (const LinkUse& use : used.uses) shortest = std::min(shortest, state.slot_periods[use.job]);
      link.solution.margin = shortest / 2;
      bound += 1;
    }
    sum += link.solution.score;
  }
  for (const AffinityGraph::Component& component : graph.components) {
    const Slots slots = state.slots(component.jobs, options.solve);
    double lost = 0;
    for (const std::uint32_t group : component.groups) {
      bound += scores.group_upper_bounds[group];
      result.optimal = result.optimal && scores.group_optimal[group];
      if (graph.groups[group].loops == 0) continue;
      for (const std::uint32_t vertex : graph.groups[group].vertices)
        lost += asking.weight(vertex) * (answer(asking.alone[vertex]).links.front().score - scores.links[vertex].score);
    }
    result.components.push_back({component.jobs, slots.perimeter, slots.stretch,
                                 within_limit(asking, component, slots, scores), component.loops, lost});
    result.loops += component.loops;
    result.lost += lost;
  }
  if (!result.links.empty()) {
    result.score = sum / static_cast<double>(result.links.size());
    result.upper_bound = std::max(result.score, bound / static_cast<double>(result.links.size()));
  }
  return result;
}

const ClusterSolution& Cluster::Impl::schedule(std::vector<ClusterJob> jobs) {
  forget_if_full();
  std::vector<std::unique_ptr<const RoutedJob>> all = routed(std::move(jobs), false);
  std::vector<const RoutedJob*> views;
  views.reserve(all.size());
  for (const auto& job : all) views.push_back(job.get());
  Asking asking(std::move(views), topology);
  std::vector<Asking*> askings{&asking};
  choose_slots_of(askings);
  asking.ask();
  std::vector<AskedBy> questions;
  for (const Question& question : asking.alone) questions.emplace_back(&question, &asking.state);
  for (const auto& question : asking.joint)
    if (question) questions.emplace_back(&*question, &asking.state);
  solve_all(questions);
  std::vector<Nanos> shifts(asking.state.jobs.size());
  for (const AffinityGraph::Component& component : asking.state.graph.components) compose(asking, component, shifts);
  solution = described(asking, shifts, solved(asking));
  running = std::move(all);
  return solution;
}

const ClusterSolution& Cluster::Impl::restore(std::vector<PlacedJob> jobs) {
  forget_if_full();
  std::vector<ClusterJob> given;
  std::vector<Nanos> shifts;
  std::vector<Nanos> slot_periods;
  for (PlacedJob& job : jobs) {
    given.push_back(std::move(job.job));
    shifts.push_back(job.time_shift);
    slot_periods.push_back(job.slot_period);
  }
  std::vector<std::unique_ptr<const RoutedJob>> all = routed(std::move(given), false);
  std::vector<const RoutedJob*> views;
  for (std::size_t job = 0; job < all.size(); ++job) {
    views.push_back(all[job].get());
    check_slot(*all[job], slot_periods[job], shifts[job]);
  }
  Asking asking(std::move(views), topology);
  asking.state.slot_periods = std::move(slot_periods);
  for (const AffinityGraph::Component& component : asking.state.graph.components)
    check_perimeter(asking.state, component);
  asking.ask();
  const Scores scores = evaluated(asking, shifts);
  solution = described(asking, shifts, scores);
  running = std::move(all);
  return solution;
}

std::vector<RankedCandidate> Cluster::Impl::rank(std::span<const Candidate> candidates) {
  forget_if_full();
  std::vector<std::vector<std::unique_ptr<const RoutedJob>>> jobs;
  for (const Candidate& candidate : candidates) jobs.push_back(routed(candidate.jobs, true));
  std::vector<std::optional<Asking>> askings(candidates.size());
  in_parallel(options.threads, candidates.size(),
              [&](std::size_t i) { askings[i].emplace(with_running(jobs[i]), topology); });

  std::vector<RankedCandidate> ranked(candidates.size());
  std::vector<Asking*> kept;
  std::vector<RankedCandidate*> ranks;
  for (std::uint32_t i = 0; i < candidates.size(); ++i) {
    ranked[i].candidate = i;
    for (const AffinityGraph::Component& component : askings[i]->state.graph.components)
      ranked[i].loops += component.loops;
    ranked[i].discarded = options.discard_loops && ranked[i].loops > 0;
    if (ranked[i].discarded) {
      ranked[i].reason = fmt::format("{} loop{} of jobs and links", ranked[i].loops, ranked[i].loops == 1 ? "" : "s");
      continue;
    }
    if (options.max_bursts > 0) {
      const ClusterState& state = askings[i]->state;
      for (auto job = static_cast<std::uint32_t>(running.size()); job < state.jobs.size() && !ranked[i].discarded;
           ++job) {
        ranked[i].reason =
            too_many_bursts(state, state.graph.components[state.graph.component_of[job]], options.max_bursts);
        ranked[i].discarded = !ranked[i].reason.empty();
      }
      if (ranked[i].discarded) continue;
    }
    kept.push_back(&*askings[i]);
    ranks.push_back(&ranked[i]);
  }
  choose_slots_of(kept);
  in_parallel(options.threads, kept.size(), [&](std::size_t i) {
    try {
      kept[i]->ask(shifts_in(kept[i]->state));
    } catch (const InputError& error) {
      ranks[i]->discarded = true;
      ranks[i]->reason = error.what();
    }
  });
  std::vector<AskedBy> questions;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (ranks[i]->discarded) continue;
    const Asking* asking = kept[i];
    for (const Question& question : asking->alone) questions.emplace_back(&question, &asking->state);
    for (const auto& question : asking->joint)
      if (question) questions.emplace_back(&*question, &asking->state);
  }
  solve_all(questions, Aim::scores);
  in_parallel(options.threads, kept.size(), [&](std::size_t i) {
    if (ranks[i]->discarded) return;
    const ClusterSolution with = described(*kept[i], std::vector<Nanos>(kept[i]->state.jobs.size()), solved(*kept[i]));
    RankedCandidate& rank = *ranks[i];
    rank.score = with.score;
    rank.upper_bound = with.upper_bound;
    rank.optimal = with.optimal;
    rank.lost = with.lost;
    for (const ClusterSolution::Link& link : with.links) rank.worst = std::min(rank.worst, link.solution.score);
  });
  std::ranges::stable_sort(ranked, [](const RankedCandidate& a, const RankedCandidate& b) {
    if (a.discarded || b.discarded) return b.discarded && !a.discarded;
    return a.score != b.score ? a.score > b.score : a.worst > b.worst;
  });
  return ranked;
}

LinkProblem Cluster::Impl::link_problem(std::size_t index) const {
  const ClusterSolution::Link& link = solution.links.at(index);
  const std::string name = topology.link_name(link.link);
  if (!link.competed)
    throw InputError(fmt::format(
        "no jobs compete on link {}, so their slots have no common perimeter; name a link on which jobs compete",
        in_quotes(name)));
  LinkProblem result;
  Problem::Link asked{name, link.capacity, {}};
  std::vector<Nanos> periods;
  std::vector<Nanos> slot_periods;
  for (const LinkUse& use : link.uses) {
    const ClusterSolution::SolvedJob& job = solution.jobs[use.job];
    asked.uses.push_back(
        {static_cast<std::uint32_t>(result.problem.jobs.size()), multiplied(running[use.job]->job.demand, use.flows)});
    result.problem.jobs.push_back({job.name, job.period, {}});
    result.shifts.push_back(job.time_shift);
    periods.push_back(job.period);
    slot_periods.push_back(job.slot_period);
  }
  result.problem.links.push_back(std::move(asked));
  result.slots = slots_with(periods, slot_periods, options.solve);
  return result;
}

double Cluster::Impl::pair_score(const Demand& a, const Demand& b, Rate capacity) {
  forget_if_full();
  // Two jobs with too many bursts cannot be scheduled together, so they get the worst score.
  const double longest = std::max(a.period, b.period).seconds();
  if (options.max_bursts > 0 && static_cast<double>(a.bursts.size()) * longest / a.period.seconds() +
                                        static_cast<double>(b.bursts.size()) * longest / b.period.seconds() >
                                    options.max_bursts)
    return 0;
  std::string key = identity_of(a) + identity_of(b);
  append_to_key(key, static_cast<std::int64_t>(capacity.bits_per_second));
  const auto known = remembered_pairs_.find(key);
  if (known != remembered_pairs_.end()) return known->second;
  const double score = pair_scores({a, b}, capacity, options.solve)[0][1];
  remembered_pairs_.emplace(std::move(key), score);
  return score;
}

Cluster::Cluster(Topology topology, const ClusterOptions& options)
    : impl_(std::make_unique<Impl>(std::move(topology), options)) {}
Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;

const Topology& Cluster::topology() const { return impl_->topology; }
std::size_t Cluster::jobs() const { return impl_->running.size(); }
const ClusterJob& Cluster::job(std::size_t index) const { return impl_->running[index]->job; }
const ClusterSolution& Cluster::schedule(std::vector<ClusterJob> jobs) { return impl_->schedule(std::move(jobs)); }
const ClusterSolution& Cluster::solution() const { return impl_->solution; }
std::vector<RankedCandidate> Cluster::rank(std::span<const Candidate> candidates) { return impl_->rank(candidates); }
Preview Cluster::preview(ClusterJob job) { return impl_->preview(std::move(job)); }
const ClusterSolution& Cluster::restore(std::vector<PlacedJob> jobs) { return impl_->restore(std::move(jobs)); }
Joined Cluster::join(ClusterJob job) { return impl_->join(std::move(job)); }
std::vector<Move> Cluster::leave(std::string_view name) { return impl_->leave(name); }
LinkProblem Cluster::link_problem(std::size_t index) const { return impl_->link_problem(index); }
double Cluster::pair_score(const Demand& a, const Demand& b, Rate capacity) {
  return impl_->pair_score(a, b, capacity);
}
Cluster::Work Cluster::work() const { return impl_->work; }

}  // namespace mltcp::scheduler
