// Chooses slot periods by cost and benefit (see slot_choice.h).
#include "mltcp/scheduler/internal/slot_choice.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "mltcp/base/error.h"
#include "mltcp/scheduler/internal/solving.h"

namespace mltcp::scheduler::internal {
namespace {

constexpr double kWorth = 3;        // cost of a late iteration, in multiples of the excess that makes it late
constexpr double kLasting = 0.005;  // cost added for any excess: small delays add up until a job misses its slot
constexpr double kEqual = 1e-9;

// Work limits of a quick search, which compares candidates and does not solve them completely.
constexpr std::uint64_t kQuickNodes = 300;
constexpr double kMaxMeetings = 5'000;
constexpr std::size_t kLongerPerimeters = 2;  // number of perimeters tried beyond the first one within max_stretch
constexpr double kFirstMargin = 0.0025;
constexpr double kMinMargin = 1e-6;  // smaller differences are rounding errors
constexpr double kMarginGrowth = 1.5;
constexpr int kMarginHalvings = 4;

// A demand is counted in parts of 1/64 of the capacity, up to 8 capacities.
constexpr double parts = 64;
constexpr std::size_t kMaxParts = 512;
using Distribution = std::vector<double>;  // share of the time for each demand, indexed by parts

struct Level {
  std::size_t parts = 0;
  double share = 0;  // share of the time at this level
};

/// Returns the levels of the demand of a job. The first level is 0, for the time between bursts.
std::vector<Level> levels_of(const Demand& demand, std::uint32_t flows, Rate capacity) {
  std::vector<Level> levels(1);
  double busy = 0;
  for (const Burst& burst : demand.bursts) {
    const double share = (burst.to - burst.from).seconds() / demand.period.seconds();
    const double of_capacity =
        static_cast<double>(burst.rate.bits_per_second) * flows / static_cast<double>(capacity.bits_per_second);
    levels.push_back({static_cast<std::size_t>(std::min<double>(std::round(parts * of_capacity), kMaxParts)), share});
    busy += share;
  }
  levels.front().share = std::max(0.0, 1 - busy);
  return levels;
}

void add(Distribution& sum, const std::vector<Level>& levels) {
  Distribution result(std::min(sum.size() + kMaxParts, kMaxParts + 1));
  for (std::size_t at = 0; at < sum.size(); ++at) {
    if (sum[at] == 0) continue;
    for (const Level& level : levels) result[std::min(at + level.parts, kMaxParts)] += sum[at] * level.share;
  }
  while (result.size() > 1 && result.back() == 0) result.pop_back();
  sum = std::move(result);
}

double beyond_capacity(std::size_t demand) { return std::max(0.0, static_cast<double>(demand) / parts - 1); }

/// Returns the share by which an iteration of a job becomes longer if the other jobs send at random times.
double delay_of(const std::vector<Level>& own, const Distribution& others) {
  double mean = 0;
  for (std::size_t i = 1; i < own.size(); ++i)
    for (std::size_t other = 0; other < others.size(); ++other)
      mean += own[i].share * others[other] * (beyond_capacity(own[i].parts + other) - beyond_capacity(own[i].parts));
  return mean / (1 + mean);
}

/// Combines the delays of one job on two links.
double together(double a, double b) { return 1 - (1 - a) * (1 - b); }

/// Returns slot periods for a perimeter that is longer than slots.perimeter by the share `extra`, with the repetitions
/// of `slots`. Returns slots.periods if the longer perimeter exceeds kLongestPeriod.
std::vector<Nanos> longer(const Slots& slots, double extra) {
  Uint128 unit = 1;
  for (const std::uint32_t times : slots.repetitions)
    unit = unit / std::gcd(static_cast<std::uint64_t>(unit), std::uint64_t{times}) * times;
  const auto least = static_cast<Uint128>(static_cast<double>(slots.perimeter.count) * (1 + extra));
  const auto perimeter = static_cast<std::int64_t>((least + unit - 1) / unit * unit);
  std::vector<Nanos> periods;
  if (perimeter > kLongestPeriod.count) return slots.periods;
  for (const std::uint32_t times : slots.repetitions) periods.emplace_back(perimeter / times);
  return periods;
}

}  // namespace

SlotCosts::SlotCosts(const ClusterState& state, const AffinityGraph::Component& component)
    : state_(state), component_(component), meetings_(component.jobs.size()) {
  for (const std::uint32_t group : component.groups) {
    for (const std::uint32_t v : state.graph.groups[group].vertices) {
      const AffinityGraph::Vertex& vertex = state.graph.vertices[v];
      std::vector<std::vector<Level>> levels;
      for (const LinkUse& use : vertex.uses)
        levels.push_back(levels_of(state.jobs[use.job]->job.demand, use.flows, vertex.capacity));
      for (std::size_t i = 0; i < vertex.uses.size(); ++i) {
        Distribution others{1};
        for (std::size_t k = 0; k < levels.size(); ++k)
          if (k != i) add(others, levels[k]);
        const auto place = std::ranges::lower_bound(component.jobs, vertex.uses[i].job);
        meetings_[static_cast<std::size_t>(place - component.jobs.begin())].push_back({v, delay_of(levels[i], others)});
      }
    }
  }
}

double SlotCosts::stretch_of(std::uint32_t job) const {
  return state_.slot_periods[job].seconds() / state_.jobs[job]->period().seconds() - 1;
}

double SlotCosts::stretch() const {
  double sum = 0;
  for (const std::uint32_t job : component_.jobs) sum += stretch_of(job);
  return sum;
}

double SlotCosts::without() const {
  double sum = 0;
  for (const std::vector<Meeting>& meetings : meetings_) {
    double delay = 0;
    for (const Meeting& meeting : meetings) delay = together(delay, meeting.delay);
    sum += delay;
  }
  return sum;
}

double SlotCosts::with(const std::vector<double>& scores, double min_score) const {
  double sum = stretch();
  for (const std::vector<Meeting>& meetings : meetings_) {
    double avoided = 0;
    double lost = 0;
    for (const Meeting& meeting : meetings) {
      if (scores[meeting.vertex] < min_score - kEqual) return without();
      avoided = together(avoided, meeting.delay);
      lost = std::max(lost, 1 - scores[meeting.vertex]);
    }
    if (lost > kEqual) sum += std::min(avoided, kWorth * lost + kLasting);
  }
  return sum;
}

std::optional<double> SlotCosts::searched(const ClusterOptions& options) const {
  SolveOptions quick = options.solve;
  quick.node_limit = std::min(quick.node_limit, kQuickNodes);
  quick.robust = false;
  std::vector<double> scores(state_.graph.vertices.size());
  try {
    for (const std::uint32_t group : component_.groups) {
      const Question question(state_, state_.graph.groups[group].vertices);
      if (question.meetings > kMaxMeetings) return std::nullopt;
      const Solution solution = solve(question.problem(state_), state_.slots(question.jobs, options.solve), quick);
      for (const std::uint32_t vertex : state_.graph.groups[group].vertices)
        scores[vertex] = solution.links[question.place(vertex)].score;
    }
  } catch (const InputError&) {  // a link has too many bursts for the solver
    return std::nullopt;
  }
  return with(scores, options.min_score);
}

void set_slot_periods(ClusterState& state, const AffinityGraph::Component& component, const std::vector<Nanos>& periods,
                      const std::vector<Nanos>& slots) {
  for (const std::uint32_t job : component.jobs) {
    const auto place = std::ranges::lower_bound(periods, state.jobs[job]->period()) - periods.begin();
    state.slot_periods[job] = slots[static_cast<std::size_t>(place)];
  }
}

std::vector<Nanos> slots_worth_most(ClusterState& state, const AffinityGraph::Component& component,
                                    const std::vector<Nanos>& periods, const ClusterOptions& options) {
  std::vector<Slots> front = slots_front(periods, options.solve);
  std::size_t first = 0;  // index of the first perimeter within max_stretch
  while (first + 1 < front.size() && !front[first].within_limit) ++first;
  std::vector<Nanos> best = front[first].periods;
  if (component.groups.empty() || !SlotCosts::applies(component, options)) return best;

  const SlotCosts costs(state, component);
  const auto stretch_of = [&](const std::vector<Nanos>& slots) {
    set_slot_periods(state, component, periods, slots);
    return costs.stretch();
  };
  const double margin = kCostMargin * static_cast<double>(component.jobs.size());
  const double most = options.max_slot_stretch + options.solve.slack;
  stretch_of(best);
  const std::optional<double> default_cost = costs.searched(options);
  if (!default_cost) return best;
  double least = *default_cost;

  struct Base {
    Slots slots;
    double stretch = 0;  ///< sum of the stretches of all jobs
    double cost = 0;
  };
  std::vector<Base> bases;
  front.resize(std::min(front.size(), first + 1 + kLongerPerimeters));
  for (std::size_t i = 0; i < front.size(); ++i) {
    if (i != first && front[i].stretch > most) continue;
    const double stretch = stretch_of(front[i].periods);
    bases.push_back({std::move(front[i]), stretch, i == first ? *default_cost : 0});
  }
  std::ranges::stable_sort(bases, {}, &Base::stretch);
  /// If the cost of a candidate is below the lowest cost so far by more than `margin`, makes it the best candidate.
  /// Returns the cost, or no value if the candidate's stretch is too large or its cost is unknown.
  const auto considered = [&](const std::vector<Nanos>& slots) -> std::optional<double> {
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (slots[i].seconds() > (1 + most) * periods[i].seconds()) return std::nullopt;
    if (stretch_of(slots) >= least - margin) return std::nullopt;
    const std::optional<double> cost = costs.searched(options);
    if (cost && *cost < least - margin) {
      least = *cost;
      best = slots;
    }
    return cost;
  };
  for (Base& base : bases)
    if (base.cost == 0) base.cost = considered(base.slots.periods).value_or(0);

  // Try longer versions of all perimeters, not only of those with the least stretch. On a short perimeter, additional
  // room makes jobs fit more often than on a long perimeter.
  const auto jobs = static_cast<double>(component.jobs.size());
  for (const Base& base : bases) {
    if (base.cost <= base.stretch + margin) continue;  // the jobs fit already, or considered() excluded this perimeter
    double last = 0;
    double less = 0;  // largest margin at which the jobs do not fit
    double enough = 0;
    for (double step = kFirstMargin;; step *= kMarginGrowth) {
      // The smaller of two limits of `extra`: the limit that max_slot_stretch sets, and the value at which the stretch
      // alone costs as much as the best candidate.
      const double limit =
          std::min((1 + most) / (1 + base.slots.stretch) - 1, (least - margin - base.stretch) / (jobs + base.stretch)) -
          kMinMargin;
      const double extra = std::min(last + step, limit);
      if (extra <= last) break;
      const double before = least;
      if (!considered(longer(base.slots, extra))) break;
      if (least < before) {
        less = last;
        enough = extra;
      }
      last = extra;
    }
    for (int i = 0; enough > 0 && i < kMarginHalvings; ++i) {
      const double middle = (less + enough) / 2;
      const double before = least;
      considered(longer(base.slots, middle));
      (least < before ? enough : less) = middle;
    }
  }
  return best;
}

std::string key_of_slots(ClusterState& state, const AffinityGraph::Component& component,
                         const ClusterOptions& options) {
  std::string key;
  if (component.groups.empty() || !SlotCosts::applies(component, options)) {
    for (const Nanos period : state.periods(component)) append_to_key(key, period.count);
    return key;
  }
  std::vector<std::uint32_t> vertices;
  for (const std::uint32_t group : component.groups)
    vertices.insert(vertices.end(), state.graph.groups[group].vertices.begin(),
                    state.graph.groups[group].vertices.end());
  for (const std::uint32_t job : component.jobs) state.slot_periods[job] = Nanos(1);  // unknown
  append_to_key(key, -1);
  return key + Question(state, vertices).key;
}

}  // namespace mltcp::scheduler::internal
