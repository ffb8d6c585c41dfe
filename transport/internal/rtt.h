// Round-trip time estimation (RFC 9002 section 5, RFC 6298).
#pragma once

#include <algorithm>

#include "mltcp/base/units.h"

namespace mltcp::transport {

class RttEstimator {
 public:
  explicit RttEstimator(Nanos initial) : smoothed_(initial), variation_(initial / 2) {}

  /// Upper bound of samples. A longer sample is caused by a clock jump or a stopped program, not by a network.
  static constexpr Nanos kLongest{10'000'000'000};

  /// Adds a sample. `rtt` is the time from sending a packet to its acknowledgement, limited to the range from 0 to
  /// kLongest. `ack_delay` is the time for which the peer delayed the acknowledgement.
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

  /// Returns the probe timeout before back-off (RFC 9002 section 6.2.1).
  [[nodiscard]] Nanos probe_timeout(Nanos granularity, Nanos max_ack_delay) const {
    return smoothed_ + std::max(variation_ * 4, granularity) + max_ack_delay;
  }
  /// Returns the time within which the acknowledgement of a packet is expected (RFC 9002 section 6.1.2).
  [[nodiscard]] Nanos longest_lately() const { return std::max(latest_, smoothed_); }
  /// Returns the time after which a packet counts as lost if a later packet has been acknowledged (RFC 9002 section
  /// 6.1.2). It is measured from when the packet was sent. It is 9/8 of a round trip, or more if packets are known to
  /// be late by up to `reordering`.
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
