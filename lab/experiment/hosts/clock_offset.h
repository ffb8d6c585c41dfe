// Estimates the offset between the clocks of two hosts. Several exchanges are made, each a request and a reply with the
// remote time; the exchange with the shortest round-trip time is used (Cristian, Probabilistic clock synchronization,
// Distributed Computing 1989). The remote time is assigned to the middle of the exchange, so the error is at most half
// the round-trip time. Clocks run at different rates. If there is an estimate before and one after a run, the offset at
// a time between them is therefore interpolated.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mltcp/base/units.h"

namespace mltcp::experiment {

class ClockOffset {
 public:
  /// Adds an exchange: a request sent at `sent` and its reply received at `received`, both on the local clock, and the
  /// time `remote` in the reply. `received` must be at least `sent`.
  void add(Nanos sent, Nanos remote, Nanos received) {
    if (known_ && received - sent >= round_trip_) return;
    known_ = true;
    round_trip_ = received - sent;
    at_ = sent + round_trip_ / 2;
    offset_ = remote - at_;
  }
  [[nodiscard]] bool known() const { return known_; }
  /// Returns the remote time minus the local time, at local time at().
  [[nodiscard]] Nanos offset() const { return offset_; }
  [[nodiscard]] Nanos at() const { return at_; }
  /// Returns the maximum error of offset().
  [[nodiscard]] Nanos uncertainty() const { return round_trip_ / 2; }

 private:
  bool known_ = false;
  Nanos round_trip_;
  Nanos at_;
  Nanos offset_;
};

/// Converts times between the local clock and the remote clock.
class ClockMap {
 public:
  ClockMap() = default;
  explicit ClockMap(const ClockOffset& before) : first_(before), second_(before) {}
  /// Adds the estimate made after the run. From then on, conversions interpolate between the two estimates.
  void add(const ClockOffset& after) { second_ = after; }
  /// Returns how much the remote clock has gained on the local clock between the first estimate and `after`.
  [[nodiscard]] Nanos gained(const ClockOffset& after) const { return after.offset() - first_.offset(); }
  /// Returns whether gained() is plausible. The rates of clocks differ by less than 1 %, unless a clock was set.
  [[nodiscard]] bool believes(const ClockOffset& after) const {
    const Nanos max = slack(after.at()) + after.uncertainty();
    return gained(after) <= max && Nanos() - gained(after) <= max;
  }
  /// Returns the maximum error of a conversion at local time `ours` that uses only the first estimate.
  [[nodiscard]] Nanos slack(Nanos ours) const {
    return first_.uncertainty() + std::max(ours - first_.at(), Nanos()) / 100;
  }

  [[nodiscard]] Nanos to_other(Nanos ours) const { return ours + offset_at(ours); }
  [[nodiscard]] Nanos to_ours(Nanos other) const {
    // The first offset is accurate enough to look up the interpolated offset, because the rates of clocks differ only
    // by parts per million.
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
