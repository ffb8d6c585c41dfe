// Round-trip time estimation (RFC 9002 section 5, RFC 6298).
#pragma once

#include <algorithm>

#include "mltcp/base/units.h"

namespace mltcp::transport {

class RttEstimator {
 public:
  explicit RttEstimator(Nanos initial) : smoothed_(initial), variation_(initial / 2) {}

  /// Upper bound of samples: longer ones are caused by a clock jump or a stopped program, not by a network.
  static constexpr Nanos kLongest{10'000'000'000};

  /// Takes a sample: `rtt`, from sending a packet to its acknowledgement (clamped to 0..longest), and the peer's delay
  /// of that acknowledgement.
  void add(Nanos rtt, Nanos ack_delay) {
    rtt = std::clamp(rtt, Nanos(0), kLongest);
    latest_ = rtt;
    if (!has_sample_) {
      has_sample_ = true;
      minimum_ = smoothed_ = rtt;
      variation_ = rtt / 2;
      return;
    }
    minimum_ = std::min(minimum_, rtt);
    // The peer's delay is subtracted only if at least the minimum RTT remains (RFC 9002 section 5.3).
    const Nanos adjusted = rtt - minimum_ >= ack_delay ? rtt - ack_delay : rtt;
    const Nanos deviation(std::abs(smoothed_.count - adjusted.count));
    variation_ = Nanos((3 * variation_.count + deviation.count) / 4);
    smoothed_ = Nanos((7 * smoothed_.count + adjusted.count) / 8);
  }

  [[nodiscard]] bool has_sample() const { return has_sample_; }
  [[nodiscard]] Nanos latest() const { return latest_; }
  [[nodiscard]] Nanos minimum() const { return minimum_; }
  [[nodiscard]] Nanos smoothed() const { return smoothed_; }
  [[nodiscard]] Nanos variation() const { return variation_; }

  /// Probe timeout before back-off (RFC 9002 section 6.2.1).
  [[nodiscard]] Nanos probe_timeout(Nanos granularity, Nanos max_ack_delay) const {
    return smoothed_ + std::max(variation_ * 4, granularity) + max_ack_delay;
  }
  /// The round trip in which a packet's acknowledgement is expected (RFC 9002 section 6.1.2).
  [[nodiscard]] Nanos longest_lately() const { return std::max(latest_, smoothed_); }
  /// Once a later packet has been acknowledged, a packet counts as lost this long after it was sent (RFC 9002 section
  /// 6.1.2): 9/8 RTT, or more if packets are known to be late by up to `reordering`.
  [[nodiscard]] Nanos loss_delay(Nanos granularity, Nanos reordering = {}) const {
    const Nanos rtt = longest_lately();
    return std::max(rtt + std::max(rtt / 8, reordering), granularity);
  }

 private:
  bool has_sample_ = false;
  Nanos latest_;
  Nanos minimum_;
  Nanos smoothed_;
  Nanos variation_;
};

}  // namespace mltcp::transport
