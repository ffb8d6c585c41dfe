// Estimates the offset of another host's clock from ours. Of several exchanges (request, answer with the other's time),
// the one with the shortest round trip is used (Cristian, Probabilistic clock synchronization, Distributed Computing
// 1989). The other's time is assigned to the middle of the exchange, so the error is at most half the round trip. With
// two estimates, before and after a run, offsets in between are interpolated, which accounts for different clock rates.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mltcp/base/units.h"

namespace mltcp::experiment {

class ClockOffset {
 public:
  /// An exchange: requested at `sent` on our clock, answered with the other's time `remote`, and received at `received`
  /// on our clock; `received` >= `sent`.
  void add(Nanos sent, Nanos remote, Nanos received) {
    if (known_ && received - sent >= round_trip_) return;
    known_ = true;
    round_trip_ = received - sent;
    at_ = sent + round_trip_ / 2;
    offset_ = remote - at_;
  }
  [[nodiscard]] bool known() const { return known_; }
  /// How far the other clock is ahead of ours, at at() on our clock.
  [[nodiscard]] Nanos offset() const { return offset_; }
  [[nodiscard]] Nanos at() const { return at_; }
  /// Maximum error of offset().
  [[nodiscard]] Nanos uncertainty() const { return round_trip_ / 2; }

 private:
  bool known_ = false;
  Nanos round_trip_;
  Nanos at_;
  Nanos offset_;
};

/// Converts times between our clock and the other's.
class ClockMap {
 public:
  ClockMap() = default;
  explicit ClockMap(const ClockOffset& before) : first_(before), second_(before) {}
  /// Adds a later estimate; from now on, offsets in between are interpolated.
  void add(const ClockOffset& after) { second_ = after; }
  /// How much the other clock has gained on ours between the first estimate and `after`.
  [[nodiscard]] Nanos gained(const ClockOffset& after) const { return after.offset() - first_.offset(); }
  /// Whether gained() is plausible: the rates of clocks differ by less than 1 %, unless a clock was set.
  [[nodiscard]] bool believes(const ClockOffset& after) const {
    const Nanos most = slack(after.at()) + after.uncertainty();
    return gained(after) <= most && Nanos() - gained(after) <= most;
  }
  /// Maximum error of a conversion at `ours` with only the first estimate.
  [[nodiscard]] Nanos slack(Nanos ours) const {
    return first_.uncertainty() + std::max(ours - first_.at(), Nanos()) / 100;
  }

  [[nodiscard]] Nanos to_other(Nanos ours) const { return ours + offset_at(ours); }
  [[nodiscard]] Nanos to_ours(Nanos other) const {
    // The rates of clocks differ by parts per million, so the first offset is good enough to choose the final one.
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
