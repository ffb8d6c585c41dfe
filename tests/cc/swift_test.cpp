// Tests Swift step by step: the increase and the decrease of Algorithm 1, the limit of one decrease per round trip, the
// target's curve, the two windows, losses, the pacing rate, and which values the gain changes. The expected numbers
// follow from the paper's formulas by hand.
#include "mltcp/cc/swift.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "mltcp/cc/controller.h"
#include "mltcp/cc/registry.h"

namespace mltcp::cc::swift_test {
namespace {

using namespace mltcp::literals;

constexpr double kMss = 1000;
constexpr Nanos kFarBelow = 20_us;  // a delay below every target in this file

/// Returns parameters with a target of 100 us for every window.
Parameters flat() {
  Parameters parameters;
  parameters.edit<Swift>().base_target = 100_us;
  parameters.edit<Swift>().per_hop = 0_us;
  parameters.edit<Swift>().flow_scaling = 0_us;
  return parameters;
}

struct Driver {
  explicit Driver(const Parameters& parameters = flat())
      : controller(find_algorithm("swift"),
                   PathInfo{.max_packet_bytes = 1000, .max_rate = {}, .parameters = &parameters}) {}

  Controller controller;
  Nanos now{1'000'000};
  std::uint8_t hops = 0;
  double gain = 1.0;
  double decrease_gain = 1.0;

  /// Returns the exact window in packets, computed from the pacing rate.
  [[nodiscard]] double cwnd() const { return pace() * rtt.seconds() / 8 / kMss; }
  [[nodiscard]] double pace() const { return static_cast<double>(controller.output().pacing_rate.bits_per_second); }

  [[nodiscard]] AckSample sample(double packets, Nanos latest_rtt, Nanos endpoint = Nanos(0)) {
    AckSample ack;
    ack.now = now;
    ack.acked_bytes = static_cast<Bytes>(packets * kMss + 0.5);
    ack.acked_packets = static_cast<std::uint32_t>(packets);
    ack.latest_rtt = latest_rtt;
    ack.smoothed_rtt = rtt;
    ack.endpoint_delay = endpoint;
    ack.hops = hops;
    ack.cwnd_limited = true;
    ack.gain = gain;
    ack.decrease_gain = decrease_gain;
    return ack;
  }
  void ack(double packets, Nanos latest_rtt, Nanos endpoint = Nanos(0)) {
    controller.on_ack(sample(packets, latest_rtt, endpoint));
  }
  void lose() { controller.on_congestion({now, CongestionEvent::Cause::loss, 0, decrease_gain}); }
  /// Returns whether `delay` is above the target. Uses a copy of the flow.
  [[nodiscard]] bool above_target(Nanos delay) const {
    Driver copy = *this;
    copy.now += 1_s;
    const double before = copy.cwnd();
    copy.ack(1e-3, delay);
    return copy.cwnd() < before;
  }
  /// Returns the delay at which decreases begin, in microseconds.
  [[nodiscard]] double target_us() const {
    std::int64_t low = 1;
    std::int64_t high = 1'000'000;
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      // A delay that is 1 ns above the target changes the window by a few millionths, which the pacing rate does not
      // show. A delay that is 200 ns above the target is enough.
      (above_target(Nanos(middle + 200)) ? high : low) = middle;
    }
    return static_cast<double>(high) / 1e3;
  }
  /// Brings the window to `packets` by growth or by losses.
  void window(double packets) {
    ack(1e-3, kFarBelow);
    for (int i = 0; i < 100 && cwnd() > packets; ++i) {
      now += 1_s;
      lose();
    }
    // If the window is one packet or more, each acknowledged packet adds 1 / cwnd to it. If the window is below one
    // packet, each acknowledged packet adds one packet.
    for (int i = 0; i < 100 && std::abs(cwnd() - packets) > 1e-3; ++i)
      ack(cwnd() >= 1 ? (packets - cwnd()) * cwnd() / gain : (packets - cwnd()) / gain, kFarBelow);
    ASSERT_NEAR(cwnd(), packets, 2e-3);
  }

  Nanos rtt = 1_ms;  ///< smoothed round-trip time
};

TEST(Swift, start__opens_ten_packets) {
  const Driver flow;
  EXPECT_EQ(flow.controller.output().cwnd_bytes, 10 * kMss);
  EXPECT_TRUE(flow.controller.output().pacing_rate.is_zero());
  EXPECT_TRUE(flow.controller.output().timer.is_never());
}

TEST(Swift, increase__one_sample_of_a_window_adds_exactly_gain_packets) {
  for (const double gain : {0.25, 1.0, 2.0}) {
    Driver flow;
    flow.gain = gain;
    flow.ack(10, kFarBelow);
    EXPECT_NEAR(flow.cwnd(), 10 + gain, 1e-3) << "gain " << gain;
  }
}

TEST(Swift, increase__additive_increase_packets_per_window) {
  Parameters parameters = flat();
  parameters.edit<Swift>().additive_increase = 0.5;
  Driver flow(parameters);
  for (int i = 0; i < 10; ++i) flow.ack(1, kFarBelow);
  EXPECT_NEAR(flow.cwnd(), 10.5, 0.02);
}

TEST(Swift, increase__below_one_packet_by_what_was_acknowledged) {
  for (const double gain : {0.25, 1.0, 2.0}) {
    Driver flow;
    flow.window(0.1);
    flow.gain = gain;
    flow.ack(0.25, kFarBelow);
    EXPECT_NEAR(flow.cwnd(), 0.1 + 0.25 * gain, 3e-3) << "gain " << gain;
  }
}

TEST(Swift, increase__only_of_a_window_that_was_in_use) {
  Driver flow;
  AckSample ack = flow.sample(10, kFarBelow);
  ack.cwnd_limited = false;
  ack.bytes_in_flight_before = 6'900;
  flow.controller.on_ack(ack);
  EXPECT_NEAR(flow.cwnd(), 10, 1e-3);
  ack.bytes_in_flight_before = 7'000;  // pacing has not yet sent the remaining 3000 bytes of the window
  flow.controller.on_ack(ack);
  EXPECT_NEAR(flow.cwnd(), 11, 1e-3);
  ack.bytes_in_flight_before = 11'000;
  ack.app_limited = true;
  flow.controller.on_ack(ack);
  EXPECT_NEAR(flow.cwnd(), 11, 1e-3);
}

TEST(Swift, decrease__by_the_share_of_the_delay_that_is_above_the_target) {
  // The factor is 1 - 0.8 (delay - 100 us) / delay.
  for (const auto& [delay, factor] : {std::pair{125_us, 0.84}, {160_us, 0.7}, {200_us, 0.6}}) {
    Driver flow;
    flow.ack(10, delay);
    EXPECT_NEAR(flow.cwnd(), 10 * factor, 1e-3) << delay.count;
  }
}

TEST(Swift, decrease__never_more_than_max_decrease) {
  for (const Nanos delay : {300_us, 1_ms, 1_s}) {
    Driver flow;
    flow.ack(10, delay);
    EXPECT_NEAR(flow.cwnd(), 5, 1e-3);
  }
}

TEST(Swift, decrease__at_the_target_nothing_happens) {
  Driver flow;
  flow.ack(10, 100_us);
  EXPECT_NEAR(flow.cwnd(), 10, 1e-3);
}

TEST(Swift, decrease__once_per_round_trip) {
  Driver flow;
  flow.ack(1, 200_us);
  EXPECT_NEAR(flow.cwnd(), 6, 1e-3);
  // These samples come from the queue of the first sample, and do not postpone the next decrease.
  for (int i = 0; i < 4; ++i) {
    flow.now += 49_us;
    flow.ack(1, 200_us);
    EXPECT_NEAR(flow.cwnd(), 6, 1e-3);
  }
  flow.now += 4_us;  // now 200 us have passed since the decrease
  flow.ack(1, 200_us);
  EXPECT_NEAR(flow.cwnd(), 3.6, 1e-3);
}

TEST(Swift, decrease__does_not_keep_the_window_from_growing_within_the_round_trip) {
  Driver flow;
  flow.ack(1, 200_us);
  flow.ack(6, 50_us);
  EXPECT_NEAR(flow.cwnd(), 7, 1e-3);
}

TEST(Swift, decrease__whatever_the_gain_unless_asked_to) {
  for (const double gain : {0.25, 1.0, 2.0}) {
    Driver flow;
    flow.gain = gain;
    flow.ack(10, 200_us);
    EXPECT_NEAR(flow.cwnd(), 6, 1e-3);
  }
  Driver flow;
  flow.decrease_gain = 2;  // the variant of MLTCP that scales decreases
  flow.ack(10, 200_us);
  EXPECT_NEAR(flow.cwnd(), 8, 1e-3);
  flow.now += 1_s;
  flow.lose();
  EXPECT_NEAR(flow.cwnd(), 6, 1e-3);
}

TEST(Swift, target__base_and_hops) {
  Parameters parameters = flat();
  parameters.edit<Swift>().per_hop = 3_us;
  Driver flow(parameters);
  flow.ack(1e-3, kFarBelow);
  EXPECT_NEAR(flow.target_us(), 100, 0.25);
  flow.hops = 5;
  EXPECT_NEAR(flow.target_us(), 115, 0.25);
}

TEST(Swift, target__no_more_hops_count_than_a_path_may_have) {
  for (const std::uint32_t max_hops : {0U, 3U, 5U, 255U}) {
    Parameters parameters = flat();
    parameters.edit<Swift>().per_hop = 3_us;
    parameters.edit<Swift>().max_hops = max_hops;
    Driver flow(parameters);
    flow.ack(1e-3, kFarBelow);
    flow.hops = 255;
    EXPECT_NEAR(flow.target_us(), 100 + 3.0 * max_hops, 1) << max_hops;
  }
  EXPECT_EQ(SwiftParameters().max_hops, 5U) << "what docs/reference/algorithms.md says";
}

TEST(Swift, target__flow_scaling_curve) {
  // The curve is alpha / sqrt(cwnd) + beta with alpha = 100 us / (1 / sqrt(0.1) - 1 / sqrt(100)) and beta = -alpha /
  // sqrt(100).
  Parameters parameters = flat();
  parameters.edit<Swift>().flow_scaling = 100_us;
  const double alpha = 100 / (1 / std::sqrt(0.1) - 0.1);
  for (const auto& [window, addition] : {std::pair{0.05, 100.0},
                                         {0.1, 100.0},
                                         {0.5, alpha / std::sqrt(0.5) - alpha / 10},
                                         {1.0, 0.9 * alpha},
                                         {25.0, 0.1 * alpha},
                                         {100.0, 0.0},
                                         {200.0, 0.0}}) {
    Driver flow(parameters);
    flow.window(window);
    EXPECT_NEAR(flow.target_us(), 100 + addition, window < 1 ? 1 : 0.3) << "window " << window;
  }
}

TEST(Swift, target__with_a_gain_flow_scaling_is_that_of_as_many_flows) {
  Parameters parameters = flat();
  parameters.edit<Swift>().flow_scaling = 100_us;
  Driver one(parameters);
  one.window(8);
  Driver two(parameters);
  two.window(16);
  EXPECT_GT(one.target_us() - two.target_us(), 3);
  two.gain = 2;
  EXPECT_NEAR(one.target_us(), two.target_us(), 0.25);
}

TEST(Swift, target__derived_from_the_smallest_fabric_delay) {
  Parameters parameters = flat();
  parameters.edit<Swift>().base_target = 0_us;
  Driver flow(parameters);
  flow.ack(1e-3, 90_us, 30_us);
  EXPECT_NEAR(flow.target_us(), 131.072, 0.25);  // 120 us rounded up to a power of two in nanoseconds
  flow.ack(1e-3, 33_us);
  EXPECT_NEAR(flow.target_us(), 131.072, 0.25);
  flow.ack(1e-3, 32_us);
  EXPECT_NEAR(flow.target_us(), 65.536, 0.25);
  flow.ack(1e-3, 60_us);
  EXPECT_NEAR(flow.target_us(), 65.536, 0.25);
}

// Two endpoints on one machine may read the clock only once per poll. Their times may then disagree by more than the
// delay of the fabric. A peer may also report a false delay.
TEST(Swift, target__does_not_follow_a_peer_that_says_it_spent_all_of_the_round_trip) {
  Parameters parameters = flat();
  parameters.edit<Swift>().base_target = 0_us;
  for (const bool first : {false, true}) {
    Driver flow(parameters);
    if (!first) flow.ack(1e-3, 90_us, 30_us);
    flow.ack(1e-3, 40_us, 40_us);
    if (first) flow.ack(1e-3, 90_us, 30_us);
    EXPECT_NEAR(flow.target_us(), 131.072, 0.25) << first;
  }
}

TEST(Swift, fabric_delay__is_without_what_the_peer_spent) {
  Driver flow;
  flow.ack(10, 220_us, 125_us);  // the fabric's delay is 95 us
  EXPECT_NEAR(flow.cwnd(), 11, 1e-3);
  flow.ack(11, 250_us, 125_us);
  EXPECT_NEAR(flow.cwnd(), 11 * 0.84, 1e-3);
}

TEST(Swift, endpoint_window__rules_when_the_peer_is_slow) {
  Driver flow;
  flow.ack(10, 320_us, 300_us);  // the endpoint's target is 150 us
  EXPECT_NEAR(flow.cwnd(), 10 * 0.6, 1e-3);
  flow.now += 320_us;
  flow.ack(1, 320_us, 300_us);
  EXPECT_NEAR(flow.cwnd(), 10 * 0.36, 1e-3);
}

TEST(Swift, endpoint_delay__is_smoothed) {
  Driver flow;
  flow.ack(1e-3, kFarBelow);
  flow.ack(1e-3, 1_ms, 990_us);  // the smoothed delay is an eighth of this endpoint delay, which is below the target
  EXPECT_NEAR(flow.cwnd(), 10, 1e-3);
  flow.ack(1e-3, 1_ms, 990_us);
  EXPECT_LT(flow.cwnd(), 9);
}

TEST(Swift, windows__the_one_that_does_not_rule_stays_within_reach) {
  // The fabric is congested for a long time while the endpoint is not. When the endpoint becomes slow, the endpoint
  // window takes effect within two decreases.
  Driver flow;
  flow.window(2);
  for (int i = 0; i < 1000; ++i) {
    flow.now += 1_ms;
    flow.ack(2, i % 2 == 0 ? 200_us : 50_us);
  }
  const double before = flow.cwnd();
  for (int i = 0; i < 3; ++i) {
    flow.now += 100_ms;
    flow.ack(1e-3, 10_ms, 9'980_us);
  }
  EXPECT_LT(flow.cwnd(), before);
}

TEST(Swift, windows__the_one_of_the_fabric_stays_within_reach_too) {
  // For a long time, the peer is as slow as the endpoint target permits, and the fabric is idle. When the fabric
  // becomes congested, the fabric window takes effect within two decreases.
  Driver flow;
  flow.ack(1e-3, 170_us, 150_us);
  for (int i = 0; i < 1000; ++i) flow.ack(10, 170_us, 150_us);
  EXPECT_NEAR(flow.cwnd(), 10, 1e-3);
  for (int i = 0; i < 2; ++i) {
    flow.now += 100_ms;
    flow.ack(1e-3, 10'150_us, 150_us);
  }
  EXPECT_NEAR(flow.cwnd(), 5, 0.1) << "from twice 10";
}

TEST(Swift, loss__takes_max_decrease_once_per_round_trip) {
  Driver flow;
  flow.ack(1e-3, kFarBelow);
  flow.lose();
  EXPECT_NEAR(flow.cwnd(), 5, 1e-3);
  flow.now += kFarBelow - 1_ns;
  flow.lose();
  EXPECT_NEAR(flow.cwnd(), 5, 1e-3);
  flow.now += 1_ns;
  flow.lose();
  EXPECT_NEAR(flow.cwnd(), 2.5, 1e-3);
  flow.ack(1, 200_us);  // this delay has the same cause as the loss
  EXPECT_NEAR(flow.cwnd(), 2.5, 1e-3);
}

TEST(Swift, marks__are_not_looked_at) {
  Driver flow;
  flow.ack(1e-3, kFarBelow);
  flow.controller.on_congestion({flow.now, CongestionEvent::Cause::ecn, 0});
  EXPECT_NEAR(flow.cwnd(), 10, 1e-3);
}

TEST(Swift, timeout__falls_to_the_smallest_window_and_returns) {
  Driver flow;
  flow.ack(1e-3, kFarBelow);
  flow.controller.on_timeout(flow.now);
  EXPECT_NEAR(flow.cwnd(), 0.01, 1e-4);
  EXPECT_NEAR(flow.controller.output().cwnd_bytes, 0.01 * kMss, 1e-6);
  flow.ack(1, kFarBelow);
  EXPECT_NEAR(flow.cwnd(), 1.01, 1e-2);
}

TEST(Swift, window__stays_between_its_bounds) {
  Parameters parameters = flat();
  parameters.edit<Swift>().min_window = 0.5;
  parameters.edit<Swift>().max_window = 12;
  Driver flow(parameters);
  for (int i = 0; i < 10; ++i) flow.ack(10, kFarBelow);
  EXPECT_NEAR(flow.cwnd(), 12, 1e-3);
  for (int i = 0; i < 10; ++i) {
    flow.now += 1_s;
    flow.ack(1, 1_s);
  }
  EXPECT_NEAR(flow.cwnd(), 0.5, 1e-3);
}

TEST(Swift, pace__is_a_round_trip_divided_by_the_window) {
  Driver flow;
  flow.window(0.25);
  EXPECT_NEAR(flow.controller.output().cwnd_bytes, 0.25 * kMss, 3);
  EXPECT_NEAR(flow.pace(), 0.25 * kMss * 8 / 1e-3, 30e3);  // one packet every four round trips
  flow.window(3.5);
  EXPECT_NEAR(flow.pace(), 3.5 * kMss * 8 / 1e-3, 30e3);
  // The congestion window is rounded up to whole packets. The pacing rate prevents that the flow uses all of it.
  EXPECT_EQ(flow.controller.output().cwnd_bytes, 4 * kMss);
}

TEST(Swift, without_a_round_trip_sample__waits) {
  Driver flow;
  flow.ack(10, Nanos(0));
  EXPECT_EQ(flow.controller.output().cwnd_bytes, 10 * kMss);
}

}  // namespace
}  // namespace mltcp::cc::swift_test
