// The solver (see problem.h). It splits a problem into connected components, and minimises the excess of each component
// (internal/search.h). Among shifts of equal excess it chooses those that tolerate the largest deviations.

#include <algorithm>
#include <numeric>

#include "mltcp/scheduler/internal/solving.h"

namespace mltcp::scheduler {
namespace {

using namespace internal;

/// solve() tries at most kMaxPerimeters perimeters. A longer perimeter must improve the score, minus the mean stretch,
/// by more than kWorthLonger.
constexpr std::size_t kMaxPerimeters = 3;
constexpr double kWorthLonger = 1e-6;
/// Margins are exact to within 2^-12 of the shortest slot.
constexpr int kBitsOfMargin = 12;

/// A connected component: jobs that share links, directly or through other jobs. Pinned jobs do not connect others.
struct Part {
  std::vector<std::uint32_t> jobs;   // indices of jobs, including the pinned jobs on these links
  std::vector<std::uint32_t> links;  // indices of links that two or more jobs use
  Model model;
};

/// The unit of excess: every link's capacity is `capacity` units.
struct Unit {
  std::int64_t capacity = 0;
  bool precise = true;  ///< whether demands are rounded down by at most 2^-50 of the capacity
};

/// Returns a unit in which all `links` have the same integer capacity. It is exact if the capacities have a small
/// common multiple. It is imprecise only if the demand on some link exceeds 2^12 times the link's capacity. Bounds hold
/// even then, because rounding a demand down reduces the excess.
Unit common_unit(const Problem& problem, const std::vector<std::uint32_t>& links) {
  Uint128 unit = 1;
  Uint128 highest = 1;  // maximum over links of total rate / capacity, rounded up
  for (const std::uint32_t l : links) {
    const Problem::Link& link = problem.links[l];
    const std::uint64_t capacity = link.capacity.bits_per_second;
    Uint128 sum = capacity;
    for (const Problem::Use& use : link.uses) sum += peak(use.demand).bits_per_second;
    highest = std::max(highest, (sum + capacity - 1) / capacity);
    if (unit <= std::uint64_t{1} << 62) unit = unit / std::gcd(static_cast<std::uint64_t>(unit), capacity) * capacity;
  }
  constexpr Uint128 max = Uint128{1} << 62;
  if (links.size() == 1 || (unit <= max && unit * highest <= max)) return {static_cast<std::int64_t>(unit), true};
  constexpr std::uint64_t precise = std::uint64_t{1} << 50;
  std::uint64_t power = precise;
  while (power > 1 && power * highest > max) power >>= 1;
  return {static_cast<std::int64_t>(power), power == precise};
}

Model model_of(const Problem& problem, const Slots& slots, const std::vector<std::uint32_t>& jobs,
               const std::vector<std::uint32_t>& links, std::uint32_t angles) {
  Model model;
  model.perimeter = perimeter_of(slots, jobs);
  const std::int64_t unit = common_unit(problem, links).capacity;
  model.capacities.assign(links.size(), unit);
  std::vector<std::uint32_t> index(problem.jobs.size());
  for (std::uint32_t j = 0; j < jobs.size(); ++j) {
    index[jobs[j]] = j;
    Model::ModelJob job;
    job.period = slots.periods[jobs[j]].count;
    if (const auto pinned = problem.jobs[jobs[j]].pinned) {
      job.pinned = true;
      job.shift = pinned->count % job.period;
      model.turns = false;
    }
    if (angles > 0) {
      for (std::uint32_t k = 0; k < angles; ++k)
        job.grid.push_back(static_cast<std::int64_t>(static_cast<Int128>(model.perimeter) * k / angles % job.period));
      std::ranges::sort(job.grid);
      job.grid.erase(std::unique(job.grid.begin(), job.grid.end()), job.grid.end());
    }
    model.jobs.push_back(std::move(job));
  }
  for (std::uint32_t l = 0; l < links.size(); ++l) {
    const Problem::Link& link = problem.links[links[l]];
    check_size(link, slots, model.perimeter);
    for (const Problem::Use& use : link.uses) {
      Model::ModelJob& job = model.jobs[index[use.job]];
      Curve curve = curve_of(use.demand, l, job.period, unit, static_cast<std::int64_t>(link.capacity.bits_per_second));
      if (curve.peak > 0) job.curves.push_back(std::move(curve));
    }
  }
  for (std::uint32_t j = 0; j < model.jobs.size(); ++j) {
    Model::ModelJob& job = model.jobs[j];
    job.twins = j;
    for (std::uint32_t k = 0; k < j && job.twins == j; ++k) {
      const Model::ModelJob& other = model.jobs[k];
      if (!job.pinned && !other.pinned && other.period == job.period && other.curves == job.curves)
        job.twins = other.twins;
    }
  }
  return model;
}

std::vector<Part> parts_of(const Problem& problem, const Slots& slots, std::uint32_t angles) {
  std::vector<std::uint32_t> leader(problem.jobs.size());
  std::iota(leader.begin(), leader.end(), 0U);
  const auto find = [&](std::uint32_t j) {
    while (leader[j] != j) j = leader[j] = leader[leader[j]];
    return j;
  };
  for (const Problem::Link& link : problem.links) {
    std::optional<std::uint32_t> first;
    for (const Problem::Use& use : link.uses) {
      if (problem.jobs[use.job].pinned) continue;
      if (first) leader[std::max(find(*first), find(use.job))] = std::min(find(*first), find(use.job));
      first = use.job;
    }
  }
  std::vector<Part> parts;
  std::vector<std::size_t> part_of(problem.jobs.size(), problem.jobs.size());
  for (std::uint32_t l = 0; l < problem.links.size(); ++l) {
    const Problem::Link& link = problem.links[l];
    if (link.uses.size() < 2) continue;
    const auto use =
        std::ranges::find_if(link.uses, [&](const Problem::Use& it) { return !problem.jobs[it.job].pinned; });
    if (use == link.uses.end()) continue;
    std::size_t& part = part_of[find(use->job)];
    if (part == problem.jobs.size()) {
      part = parts.size();
      parts.emplace_back();
    }
    parts[part].links.push_back(l);
    for (const Problem::Use& it : link.uses) parts[part].jobs.push_back(it.job);
  }
  for (Part& part : parts) {
    std::ranges::sort(part.jobs);
    part.jobs.erase(std::unique(part.jobs.begin(), part.jobs.end()), part.jobs.end());
    part.model = model_of(problem, slots, part.jobs, part.links, angles);
  }
  return parts;
}

/// Rotates all jobs by the same time, so that the first job's shift is 0.
void turn(const Model& model, std::vector<std::int64_t>& shifts) {
  if (!model.turns) return;
  const std::int64_t first = shifts[0];
  for (std::size_t j = 0; j < shifts.size(); ++j) {
    const std::int64_t period = model.jobs[j].period;
    shifts[j] = ((shifts[j] - first) % period + period) % period;
  }
}

/// An arrangement of all jobs. Evaluates how moving one job changes the excess while the other jobs stay.
class Others {
 public:
  Others(const Model& model, const std::vector<std::int64_t>& shifts)
      : model_(model), arrangement_(model), none_(model.capacities.size(), 0) {
    for (std::uint32_t j = 0; j < model.jobs.size(); ++j)
      if (!model.jobs[j].pinned) arrangement_.place(j, shifts[j]);
  }
  [[nodiscard]] Int128 excess() const { return arrangement_.excess(); }
  void move(std::uint32_t job, std::int64_t from, std::int64_t to) {
    arrangement_.take_away(job, from);
    arrangement_.place(job, to);
  }
  /// Returns the excess on the links of `job`, which is now at `shift`, as a function of the shift of `job`.
  const Sweep& sweep(std::uint32_t job, std::int64_t shift) {
    const Model::ModelJob& it = model_.jobs[job];
    arrangement_.take_away(job, shift);
    sweep_.run(it.curves, arrangement_.profiles(), model_.capacities, none_, it.period, model_.perimeter);
    arrangement_.place(job, shift);
    return sweep_;
  }

 private:
  const Model& model_;
  Arrangement arrangement_;
  Sweep sweep_;
  const std::vector<std::int64_t> none_;
};

/// Among shifts without excess, finds those that tolerate the largest deviations. Widens all demands by an equal margin
/// until excess occurs. Then widens the demands on the links that still have room, until no link has room. Finds each
/// margin by bisection, in which every step starts from the previous shifts.
void widen_margin(const Model& model, const SolveOptions& options, std::vector<std::int64_t>& shifts) {
  centre(model, shifts);
  const std::size_t links = model.capacities.size();
  // With two jobs on one link, the middle of the widest gap is optimal.
  if (model.jobs.size() == 2 && links == 1) return;
  std::vector<std::int64_t> most(links, model.perimeter);
  for (const Model::ModelJob& job : model.jobs)
    for (const Curve& curve : job.curves) most[curve.link] = std::min(most[curve.link], job.period / 2 + 1);
  const std::int64_t precision = std::max<std::int64_t>(1, *std::ranges::min_element(most) >> kBitsOfMargin);
  std::uint64_t nodes = 0;
  std::vector<bool> has_margin(links, true);
  std::vector<std::int64_t> by(links);
  Model wide = model;
  std::int64_t low = 0;
  // Widens the demands on the links `those` to `margin`. If there is no excess, stores the new shifts and returns true.
  const auto succeeds = [&](const std::vector<bool>& those, std::int64_t margin) {
    std::vector<std::int64_t> further = by;
    for (std::size_t l = 0; l < links; ++l)
      if (those[l]) further[l] = margin;
    Model wider = model.widened_on_links(further);
    Found found = minimise(wider, {options.node_limit / 64, 2, 2, options.seed, true}, &shifts);
    nodes += found.nodes;
    if (found.excess > 0) return false;
    by = std::move(further);
    shifts = std::move(found.shifts);
    wide = std::move(wider);
    return true;
  };
  while (true) {
    std::int64_t high = model.perimeter;
    for (std::size_t l = 0; l < links; ++l)
      if (has_margin[l]) high = std::min(high, most[l]);
    while (high - low > precision) {
      const std::int64_t middle = low + (high - low) / 2;
      (succeeds(has_margin, middle) ? low : high) = middle;
    }
    centre(wide, shifts);
    if (links == 1) return;
    bool more = false;
    bool fewer = false;
    for (std::size_t l = 0; l < links && nodes <= options.node_limit; ++l) {
      if (!has_margin[l]) continue;
      std::vector<bool> alone(links, false);
      alone[l] = true;
      has_margin[l] = low + 2 * precision < most[l] && succeeds(alone, low + 2 * precision);
      (has_margin[l] ? more : fewer) = true;
    }
    if (!more || !fewer || nodes > options.node_limit) return centre(wide, shifts);
  }
}

/// Moves each job in turn to the shift that loses least under drift, among shifts of equal excess. Repeats this while
/// jobs move, at most `max_passes` times.
void settle(const Model& model, const Model& wide, std::vector<std::int64_t>& shifts) {
  constexpr int max_passes = 8;
  Others others(model, shifts);
  Others drifting(wide, shifts);
  bool moved = true;
  for (int pass = 0; moved && pass < max_passes; ++pass) {
    moved = false;
    for (std::uint32_t j = 0; j < model.jobs.size(); ++j) {
      const Model::ModelJob& job = model.jobs[j];
      if (job.pinned || (model.turns && j == model.root)) continue;
      const Sweep& sweep = others.sweep(j, shifts[j]);
      const Int128 level = sweep.least();
      if (sweep.excess_at(shifts[j]) != level) continue;
      const Sweep& drifted = drifting.sweep(j, shifts[j]);
      Int128 min = drifted.excess_at(shifts[j]);
      std::int64_t best = shifts[j];
      const auto consider = [&](std::int64_t at) {
        at %= job.period;
        const Int128 value = drifted.excess_at(at);
        if (value >= min || sweep.excess_at(at) != level) return;
        min = value;
        best = at;
      };
      if (!job.grid.empty()) {
        for (const std::int64_t at : job.grid) consider(at);
      } else {
        // The loss is linear between kinks, so it is minimal at a kink or where the excess begins to rise.
        for (const Point& point : drifted.points()) consider(point.at);
        sweep.for_each_run(level, [&](const Sweep::Run& run) {
          consider(run.from);
          consider(run.to);
        });
      }
      if (best == shifts[j]) continue;
      others.move(j, shifts[j], best);
      drifting.move(j, shifts[j], best);
      shifts[j] = best;
      moved = true;
    }
  }
}

/// Among the shifts with equal excess that the search found, chooses those that lose least under drift.
void choose_by_drift(const Model& model, const SolveOptions& options, Found& found) {
  if (model.jobs.size() == 2 && model.capacities.size() == 1) return centre(model, found.shifts);
  std::vector<std::int64_t> by;
  for (const Model::ModelJob& job : model.jobs)
    by.push_back(static_cast<std::int64_t>(options.drift * static_cast<double>(job.period)));
  const Model wide = model.widened(by);
  Int128 min = Others(wide, found.shifts).excess();
  const auto consider = [&](const std::vector<std::int64_t>& shifts) {
    const Int128 loss = Others(wide, shifts).excess();
    if (loss > min) return;
    min = loss;
    found.shifts = shifts;
  };
  for (const std::vector<std::int64_t>& shifts : found.others) consider(shifts);
  std::vector<std::int64_t> centred = found.shifts;
  centre(model, centred);
  consider(centred);
  settle(model, wide, found.shifts);
  // If the loss is constant around a job's shift, choose the middle of that range.
  centred = found.shifts;
  centre(model, centred);
  consider(centred);
}

struct Thoroughness {
  std::uint64_t nodes = 0;
  std::uint32_t restarts = 0;
  bool robust = false;
};

Solution solve_in(const Problem& problem, const Slots& slots, const SolveOptions& options, const Thoroughness& how) {
  std::vector<Nanos> shifts(problem.jobs.size());
  for (std::size_t j = 0; j < shifts.size(); ++j)
    shifts[j] = Nanos(problem.jobs[j].pinned.value_or(Nanos()).count % slots.periods[j].count);
  std::vector<Part> parts = parts_of(problem, slots, options.angles);
  std::vector<double> link_bounds(problem.links.size(), 1);
  std::vector<bool> proven(problem.links.size(), false);
  double bound_sum = 0;  // upper bound of the sum of the scores of all shared links
  bool optimal = true;
  std::uint64_t nodes = 0;
  for (Part& part : parts) {
    Found found = minimise(part.model, {how.nodes, 2, how.restarts, options.seed, false});
    nodes += found.nodes;
    const auto score_of = [](Int128 excess, const Model& model) {
      return static_cast<double>(static_cast<long double>(excess) / static_cast<long double>(model.capacities[0]) /
                                 static_cast<long double>(model.perimeter));
    };
    const double bound = static_cast<double>(part.links.size()) - score_of(found.bound, part.model);
    const bool best = found.bound == found.excess && common_unit(problem, part.links).precise;
    optimal &= best;
    double own = 0;  // sum over the links of the upper bound of a link's score without the other links
    for (const std::uint32_t l : part.links) {
      if (part.links.size() == 1) {
        link_bounds[l] = bound;
        proven[l] = best;
      } else if (how.nodes > 0) {
        std::vector<std::uint32_t> jobs;
        for (const Problem::Use& use : problem.links[l].uses) jobs.push_back(use.job);
        std::ranges::sort(jobs);
        const Model alone = model_of(problem, slots, jobs, {l}, 0);
        const Found min = minimise(alone, {how.nodes / part.links.size(), 2, 8, options.seed, false});
        link_bounds[l] = 1 - score_of(min.bound, alone);
        nodes += min.nodes;
      }
      own += link_bounds[l];
    }
    bound_sum += std::min(bound, own);
    if (how.robust) {
      if (found.excess == 0)
        widen_margin(part.model, options, found.shifts);
      else
        choose_by_drift(part.model, options, found);
    }
    turn(part.model, found.shifts);
    for (std::size_t j = 0; j < part.jobs.size(); ++j) shifts[part.jobs[j]] = Nanos(found.shifts[j]);
  }
  Solution solution = evaluated(problem, slots, shifts, options);
  solution.nodes = nodes;
  std::vector<bool> in_part(problem.links.size(), false);
  for (const Part& part : parts)
    for (const std::uint32_t l : part.links) in_part[l] = true;
  std::size_t shared = 0;
  for (std::size_t l = 0; l < problem.links.size(); ++l) {
    LinkSolution& link = solution.links[l];
    if (problem.links[l].uses.size() < 2) continue;
    ++shared;
    if (!in_part[l]) {  // all jobs on this link are pinned
      link.upper_bound = link.score;
      link.optimal = true;
      bound_sum += link.score;
      continue;
    }
    link.upper_bound = proven[l] ? link.score : std::max(link.score, std::min(link.upper_bound, link_bounds[l]));
    link.optimal = link.score == link.upper_bound;
  }
  if (shared == 0) return solution;
  solution.upper_bound =
      optimal ? solution.score
              : std::max(solution.score, std::min(solution.upper_bound, bound_sum / static_cast<double>(shared)));
  solution.optimal = solution.score == solution.upper_bound;
  return solution;
}

/// Returns whether every link has at most kMaxBursts bursts.
bool searchable(const Problem& problem, const Slots& slots) {
  return std::ranges::all_of(problem.links, [&](const Problem::Link& link) {
    return bursts_on(link, slots, slots.perimeter.count) <= kMaxBursts;
  });
}

/// More jobs have more local minima, so the number of restarts grows with the square of the number of jobs.
Thoroughness thorough(const Problem& problem, const SolveOptions& options) {
  const std::size_t restarts = std::min<std::size_t>(2 * problem.jobs.size() * problem.jobs.size(), 1'000);
  return {options.node_limit, static_cast<std::uint32_t>(restarts), options.robust};
}

}  // namespace

Solution solve(const Problem& problem, const Slots& slots, const SolveOptions& options) {
  check(problem);
  internal::check(options);
  internal::check(problem, slots);
  return solve_in(problem, slots, options, thorough(problem, options));
}

Solution solve(const Problem& problem, const SolveOptions& options) {
  check(problem);
  internal::check(options);
  if (problem.jobs.empty()) return solve_in(problem, {}, options, thorough(problem, options));
  std::vector<Nanos> periods;
  for (const Problem::ProblemJob& job : problem.jobs) periods.push_back(job.period);
  std::vector<Slots> front = slots_front(periods, options);
  // Start at the first perimeter within the stretch limit. If no perimeter is within the limit, use the last one.
  std::size_t best = 0;
  std::uint64_t nodes = 0;
  while (best + 1 < front.size() && !front[best].within_limit) ++best;
  if (front[best].within_limit && best + 1 < front.size()) {
    double max = 0;
    const std::size_t end = std::min(front.size(), best + kMaxPerimeters);
    for (std::size_t i = best; i < end; ++i) {
      if (i > best && !searchable(problem, front[i])) break;
      double stretch = 0;
      for (std::size_t j = 0; j < periods.size(); ++j)
        stretch += static_cast<double>(front[i].periods[j].count) / static_cast<double>(periods[j].count) - 1;
      const Solution quick = solve_in(problem, front[i], options, {0, 1, false});
      nodes += quick.nodes;
      const double value = quick.score - stretch / static_cast<double>(periods.size());
      if (i > best && value <= max + kWorthLonger) continue;
      max = value;
      best = i;
    }
  }
  Solution solution = solve_in(problem, front[best], options, thorough(problem, options));
  solution.nodes += nodes;
  return solution;
}

}  // namespace mltcp::scheduler
