// Implements Cluster::join(), preview() and leave() (see cluster.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "mltcp/base/error.h"
#include "mltcp/base/parallel.h"
#include "mltcp/base/text.h"
#include "mltcp/scheduler/internal/cluster_impl.h"
#include "mltcp/scheduler/internal/solving.h"

namespace mltcp::scheduler {
namespace {

constexpr std::size_t kMaxTried = 16;  // number of running jobs that are tried as the next job to move
constexpr std::size_t kMaxMoved = 8;   // number of running jobs that may move one by one

/// Returns a slot period for a job with period `period` that joins slots with perimeter `common`. The shared perimeter
/// is at most `longest`, and as short as possible. Returns no value if there is no such period.
std::optional<Nanos> period_beside(Nanos common, Nanos longest, Nanos period, const SolveOptions& options) {
  constexpr std::int64_t max_multiples = 4096;
  const auto own = static_cast<double>(period.count);
  const auto min = static_cast<std::int64_t>(std::ceil(own * (1 + options.slack)));
  const auto max = static_cast<std::int64_t>(own * (1 + options.slack + options.max_stretch));
  for (std::int64_t multiple = 1; multiple <= max_multiples && common.count <= longest.count / multiple; ++multiple) {
    const std::int64_t perimeter = common.count * multiple;
    for (std::int64_t repetitions = perimeter / min; repetitions > 0 && perimeter / repetitions <= max; --repetitions)
      if (perimeter % repetitions == 0) return Nanos(perimeter / repetitions);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::optional<Nanos>> Cluster::Impl::shifts_in(const ClusterState& state) const {
  std::vector<std::optional<Nanos>> shifts(state.jobs.size());
  for (std::size_t job = 0; job < solution.jobs.size(); ++job)
    shifts[job] = modulo(solution.jobs[job].time_shift, state.slot_periods[job]);
  return shifts;
}

std::optional<Nanos> Cluster::Impl::period_for(const ClusterState& state, std::uint32_t job, double max_stretch) const {
  // The longest perimeter that the solver would choose, or that a component of running jobs already has.
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
  const auto is_free = [&](std::uint32_t job) { return std::ranges::find(free, job) != free.end(); };
  std::vector<std::uint32_t> touched;
  Trial trial;
  trial.scores = scores;
  for (const std::uint32_t group : component.groups)
    for (const std::uint32_t vertex : graph.groups[group].vertices)
      if (std::ranges::any_of(graph.vertices[vertex].uses, [&](const LinkUse& use) { return is_free(use.job); }))
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

Cluster::Impl::Trial Cluster::Impl::all_free(Asking& asking, const AffinityGraph::Component& component,
                                             const std::vector<Nanos>& shifts, std::vector<double>& before,
                                             double& own_links) {
  const ClusterState& state = asking.state;
  const AffinityGraph& graph = state.graph;
  const auto added = static_cast<std::uint32_t>(state.jobs.size() - 1);
  std::vector<AskedBy> questions;
  for (const std::uint32_t group : component.groups) {
    if (asking.joint[group]) questions.emplace_back(&*asking.joint[group], &state);
    for (const std::uint32_t vertex : graph.groups[group].vertices)
      questions.emplace_back(&asking.alone[vertex], &state);
  }
  solve_all(questions);
  Trial trial;
  trial.shifts = shifts;
  compose(asking, component, trial.shifts);
  trial.scores.resize(graph.vertices.size());
  before.resize(graph.vertices.size());
  for (const std::uint32_t group : component.groups) {
    const Question& question = asking.of_group(group);
    for (const std::uint32_t vertex : graph.groups[group].vertices) {
      trial.scores[vertex] = answer(question).links[question.place(vertex)].score;
      trial.sum += asking.weight(vertex) * trial.scores[vertex];
      const std::vector<LinkUse>& uses = graph.vertices[vertex].uses;
      if (std::ranges::any_of(uses, [&](const LinkUse& use) { return use.job == added; })) {
        own_links += asking.weight(vertex);
        continue;
      }
      const Topology::Link link = graph.vertices[vertex].links.front();
      const auto known = std::lower_bound(solution.links.begin(), solution.links.end(), link,
                                          [](const ClusterSolution::Link& a, Topology::Link b) { return a.link < b; });
      before[vertex] = known->solution.score;
    }
  }
  return trial;
}

std::vector<Nanos> Cluster::Impl::turned(const ClusterState& state, const AffinityGraph::Component& component,
                                         const std::vector<Nanos>& found, const std::vector<Nanos>& shifts) {
  const auto added = static_cast<std::uint32_t>(state.jobs.size() - 1);
  std::size_t max_stay = 0;
  std::vector<Nanos> best = found;
  for (const std::uint32_t fixed : component.jobs) {
    if (fixed == added) continue;
    std::vector<Nanos> candidate = found;
    std::size_t stay = 0;
    for (const std::uint32_t job : component.jobs) {
      candidate[job] = modulo(candidate[job] + shifts[fixed] - found[fixed], state.slot_periods[job]);
      if (job != added && candidate[job] == shifts[job]) ++stay;
    }
    if (stay > max_stay) best = candidate;
    max_stay = std::max(max_stay, stay);
  }
  return best;
}

std::vector<std::uint32_t> Cluster::Impl::worth_moving(const Asking& asking, const AffinityGraph::Component& component,
                                                       const Trial& best) const {
  const AffinityGraph& graph = asking.state.graph;
  std::map<std::uint32_t, double> gains;
  for (const std::uint32_t group : component.groups) {
    for (const std::uint32_t vertex : graph.groups[group].vertices) {
      const std::vector<LinkUse>& uses = graph.vertices[vertex].uses;
      const auto is_free = [&](const LinkUse& use) { return std::ranges::find(best.free, use.job) != best.free.end(); };
      const double gain = answer(asking.alone[vertex]).links.front().upper_bound - best.scores[vertex];
      if (gain <= kEqualScores || std::ranges::none_of(uses, is_free)) continue;
      for (const LinkUse& use : uses)
        if (!is_free(use)) gains[use.job] += asking.weight(vertex) * gain;
    }
  }
  std::vector<std::uint32_t> order;
  order.reserve(gains.size());
  for (const auto& [job, gain] : gains) order.push_back(job);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return gains[a] > gains[b]; });
  order.resize(std::min(order.size(), kMaxTried));
  return order;
}

Cluster::Impl::Trial Cluster::Impl::join_in_place(Asking& asking, const AffinityGraph::Component& component,
                                                  const std::vector<Nanos>& shifts, Joined& joined) {
  const auto added = static_cast<std::uint32_t>(asking.state.jobs.size() - 1);
  std::vector<double> before;
  double own_links = 0;
  Trial everybody = all_free(asking, component, shifts, before, own_links);
  everybody.shifts = turned(asking.state, component, everybody.shifts, shifts);

  const double accepted = options.join_threshold * own_links;
  Trial best = tried(asking, {added}, shifts, before, Aim::scores);
  while (everybody.sum - best.sum > accepted && best.free.size() <= kMaxMoved) {
    const std::vector<std::uint32_t> order = worth_moving(asking, component, best);
    std::vector<Trial> trials(order.size());
    in_parallel(options.threads, order.size(), [&](std::size_t i) {
      std::vector<std::uint32_t> free = best.free;
      free.push_back(order[i]);
      trials[i] = tried(asking, std::move(free), shifts, before, Aim::scores);
    });
    const auto next = std::ranges::max_element(trials, {}, &Trial::sum);
    if (next == trials.end() || next->sum <= best.sum + kEqualScores) break;
    best = std::move(*next);
  }
  joined.loss = std::max(0.0, everybody.sum - best.sum) / own_links;
  if (everybody.sum - best.sum > accepted) {
    joined.loss = 0;
    return everybody;
  }
  return options.solve.robust ? tried(asking, best.free, shifts, before, Aim::shifts) : best;
}

std::vector<Move> Cluster::Impl::moves_from(const std::vector<ClusterSolution::SolvedJob>& before,
                                            const ClusterState& state, const std::vector<Nanos>& shifts) {
  std::vector<Move> moves;
  for (std::size_t job = 0; job < before.size(); ++job) {
    const ClusterSolution::SolvedJob& old = before[job];
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

Cluster::Impl::Joining Cluster::Impl::joining(ClusterJob job) {
  forget_if_full();
  std::vector<ClusterJob> given;
  given.push_back(std::move(job));
  std::vector<std::unique_ptr<const RoutedJob>> fresh = routed(std::move(given), true);
  Asking asking(with_running(fresh), topology);
  ClusterState& state = asking.state;
  const auto added = static_cast<std::uint32_t>(running.size());
  const AffinityGraph::Component& component = state.graph.components[state.graph.component_of[added]];
  if (options.max_bursts > 0)
    if (const std::string why = too_many_bursts(state, component, options.max_bursts); !why.empty())
      throw InputError(why);
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
  return {std::move(joined), described(asking, shifts, scores), std::move(fresh.front())};
}

Joined Cluster::Impl::join(ClusterJob job) {
  Joining now = joining(std::move(job));
  running.push_back(std::move(now.job));
  solution = std::move(now.solution);
  return std::move(now.joined);
}

Preview Cluster::Impl::preview(ClusterJob job) {
  Joining now = joining(std::move(job));
  return {std::move(now.joined), std::move(now.solution)};
}

std::vector<Move> Cluster::Impl::leave(std::string_view name) {
  forget_if_full();
  const auto gone = std::ranges::find_if(running, [&](const auto& job) { return job->job.name == name; });
  if (gone == running.end())
    throw InputError(fmt::format("no job {} runs; only running jobs can leave", in_quotes(name)));
  const auto place = static_cast<std::size_t>(gone - running.begin());
  const std::uint32_t left = solution.jobs[place].component;
  // Computes everything before it changes the cluster, so that an exception leaves the cluster unchanged.
  std::vector<ClusterSolution::SolvedJob> stay = solution.jobs;
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

}  // namespace mltcp::scheduler
