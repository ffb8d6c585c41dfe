// Replays jobs as fluids (see plan_forecast.h).
#include "mltcp/lab/experiment/run/plan_forecast.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mltcp/base/random.h"

namespace mltcp::experiment {
namespace {

constexpr std::uint64_t kSeed = 0xF0CA57;
constexpr std::size_t kIterations = 24;   // number of iterations of each job
constexpr std::size_t kStartsTried = 8;   // number of replays without slots, with random starts
constexpr std::size_t kJittersTried = 3;  // number of replays with slots, with random jitter
constexpr std::size_t kMaxSegments = 64;  // maximum number of segments of an iteration
constexpr std::size_t kStepsOfFunction = 16;
// A replay ends after kEnoughSteps if each job has completed kFewestIterations, and always after kMaxWork. The results
// of the completed iterations are used. The work of a step is the number of jobs.
constexpr std::size_t kFewestIterations = 4;
constexpr std::size_t kEnoughSteps = 100'000;
constexpr double kMaxWork = 2e7;                       // maximum of steps times jobs in one replay
constexpr std::uint64_t kMaxRepairWork = 500'000'000;  // limit on the work of repairs in one replay, 1 to 2 seconds
// Minimum length of a silence with jitter, as a share of its usual length.
constexpr double kMinSpeed = 0.1;

/// A part of an iteration with constant demand.
struct Segment {
  double from = 0;  // seconds since the start of the iteration
  double to = 0;
  double sent = 0;  // share of the iteration's bits sent before this segment
  // Links, and the share of each link's capacity that the job requires. Empty if the job is silent.
  std::vector<std::pair<std::uint32_t, double>> asks;
};

struct ReplayedJob {
  double period = 0;
  double silence = 0;  // silent time per period
  double send = 0;     // time from the start of an iteration to its first bytes
  double jitter = 0;
  std::vector<Segment> segments;
};

std::vector<Segment> segments_of(const scheduler::Problem& problem, std::uint32_t job) {
  const double period = problem.jobs[job].period.seconds();
  std::vector<double> edges{0, period};
  for (const scheduler::Problem::Link& link : problem.links)
    for (const scheduler::Problem::Use& use : link.uses)
      if (use.job == job)
        for (const scheduler::Burst& burst : use.demand.bursts) {
          edges.push_back(burst.from.seconds());
          edges.push_back(burst.to.seconds());
        }
  std::ranges::sort(edges);
  // If there are too many edges, merges edges that are closer than `min`. Measured demands have many bursts.
  const double min = period / static_cast<double>(kMaxSegments);
  std::vector<double> kept{0};
  for (const double edge : edges)
    if (edge - kept.back() > (edges.size() > kMaxSegments ? min : 1e-9) && period - edge > 1e-9) kept.push_back(edge);
  kept.push_back(period);
  std::vector<Segment> segments;
  for (std::size_t i = 0; i + 1 < kept.size(); ++i) {
    Segment& segment = segments.emplace_back();
    segment.from = kept[i];
    segment.to = kept[i + 1];
    for (std::uint32_t l = 0; l < problem.links.size(); ++l)
      for (const scheduler::Problem::Use& use : problem.links[l].uses) {
        if (use.job != job) continue;
        double bits = 0;
        for (const scheduler::Burst& burst : use.demand.bursts) {
          const double overlap =
              std::min(burst.to.seconds(), segment.to) - std::max(burst.from.seconds(), segment.from);
          if (overlap > 0) bits += overlap * static_cast<double>(burst.rate.bits_per_second);
        }
        const double share =
            bits / (segment.to - segment.from) / static_cast<double>(problem.links[l].capacity.bits_per_second);
        if (share > 1e-6) segment.asks.emplace_back(l, share);
      }
  }
  // Counts progress only on the link with the highest demand, since a sender counts each byte once.
  double all = 0;
  const auto weight = [](const Segment& segment) {
    double max = 0;
    for (const auto& [link, share] : segment.asks) max = std::max(max, share);
    return max * (segment.to - segment.from);
  };
  for (Segment& segment : segments) {
    segment.sent = all;
    all += weight(segment);
  }
  for (Segment& segment : segments) segment.sent /= std::max(all, 1e-12);
  return segments;
}

class Replay {
 public:
  Replay(const scheduler::Problem& problem, std::span<const ForecastJob> given,
         const std::optional<cc::Aggressiveness>& function)
      : given_(given),
        aware_(static_cast<std::size_t>(
            std::ranges::count_if(given, [](const ForecastJob& job) { return !job.unaware; }))),
        function_(function),
        links_(problem.links.size()) {
    for (std::uint32_t number = 0; number < problem.jobs.size(); ++number) {
      ReplayedJob& job = jobs_.emplace_back();
      job.period = problem.jobs[number].period.seconds();
      job.segments = segments_of(problem, number);
      job.jitter = given[number].jitter;
      job.send = given[number].first_send.seconds();
      for (const Segment& segment : job.segments) {
        if (segment.asks.empty()) job.silence += segment.to - segment.from;
        if (!segment.asks.empty()) job.send = std::min(job.send, segment.from);
      }
    }
  }

  /// Replays the jobs, which begin at `starts`, and adds the results to `sum`. If `slots`, gates hold the jobs to their
  /// slots.
  void run(std::span<const double> starts, bool slots, const scheduler::Timetable* timetable, Random& random,
           Forecast& sum) {
    states_.assign(jobs_.size(), {});
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      states_[j].begins = starts[j];
      if (slots && j < aware_) {
        states_[j].slots = given_[j].slots;
        states_[j].gate.set(given_[j].slots, Nanos());
      }
    }
    now_ = 0;
    repair_work_ = 0;
    const auto max_steps = static_cast<std::size_t>(kMaxWork / static_cast<double>(jobs_.size()));
    for (std::size_t step = 0; step < max_steps && fewest() < (step < kEnoughSteps ? kIterations : kFewestIterations);
         ++step) {
      if (repair_work_ > kMaxRepairWork) {
        sum.complete = false;
        sum.known = sum.known && fewest() >= kFewestIterations;
        break;
      }
      settle(timetable, random);
      share();
      double next = std::numeric_limits<double>::infinity();
      for (std::size_t j = 0; j < jobs_.size(); ++j) next = std::min(next, until(j));
      if (!std::isfinite(next)) break;
      next = std::max(next, 1e-9);
      for (std::size_t j = 0; j < jobs_.size(); ++j)
        if (states_[j].running) states_[j].at += states_[j].speed * next;
      now_ += next;
    }
    sum.work += repair_work_;
    sum.complete = sum.complete && repairs_complete_;
    sum.jobs.resize(aware_);
    for (std::size_t j = 0; j < aware_; ++j) {
      std::vector<double>& lengths = states_[j].lengths;
      // Counts an unfinished iteration with its time so far, if this time exceeds the period.
      if (states_[j].running && now_ - states_[j].start > jobs_[j].period) lengths.push_back(now_ - states_[j].start);
      if (lengths.empty()) {
        sum.known = false;
        lengths.push_back(jobs_[j].period);
      }
      double mean = 0;
      double tail = 0;
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        mean += lengths[i];
        if (i >= lengths.size() / 2) tail = std::max(tail, lengths[i]);
      }
      sum.jobs[j] += mean / static_cast<double>(lengths.size()) / jobs_[j].period;
      sum.tail += tail / jobs_[j].period / static_cast<double>(aware_);
    }
  }

 private:
  struct State {
    double begins = 0;  // start of the first iteration
    bool running = false;
    bool asked = false;  // true if the gate was called in this iteration
    double held_until = -1;
    double at = 0;  // position in the iteration, in seconds
    std::size_t segment = 0;
    double start = 0;
    double silence_speed = 1;
    double speed = 0;
    PhaseGate gate;
    PhasePlan slots;
    std::vector<double> lengths;
  };

  /// Returns the number of iterations that every aware job has completed, at most kIterations.
  [[nodiscard]] std::size_t fewest() const {
    std::size_t min = kIterations;
    for (std::size_t j = 0; j < aware_; ++j) min = std::min(min, states_[j].lengths.size());
    return min;
  }

  [[nodiscard]] Nanos nanos() const { return Nanos::from_seconds(now_); }

  void begin(std::size_t j, Random& random) {
    State& state = states_[j];
    state.at = 0;
    state.segment = 0;
    state.start = now_;
    state.asked = false;
    state.held_until = -1;
    state.silence_speed = 1;
    if (jobs_[j].jitter > 0 && jobs_[j].silence > 0) {
      const double longer = random.normal() * jobs_[j].jitter * jobs_[j].period / jobs_[j].silence;
      state.silence_speed = 1 / std::max(1 + longer, kMinSpeed);
    }
    state.gate.begin_iteration();
  }

  /// Handles all events that are due now: starts, openings of gates, ends of segments and iterations.
  void settle(const scheduler::Timetable* timetable, Random& random) {
    constexpr double close = 1e-9;
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t j = 0; j < jobs_.size(); ++j) {
        State& state = states_[j];
        const ReplayedJob& job = jobs_[j];
        if (!state.running) {
          if (now_ + close < state.begins) continue;
          state.running = true;
          begin(j, random);
          moved = true;
        }
        if (!state.asked && state.at + close >= job.send) {
          state.asked = true;
          ask(j, timetable);
          moved = true;
        }
        if (state.held_until >= 0 && now_ + close >= state.held_until) {
          state.gate.opens_at(Nanos::from_seconds(state.held_until) + Nanos(1));
          state.held_until = -1;
          moved = true;
        }
        while (state.segment < job.segments.size() && state.at + close >= job.segments[state.segment].to)
          ++state.segment;
        if (state.segment < job.segments.size()) continue;
        state.lengths.push_back(now_ - state.start);
        begin(j, random);
        moved = true;
      }
    }
  }

  void ask(std::size_t j, const scheduler::Timetable* timetable) {
    State& state = states_[j];
    if (state.slots.period.count == 0) return;
    const Nanos now = nanos();
    const Nanos opens = state.gate.opens_at(now);
    if (opens <= now) return;
    state.held_until = opens.seconds();
    if (timetable == nullptr || state.gate.stats().adrift_since.is_never()) return;
    // As in the plan keeper, a job that is early for its first slot waits without a repair.
    if (state.lengths.empty() && modulo(now - state.slots.slot, state.slots.period) > state.slots.period / 2) return;
    std::vector<Nanos> shifts;
    for (std::size_t k = 0; k < aware_; ++k) shifts.push_back(states_[k].slots.slot - given_[k].first_send);
    const scheduler::Repair repair = timetable->repair(shifts, static_cast<std::uint32_t>(j), now);
    repair_work_ += repair.work;
    repairs_complete_ = repairs_complete_ && repair.complete;
    for (std::size_t k = 0; k < aware_; ++k) {
      if (repair.delays[k].count == 0) continue;
      State& other = states_[k];
      other.slots.slot += repair.delays[k];
      other.gate.set(other.slots, now);
      if (k == j || other.held_until >= 0) other.held_until = other.gate.opens_at(now).seconds();
    }
  }

  /// Returns the time in seconds until the job's next event.
  [[nodiscard]] double until(std::size_t j) const {
    const State& state = states_[j];
    if (!state.running) return state.begins - now_;
    if (state.held_until >= 0) return state.held_until - now_;
    if (state.speed <= 0) return std::numeric_limits<double>::infinity();
    const ReplayedJob& job = jobs_[j];
    double end = job.segments[state.segment].to;
    if (!state.asked) end = std::min(end, std::max(job.send, state.at));
    if (function_ && j < aware_ && !job.segments[state.segment].asks.empty())
      end = std::min(end, state.at + job.period / static_cast<double>(kStepsOfFunction));
    return (end - state.at) / state.speed;
  }

  [[nodiscard]] double weight(std::size_t j) const {
    if (!function_ || j >= aware_) return 1;
    const ReplayedJob& job = jobs_[j];
    const Segment& segment = job.segments[states_[j].segment];
    const double next = states_[j].segment + 1 < job.segments.size() ? job.segments[states_[j].segment + 1].sent : 1.0;
    const double part = (states_[j].at - segment.from) / (segment.to - segment.from);
    return (*function_)(std::clamp(segment.sent + part * (next - segment.sent), 0.0, 1.0));
  }

  /// Computes the current speeds of all jobs by progressive filling.
  void share() {
    std::vector<double> left(links_, 1.0);
    std::vector<double> weights(links_, 0.0);
    open_.clear();
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      State& state = states_[j];
      state.speed = 0;
      if (!state.running || state.held_until >= 0) continue;
      const Segment& segment = jobs_[j].segments[state.segment];
      if (segment.asks.empty()) {
        state.speed = state.silence_speed;
        continue;
      }
      open_.push_back({j, weight(j)});
      for (const auto& [link, share] : segment.asks) weights[link] += open_.back().second;
    }
    while (!open_.empty()) {
      // Computes each job's speed if the job gets its part of each link. Jobs that get their whole demand are settled
      // first.
      double slowest = std::numeric_limits<double>::infinity();
      bool any_satisfied = false;
      speeds_.clear();
      for (const auto& [j, own] : open_) {
        double speed = 1;
        for (const auto& [link, share] : jobs_[j].segments[states_[j].segment].asks)
          speed = std::min(speed, std::max(left[link], 0.0) * own / weights[link] / share);
        speeds_.push_back(speed);
        slowest = std::min(slowest, speed);
        any_satisfied |= speed >= 1;
      }
      std::size_t kept = 0;
      for (std::size_t i = 0; i < open_.size(); ++i) {
        const auto [j, own] = open_[i];
        if (any_satisfied ? speeds_[i] < 1 : speeds_[i] > slowest * (1 + 1e-9)) {
          open_[kept++] = open_[i];
          continue;
        }
        states_[j].speed = std::max(speeds_[i], 1e-6);
        for (const auto& [link, share] : jobs_[j].segments[states_[j].segment].asks) {
          left[link] -= speeds_[i] * share;
          weights[link] -= own;
        }
      }
      open_.resize(kept);
    }
  }

  std::span<const ForecastJob> given_;
  std::size_t aware_;  // number of jobs that are not unaware, which come first
  std::optional<cc::Aggressiveness> function_;
  std::size_t links_;
  std::vector<ReplayedJob> jobs_;
  std::vector<State> states_;
  double now_ = 0;
  std::uint64_t repair_work_ = 0;  // work of repairs in this replay
  bool repairs_complete_ = true;
  std::vector<std::pair<std::size_t, double>> open_;
  std::vector<double> speeds_;
};

Forecast mean_of(Forecast sum, std::size_t runs) {
  sum.mean = 0;
  for (double& job : sum.jobs) {
    job /= static_cast<double>(runs);
    sum.mean += job / static_cast<double>(sum.jobs.size());
  }
  sum.tail /= static_cast<double>(runs);
  return sum;
}

}  // namespace

Forecast forecast_sharing(const scheduler::Problem& problem, std::span<const ForecastJob> jobs,
                          const std::optional<cc::Aggressiveness>& function) {
  Replay replay(problem, jobs, function);
  Forecast sum;
  sum.tail = 0;
  for (std::size_t run = 0; run < kStartsTried; ++run) {
    Random random = Random::stream(kSeed, run);
    std::vector<double> starts;
    for (const scheduler::Problem::ProblemJob& job : problem.jobs)
      starts.push_back(random.uniform() * job.period.seconds());
    replay.run(starts, false, nullptr, random, sum);
  }
  return mean_of(std::move(sum), kStartsTried);
}

Forecast forecast_slots(const scheduler::Problem& problem, std::span<const ForecastJob> jobs,
                        const std::optional<cc::Aggressiveness>& function, const scheduler::Timetable* timetable) {
  Replay replay(problem, jobs, function);
  const bool varies = std::ranges::any_of(jobs, [](const ForecastJob& job) { return job.jitter > 0; });
  const std::size_t runs = varies ? kJittersTried : 1;
  Forecast sum;
  sum.tail = 0;
  for (std::size_t run = 0; run < runs; ++run) {
    Random random = Random::stream(kSeed, run);
    // Each job begins on its slot.
    std::vector<double> starts;
    for (std::size_t j = 0; j < jobs.size(); ++j)
      starts.push_back(jobs[j].unaware
                           ? random.uniform() * problem.jobs[j].period.seconds()
                           : modulo(jobs[j].slots.slot - jobs[j].first_send, jobs[j].slots.period).seconds());
    replay.run(starts, true, timetable, random, sum);
  }
  return mean_of(std::move(sum), runs);
}

}  // namespace mltcp::experiment
