// Schedules clusters, ranks candidates and lets jobs join and leave (see cluster.h).
#include "mltcp/scheduler/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/parallel.h"
#include "mltcp/base/text.h"
#include "mltcp/scheduler/internal/cluster_state.h"
#include "mltcp/scheduler/internal/descent.h"
#include "mltcp/scheduler/internal/slot_choice.h"
#include "mltcp/scheduler/internal/solving.h"

namespace mltcp::scheduler {
namespace {

constexpr std::size_t most_remembered = 50'000;  // answers, of a few kB each at most
constexpr std::size_t most_tried = 16;           // running jobs, when one more is to move for a new one
constexpr std::size_t most_moved = 8;            // of them, one by one
constexpr double rounding = 1e-12;               // scores that differ by less are equal

/// Meetings of steps (internal/descent.h) in one pass over the jobs up to which a question goes to solve(): about a
/// tenth of a second at most, with the default node_limit.
constexpr double most_to_search = 5'000;
/// Meetings that descent examines for each of SolveOptions::node_limit.
constexpr double meetings_per_node = 50;

constexpr std::uint32_t most_threads = 1'024;

void check(const ClusterOptions& options) {
  internal::check(options.solve);
  if (options.solve.node_limit == 0) throw InputError("solve.node_limit is 0; give 1 or more");
  if (options.threads > most_threads)
    throw InputError(fmt::format("threads is {}; give at most {}, or 0 for as many as there are cores", options.threads,
                                 most_threads));
  // Written so that a NaN is refused.
  if (!(options.join_threshold >= 0 && std::isfinite(options.join_threshold)))
    throw InputError(
        fmt::format("join_threshold is {}; give a score to lose from 0 on, such as 0.02", options.join_threshold));
  if (!(options.most_stretch >= 0 && options.most_stretch <= 1))
    throw InputError(fmt::format("most_stretch is {}; give a share of the period from 0 to 1", options.most_stretch));
  if (!(options.least_score >= 0 && options.least_score <= 1))
    throw InputError(fmt::format("least_score is {}; give a score from 0 to 1", options.least_score));
}

struct Answer {
  std::shared_ptr<const Solution> solution;
  bool robust = false;  ///< among equal scores it is the one that bears the largest deviations
};

/// A state and all that it asks.
struct Asking {
  ClusterState state;
  std::vector<Question> alone;                 ///< by vertex
  std::vector<std::optional<Question>> joint;  ///< by group, of those with loops

  Asking(std::vector<const RoutedJob*> jobs, const Topology& topology) : state(std::move(jobs), topology) {}
  /// Once the state has its slots. Questions that are too large to be searched begin with `shifts`, if given.
  void ask(const std::vector<std::optional<Nanos>>& shifts = {}) {
    for (std::uint32_t vertex = 0; vertex < state.graph.vertices.size(); ++vertex)
      alone.emplace_back(state, std::vector{vertex});
    for (const AffinityGraph::Group& group : state.graph.groups) {
      joint.emplace_back();
      if (group.loops == 0) continue;
      joint.back().emplace(state, group.vertices);
      if (!shifts.empty() && joint.back()->meetings > most_to_search) joint.back()->begin_with(shifts);
    }
  }
  [[nodiscard]] const Question& of_group(std::uint32_t group) const {
    return joint[group] ? *joint[group] : alone[state.graph.groups[group].vertices.front()];
  }
  [[nodiscard]] double weight(std::uint32_t vertex) const {
    return static_cast<double>(state.graph.vertices[vertex].links.size());
  }
};

/// The scores of a state's links.
struct Scores {
  std::vector<LinkSolution> links;         ///< by vertex
  std::vector<double> group_upper_bounds;  ///< by group, of the sum over its links
  std::vector<bool> group_optimal;
};

/// A slot period for a job of `period` that shares a perimeter of at most `longest` with slots of the perimeter
/// `common`; the shortest perimeter wins.
std::optional<Nanos> period_beside(Nanos common, Nanos longest, Nanos period, const SolveOptions& options) {
  constexpr std::int64_t most_multiples = 4096;
  const auto own = static_cast<double>(period.count);
  const auto least = static_cast<std::int64_t>(std::ceil(own * (1 + options.slack)));
  const auto most = static_cast<std::int64_t>(own * (1 + options.slack + options.max_stretch));
  for (std::int64_t multiple = 1; multiple <= most_multiples && common.count <= longest.count / multiple; ++multiple) {
    const std::int64_t perimeter = common.count * multiple;
    for (std::int64_t repetitions = perimeter / least; repetitions > 0 && perimeter / repetitions <= most;
         --repetitions)
      if (perimeter % repetitions == 0) return Nanos(perimeter / repetitions);
  }
  return std::nullopt;
}

}  // namespace

std::vector<Flow> ring(std::span<const Topology::Host> workers) {
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const Topology::Host next = workers[(i + 1) % workers.size()];
    if (workers[i] != next) flows.push_back({workers[i], next, 1, {}});
  }
  return flows;
}

class Cluster::Impl {
 public:
  Impl(Topology topology_given, const ClusterOptions& options_given)
      : topology(std::move(topology_given)), options(options_given) {
    check(options);
  }

  const ClusterSolution& schedule(std::vector<ClusterJob> jobs);
  std::vector<RankedCandidate> rank(std::span<const Candidate> candidates);
  Joined join(ClusterJob job);
  std::vector<Move> leave(std::string_view name);
  LinkProblem link_problem(std::size_t index) const;
  double pair_score(const Demand& a, const Demand& b, Rate capacity);

  Topology topology;
  ClusterOptions options;
  std::vector<std::unique_ptr<const RoutedJob>> running;
  ClusterSolution solution;
  Work work;

 private:
  using AskedBy = std::pair<const Question*, const ClusterState*>;
  enum class Aim { scores, shifts };  ///< for scores alone, it doesn't matter which of equal shifts are found
  /// Jobs that are free to move, and the best that they can do while all others stay.
  struct Trial {
    std::vector<std::uint32_t> free;
    std::vector<Nanos> shifts;   ///< of all jobs of the state
    double sum = 0;              ///< of the scores of the component's links
    std::vector<double> scores;  ///< by vertex
  };

  std::vector<std::unique_ptr<const RoutedJob>> routed(std::vector<ClusterJob> jobs, bool beside_running) const;
  std::vector<const RoutedJob*> with_running(const std::vector<std::unique_ptr<const RoutedJob>>& others) const;
  void choose_slots_of(std::span<Asking*> askings);
  void set_slots(ClusterState& state, const AffinityGraph::Component& component);
  /// What the state's slot periods cost the component's jobs; none if that isn't known.
  [[nodiscard]] std::optional<double> cost_of_slots(const ClusterState& state,
                                                    const AffinityGraph::Component& component) const;
  /// Slots for the last job of the state, which joins; the others have theirs. False if they all got new ones.
  bool set_slots_beside(ClusterState& state, const AffinityGraph::Component& component);
  /// Where the first jobs of the state were, and what they have got instead.
  static std::vector<Move> moves_from(const std::vector<ClusterSolution::Job>& before, const ClusterState& state,
                                      const std::vector<Nanos>& shifts);
  void solve_and_compose(const Asking& asking, const AffinityGraph::Component& component, std::vector<Nanos>& shifts);
  [[nodiscard]] bool within_limit(const Asking& asking, const AffinityGraph::Component& component, const Slots& slots,
                                  const Scores& scores) const;
  /// Questions that are not remembered, in parallel.
  void solve_all(const std::vector<AskedBy>& questions, Aim aim = Aim::shifts);
  [[nodiscard]] Solution solved_by_search_or_descent(const Question& question, const ClusterState& state,
                                                     Aim aim) const;
  void forget_if_full();
  [[nodiscard]] const Solution& answer(const Question& question) const {
    return *remembered_.at(question.key).solution;
  }
  /// Of the score of a link that was asked about alone, wherever its jobs are.
  [[nodiscard]] double bound_of(const Question& alone) const {
    // On a grid the answer is about shifts on the link's own grid: other links, and joins, put jobs between them.
    return options.solve.angles > 0 ? 1 : answer(alone).links.front().upper_bound;
  }

  void compose(const Asking& asking, const AffinityGraph::Component& component, std::vector<Nanos>& shifts) const;
  [[nodiscard]] Scores solved(const Asking& asking) const;
  /// Of any shifts.
  [[nodiscard]] Scores evaluated(const Asking& asking, const std::vector<Nanos>& shifts);
  [[nodiscard]] ClusterSolution described(const Asking& asking, const std::vector<Nanos>& shifts,
                                          const Scores& scores) const;

  /// Where the running jobs, which come first in the state, are now; none for the others.
  [[nodiscard]] std::vector<std::optional<Nanos>> shifts_in(const ClusterState& state) const;
  [[nodiscard]] std::optional<Nanos> period_for(const ClusterState& state, std::uint32_t job, double max_stretch) const;
  [[nodiscard]] Trial tried(const Asking& asking, std::vector<std::uint32_t> free, const std::vector<Nanos>& shifts,
                            const std::vector<double>& scores, Aim aim) const;
  Trial join_in_place(Asking& asking, const AffinityGraph::Component& component, std::vector<Nanos> shifts,
                      Joined& joined);

  std::unordered_map<std::string, Answer> remembered_;
  std::unordered_map<std::string, std::vector<Nanos>> remembered_slots_;  ///< by key_of_slots(), by place in periods()
  std::unordered_map<std::string, double> remembered_pairs_;
};

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
  if (remembered_.size() > most_remembered) remembered_.clear();
  if (remembered_slots_.size() > most_remembered) remembered_slots_.clear();
  if (remembered_pairs_.size() > most_remembered) remembered_pairs_.clear();
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
  // Components of one state have different jobs.
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
  std::optional<double> least;
  const auto consider = [&](const std::vector<Nanos>& periods) {
    state.slot_periods = periods;
    const std::optional<double> cost = cost_of_slots(state, component);
    if (!best.empty() && !(cost && least && *cost < *least - internal::cost_margin * jobs)) return;
    best = periods;
    least = cost;
  };
  for (const double stretch : {options.solve.max_stretch, options.most_stretch}) {
    if (stretch == options.most_stretch && !internal::SlotCosts::applies(component, options)) continue;
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
  if (least && anew && *least - *anew > options.join_threshold * jobs) return false;
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
  // The long ones first, so that no core is left with one of them at the end.
  std::stable_sort(unknown.begin(), unknown.end(),
                   [](const AskedBy& a, const AskedBy& b) { return a.first->key.size() > b.first->key.size(); });
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
  // Searched links have the perimeter of all jobs, those of a descent their own.
  const bool small = std::all_of(problem.links.begin(), problem.links.end(), [&](const Problem::Link& link) {
    return internal::bursts_on(link, slots, slots.perimeter.count) <= internal::kMostBursts;
  });
  if (how.angles > 0 || (small && question.meetings <= most_to_search)) return solve(problem, slots, how);
  // Bounds are those of the demands' areas.
  return internal::evaluated(problem, slots,
                             internal::descend(problem, slots, question.start,
                                               meetings_per_node * static_cast<double>(how.node_limit), how.robust),
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
      const auto place = std::find(question.jobs.begin(), question.jobs.end(), from) - question.jobs.begin();
      // One move for the whole group, so that it holds for any number of the first job's periods.
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
      link.optimal = link.optimal || link.score >= link.upper_bound - rounding;
      sum += asking.weight(vertex) * link.score;
      bound += asking.weight(vertex) * link.upper_bound;
    }
    bound = std::min(bound, solution_of_group.upper_bound * question.links_per_vertex *
                                static_cast<double>(question.vertices.size()));
    scores.group_upper_bounds.push_back(bound);
    scores.group_optimal.push_back(solution_of_group.optimal || sum >= bound - rounding);
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
    link.optimal = link.optimal || link.score >= link.upper_bound - rounding;
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
  if (slots.stretch > options.most_stretch + options.solve.slack + 1e-9 ||
      !internal::SlotCosts::applies(component, options))
    return false;
  std::vector<double> of_links;
  for (const LinkSolution& link : scores.links) of_links.push_back(link.score);
  const internal::SlotCosts costs(asking.state, component);
  return costs.with(of_links, options.least_score) < costs.without();
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
    rank.lost = with.lost;
    for (const ClusterSolution::Link& link : with.links) rank.worst = std::min(rank.worst, link.solution.score);
  });
  std::stable_sort(ranked.begin(), ranked.end(), [](const RankedCandidate& a, const RankedCandidate& b) {
    if (a.discarded || b.discarded) return b.discarded && !a.discarded;
    return a.score != b.score ? a.score > b.score : a.worst > b.worst;
  });
  return ranked;
}

std::vector<std::optional<Nanos>> Cluster::Impl::shifts_in(const ClusterState& state) const {
  std::vector<std::optional<Nanos>> shifts(state.jobs.size());
  for (std::size_t job = 0; job < solution.jobs.size(); ++job)
    shifts[job] = modulo(solution.jobs[job].time_shift, state.slot_periods[job]);
  return shifts;
}

std::optional<Nanos> Cluster::Impl::period_for(const ClusterState& state, std::uint32_t job, double max_stretch) const {
  // No longer than the solver would make it, or than it is already in a component that joins.
  std::int64_t longest = 0;
  const AffinityGraph::Component& component = state.graph.components[state.graph.component_of[job]];
  for (const std::uint32_t member : component.jobs) {
    const std::int64_t period = state.jobs[member]->period().count;
    longest = std::max(longest,
                       std::min(kLongestPeriod.count / period, std::int64_t{options.solve.max_repetitions}) * period);
    if (member != job)
      longest = std::max(longest, solution.components[solution.jobs[member].component].perimeter.count);
  }
  std::int64_t common = 1;
  for (const std::uint32_t member : component.jobs) {
    if (member == job) continue;
    const std::int64_t period = state.slot_periods[member].count;
    const std::int64_t factor = period / std::gcd(common, period);
    if (factor > longest / common) return std::nullopt;
    common *= factor;
  }
  SolveOptions how = options.solve;
  how.max_stretch = max_stretch;
  return period_beside(Nanos(common), Nanos(longest), state.jobs[job]->period(), how);
}

Cluster::Impl::Trial Cluster::Impl::tried(const Asking& asking, std::vector<std::uint32_t> free,
                                          const std::vector<Nanos>& shifts, const std::vector<double>& scores,
                                          Aim aim) const {
  const ClusterState& state = asking.state;
  const AffinityGraph& graph = state.graph;
  const AffinityGraph::Component& component = graph.components[graph.component_of[free.front()]];
  const auto is_free = [&](std::uint32_t job) { return std::find(free.begin(), free.end(), job) != free.end(); };
  std::vector<std::uint32_t> touched;
  Trial trial;
  trial.scores = scores;
  for (const std::uint32_t group : component.groups)
    for (const std::uint32_t vertex : graph.groups[group].vertices)
      if (std::any_of(graph.vertices[vertex].uses.begin(), graph.vertices[vertex].uses.end(),
                      [&](const LinkUse& use) { return is_free(use.job); }))
        touched.push_back(vertex);
  const Question question(state, touched);
  Problem problem = question.problem(state);
  for (std::size_t i = 0; i < question.jobs.size(); ++i)
    if (!is_free(question.jobs[i])) problem.jobs[i].pinned = shifts[question.jobs[i]];
  SolveOptions how = options.solve;
  how.robust = how.robust && aim == Aim::shifts;
  const Solution best = solve(problem, state.slots(question.jobs, options.solve), how);
  trial.shifts = shifts;
  for (std::size_t i = 0; i < question.jobs.size(); ++i) trial.shifts[question.jobs[i]] = best.shifts[i];
  for (const std::uint32_t vertex : touched) trial.scores[vertex] = best.links[question.place(vertex)].score;
  for (const std::uint32_t group : component.groups)
    for (const std::uint32_t vertex : graph.groups[group].vertices)
      trial.sum += asking.weight(vertex) * trial.scores[vertex];
  trial.free = std::move(free);
  return trial;
}

/// The last job of the state joins; the others of its component have their slots, and move only if it pays.
Cluster::Impl::Trial Cluster::Impl::join_in_place(Asking& asking, const AffinityGraph::Component& component,
                                                  std::vector<Nanos> shifts, Joined& joined) {
  const ClusterState& state = asking.state;
  const AffinityGraph& graph = state.graph;
  const auto added = static_cast<std::uint32_t>(state.jobs.size() - 1);

  // The best that there is, if all could move.
  std::vector<AskedBy> questions;
  for (const std::uint32_t group : component.groups) {
    if (asking.joint[group]) questions.emplace_back(&*asking.joint[group], &state);
    for (const std::uint32_t vertex : graph.groups[group].vertices)
      questions.emplace_back(&asking.alone[vertex], &state);
  }
  solve_all(questions);
  Trial all_free;
  all_free.shifts = shifts;
  compose(asking, component, all_free.shifts);
  all_free.scores.resize(graph.vertices.size());
  double own_links = 0;
  std::vector<double> before(graph.vertices.size());
  for (const std::uint32_t group : component.groups) {
    const Question& question = asking.of_group(group);
    for (const std::uint32_t vertex : graph.groups[group].vertices) {
      all_free.scores[vertex] = answer(question).links[question.place(vertex)].score;
      all_free.sum += asking.weight(vertex) * all_free.scores[vertex];
      const std::vector<LinkUse>& uses = graph.vertices[vertex].uses;
      if (std::any_of(uses.begin(), uses.end(), [&](const LinkUse& use) { return use.job == added; })) {
        own_links += asking.weight(vertex);
        continue;
      }
      const Topology::Link link = graph.vertices[vertex].links.front();
      const auto known = std::lower_bound(solution.links.begin(), solution.links.end(), link,
                                          [](const ClusterSolution::Link& a, Topology::Link b) { return a.link < b; });
      before[vertex] = known->solution.score;
    }
  }
  // All that matters is how the jobs lie to each other: turn the whole so that as many as possible stay.
  std::size_t most_stay = 0;
  std::vector<Nanos> turned = all_free.shifts;
  for (const std::uint32_t fixed : component.jobs) {
    if (fixed == added) continue;
    std::vector<Nanos> candidate = all_free.shifts;
    std::size_t stay = 0;
    for (const std::uint32_t job : component.jobs) {
      candidate[job] = modulo(candidate[job] + shifts[fixed] - all_free.shifts[fixed], state.slot_periods[job]);
      if (job != added && candidate[job] == shifts[job]) ++stay;
    }
    if (stay > most_stay) turned = candidate;
    most_stay = std::max(most_stay, stay);
  }
  all_free.shifts = turned;

  const double accepted = options.join_threshold * own_links;
  Trial best = tried(asking, {added}, shifts, before, Aim::scores);
  while (all_free.sum - best.sum > accepted && best.free.size() <= most_moved) {
    // Those with the most to gain on the links that they share with jobs that may move already.
    std::map<std::uint32_t, double> gains;
    for (const std::uint32_t group : component.groups) {
      for (const std::uint32_t vertex : graph.groups[group].vertices) {
        const std::vector<LinkUse>& uses = graph.vertices[vertex].uses;
        const auto is_free = [&](const LinkUse& use) {
          return std::find(best.free.begin(), best.free.end(), use.job) != best.free.end();
        };
        const double gain = answer(asking.alone[vertex]).links.front().upper_bound - best.scores[vertex];
        if (gain <= rounding || std::none_of(uses.begin(), uses.end(), is_free)) continue;
        for (const LinkUse& use : uses)
          if (!is_free(use)) gains[use.job] += asking.weight(vertex) * gain;
      }
    }
    std::vector<std::uint32_t> order;
    order.reserve(gains.size());
    for (const auto& [job, gain] : gains) order.push_back(job);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return gains[a] > gains[b]; });
    order.resize(std::min(order.size(), most_tried));
    std::vector<Trial> trials(order.size());
    in_parallel(options.threads, order.size(), [&](std::size_t i) {
      std::vector<std::uint32_t> free = best.free;
      free.push_back(order[i]);
      trials[i] = tried(asking, std::move(free), shifts, before, Aim::scores);
    });
    const auto next =
        std::max_element(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) { return a.sum < b.sum; });
    if (next == trials.end() || next->sum <= best.sum + rounding) break;
    best = std::move(*next);
  }
  joined.loss = std::max(0.0, all_free.sum - best.sum) / own_links;
  if (all_free.sum - best.sum > accepted) {
    joined.loss = 0;
    return all_free;
  }
  return options.solve.robust ? tried(asking, best.free, shifts, before, Aim::shifts) : best;
}

std::vector<Move> Cluster::Impl::moves_from(const std::vector<ClusterSolution::Job>& before, const ClusterState& state,
                                            const std::vector<Nanos>& shifts) {
  std::vector<Move> moves;
  for (std::size_t job = 0; job < before.size(); ++job) {
    const ClusterSolution::Job& old = before[job];
    if (old.time_shift != shifts[job] || old.slot_period != state.slot_periods[job])
      moves.push_back({old.name, old.time_shift, shifts[job], old.slot_period, state.slot_periods[job]});
  }
  return moves;
}

void Cluster::Impl::solve_and_compose(const Asking& asking, const AffinityGraph::Component& component,
                                      std::vector<Nanos>& shifts) {
  std::vector<AskedBy> questions;
  for (const std::uint32_t group : component.groups) questions.emplace_back(&asking.of_group(group), &asking.state);
  solve_all(questions);
  compose(asking, component, shifts);
}

Joined Cluster::Impl::join(ClusterJob job) {
  forget_if_full();
  std::vector<ClusterJob> given;
  given.push_back(std::move(job));
  std::vector<std::unique_ptr<const RoutedJob>> fresh = routed(std::move(given), true);
  Asking asking(with_running(fresh), topology);
  ClusterState& state = asking.state;
  const auto added = static_cast<std::uint32_t>(running.size());
  const AffinityGraph::Component& component = state.graph.components[state.graph.component_of[added]];
  std::vector<Nanos> shifts(state.jobs.size());
  for (std::uint32_t other = 0; other < added; ++other) {
    state.slot_periods[other] = solution.jobs[other].slot_period;
    shifts[other] = solution.jobs[other].time_shift;
  }
  Joined joined;
  if (component.groups.empty())
    set_slots(state, component);
  else
    joined.new_slots = !set_slots_beside(state, component);
  asking.ask(shifts_in(state));
  if (joined.new_slots || component.groups.empty())
    solve_and_compose(asking, component, shifts);
  else
    shifts = join_in_place(asking, component, std::move(shifts), joined).shifts;
  const Scores scores = evaluated(asking, shifts);
  double links = 0;
  double sum = 0;
  for (std::uint32_t vertex = 0; vertex < state.graph.vertices.size(); ++vertex) {
    const std::vector<LinkUse>& uses = state.graph.vertices[vertex].uses;
    if (uses.back().job != added) continue;
    links += asking.weight(vertex);
    sum += asking.weight(vertex) * scores.links[vertex].score;
  }
  if (links > 0) joined.score = sum / links;
  joined.moves = moves_from(solution.jobs, state, shifts);
  joined.time_shift = shifts[added];
  joined.slot_period = state.slot_periods[added];
  solution = described(asking, shifts, scores);
  running.push_back(std::move(fresh.front()));
  return joined;
}

std::vector<Move> Cluster::Impl::leave(std::string_view name) {
  forget_if_full();
  const auto gone =
      std::find_if(running.begin(), running.end(), [&](const auto& job) { return job->job.name == name; });
  if (gone == running.end())
    throw InputError(fmt::format("no job {} runs; only running jobs can leave", in_quotes(name)));
  const auto place = static_cast<std::size_t>(gone - running.begin());
  const std::uint32_t left = solution.jobs[place].component;
  // Nothing changes before all is known.
  std::vector<ClusterSolution::Job> stay = solution.jobs;
  stay.erase(stay.begin() + static_cast<std::ptrdiff_t>(place));
  std::vector<const RoutedJob*> jobs = with_running({});
  jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(place));
  Asking asking(std::move(jobs), topology);
  ClusterState& state = asking.state;
  std::vector<Nanos> shifts;
  for (std::uint32_t job = 0; job < stay.size(); ++job) {
    state.slot_periods[job] = stay[job].slot_period;
    shifts.push_back(stay[job].time_shift);
  }
  std::vector<const AffinityGraph::Component*> renewed;
  for (const AffinityGraph::Component& component : state.graph.components) {
    if (component.groups.empty() || stay[component.jobs.front()].component != left) continue;
    const std::vector<Nanos> kept = state.slot_periods;
    const std::optional<double> cost = cost_of_slots(state, component);
    set_slots(state, component);
    const std::optional<double> anew = cost_of_slots(state, component);
    if (cost && anew && *cost - *anew > options.join_threshold * static_cast<double>(component.jobs.size()))
      renewed.push_back(&component);
    else
      state.slot_periods = kept;
  }
  asking.ask();
  for (const AffinityGraph::Component* component : renewed) solve_and_compose(asking, *component, shifts);
  const Scores scores = evaluated(asking, shifts);
  ClusterSolution now = described(asking, shifts, scores);
  std::vector<Move> moves = moves_from(stay, state, shifts);
  solution = std::move(now);
  running.erase(gone);
  return moves;
}

LinkProblem Cluster::Impl::link_problem(std::size_t index) const {
  const ClusterSolution::Link& link = solution.links.at(index);
  const std::string name = topology.link_name(link.link);
  if (!link.competed)
    throw InputError(
        fmt::format("no jobs compete on link {}, so that their slots have no perimeter in common", in_quotes(name)));
  LinkProblem result;
  Problem::Link asked{name, link.capacity, {}};
  std::vector<Nanos> periods;
  std::vector<Nanos> slot_periods;
  for (const LinkUse& use : link.uses) {
    const ClusterSolution::Job& job = solution.jobs[use.job];
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
Joined Cluster::join(ClusterJob job) { return impl_->join(std::move(job)); }
std::vector<Move> Cluster::leave(std::string_view name) { return impl_->leave(name); }
LinkProblem Cluster::link_problem(std::size_t index) const { return impl_->link_problem(index); }
double Cluster::pair_score(const Demand& a, const Demand& b, Rate capacity) {
  return impl_->pair_score(a, b, capacity);
}
Cluster::Work Cluster::work() const { return impl_->work; }

}  // namespace mltcp::scheduler
