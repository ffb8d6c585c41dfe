// Implements the heuristic and the branch and bound (see search.h).
#include "mltcp/scheduler/internal/search.h"

#include <numeric>
#include <queue>
#include <set>

#include "mltcp/scheduler/internal/configuration_bound.h"

namespace mltcp::scheduler::internal {
namespace {

/// Maximum number of nodes that a search stores. At this number, the search stops as it does at its work limit.
constexpr std::size_t kMaxNodes = 1'000'000;
/// A sweep over fewer meetings than this counts as one node; a longer sweep counts as several nodes.
constexpr std::size_t kMeetingsPerNode = 64;
/// Maximum number of jobs for which the bound by configurations uses triples of jobs.
constexpr std::size_t kMaxForTriples = 10;
/// If there are n triples, the search of each triple gets 1 / (n kPartForTriples) of the nodes, but at least
/// kMinPerTriple and at most kMaxPerTriple nodes.
constexpr std::uint64_t kPartForTriples = 4;
constexpr std::uint64_t kMinPerTriple = 100;
constexpr std::uint64_t kMaxPerTriple = 2'000;
/// The bound by configurations uses overlaps of two jobs only if there are at most kMaxForOverlaps jobs. It skips pairs
/// of jobs whose levels form more than kMaxLevelPairs pairs.
constexpr std::size_t kMaxForOverlaps = 8;
constexpr std::size_t kMaxLevelPairs = 4;
/// Maximum size of Found::others.
constexpr std::size_t kMaxOthers = 8;

Int128 area(const Model::ModelJob& job, std::int64_t perimeter) {
  Int128 sum = 0;
  for (const Curve& curve : job.curves) {
    Int128 slot = static_cast<Int128>(curve.level) * job.period;
    for (const Step& step : curve.steps) slot += static_cast<Int128>(step.after - step.before) * (job.period - step.at);
    // The level already includes a step at time 0, so this step must not be added a second time.
    if (!curve.steps.empty() && curve.steps.front().at == 0)
      slot -= static_cast<Int128>(curve.steps.front().after - curve.steps.front().before) * job.period;
    sum += slot * (perimeter / job.period);
  }
  return sum;
}

/// Returns the allowed shift of `job` that is nearest to the middle of `run`.
std::int64_t nearest(const Model::ModelJob& job, const Sweep::Run& run) {
  const std::int64_t middle = (run.from + (run.to - run.from) / 2) % job.period;
  const auto after = std::ranges::lower_bound(job.grid, middle);
  const std::int64_t high = after == job.grid.end() ? job.grid.front() + job.period : *after;
  const std::int64_t low = after == job.grid.begin() ? job.grid.back() - job.period : *(after - 1);
  return (high - middle < middle - low ? high + job.period : low + job.period) % job.period;
}

/// Returns the levels of a curve that are above 0, ascending.
std::vector<std::int64_t> levels_of(const Curve& curve) {
  std::set<std::int64_t> levels{curve.level};
  for (const Step& step : curve.steps) levels.insert(step.after);
  levels.erase(0);
  return {levels.begin(), levels.end()};
}

/// Returns a curve that is 1 where `curve` is at `level` or above, and 0 elsewhere.
Curve at_least(const Curve& curve, std::int64_t level) {
  const auto up = [=](std::int64_t value) { return std::int64_t{value >= level ? 1 : 0}; };
  Curve result{0, up(curve.level), 1, {}};
  for (const Step& step : curve.steps)
    if (up(step.before) != up(step.after)) result.steps.push_back({step.at, up(step.before), up(step.after)});
  return result;
}

class Minimiser {
 public:
  Minimiser(const Model& model, const Limits& limits)
      : model_(model), limits_(limits), random_(limits.seed), arrangement_(model), none_(model.capacities.size(), 0) {
    for (std::uint32_t j = 0; j < model.jobs.size(); ++j) {
      if (!model.jobs[j].pinned) free_.push_back(j);
      if (model.jobs[j].pinned) turn_of_pinned_ = std::lcm(turn_of_pinned_, model.jobs[j].period);
      areas_.push_back(area(model.jobs[j], model.perimeter));
    }
    std::ranges::stable_sort(free_, [&](auto a, auto b) { return areas_[a] > areas_[b]; });
    // On a grid, the job that is fixed at shift 0 comes first.
    if (model.turns && on_grid())
      std::ranges::stable_sort(free_, [&](auto a, auto b) { return (a == model.root) > (b == model.root); });
  }

  Found run(const std::vector<std::int64_t>* start) {
    if (start != nullptr) {
      shifts_ = *start;
      place_all();
      descend();
      keep(arrangement_.excess());
      if (best_.excess == 0) return std::move(best_);
    }
    root_bound();
    for (std::uint32_t i = 0; !done() && i <= limits_.restarts; ++i) {
      if (i > limits_.min_restarts && best_.nodes > (free_.size() > 6 ? limits_.nodes / 4 * 3 : limits_.nodes / 2))
        break;
      if (i < 4 || free_.size() < 4)
        insert(i);
      else
        shake();
    }
    if (!done() && limits_.nodes > 0) {
      best_.bound = std::max(best_.bound, ConfigurationBound(model_, sets(), overlaps()).root());
      if (!done()) branch();
    }
    if (complete_) best_.bound = best_.excess;
    return std::move(best_);
  }

  /// Returns the best shift of a job, given the placed jobs. Without a grid, returns the start or end of an interval of
  /// equally good shifts, for dense packing. Sets `min` to the excess at this shift.
  std::int64_t best_shift(std::uint32_t job, Int128& min, std::int64_t turn = 0) {
    const Model::ModelJob& it = model_.jobs[job];
    sweep(job, none_, it.grid.empty() ? turn : 0);
    if (it.grid.empty()) {
      min = sweep_.least();
      std::int64_t shift = 0;
      std::uint64_t seen = 0;
      sweep_.for_each_run(min, [&](const Sweep::Run& run) {
        for (const std::int64_t end : {run.from, run.to})
          if (random_.below(++seen) == 0) shift = end % it.period;
      });
      return shift;
    }
    std::int64_t shift = 0;
    std::uint64_t seen = 0;
    min = -1;
    for_grid(it, [&](std::int64_t at, Int128 value) {
      if (min >= 0 && value > min) return;
      if (value != min) seen = 0;
      min = value;
      if (random_.below(++seen) == 0) shift = at;
    });
    return shift;
  }

 private:
  /// Sweeps a job over all of its shifts. For `headroom` and `turn` see Sweep::run().
  void sweep(std::uint32_t job, std::span<const std::int64_t> headroom, std::int64_t turn = 0) {
    const Model::ModelJob& it = model_.jobs[job];
    sweep_.run(it.curves, arrangement_.profiles(), model_.capacities, headroom, it.period, model_.perimeter, turn);
    best_.nodes += 1 + (sweep_.work() + it.grid.size()) / kMeetingsPerNode;
  }

  template <typename Fun>
  void for_grid(const Model::ModelJob& job, Fun&& fun) {
    const auto points = sweep_.points();
    const Point* from = &points.back();
    std::int64_t from_at = 0;
    std::size_t next = 0;
    for (const std::int64_t at : job.grid) {
      while (points[next].at <= at) {  // ends, because the last point is beyond the grid
        from = &points[next++];
        from_at = from->at;
      }
      fun(at, from->excess + from->slope * (at - from_at));
    }
  }

  void place_all() {
    arrangement_.clear();
    for (const std::uint32_t j : free_) arrangement_.place(j, shifts_[j]);
  }

  [[nodiscard]] bool on_grid() const { return !model_.jobs.empty() && !model_.jobs.front().grid.empty(); }

  [[nodiscard]] bool done() const { return !best_.shifts.empty() && best_.excess <= best_.bound; }

  void keep(Int128 excess) {
    if (best_.shifts.empty() || excess < best_.excess) {
      best_.others.clear();
      best_.excess = excess;
      best_.shifts = shifts_;
    } else if (excess == best_.excess && best_.others.size() < kMaxOthers && shifts_ != best_.shifts &&
               std::ranges::find(best_.others, shifts_) == best_.others.end()) {
      best_.others.push_back(shifts_);
    }
  }

  /// Inserts all jobs greedily and calls descend(). Attempt 0 inserts jobs in the order of their areas. Later attempts
  /// insert jobs in random order.
  void insert(std::uint32_t attempt) {
    std::vector<std::uint32_t> order = free_;
    const std::size_t first_free = model_.turns && on_grid() ? 1 : 0;
    if (attempt > 0)
      for (std::size_t i = order.size(); i > first_free + 1; --i)
        std::swap(order[i - 1], order[first_free + random_.below(i - first_free)]);
    shifts_.assign(model_.jobs.size(), 0);
    for (std::uint32_t j = 0; j < model_.jobs.size(); ++j)
      if (model_.jobs[j].pinned) shifts_[j] = model_.jobs[j].shift;
    arrangement_.clear();
    bool first = model_.turns;
    std::int64_t turn = turn_of_pinned_;
    for (const std::uint32_t j : order) {
      Int128 min = 0;
      shifts_[j] = first ? 0 : best_shift(j, min, turn);
      first = false;
      arrangement_.place(j, shifts_[j]);
      turn = std::lcm(turn, model_.jobs[j].period);
    }
    if (free_.size() > 2 || !model_.turns) descend();
    keep(arrangement_.excess());
  }

  /// Removes some jobs from the best arrangement and inserts them again one by one.
  void shake() {
    shifts_ = best_.shifts;
    place_all();
    const std::size_t held = model_.turns && on_grid() ? 1 : 0;
    const std::size_t movable = free_.size() - held;
    std::vector<std::uint32_t> out(free_.begin() + static_cast<std::ptrdiff_t>(held), free_.end());
    const std::size_t count = std::min(movable, 2 + random_.below(3));
    for (std::size_t i = 0; i < count; ++i) {
      std::swap(out[i], out[i + random_.below(movable - i)]);
      arrangement_.take_away(out[i], shifts_[out[i]]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      Int128 min = 0;
      // The first job gets a random shift, so that not all jobs can return to their previous shifts.
      shifts_[out[i]] = i == 0 ? any_shift(out[i]) : best_shift(out[i], min);
      arrangement_.place(out[i], shifts_[out[i]]);
    }
    descend();
    keep(arrangement_.excess());
  }

  /// Returns a random shift at which a step of the job meets a step of the profile, or a random shift on the grid.
  std::int64_t any_shift(std::uint32_t job) {
    const Model::ModelJob& it = model_.jobs[job];
    if (!it.grid.empty()) return it.grid[random_.below(it.grid.size())];
    sweep(job, none_);
    const auto points = sweep_.points();
    return points[random_.below(points.size())].at % it.period;
  }

  /// Moves one job after the other to its best shift, given all other jobs. Stops if no move reduces the excess, or if
  /// each job has had `max_turns` turns.
  void descend() {
    constexpr std::size_t max_turns = 8;
    std::size_t quiet = 0;
    std::size_t turns = max_turns * free_.size();
    for (std::size_t i = 0; quiet < free_.size() && turns-- > 0; i = (i + 1) % free_.size()) {
      const std::uint32_t j = free_[i];
      const Int128 before = arrangement_.excess(j);
      if (before == 0 || (model_.turns && on_grid() && j == model_.root)) {
        ++quiet;
        continue;
      }
      arrangement_.take_away(j, shifts_[j]);
      Int128 min = 0;
      const std::int64_t shift = best_shift(j, min);
      if (min < before) {
        shifts_[j] = shift;
        quiet = 0;
      } else {
        ++quiet;
      }
      arrangement_.place(j, shifts_[j]);
    }
  }

  /// Sets best_.bound to the larger of two lower bounds that hold for all shifts: the area of the demands in excess of
  /// the area of the links, and the sum of the excess that single jobs and disjoint pairs have without all other jobs.
  void root_bound() {
    best_.bound = 0;
    const std::size_t links = model_.capacities.size();
    std::vector<Int128> left(links);
    for (std::size_t l = 0; l < links; ++l) left[l] = -static_cast<Int128>(model_.capacities[l]) * model_.perimeter;
    for (const Model::ModelJob& job : model_.jobs)
      for (const Curve& curve : job.curves) {
        Model::ModelJob alone{job.period, {curve}, {}, 0, false, 0};
        left[curve.link] += area(alone, model_.perimeter);
      }
    Int128 too_much = 0;
    for (const Int128 rest : left) too_much += std::max<Int128>(rest, 0);

    arrangement_.clear();
    const Int128 pinned = arrangement_.excess();
    const std::size_t count = free_.size();
    std::vector<Int128> alone(model_.jobs.size());  // minimum excess that each job adds to the pinned jobs
    Int128 sum = pinned;
    for (const std::uint32_t j : free_) {
      sweep(j, none_);
      alone[j] = sweep_.least() - arrangement_.excess(j);
      sum += alone[j];
    }
    best_.bound = std::max(too_much, sum);
    pairs_.assign(model_.jobs.size() * model_.jobs.size(), 0);
    if (count < 2 || (count > 2 && limits_.nodes == 0)) return;
    Arrangement empty(model_, false);
    for (std::size_t a = 0; a + 1 < count; ++a) {
      empty.clear();
      empty.place(free_[a], 0);
      const Int128 first = empty.excess();
      for (std::size_t b = a + 1; b < count; ++b) {
        const Model::ModelJob& job = model_.jobs[free_[b]];
        sweep_.run(job.curves, empty.profiles(), model_.capacities, none_, job.period, model_.perimeter,
                   model_.jobs[free_[a]].period);
        best_.nodes += 1 + sweep_.work() / kMeetingsPerNode;
        const Int128 pair = first + sweep_.least() - empty.excess(free_[b]);
        pairs_[free_[a] * model_.jobs.size() + free_[b]] = pair;
        pairs_[free_[b] * model_.jobs.size() + free_[a]] = pair;
      }
    }
    best_.bound = std::max(best_.bound, sum + matching(free_, alone, free_.size()));
  }

  /// Matches `jobs` greedily into disjoint pairs, except the job at index `without`. each[j] is the minimum excess that
  /// job j adds to the placed jobs. Returns the sum over all pairs of the pair's excess minus each[] of its two jobs.
  Int128 matching(std::span<const std::uint32_t> jobs, std::span<const Int128> each, std::size_t without) {
    edges_.clear();
    for (std::size_t a = 0; a < jobs.size(); ++a)
      for (std::size_t b = a + 1; b < jobs.size(); ++b) {
        if (a == without || b == without) continue;
        const Int128 more = pairs_[jobs[a] * model_.jobs.size() + jobs[b]] - each[jobs[a]] - each[jobs[b]];
        if (more > 0) edges_.push_back({more, jobs[a], jobs[b]});
      }
    std::ranges::sort(edges_, [](const Edge& a, const Edge& b) {
      return a.weight != b.weight ? a.weight > b.weight : std::pair(a.a, a.b) < std::pair(b.a, b.b);
    });
    matched_.assign(model_.jobs.size(), false);
    Int128 sum = 0;
    for (const Edge& edge : edges_) {
      if (matched_[edge.a] || matched_[edge.b]) continue;
      matched_[edge.a] = matched_[edge.b] = true;
      sum += edge.weight;
    }
    return sum;
  }

  /// Returns the pairs and triples of jobs that have excess even without all other jobs.
  std::vector<ConfigurationBound::Set> sets() {
    std::vector<ConfigurationBound::Set> result;
    if (model_.capacities.size() > 1) return result;
    const std::size_t count = model_.jobs.size();
    const std::size_t jobs = std::min<std::size_t>(count, 64);
    const auto pair = [&](std::size_t a, std::size_t b) { return pairs_[a * count + b]; };
    const auto bits = [](auto... job) { return ((std::uint64_t{1} << job) | ...); };
    for (std::uint32_t a = 0; a < jobs; ++a)
      for (std::uint32_t b = 0; b < a; ++b)
        if (pair(a, b) > 0) result.push_back({bits(a, b), pair(a, b), 0});
    if (free_.size() < 4 || free_.size() > kMaxForTriples || free_.size() < count) return result;
    const std::uint64_t triples = std::max<std::size_t>(1, jobs * (jobs - 1) * (jobs - 2) / 6);
    if (limits_.nodes < triples * kMinPerTriple) return result;
    const std::uint64_t per_triple =
        std::clamp(limits_.nodes / kPartForTriples / triples, kMinPerTriple, kMaxPerTriple);
    for (std::uint32_t a = 0; a < jobs; ++a)
      for (std::uint32_t b = 0; b < a; ++b)
        for (std::uint32_t c = 0; c < b; ++c) {
          // The triple needs no grid, because a bound for all shifts also holds on a grid.
          Model three{1, model_.capacities, {model_.jobs[a], model_.jobs[b], model_.jobs[c]}, true, 0};
          for (const Model::ModelJob& job : three.jobs) three.perimeter = std::lcm(three.perimeter, job.period);
          for (std::uint32_t k = 0; k < 3; ++k) {
            three.jobs[k].twins = k;
            three.jobs[k].grid.clear();
          }
          const Found found = minimise(three, {per_triple, 0, 0, limits_.seed, false});
          best_.nodes += found.nodes;
          const Int128 min = found.bound * (model_.perimeter / three.perimeter);
          if (min > std::max({pair(a, b), pair(b, c), pair(a, c)})) result.push_back({bits(a, b, c), min, 0});
        }
    return result;
  }

  /// Returns how long any two jobs can be at or above given levels at the same time. Returns an empty list if there
  /// are too many jobs.
  std::vector<ConfigurationBound::Overlap> overlaps() {
    std::vector<ConfigurationBound::Overlap> result;
    if (model_.capacities.size() > 1 || model_.jobs.size() > kMaxForOverlaps) return result;
    const std::int64_t one = 1;
    const std::int64_t none = 0;
    Profile profile;
    for (std::uint32_t a = 0; a < model_.jobs.size(); ++a) {
      const Model::ModelJob& first = model_.jobs[a];
      for (std::uint32_t b = 0; b < a; ++b) {
        const Model::ModelJob& second = model_.jobs[b];
        if (first.curves.empty() || second.curves.empty()) continue;
        const std::vector<std::int64_t> levels = levels_of(first.curves[0]);
        const std::vector<std::int64_t> other_levels = levels_of(second.curves[0]);
        if (levels.size() * other_levels.size() > kMaxLevelPairs) continue;
        const std::int64_t perimeter = std::lcm(first.period, second.period);
        for (const std::int64_t level : levels) {
          add({{}}, at_least(first.curves[0], level), first.period, 0, 1, perimeter, profile);
          for (const std::int64_t other : other_levels) {
            // With a capacity of 1, the excess is the time during which both curves are 1.
            const Curve curve = at_least(second.curves[0], other);
            sweep_.run({&curve, 1}, {&profile, 1}, {&one, 1}, {&none, 1}, second.period, perimeter, first.period);
            best_.nodes += 1 + sweep_.work() / kMeetingsPerNode;
            Int128 max = 0;
            for (const Point& point : sweep_.points()) max = std::max(max, point.excess);
            const std::int64_t times = model_.perimeter / perimeter;
            result.push_back({{a, b},
                              {level, other},
                              static_cast<std::int64_t>(sweep_.least()) * times,
                              static_cast<std::int64_t>(max) * times});
          }
        }
      }
    }
    return result;
  }

  void branch() {
    constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    pool_.clear();
    pool_.push_back({best_.bound, 0, none, 0, model_.turns ? free_[0] : none, model_.turns ? 1U : 0U});
    struct Open {
      Int128 lower;
      std::uint32_t depth;
      std::uint32_t node;
      bool operator<(const Open& other) const {
        if (lower != other.lower) return lower > other.lower;
        return depth != other.depth ? depth < other.depth : node > other.node;
      }
    };
    std::priority_queue<Open> open;
    const auto push = [&](std::size_t node) {
      open.push({pool_[node].lower, pool_[node].depth, static_cast<std::uint32_t>(node)});
    };
    push(0);
    while (!open.empty()) {
      const std::uint32_t top = open.top().node;
      const Int128 lower = open.top().lower;
      if (lower >= best_.excess) break;
      best_.bound = std::max(best_.bound, lower);
      if (best_.nodes >= limits_.nodes || pool_.size() >= kMaxNodes || (limits_.zero_only && lower > 0)) return;
      open.pop();
      const std::size_t first = pool_.size();
      expand(top);
      for (std::size_t i = first; i < pool_.size(); ++i) push(i);
    }
    complete_ = true;
  }

  void expand(std::uint32_t index) {
    constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    arrangement_.clear();
    placed_.assign(model_.jobs.size(), false);
    shifts_.assign(model_.jobs.size(), 0);
    for (std::uint32_t j = 0; j < model_.jobs.size(); ++j)
      if (model_.jobs[j].pinned) shifts_[j] = model_.jobs[j].shift;
    for (std::uint32_t n = index; n != none; n = pool_[n].parent) {
      const Node& node = pool_[n];
      if (node.job == none) continue;
      arrangement_.place(node.job, node.at);
      placed_[node.job] = true;
      shifts_[node.job] = node.at;
    }
    rest_.clear();
    headroom_.assign(model_.capacities.size(), 0);
    for (const std::uint32_t j : free_) {
      if (placed_[j]) continue;
      rest_.push_back(j);
      for (const Curve& curve : model_.jobs[j].curves) headroom_[curve.link] += curve.peak;
    }
    std::int64_t turn = turn_of_pinned_;
    for (const std::uint32_t j : free_)
      if (placed_[j]) turn = std::lcm(turn, model_.jobs[j].period);
    const Int128 base = arrangement_.excess();
    more_.assign(model_.jobs.size(), 0);
    Int128 sum = base;
    candidates_.clear();
    ranges_.clear();
    for (const std::uint32_t j : rest_) {
      const Model::ModelJob& job = model_.jobs[j];
      for (const Curve& curve : job.curves) headroom_[curve.link] -= curve.peak;
      sweep(j, headroom_, job.grid.empty() ? turn : 0);
      for (const Curve& curve : job.curves) headroom_[curve.link] += curve.peak;
      const Int128 without = arrangement_.excess(j);
      const std::size_t begin = candidates_.size();
      if (job.grid.empty()) {
        more_[j] = sweep_.least() - without;
        const std::int64_t distinct = sweep_.points().back().at;
        if (rest_.size() == 1) return place_last(j, base + more_[j]);
        for (const Point& point : sweep_.points())
          if (point.meeting || point.at == distinct)
            candidates_.push_back({point.at % distinct, point.excess - without});
      } else {
        for_grid(job, [&](std::int64_t at, Int128 value) { candidates_.push_back({at, value - without}); });
        more_[j] = candidates_[begin].more;
        for (std::size_t i = begin; i < candidates_.size(); ++i) more_[j] = std::min(more_[j], candidates_[i].more);
      }
      ranges_.emplace_back(begin, candidates_.size());
      sum += more_[j];
      if (sum >= best_.excess) return;
    }
    if (rest_.size() == 1) {
      const std::uint32_t j = rest_[0];
      for (const Candidate& candidate : candidates_)
        if (candidate.more == more_[j]) shifts_[j] = candidate.at;
      keep(base + more_[j]);
      return;
    }
    if (sum + matching(rest_, more_, rest_.size()) < best_.excess) push_children(index, sum);
  }

  /// Places the last job at its best shift. sweep_ must contain the sweep of this job against all other jobs.
  void place_last(std::uint32_t job, Int128 excess) {
    if (excess >= best_.excess) return;
    const std::int64_t distinct = sweep_.points().back().at;
    for (const Point& point : sweep_.points())
      if (point.excess == sweep_.least() && (point.meeting || point.at == distinct)) shifts_[job] = point.at % distinct;
    keep(excess);
  }

  /// Adds the children of a node to the pool. rest_, candidates_, ranges_ and more_ must be set for the node. `sum` is
  /// the minimum excess of the node.
  void push_children(std::uint32_t index, Int128 sum) {
    constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    forbidden_.clear();
    for (std::uint32_t n = index; n != none; n = pool_[n].parent)
      for (std::uint32_t s = pool_[n].job == none ? n : pool_[n].first_sibling; s < n; ++s)
        forbidden_.emplace_back(model_.jobs[pool_[s].job].twins, pool_[s].at);
    std::ranges::sort(forbidden_);
    const auto first = static_cast<std::uint32_t>(pool_.size());
    const std::uint32_t depth = pool_[index].depth + 1;
    order_.clear();
    for (std::size_t r = 0; r < rest_.size(); ++r) {
      // Twins are placed in the order of their indices, so only the first of the remaining twins may be next.
      bool second = false;
      for (std::size_t q = 0; q < rest_.size(); ++q)
        second |= rest_[q] < rest_[r] && model_.jobs[rest_[q]].twins == model_.jobs[rest_[r]].twins;
      if (!second) order_.push_back(r);
    }
    std::ranges::stable_sort(order_, [&](std::size_t a, std::size_t b) { return more_[rest_[a]] > more_[rest_[b]]; });
    if (!model_.jobs[rest_[0]].grid.empty()) order_.resize(1);
    for (const std::size_t r : order_) {
      const std::uint32_t j = rest_[r];
      const Int128 others = sum - more_[j] + matching(rest_, more_, r);
      for (std::size_t i = ranges_[r].first; i < ranges_[r].second; ++i) {
        const Candidate& candidate = candidates_[i];
        const Int128 lower = std::max(others + candidate.more, pool_[index].lower);
        if (lower >= best_.excess) continue;
        if (std::ranges::binary_search(forbidden_, std::pair(model_.jobs[j].twins, candidate.at))) continue;
        pool_.push_back({lower, candidate.at, index, first, j, depth});
      }
    }
  }

  struct Node {
    Int128 lower;  ///< lower bound of the excess in the subtree of this node
    std::int64_t at;
    std::uint32_t parent;
    std::uint32_t first_sibling;  ///< index of the oldest sibling; siblings are adjacent in the pool
    std::uint32_t job;
    std::uint32_t depth;
  };
  struct Candidate {
    std::int64_t at;
    Int128 more;
  };
  struct Edge {
    Int128 weight;
    std::uint32_t a, b;
  };

  const Model& model_;
  const Limits limits_;
  Random random_;
  Arrangement arrangement_;
  Sweep sweep_;
  const std::vector<std::int64_t> none_;  // a headroom of 0 for each link
  std::vector<std::uint32_t> free_;       // jobs that are not pinned, largest area first
  std::int64_t turn_of_pinned_ = 1;       // a rotation by this time does not move the pinned jobs
  std::vector<Int128> areas_;
  std::vector<Int128> pairs_;  // minimum excess of any two jobs without all other jobs
  std::vector<std::int64_t> shifts_;
  Found best_;
  bool complete_ = false;

  std::vector<Node> pool_;
  // ModelJob::twins and shift of each placement that the children of a node must not use.
  std::vector<std::pair<std::uint32_t, std::int64_t>> forbidden_;
  std::vector<bool> placed_, matched_;
  std::vector<std::uint32_t> rest_;
  std::vector<std::int64_t> headroom_;
  std::vector<Int128> more_;  // minimum excess that each job adds to the placed jobs
  std::vector<Candidate> candidates_;
  std::vector<std::pair<std::size_t, std::size_t>> ranges_;
  std::vector<std::size_t> order_;
  std::vector<Edge> edges_;
};

}  // namespace

Model Model::widened(std::span<const std::int64_t> by) const {
  Model result = *this;
  for (std::size_t j = 0; j < jobs.size(); ++j)
    for (Curve& curve : result.jobs[j].curves) curve = internal::widened(curve, jobs[j].period, by[j]);
  return result;
}

Model Model::widened_on_links(std::span<const std::int64_t> by) const {
  Model result = *this;
  for (ModelJob& job : result.jobs)
    for (Curve& curve : job.curves) curve = internal::widened(curve, job.period, by[curve.link]);
  return result;
}

Arrangement::Arrangement(const Model& model, bool with_pinned)
    : model_(&model), with_pinned_(with_pinned), profiles_(model.capacities.size()) {
  clear();
}

void Arrangement::clear() {
  for (Profile& profile : profiles_) profile.assign(1, {});
  if (!with_pinned_) return;
  for (std::uint32_t j = 0; j < model_->jobs.size(); ++j)
    if (model_->jobs[j].pinned) place(j, model_->jobs[j].shift);
}

void Arrangement::change(std::uint32_t job, std::int64_t shift, std::int64_t sign) {
  const Model::ModelJob& it = model_->jobs[job];
  for (const Curve& curve : it.curves) {
    add(profiles_[curve.link], curve, it.period, shift, sign, model_->perimeter, scratch_);
    profiles_[curve.link].swap(scratch_);
  }
}

Int128 Arrangement::excess() const {
  Int128 sum = 0;
  for (std::size_t l = 0; l < profiles_.size(); ++l)
    sum += internal::excess(profiles_[l], model_->capacities[l], model_->perimeter);
  return sum;
}

Int128 Arrangement::excess(std::uint32_t job) const {
  Int128 sum = 0;
  for (const Curve& curve : model_->jobs[job].curves)
    sum += internal::excess(profiles_[curve.link], model_->capacities[curve.link], model_->perimeter);
  return sum;
}

Found minimise(const Model& model, const Limits& limits, const std::vector<std::int64_t>* start) {
  return Minimiser(model, limits).run(start);
}

void centre(const Model& model, std::vector<std::int64_t>& shifts) {
  constexpr int max_passes = 64;
  Arrangement arrangement(model);
  Sweep sweep;
  const std::vector<std::int64_t> none(model.capacities.size(), 0);
  std::vector<std::uint32_t> movable;
  for (std::uint32_t j = 0; j < model.jobs.size(); ++j) {
    if (model.jobs[j].pinned) continue;
    arrangement.place(j, shifts[j]);
    if (!model.turns || j != model.root) movable.push_back(j);
  }
  bool moved = true;
  for (int pass = 0; moved && pass < max_passes; ++pass) {
    moved = false;
    for (const std::uint32_t j : movable) {
      const Model::ModelJob& job = model.jobs[j];
      arrangement.take_away(j, shifts[j]);
      sweep.run(job.curves, arrangement.profiles(), model.capacities, none, job.period, model.perimeter);
      if (sweep.excess_at(shifts[j]) == sweep.least()) {
        const Sweep::Run run = sweep.widest_run(sweep.least());
        const std::int64_t middle =
            job.grid.empty() ? (run.from + (run.to - run.from) / 2) % job.period : nearest(job, run);
        // If all shifts are equally good, the job keeps its shift.
        if (run.to - run.from < job.period && middle != shifts[j] && sweep.excess_at(middle) == sweep.least()) {
          moved |= std::abs(middle - shifts[j]) > job.period >> 20;
          shifts[j] = middle;
        }
      }
      arrangement.place(j, shifts[j]);
    }
  }
}

}  // namespace mltcp::scheduler::internal
