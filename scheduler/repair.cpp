// Repairs slots after a job has missed its slot (see repair.h).
#include "mltcp/scheduler/repair.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace mltcp::scheduler {
namespace {

// Measured demands contain short gaps and low rates, which a repair should ignore. The limits below are relative to the
// slot and to the capacity.
constexpr std::int64_t kGapsPerSlot = 100;  // bursts with a gap below 1/100 of the slot are merged
constexpr double kTrickle = 0.05;
constexpr double kRagged = 0.002;
constexpr std::size_t kMaxSpans = 8;  // maximum number of bursts of a job on a link
constexpr std::size_t kMaxTimes = 48;
constexpr int kHalvings = 12;
// Two jobs that overlap both lose the time of the overlap. They overlap again in the next iterations until slack or
// another repair separates them. The cost of an overlap is counted for these numbers of iterations and jobs.
constexpr double kIterationsOfAnOverlap = 4;
constexpr double kJobsOfAnOverlap = 2;

}  // namespace

Timetable::Timetable(const Problem& problem, const Slots& slots, std::span<const Nanos> held)
    : perimeter_(slots.perimeter) {
  check(problem);
  Nanos shortest = Nanos::never();
  for (const Nanos period : slots.periods) {
    shortest = std::min(shortest, period);
    jobs_.push_back({period, Nanos(), Nanos::never(), Nanos(), {}});
  }
  min_ = kRagged * shortest.seconds();
  for (const Problem::Link& link : problem.links) {
    if (link.uses.size() < 2) continue;
    std::vector<Use>& uses = links_.emplace_back();
    for (const Problem::Use& use : link.uses) {
      Use& own = uses.emplace_back();
      own.job = use.job;
      for (const Burst& burst : use.demand.bursts) {
        const double rate =
            static_cast<double>(burst.rate.bits_per_second) / static_cast<double>(link.capacity.bits_per_second);
        if (rate < kTrickle) continue;
        if (!own.spans.empty() && (burst.from - own.spans.back().to) * kGapsPerSlot < jobs_[use.job].period) {
          own.spans.back().to = burst.to;
          own.spans.back().rate = std::max(own.spans.back().rate, rate);
        } else {
          own.spans.push_back({burst.from, burst.to, rate});
        }
      }
      while (own.spans.size() > kMaxSpans) {
        std::size_t closest = 0;
        for (std::size_t i = 1; i + 1 < own.spans.size(); ++i)
          if (own.spans[i + 1].from - own.spans[i].to < own.spans[closest + 1].from - own.spans[closest].to)
            closest = i;
        own.spans[closest].to = own.spans[closest + 1].to;
        own.spans[closest].rate = std::max(own.spans[closest].rate, own.spans[closest + 1].rate);
        own.spans.erase(own.spans.begin() + static_cast<std::ptrdiff_t>(closest) + 1);
      }
      if (own.spans.empty()) continue;
      SlottedJob& job = jobs_[use.job];
      job.first = std::min(job.first, own.spans.front().from);
      job.last = std::max(job.last, own.spans.back().to);
      job.links.push_back(static_cast<std::uint32_t>(links_.size() - 1));
    }
  }
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (jobs_[i].links.empty()) jobs_[i].first = jobs_[i].last = Nanos();
    jobs_[i].held = held.empty() ? jobs_[i].first : held[i];
  }
}

/// Iterates over the steps of the demand of a job on a link, from the time `from` to the time `to`.
class Timetable::Cursor {
 public:
  Cursor(const Use& use, Nanos shift, Nanos period, Nanos from, Nanos to)
      : spans_(use.spans), period_(period), from_(from), to_(to) {
    // Finds the first burst that ends after `from`.
    Nanos first = Nanos::never();
    for (std::size_t i = 0; i < spans_.size(); ++i) {
      const Nanos end = from + Nanos(1) + modulo(shift + spans_[i].to - from - Nanos(1), period);
      if (end >= first) continue;
      first = end;
      index_ = i;
      turn_ = end - spans_[i].to;
    }
  }
  /// Returns true if there are no more steps. A burst that ends after `to` has its last step at `to`.
  [[nodiscard]] bool ended() const { return !up_ && turn_ + spans_[index_].from >= to_; }
  [[nodiscard]] std::pair<Nanos, double> step() const {
    const Span& span = spans_[index_];
    if (up_) return {std::min(turn_ + span.to, to_), -span.rate};
    return {std::max(turn_ + span.from, from_), span.rate};
  }
  void next() {
    up_ = !up_;
    if (up_ || ++index_ < spans_.size()) return;
    index_ = 0;
    turn_ += period_;
  }

 private:
  const std::vector<Span>& spans_;
  Nanos period_, from_, to_;
  Nanos turn_;  ///< start of the current iteration
  std::size_t index_ = 0;
  bool up_ = false;
};

/// The demand of the added jobs on each link, from the time `from` to the time `to`.
class Timetable::Window {
 public:
  Window(const Timetable& table, Nanos from, Nanos to, std::uint64_t& work)
      : table_(table), from_(from), to_(to), work_(work), steps_(table.links_.size()) {}

  void clear() {
    for (std::vector<Step>& steps : steps_) steps.clear();
  }

  void add(std::uint32_t job, Nanos shift) {
    for (const std::uint32_t link : table_.jobs_[job].links) {
      scratch_.clear();
      merge(link, cursor(link, job, shift), [&](const Step& step) {
        scratch_.push_back(step);
        return true;
      });
      steps_[link].swap(scratch_);
    }
  }

  /// Returns the excess demand on that link of `job` where it is largest, in seconds at full rate.
  [[nodiscard]] double beyond(std::uint32_t job) { return max_beyond(job, std::nullopt, kUnlimited); }
  /// Returns what beyond(job) would return if `job`, which is not added yet, were added with `shift`. If the excess is
  /// above `limit`, it may return any value above `limit`.
  [[nodiscard]] double beyond(std::uint32_t job, Nanos shift, double limit = kUnlimited) {
    return max_beyond(job, shift, limit);
  }

 private:
  using Step = std::pair<Nanos, double>;
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  [[nodiscard]] Cursor cursor(std::uint32_t link, std::uint32_t job, Nanos shift) const {
    const std::vector<Use>& uses = table_.links_[link];
    const auto own = std::ranges::find_if(uses, [=](const Use& use) { return use.job == job; });
    return {*own, shift, table_.jobs_[job].period, from_, to_};
  }

  /// Calls fun(Step) for the steps on a link and the steps of one more job, in order of time, until fun returns false.
  /// At equal times, decreases come first.
  template <typename Fun>
  void merge(std::uint32_t link, std::optional<Cursor> more, Fun&& fun) {
    const Step* next = steps_[link].data();
    const Step* const end = next + steps_[link].size();
    std::uint64_t looked_at = 0;
    bool on = true;
    for (; on && more && !more->ended(); more->next(), ++looked_at) {
      const Step own = more->step();
      for (; on && next != end && *next <= own; ++looked_at) on = fun(*next++);
      if (on) on = fun(own);
    }
    for (; on && next != end; ++looked_at) on = fun(*next++);
    work_ += looked_at;
  }

  [[nodiscard]] double beyond_on(std::uint32_t link, std::optional<Cursor> more, double limit) {
    double sum = 0;
    double demand = 0;
    Nanos last;
    merge(link, std::move(more), [&](const Step& step) {
      if (demand > 1) sum += (demand - 1) * (step.first - last).seconds();
      last = step.first;
      demand += step.second;
      return sum <= limit;
    });
    return sum;
  }

  [[nodiscard]] double max_beyond(std::uint32_t job, std::optional<Nanos> shift, double limit) {
    const std::vector<std::uint32_t>& links = table_.jobs_[job].links;
    double max = 0;
    const auto look_at = [&](std::size_t place) {
      const double sum =
          beyond_on(links[place], shift ? std::optional(cursor(links[place], job, *shift)) : std::nullopt, limit);
      if (sum <= max) return;
      max = sum;
      worst_ = place;
    };
    // Examines the worst link of the previous call first, because it is usually the worst link again.
    const std::size_t first = worst_ < links.size() ? worst_ : 0;
    if (!links.empty()) look_at(first);
    for (std::size_t place = 0; place < links.size() && max <= limit; ++place)
      if (place != first) look_at(place);
    return max;
  }

  const Timetable& table_;
  Nanos from_, to_;
  std::uint64_t& work_;
  std::vector<std::vector<Step>> steps_;  ///< steps on each link, in order
  std::vector<Step> scratch_;
  std::size_t worst_ = 0;
};

std::vector<Nanos> Timetable::seams(std::span<const Nanos> shifts, const std::vector<bool>& in, std::uint32_t job,
                                    Nanos end, std::uint64_t& work) const {
  std::vector<Nanos> times{Nanos()};
  const Nanos period = jobs_[job].period;
  for (const std::uint32_t link : jobs_[job].links) {
    const auto own = std::ranges::find(links_[link], job, &Use::job);
    for (const Use& use : links_[link]) {
      if (use.job == job || !in[use.job]) continue;
      for (const Span& span : use.spans)
        for (Nanos at = shifts[use.job] + span.to, last = at + perimeter_; at < last; at += jobs_[use.job].period) {
          for (const Span& mine : own->spans)
            if (const Nanos time = modulo(at - shifts[job] - mine.from, period); time < end) times.push_back(time);
          work += own->spans.size();
        }
    }
  }
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

Nanos Timetable::margin_behind(std::span<const Nanos> shifts, std::uint32_t job, Nanos max) const {
  std::uint64_t work = 0;
  Window others(*this, Nanos(), perimeter_, work);
  for (std::uint32_t other = 0; other < jobs_.size(); ++other)
    if (other != job) others.add(other, shifts[other]);
  const double before = others.beyond(job, shifts[job]);
  const auto fits = [&](Nanos late) { return others.beyond(job, shifts[job] + late, before + min_) <= before + min_; };
  // A bisection is sufficient: delays beyond one that does not fit are of no use to the caller.
  if (fits(max) && fits(max / 2)) return max;
  Nanos enough;
  Nanos too_much = max;
  for (int i = 0; i < kHalvings; ++i) {
    const Nanos middle = (enough + too_much) / 2;
    (fits(middle) ? enough : too_much) = middle;
  }
  return enough;
}

Repair Timetable::repair(std::span<const Nanos> shifts, std::uint32_t late, Nanos now) const {
  const Nanos period = jobs_[late].period;
  const Nanos missed = modulo(now - shifts[late] - jobs_[late].held, period);
  Repair best;
  best.delays.resize(jobs_.size());
  best.wait = best.delay = best.cost = period - missed;
  std::uint64_t& work = best.work;

  // The jobs that send at `now`, and the time at which the last of them stops sending.
  std::vector<std::uint32_t> senders;
  Nanos until = now;
  for (std::uint32_t job = 0; job < jobs_.size(); ++job) {
    if (job == late || jobs_[job].links.empty()) continue;
    const Nanos begin = now - modulo(now - shifts[job] - jobs_[job].held, jobs_[job].period);
    const Nanos end = begin + (jobs_[job].last - jobs_[job].held);
    if (end <= now) continue;
    senders.push_back(job);
    until = std::max(until, end);
  }
  Window sending(*this, now, until, work);
  for (const std::uint32_t job : senders) sending.add(job, shifts[job]);
  const double sending_beyond = sending.beyond(late);

  const std::vector<bool> others(jobs_.size(), true);
  std::vector<Nanos> waits;
  for (const Nanos seam : seams(shifts, others, late, period, work))
    if (seam >= missed) waits.push_back(seam - missed);
  if (waits.empty() || waits.front() > Nanos()) waits.insert(waits.begin(), Nanos());
  if (waits.size() > kMaxTimes) waits.resize(kMaxTimes);

  constexpr double price_of_excess = kIterationsOfAnOverlap * kJobsOfAnOverlap;
  const auto price = [&](double excess, double before) {
    return Nanos::from_seconds(price_of_excess * std::max(0.0, excess - before - min_));
  };
  // Returns an excess that costs more than `max`. The additional 2 ns are above all rounding errors.
  const auto dearer_than = [&](Nanos max, double before) {
    return before + min_ + (max + Nanos(2)).seconds() / price_of_excess;
  };
  Window placed(*this, now, now + perimeter_, work);
  Window unmoved(*this, now, now + perimeter_, work);
  std::vector<std::uint32_t> order;
  for (const Nanos wait : waits) {
    if (wait >= best.cost) break;
    std::vector<Nanos> moved(shifts.begin(), shifts.end());
    moved[late] += missed + wait;
    Nanos cost =
        wait + price(sending.beyond(late, moved[late], dearer_than(best.cost - wait, sending_beyond)), sending_beyond);
    if (cost >= best.cost) continue;
    Nanos delays = wait;
    // Sorts all jobs except `late` by the time at which they will send.
    order.resize(jobs_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::erase(order, late);
    const auto next = [&](std::uint32_t job) {
      return modulo(shifts[job] + jobs_[job].held - now - wait, jobs_[job].period);
    };
    std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return next(a) < next(b); });
    std::vector<bool> in(jobs_.size());
    in[late] = true;
    placed.clear();
    placed.add(late, moved[late]);
    unmoved.clear();
    unmoved.add(late, shifts[late]);
    for (const std::uint32_t job : order) {
      if (jobs_[job].links.empty()) continue;
      // The excess of `job` if it and all placed jobs kept their previous shifts.
      unmoved.add(job, shifts[job]);
      const double before = unmoved.beyond(job);
      // If this job adds a cost of `min` or more, this start time is not the best.
      Nanos min = best.cost - cost;
      std::optional<Nanos> min_delay;
      for (const Nanos delay : seams(moved, in, job, min, work)) {
        if (delay >= min) break;
        if (work > kMaxRepairWork) {
          best.complete = false;
          return best;
        }
        const double excess = placed.beyond(job, shifts[job] + delay, dearer_than(min - delay, before));
        const Nanos own = delay + price(excess, before);
        if (own >= min) continue;
        min = own;
        min_delay = delay;
      }
      if (!min_delay) {
        cost = best.cost;
        break;
      }
      in[job] = true;
      moved[job] = shifts[job] + *min_delay;
      placed.add(job, moved[job]);
      cost += min;
      delays += *min_delay;
    }
    if (cost >= best.cost) continue;
    best.cost = cost;
    best.delay = delays;
    best.wait = wait;
    for (std::size_t job = 0; job < jobs_.size(); ++job) best.delays[job] = moved[job] - shifts[job];
  }
  return best;
}

}  // namespace mltcp::scheduler
