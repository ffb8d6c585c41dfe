// Tests Reno event by event: growth per window of acknowledgements, decrease, undo, restart, and which values the gain
// changes.
#include "mltcp/cc/reno.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "mltcp/cc/controller.h"
#include "mltcp/cc/registry.h"

namespace mltcp::cc::reno_test {
namespace {

constexpr double kMss = 1000;

struct Driver {
  Controller controller{find_algorithm("reno"), PathInfo{.max_packet_bytes = 1000, .max_rate = {}}};

  [[nodiscard]] double cwnd() const { return controller.output().cwnd_bytes; }

  static AckSample sample(Bytes bytes, double gain = 1.0) {
    AckSample ack;
    ack.now = Nanos(1'000'000);
    ack.acked_bytes = bytes;
    ack.acked_packets = static_cast<std::uint32_t>(bytes / 1000);
    ack.smoothed_rtt = ack.min_rtt = ack.latest_rtt = Nanos(1'000'000);
    ack.cwnd_limited = true;
    ack.gain = gain;
    return ack;
  }
  void ack(Bytes bytes, double gain = 1.0) { controller.on_ack(sample(bytes, gain)); }
  void lose(CongestionEvent::Cause cause = CongestionEvent::Cause::loss) {
    controller.on_congestion({Nanos(2'000'000), cause, 0});
  }
  /// Begins congestion avoidance with a window of `packets`.
  void avoid_at(double packets) {
    while (cwnd() < 16 * packets * kMss) ack(static_cast<Bytes>(16 * packets * kMss - cwnd()));
    for (int i = 0; i < 4; ++i) lose();
    ASSERT_DOUBLE_EQ(cwnd(), packets * kMss);
  }
};

TEST(Reno, start__opens_ten_packets) {
  const Driver reno;
  EXPECT_DOUBLE_EQ(reno.cwnd(), 10 * kMss);
  EXPECT_TRUE(reno.controller.output().pacing_rate.is_zero());
  EXPECT_TRUE(reno.controller.output().timer.is_never());
}

TEST(Reno, slow_start__adds_what_was_acknowledged) {
  Driver reno;
  for (int round = 0; round < 4; ++round) {
    const double before = reno.cwnd();
    for (double acked = 0; acked < before; acked += kMss) reno.ack(1000);
    EXPECT_DOUBLE_EQ(reno.cwnd(), 2 * before);
  }
}

TEST(Reno, slow_start__is_not_scaled_by_the_gain) {
  for (const double gain : {0.25, 1.0, 2.0}) {
    Driver reno;
    reno.ack(5000, gain);
    EXPECT_DOUBLE_EQ(reno.cwnd(), 15 * kMss) << "gain " << gain;
  }
}

TEST(Reno, slow_start__ends_at_the_threshold_and_the_rest_counts_for_avoidance) {
  Driver reno;
  reno.avoid_at(20);
  reno.lose();
  reno.controller.on_timeout(Nanos(3'000'000));
  ASSERT_DOUBLE_EQ(reno.cwnd(), 2 * kMss);
  // The slow-start threshold is 10 packets and the window is 2 packets. The first 8 packets raise the window to the
  // threshold. The next 10 packets are one window of congestion avoidance.
  reno.ack(18'000);
  EXPECT_NEAR(reno.cwnd(), 11 * kMss, 1e-6);
}

TEST(Reno, avoidance__one_sample_of_a_window_adds_exactly_gain_packets) {
  for (const double gain : {0.25, 1.0, 2.0}) {
    Driver reno;
    reno.avoid_at(40);
    reno.ack(40'000, gain);
    EXPECT_DOUBLE_EQ(reno.cwnd(), (40 + gain) * kMss) << "gain " << gain;
  }
}

TEST(Reno, avoidance__a_window_packet_by_packet_adds_gain_packets) {
  for (const double gain : {0.25, 1.0, 2.0}) {
    Driver reno;
    reno.avoid_at(40);
    for (int i = 0; i < 40; ++i) reno.ack(1000, gain);
    // Each acknowledged packet adds gain / window. The window grows during the round, so the total growth is a little
    // less than the gain.
    EXPECT_LE(reno.cwnd(), (40 + gain) * kMss);
    EXPECT_GE(reno.cwnd(), (40 + gain * 0.95) * kMss) << "gain " << gain;
  }
}

TEST(Reno, avoidance__a_gain_of_zero_stands_still) {
  Driver reno;
  reno.avoid_at(40);
  reno.ack(40'000, 0.0);
  EXPECT_DOUBLE_EQ(reno.cwnd(), 40 * kMss);
}

TEST(Reno, avoidance__grows_in_steps_below_a_byte) {
  // With a window of 10^6 packets, each acknowledged packet adds a fraction of a byte, which must not be rounded away.
  Driver reno;
  reno.avoid_at(1e6);
  for (int i = 0; i < 1'000'000; ++i) reno.ack(1000, 0.25);
  EXPECT_NEAR(reno.cwnd(), (1e6 + 0.25) * kMss, 0.001 * kMss);
}

TEST(Reno, growth__only_when_the_window_was_the_limit) {
  Driver reno;
  AckSample ack = Driver::sample(5000);
  ack.cwnd_limited = false;
  reno.controller.on_ack(ack);
  EXPECT_DOUBLE_EQ(reno.cwnd(), 10 * kMss);
  reno.avoid_at(40);
  reno.controller.on_ack(ack);
  EXPECT_DOUBLE_EQ(reno.cwnd(), 40 * kMss);
}

TEST(Reno, growth__not_in_recovery) {
  Driver reno;
  reno.avoid_at(40);
  AckSample ack = Driver::sample(5000);
  ack.in_recovery = true;
  reno.controller.on_ack(ack);
  EXPECT_DOUBLE_EQ(reno.cwnd(), 40 * kMss);
}

TEST(Reno, congestion__halves_for_loss_and_ecn_whatever_the_gain_was) {
  for (const auto cause : {CongestionEvent::Cause::loss, CongestionEvent::Cause::ecn})
    for (const double gain : {0.25, 1.0, 2.0}) {
      Driver reno;
      reno.avoid_at(40);
      reno.ack(40'000, gain);
      const double before = reno.cwnd();
      reno.lose(cause);
      EXPECT_DOUBLE_EQ(reno.cwnd(), before / 2);
    }
}

TEST(Reno, congestion__never_below_two_packets) {
  Driver reno;
  for (int i = 0; i < 20; ++i) reno.lose();
  EXPECT_DOUBLE_EQ(reno.cwnd(), 2 * kMss);
}

TEST(Reno, congestion__leaves_slow_start) {
  Driver reno;
  reno.lose();
  ASSERT_DOUBLE_EQ(reno.cwnd(), 5 * kMss);
  reno.ack(5000);
  EXPECT_DOUBLE_EQ(reno.cwnd(), 6 * kMss);
}

TEST(Reno, timeout__falls_to_the_minimum_and_slow_starts_to_half) {
  Driver reno;
  reno.avoid_at(40);
  reno.lose();  // the transport reports the loss before the timeout, but the window is halved only once
  reno.controller.on_timeout(Nanos(3'000'000));
  EXPECT_DOUBLE_EQ(reno.cwnd(), 2 * kMss);
  reno.ack(2000);
  EXPECT_DOUBLE_EQ(reno.cwnd(), 4 * kMss);
  reno.ack(16'000);
  EXPECT_DOUBLE_EQ(reno.cwnd(), 20 * kMss);
  reno.ack(20'000);
  EXPECT_DOUBLE_EQ(reno.cwnd(), 21 * kMss);
}

TEST(Reno, undo__restores_window_and_threshold) {
  Driver reno;
  reno.ack(30'000);
  ASSERT_DOUBLE_EQ(reno.cwnd(), 40 * kMss);
  reno.lose();
  reno.controller.on_spurious_congestion(Nanos(3'000'000));
  EXPECT_DOUBLE_EQ(reno.cwnd(), 40 * kMss);
  reno.ack(10'000);  // continues in slow start, as if there had been no loss
  EXPECT_DOUBLE_EQ(reno.cwnd(), 50 * kMss);
}

TEST(Reno, undo__keeps_what_has_grown_since) {
  Driver reno;
  reno.avoid_at(4);
  reno.lose();
  ASSERT_DOUBLE_EQ(reno.cwnd(), 2 * kMss);
  for (int i = 0; i < 10; ++i) reno.ack(static_cast<Bytes>(reno.cwnd()));
  const double grown = reno.cwnd();
  ASSERT_GT(grown, 4 * kMss);
  reno.controller.on_spurious_congestion(Nanos(3'000'000));
  EXPECT_DOUBLE_EQ(reno.cwnd(), grown);
}

TEST(Reno, idle_restart__returns_to_the_initial_window_and_remembers_three_quarters) {
  Driver reno;
  reno.avoid_at(40);
  reno.controller.on_idle_restart(Nanos(3'000'000));
  EXPECT_DOUBLE_EQ(reno.cwnd(), 10 * kMss);
  reno.ack(30'000);  // slow start up to the threshold, which is the window after the last decrease
  EXPECT_DOUBLE_EQ(reno.cwnd(), 40 * kMss);
  reno.ack(40'000);
  EXPECT_DOUBLE_EQ(reno.cwnd(), 41 * kMss);
}

TEST(Reno, idle_restart__does_not_raise_a_small_window) {
  Driver reno;
  reno.avoid_at(4);
  reno.controller.on_idle_restart(Nanos(3'000'000));
  EXPECT_DOUBLE_EQ(reno.cwnd(), 4 * kMss);
}

TEST(Reno, pacing__is_the_window_per_round_trip_and_a_quarter_more_or_twice_in_slow_start) {
  Driver reno;
  reno.ack(10'000);
  EXPECT_NEAR(static_cast<double>(reno.controller.output().pacing_rate.bits_per_second), 2 * reno.cwnd() * 8 / 1e-3,
              8000);
  reno.avoid_at(40);
  reno.ack(40'000);
  EXPECT_NEAR(static_cast<double>(reno.controller.output().pacing_rate.bits_per_second), 1.25 * reno.cwnd() * 8 / 1e-3,
              8000);
}

TEST(Reno, pacing__fits_its_type_whatever_the_weight_makes_of_the_window) {
  Driver reno;
  reno.avoid_at(40);
  reno.ack(40'000, 1e15);
  EXPECT_EQ(reno.controller.output().pacing_rate, Rate(1'000'000'000'000'000'000));
}

TEST(Reno, counts__a_sample_of_more_than_4_GiB) {
  Driver reno;
  reno.ack(5'000'000'000);
  EXPECT_DOUBLE_EQ(reno.cwnd(), 5'000'010'000.0);
}

}  // namespace
}  // namespace mltcp::cc::reno_test
