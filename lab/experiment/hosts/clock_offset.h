// How far the clock of another host is from ours: of several exchanges (ask, its time, answer) the one with the least
// round trip says most (Cristian, Probabilistic clock synchronization, Distributed Computing 1989). The other's time
// belongs to the middle of the exchange, and half the round trip is how wrong that can be. Two such estimates, before
// and after, also say how much faster the other clock runs: in between, offsets are interpolated.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mltcp/base/units.h"

namespace mltcp::experiment {

class ClockOffset {
 public:
  /// An exchange: asked at `sent` of our clock, answered with `remote` of the other's, here at `received`, not before.
  void add(Nanos sent, Nanos remote, Nanos received) {
    if (known_ && received - sent >= round_trip_) return;
    known_ = true;
    round_trip_ = received - sent;
    at_ = sent + round_trip_ / 2;
    offset_ = remote - at_;
  }
  [[nodiscard]] bool known() const { return known_; }
  /// What the other clock is ahead of ours, at the time at() of ours.
  [[nodiscard]] Nanos offset() const { return offset_; }
  [[nodiscard]] Nanos at() const { return at_; }
  /// The offset is that right, or better.
  [[nodiscard]] Nanos uncertainty() const { return round_trip_ / 2; }

 private:
  bool known_ = false;
  Nanos round_trip_;
  Nanos at_;
  Nanos offset_;
};

/// Translates between our time and the other's.
class ClockMap {
 public:
  ClockMap() = default;
  explicit ClockMap(const ClockOffset& before) : first_(before), second_(before) {}
  /// A later estimate: times in between are interpolated from now on.
  void add(const ClockOffset& after) { second_ = after; }
  /// What the other clock has gained on ours from the first estimate to `after`.
  [[nodiscard]] Nanos gained(const ClockOffset& after) const { return after.offset() - first_.offset(); }
  /// Whether that may be: machines' clocks differ by less than one part in a hundred, unless somebody sets them.
  [[nodiscard]] bool believes(const ClockOffset& after) const {
    const Nanos most = slack(after.at()) + after.uncertainty();
    return gained(after) <= most && Nanos() - gained(after) <= most;
  }
  /// How wrong a time of the other's may be at `ours` by the first estimate alone.
  [[nodiscard]] Nanos slack(Nanos ours) const {
    return first_.uncertainty() + std::max(ours - first_.at(), Nanos()) / 100;
  }

  [[nodiscard]] Nanos to_other(Nanos ours) const { return ours + offset_at(ours); }
  [[nodiscard]] Nanos to_ours(Nanos other) const {
    // Clocks differ by parts in a million: the first guess is near enough to ask for the offset with.
    return other - offset_at(other - first_.offset());
  }
  [[nodiscard]] Nanos uncertainty() const { return std::max(first_.uncertainty(), second_.uncertainty()); }

 private:
  [[nodiscard]] Nanos offset_at(Nanos ours) const {
    const Nanos span = second_.at() - first_.at();
    if (span.count <= 0) return first_.offset();
    const double share = static_cast<double>((ours - first_.at()).count) / static_cast<double>(span.count);
    return first_.offset() +
           Nanos(static_cast<std::int64_t>(static_cast<double>((second_.offset() - first_.offset()).count) * share));
  }
  ClockOffset first_;
  ClockOffset second_;
};

}  // namespace mltcp::experiment
