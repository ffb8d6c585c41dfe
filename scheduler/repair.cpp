// Repair of slots (see repair.h).
#include "mltcp/scheduler/repair.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace mltcp::scheduler {
namespace {

// Measured demands have ragged edges and trickles, which nobody makes way for: as shares of a slot, and of a capacity.
constexpr std::int64_t gaps_per_slot = 100;  // bursts that are closer are one
constexpr double trickle = 0.05;
constexpr double ragged = 0.002;
constexpr std::size_t most_spans = 8;  // of a job on a link
constexpr std::size_t most_times = 48;
constexpr int halvings = 12;
// Two jobs that overlap both lose what they overlap by, and meet again in the next iteration, until slack or another
// repair parts them: reckoned for so many.
constexpr double iterations_of_an_overlap = 4;
constexpr double jobs_of_an_overlap = 2;

}  // namespace

Timetable::Timetable(const Problem& problem, const Slots& slots, std::span<const Nanos> held)
    : perimeter_(slots.perimeter) {
  check(problem);
  Nanos shortest = Nanos::never();
  for (const Nanos period : slots.periods) {
    shortest = std::min(shortest, period);
    jobs_.push_back({period, Nanos(), Nanos::never(), Nanos(), {}});
  }
  least_ = ragged * shortest.seconds();
  for (const Problem::Link& link : problem.links) {
    if (link.uses.size() < 2) continue;
    std::vector<Use>& uses = links_.emplace_back();
    for (const Problem::Use& use : link.uses) {
      Use& own = uses.emplace_back();
      own.job = use.job;
      for (const Burst& burst : use.demand.bursts) {
        const double rate =
            static_cast<double>(burst.rate.bits_per_second) / static_cast<double>(link.capacity.bits_per_second);
        if (rate < trickle) continue;
        if (!own.spans.empty() && (burst.from - own.spans.back().to) * gaps_per_slot < jobs_[use.job].period) {
          own.spans.back().to = burst.to;
          own.spans.back().rate = std::max(own.spans.back().rate, rate);
        } else {
          own.spans.push_back({burst.from, burst.to, rate});
        }
      }
      while (own.spans.size() > most_spans) {
        std::size_t closest = 0;
        for (std::size_t i = 1; i + 1 < own.spans.size(); ++i)
          if (own.spans[i + 1].from - own.spans[i].to < own.spans[closest + 1].from - own.spans[closest].to)
            closest = i;
        own.spans[closest].to = own.spans[closest + 1].to;
        own.spans[closest].rate = std::max(own.spans[closest].rate, own.spans[closest + 1].rate);
        own.spans.erase(own.spans.begin() + static_cast<std::ptrdiff_t>(closest) + 1);
      }
      if (own.spans.empty()) continue;
      Job& job = jobs_[use.job];
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

double Timetable::beyond(std::span<const Nanos> shifts, const std::vector<bool>& in, std::uint32_t job, Nanos from,
                         Nanos to) const {
  std::vector<std::pair<Nanos, double>> steps;
  double most = 0;
  for (const std::uint32_t link : jobs_[job].links) {
    double sum = 0;
    steps.clear();
    for (const Use& use : links_[link]) {
      if (!in[use.job]) continue;
      const Nanos period = jobs_[use.job].period;
      for (const Span& span : use.spans) {
        // The first that ends after `from`.
        Nanos begin = from + modulo(shifts[use.job] + span.from - from, period) - period;
        const Nanos length = span.to - span.from;
        if (begin + length <= from) begin += period;
        for (; begin < to; begin += period) {
          steps.emplace_back(std::max(begin, from), span.rate);
          steps.emplace_back(std::min(begin + length, to), -span.rate);
        }
      }
    }
    std::sort(steps.begin(), steps.end());
    double demand = 0;
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
      demand += steps[i].second;
      if (demand > 1) sum += (demand - 1) * (steps[i + 1].first - steps[i].first).seconds();
    }
    most = std::max(most, sum);
  }
  return most;
}

std::vector<Nanos> Timetable::seams(std::span<const Nanos> shifts, const std::vector<bool>& in,
                                    std::uint32_t job) const {
  std::vector<Nanos> times{Nanos()};
  const Nanos period = jobs_[job].period;
  for (const std::uint32_t link : jobs_[job].links) {
    const auto own = std::find_if(links_[link].begin(), links_[link].end(), [&](const Use& u) { return u.job == job; });
    for (const Use& use : links_[link]) {
      if (use.job == job || !in[use.job]) continue;
      for (const Span& span : use.spans)
        for (Nanos end = shifts[use.job] + span.to, last = end + perimeter_; end < last; end += jobs_[use.job].period)
          for (const Span& mine : own->spans) times.push_back(modulo(end - shifts[job] - mine.from, period));
    }
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

Nanos Timetable::room_behind(std::span<const Nanos> shifts, std::uint32_t job, Nanos most) const {
  std::vector<Nanos> moved(shifts.begin(), shifts.end());
  const std::vector<bool> all(jobs_.size(), true);
  const double before = beyond(moved, all, job, Nanos(), perimeter_);
  const auto fits = [&](Nanos late) {
    moved[job] = shifts[job] + late;
    return beyond(moved, all, job, Nanos(), perimeter_) <= before + least_;
  };
  // Between the seams the excess rises or stays; what it does beyond one that it doesn't pass is of no use.
  if (fits(most) && fits(most / 2)) return most;
  Nanos enough;
  Nanos too_much = most;
  for (int i = 0; i < halvings; ++i) {
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

  // Who sends already, and until when.
  std::vector<bool> sending(jobs_.size());
  Nanos until = now;
  for (std::uint32_t job = 0; job < jobs_.size(); ++job) {
    if (job == late || jobs_[job].links.empty()) continue;
    const Nanos begin = now - modulo(now - shifts[job] - jobs_[job].held, jobs_[job].period);
    const Nanos end = begin + (jobs_[job].last - jobs_[job].held);
    if (end <= now) continue;
    sending[job] = true;
    until = std::max(until, end);
  }
  const double sending_beyond = beyond(shifts, sending, late, now, until);
  sending[late] = true;

  std::vector<bool> others(jobs_.size(), true);
  std::vector<Nanos> waits;
  for (const Nanos seam : seams(shifts, others, late))
    if (seam >= missed) waits.push_back(seam - missed);
  if (waits.empty() || waits.front() > Nanos()) waits.insert(waits.begin(), Nanos());
  if (waits.size() > most_times) waits.resize(most_times);

  const auto price = [&](double excess, double before) {
    return Nanos::from_seconds(iterations_of_an_overlap * jobs_of_an_overlap * std::max(0.0, excess - before - least_));
  };
  std::vector<std::uint32_t> order;
  for (const Nanos wait : waits) {
    if (wait >= best.cost) break;
    std::vector<Nanos> moved(shifts.begin(), shifts.end());
    moved[late] += missed + wait;
    Nanos cost = wait + price(beyond(moved, sending, late, now, until), sending_beyond);
    Nanos delays = wait;
    // The others, as they come to send next.
    order.resize(jobs_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::erase(order, late);
    const auto next = [&](std::uint32_t job) {
      return modulo(shifts[job] + jobs_[job].held - now - wait, jobs_[job].period);
    };
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return next(a) < next(b); });
    std::vector<bool> placed(jobs_.size());
    placed[late] = true;
    for (const std::uint32_t job : order) {
      if (jobs_[job].links.empty() || cost >= best.cost) continue;
      // What the job and those placed ask for too much anyway, on the shifts that there were.
      const std::vector<Nanos> times = seams(moved, placed, job);
      placed[job] = true;
      const double before = beyond(shifts, placed, job, now, now + perimeter_);
      Nanos least = Nanos::never();
      Nanos least_delay;
      for (const Nanos delay : times) {
        if (delay >= least || cost + delay >= best.cost) break;
        moved[job] = shifts[job] + delay;
        const Nanos own = delay + price(beyond(moved, placed, job, now, now + perimeter_), before);
        if (own >= least) continue;
        least = own;
        least_delay = delay;
      }
      if (least.is_never()) {
        cost = best.cost;
        break;
      }
      moved[job] = shifts[job] + least_delay;
      cost += least;
      delays += least_delay;
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
