// Implements step functions on the circle (see circle.h).
#include "mltcp/scheduler/internal/circle.h"

#include <bit>
#include <deque>
#include <numeric>
#include <utility>

namespace mltcp::scheduler::internal {
namespace {

/// Returns the curve with the values of `pieces`. Each value holds until the time of the next piece. The first piece is
/// at time 0.
Curve from_pieces(const Profile& pieces, std::uint32_t link) {
  Curve curve;
  curve.link = link;
  curve.level = pieces.front().value;
  std::int64_t before = pieces.back().value;
  for (const Entry& piece : pieces) {
    if (piece.value != before) curve.steps.push_back({piece.at, before, piece.value});
    curve.peak = std::max(curve.peak, piece.value);
    before = piece.value;
  }
  return curve;
}

}  // namespace

Curve curve_of(const Demand& demand, std::uint32_t link, std::int64_t period, std::int64_t times, std::int64_t by) {
  Profile pieces;
  std::int64_t end = 0;
  for (const Burst& burst : demand.bursts) {
    if (burst.from.count > end) pieces.push_back({end, 0});
    const Uint128 scaled = static_cast<Uint128>(burst.rate.bits_per_second) * static_cast<std::uint64_t>(times) /
                           static_cast<std::uint64_t>(by);
    pieces.push_back({burst.from.count, static_cast<std::int64_t>(scaled)});
    end = burst.to.count;
  }
  if (end < period) pieces.push_back({end, 0});
  return from_pieces(pieces, link);
}

Curve widened(const Curve& curve, std::int64_t period, std::int64_t by, bool highest) {
  if (curve.steps.empty() || by == 0) return curve;
  const auto& steps = curve.steps;
  const auto better = [highest](std::int64_t a, std::int64_t b) { return highest ? a >= b : a <= b; };
  // The pieces between adjacent steps, widened by `by` at both ends, in all repetitions of the slot that reach into [0,
  // period). Pieces begin and end in the same order, so a sliding window finds the highest or lowest value of all
  // overlapping pieces.
  struct Piece {
    std::int64_t from, to, value;
  };
  std::vector<Piece> pieces;
  const std::int64_t turns = 1 + by / period;
  for (std::int64_t turn = -turns - 1; turn <= turns; ++turn) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::int64_t to = i + 1 < steps.size() ? steps[i + 1].at : steps.front().at + period;
      pieces.push_back({steps[i].at + turn * period - by, to + turn * period + by, steps[i].after});
    }
  }
  std::deque<std::size_t> window;
  std::size_t entering = 0;
  std::size_t leaving = 0;
  Profile result;
  while (leaving < pieces.size()) {
    const std::int64_t now =
        entering < pieces.size() ? std::min(pieces[entering].from, pieces[leaving].to) : pieces[leaving].to;
    if (now >= period) break;
    while (entering < pieces.size() && pieces[entering].from == now) {
      while (!window.empty() && better(pieces[entering].value, pieces[window.back()].value)) window.pop_back();
      window.push_back(entering++);
    }
    while (leaving < pieces.size() && pieces[leaving].to == now) {
      if (!window.empty() && window.front() == leaving) window.pop_front();
      ++leaving;
    }
    if (window.empty()) continue;
    const Entry entry{std::max<std::int64_t>(now, 0), pieces[window.front()].value};
    if (!result.empty() && result.back().at == entry.at)
      result.back() = entry;
    else if (result.empty() || result.back().value != entry.value)
      result.push_back(entry);
  }
  return from_pieces(result, curve.link);
}

void add(const Profile& profile, const Curve& curve, std::int64_t period, std::int64_t shift, std::int64_t sign,
         std::int64_t perimeter, Profile& out) {
  Cursor cursor(curve, period, shift);
  const auto turns = static_cast<std::size_t>(perimeter / period);
  out.resize(profile.size() + curve.steps.size() * turns + 1);
  Entry* end = out.data();
  const Entry* next = profile.data();
  const Entry* const last = next + profile.size();
  while (true) {
    const std::int64_t stop = std::min(cursor.at(), perimeter);
    const std::int64_t more = sign * cursor.value();
    for (; next != last && next->at < stop; ++next) *end++ = {next->at, next->value + more};
    if (stop == perimeter) break;
    if (next != last && next->at == stop) ++next;
    cursor.next();
    const std::int64_t sum = (next - 1)->value + sign * cursor.value();
    if (end == out.data() || (end - 1)->value != sum) *end++ = {stop, sum};
  }
  out.resize(static_cast<std::size_t>(end - out.data()));
}

Int128 excess(const Profile& profile, std::int64_t capacity, std::int64_t perimeter) {
  Int128 sum = 0;
  for (std::size_t i = 0; i < profile.size(); ++i) {
    const std::int64_t to = i + 1 < profile.size() ? profile[i + 1].at : perimeter;
    sum += static_cast<Int128>(above(profile[i].value, capacity)) * (to - profile[i].at);
  }
  return sum;
}

void Sweep::run(std::span<const Curve> curves, std::span<const Profile> profiles,
                std::span<const std::int64_t> capacities, std::span<const std::int64_t> headroom, std::int64_t period,
                std::int64_t perimeter, std::int64_t turn) {
  if (turn == 0) turn = perimeter;
  period_ = std::gcd(turn, period);
  work_ = 0;
  count_ = 0;
  Int128 level = 0;
  Int128 slope = 0;
  for (const Curve& curve : curves) {
    const Profile& profile = profiles[curve.link];
    const std::int64_t capacity = capacities[curve.link];
    // Computes the excess E at shift 0, and the slope of E just after shift 0.
    Cursor cursor(curve, period, 0);
    const Entry* next = profile.data();
    const Entry* const end = next + profile.size();
    std::int64_t last = 0;
    std::int64_t sum = 0;  // demand from time `last` on
    while (true) {
      const std::int64_t stop = std::min(cursor.at(), perimeter);
      for (; next != end && next->at < stop; ++next) {
        level += static_cast<Int128>(above(sum, capacity)) * (next->at - last);
        last = next->at;
        sum = next->value + cursor.value();
      }
      level += static_cast<Int128>(above(sum, capacity)) * (stop - last);
      last = stop;
      if (stop == perimeter) break;
      if (next != end && next->at == stop) ++next;
      const std::int64_t value = (next - 1)->value;
      slope += above(value + cursor.step().before, capacity) - above(value + cursor.step().after, capacity);
      cursor.next();
      sum = value + cursor.value();
    }
    if (curve.steps.empty()) continue;
    const auto once = std::ranges::partition_point(profile, [=](const Entry& entry) { return entry.at < turn; });
    const std::span<const Entry> repeated(profile.begin(), once);
    work_ += repeated.size() * curve.steps.size();
    find_meetings(curve, repeated, capacity, capacity - headroom[curve.link]);
  }
  sort_events();
  collect_points(level, slope, perimeter / (turn / period_ * period));
}

void Sweep::collect_points(Int128 level, Int128 slope, std::int64_t times) {
  if (points_.size() <= count_) points_.resize(2 * count_ + 1);
  Point* point = points_.data();
  const Event* event = events_.data();
  const Event* const end = event + count_;
  Int128 min = level;  // E at shift 0 equals E at the end of the period
  std::int64_t at = 0;
  while (event != end) {
    const std::int64_t now = event->key >> 1;
    level += slope * (now - at);
    at = now;
    std::int64_t meeting = 0;
    for (; event != end && event->key >> 1 == now; ++event) {
      slope += static_cast<Int128>(event->change) * times;
      meeting |= event->key & 1;
    }
    *point++ = {now, meeting != 0, level, slope};
    min = std::min(min, level);
  }
  if (at < period_) *point++ = {period_, false, level + slope * (period_ - at), slope};
  point_count_ = static_cast<std::size_t>(point - points_.data());
  min_ = min;
}

void Sweep::find_meetings(const Curve& curve, std::span<const Entry> profile, std::int64_t capacity,
                          std::int64_t free) {
  // Steps between the same two levels change the slope equally, so they are grouped.
  alike_ = curve.steps;
  std::ranges::sort(
      alike_, [](const Step& a, const Step& b) { return std::pair(a.before, a.after) < std::pair(b.before, b.after); });
  std::int64_t lowest = curve.steps.front().before;
  for (Step& step : alike_) {
    lowest = std::min(lowest, step.after);
    if (step.at >= period_) step.at %= period_;
  }
  const Step* const end = alike_.data() + alike_.size();
  // Creates an event at a shift in (0, period] for each meeting.
  std::int64_t before = profile.back().value;
  std::int64_t turn = 0;
  for (const Entry& entry : profile) {
    if (entry.at - turn >= period_) turn = entry.at - entry.at % period_;
    const std::int64_t after = entry.value;
    const std::int64_t low = std::min(before, after);
    const std::int64_t high = std::max(before, after);
    if (low == high || low + lowest >= capacity || high + curve.peak <= free) {  // low == high only at time 0
      before = after;
      continue;
    }
    if (events_.size() < count_ + alike_.size()) events_.resize(2 * (count_ + alike_.size()));
    Event* out = events_.data() + count_;
    for (const Step* step = alike_.data(); step != end;) {
      const Step* next = step + 1;
      while (next != end && next->before == step->before && next->after == step->after) ++next;
      const bool up = step->after > step->before;
      const bool opposite = up != (after > before);
      const std::int64_t peak = high + (up ? step->after : step->before);
      std::int64_t change = 0;
      if (peak > capacity)
        change = above(after + step->before, capacity) - above(after + step->after, capacity) -
                 above(before + step->before, capacity) + above(before + step->after, capacity);
      if (low + (up ? step->before : step->after) < capacity && peak > free && (change != 0 || opposite)) {
        for (; step != next; ++step) {
          const std::int64_t at = entry.at - turn - step->at;
          *out++ = {(at + (at <= 0 ? period_ : 0)) * 2 + (opposite ? 1 : 0), change};
        }
      }
      step = next;
    }
    count_ = static_cast<std::size_t>(out - events_.data());
    before = after;
  }
}

void Sweep::sort_events() {
  constexpr std::size_t few = 24;
  constexpr std::uint32_t crowded = 32;
  const auto sort = [](Event* from, Event* to) {
    std::sort(from, to, [](const Event& a, const Event& b) { return a.key < b.key; });
  };
  if (count_ < few) return sort(events_.data(), events_.data() + count_);
  // Bucket sort by the highest bits, with about as many buckets as events. Then each bucket is sorted.
  const int shift = std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(2 * period_ + 1))) -
                                    static_cast<int>(std::bit_width(count_)));
  places_.assign((static_cast<std::size_t>(2 * period_ + 1) >> shift) + 1, 0);
  for (std::size_t i = 0; i < count_; ++i) ++places_[static_cast<std::size_t>(events_[i].key >> shift)];
  std::uint32_t sum = 0;
  bool any_crowded = false;
  for (std::uint32_t& place : places_) {
    any_crowded |= place > crowded;
    sum += std::exchange(place, sum);
  }
  if (sorted_.size() < count_) sorted_.resize(events_.size());
  for (std::size_t i = 0; i < count_; ++i)
    sorted_[places_[static_cast<std::size_t>(events_[i].key >> shift)]++] = events_[i];
  events_.swap(sorted_);
  if (any_crowded) {
    // Each entry of `places_` is now the end of its bucket.
    std::uint32_t begin = 0;
    for (const std::uint32_t end : places_) {
      if (end - begin > crowded) sort(events_.data() + begin, events_.data() + end);
      begin = end;
    }
  }
  for (std::size_t i = 1; i < count_; ++i) {
    const Event event = events_[i];
    std::size_t to = i;
    for (; to > 0 && events_[to - 1].key > event.key; --to) events_[to] = events_[to - 1];
    events_[to] = event;
  }
}

Int128 Sweep::excess_at(std::int64_t shift) const {
  const auto all = points();
  const auto after = std::ranges::partition_point(all, [=](const Point& point) { return point.at <= shift; });
  const Point& from = after == all.begin() ? all.back() : *(after - 1);
  return from.excess + from.slope * (shift - (after == all.begin() ? 0 : from.at));
}

Sweep::Run Sweep::widest_run(Int128 level) const {
  Run widest{0, -1};
  for_each_run(level, [&](const Run& run) {
    if (run.to - run.from > widest.to - widest.from) widest = run;
  });
  return widest;
}

}  // namespace mltcp::scheduler::internal
