// Learns how far packets of a path overtake each other, from packets that arrive after they were declared lost. Follows
// RACK (RFC 8985 section 6.2), which learns from duplicates that the receiver reports.
//
// Until a loss has proved spurious, the thresholds are those of RFC 9002 section 6.1. From then on, each packet that
// arrives after a later one is measured, whether or not it was declared lost. Its lateness is measured in packets, and
// in time beyond the round trip. A packet then counts as lost only if its lateness exceeds the largest lateness seen so
// far. Beyond `kMaxPackets` the number of packets is ignored and only time counts, as in RFC 8985. A lateness is
// forgotten one to two periods after it was last seen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "mltcp/base/units.h"

namespace mltcp::transport {

class Reordering {
 public:
  static constexpr std::uint32_t kFirstThreshold = 3;  ///< packet threshold of RFC 9002 section 6.1.1
  static constexpr std::uint32_t kMaxPackets = 63;
  static constexpr std::uint32_t kNoThreshold = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kPeriod = 256;  ///< length of a period in round trips

  /// `checked`: whether the peer is not trusted (ConnectionConfig::check_peer).
  explicit constexpr Reordering(bool checked) : is_checked_(checked) {}

  [[nodiscard]] bool is_checked() const { return is_checked_; }

  /// Returns the maximum lateness to wait for. Loss detection is delayed by this time. For a trusted peer the maximum
  /// is two round trips, but at least 10 ms, because the causes of single late packets (another path, a queue in a
  /// host) do not shrink with the round trip. For a peer that is not trusted (is_checked()) the maximum is one round
  /// trip, as in RFC 8985, because such a peer can make packets late at will. The maximum is never above 2 s.
  [[nodiscard]] constexpr Nanos longest(Nanos smoothed_rtt) const {
    if (is_checked_) return std::clamp(smoothed_rtt, Nanos(1'000), Nanos(2'000'000'000));
    return std::clamp(smoothed_rtt * 2, Nanos(10'000'000), Nanos(2'000'000'000));
  }

  /// Returns whether reordering has been seen and is not forgotten.
  [[nodiscard]] bool seen() const { return seen_; }
  /// Returns the packet threshold. A packet is lost if a packet that was sent this many packets later has been
  /// acknowledged.
  [[nodiscard]] std::uint32_t packet_threshold() const { return packet_threshold_; }
  /// Returns the time threshold; 0 if unknown. A packet is also lost if it is not acknowledged within a round trip plus
  /// this time after it was sent.
  [[nodiscard]] Nanos window() const { return window_; }

  /// Records that a packet was acknowledged after a packet that was sent `packets` packets later. `late` is the time of
  /// the acknowledgement beyond a round trip; it is negative within a round trip. `round` counts round trips.
  void on_late(std::uint64_t packets, Nanos late, std::uint64_t round, Nanos smoothed_rtt) {
    if (!seen_) {
      seen_ = true;
      period_begin_ = static_cast<std::uint32_t>(round);
    }
    const auto by = static_cast<std::uint8_t>(std::min<std::uint64_t>(packets, kMaxPackets + 1));
    const auto time = static_cast<std::uint32_t>(std::clamp(late, Nanos(0), longest(smoothed_rtt)).count);
    if (by <= packets_ && time <= time_) return;
    packets_ = std::max(packets_, by);
    time_ = std::max(time_, time);
    apply(smoothed_rtt);
  }
  /// Begins a new period if the current one has ended. Call this function once per round trip while seen().
  void on_round(std::uint64_t round, Nanos smoothed_rtt) {
    if (static_cast<std::uint32_t>(round) - period_begin_ < kPeriod) return;
    period_begin_ = static_cast<std::uint32_t>(round);
    packets_before_ = std::exchange(packets_, std::uint8_t{0});
    time_before_ = std::exchange(time_, 0U);
    seen_ = packets_before_ > 0;
    apply(smoothed_rtt);
  }

 private:
  void apply(Nanos smoothed_rtt) {
    const std::uint32_t packets = std::max(packets_, packets_before_);
    packet_threshold_ = packets > kMaxPackets ? kNoThreshold : std::max(kFirstThreshold, packets + 1);
    // An eighth more than the largest lateness seen. RFC 9002 adds an eighth to the round trip in the same way.
    const Nanos time(std::max(time_, time_before_));
    window_ = std::min(time + time / 8, longest(smoothed_rtt));
  }

  Nanos window_;
  std::uint32_t packet_threshold_ = kFirstThreshold;
  std::uint32_t period_begin_ = 0;
  // The largest lateness in this period and in the previous period. Times are in nanoseconds.
  std::uint32_t time_ = 0;
  std::uint32_t time_before_ = 0;
  std::uint8_t packets_ = 0;
  std::uint8_t packets_before_ = 0;
  bool seen_ = false;
  bool is_checked_;
};

static_assert(sizeof(Reordering) == 32);

}  // namespace mltcp::transport
