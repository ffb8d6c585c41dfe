// Tests NSCC step by step: the four cases of marks and delay, fast increase, QuickAdapt, paths that do not mark, the
// bounds of steps and windows, and which values the gain changes. The expected numbers follow from the formulas of the
// specification by hand. The network is the reference network with a = b = 1, unless a test says otherwise.
#include "mltcp/cc/nscc.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "mltcp/cc/controller.h"
#include "mltcp/cc/registry.h"

namespace mltcp::cc::nscc_test {
namespace {

using namespace mltcp::literals;

constexpr double kMss = 1000;
constexpr Nanos kRtt = 1_ms;  // the smoothed round-trip time

/// Returns parameters of the reference network, without eta.
Parameters reference() {
  Parameters parameters;
  parameters.edit<Nscc>().base_rtt = 12_us;
  parameters.edit<Nscc>().rate = Rate(100'000'000'000);
  parameters.edit<Nscc>().eta = 0;
  return parameters;
}

/// Returns the same with an average delay that nearly equals the latest delay.
Parameters without_memory() {
  Parameters parameters = reference();
  parameters.edit<Nscc>().delay_weight = 1;
  return parameters;
}

struct Driver {
  explicit Driver(const Parameters& parameters = reference(), Rate max_rate = {})
      : controller(find_algorithm("nscc"),
                   PathInfo{.max_packet_bytes = 1000, .max_rate = max_rate, .parameters = &parameters}) {}

  /// Returns the exact window in packets, computed from the pacing rate.
  [[nodiscard]] double cwnd() const {
    return static_cast<double>(controller.output().pacing_rate.bits_per_second) * kRtt.seconds() / 8 / kMss;
  }
  /// Returns a sample of `packets` acknowledged packets, of which `marked` have a mark.
  [[nodiscard]] AckSample sample(double packets, Nanos delay, double marked = 0) const {
    AckSample ack;
    ack.now = now;
    ack.acked_bytes = static_cast<Bytes>(packets * kMss + 0.5);
    ack.acked_packets = static_cast<std::uint32_t>(packets);
    ack.ce_bytes = static_cast<Bytes>(marked * kMss);
    ack.ce_packets = static_cast<std::uint32_t>(marked);
    ack.latest_rtt = base + delay;
    ack.min_rtt = base;
    ack.smoothed_rtt = kRtt;
    ack.bytes_in_flight_before = ack.acked_bytes;
    ack.round_count = round;
    ack.gain = gain;
    ack.decrease_gain = decrease_gain;
    return ack;
  }
  void ack(double packets, Nanos delay, double marked = 0) { controller.on_ack(sample(packets, delay, marked)); }
  void lose(double packets) {
    AckSample ack = sample(0, 0_us);
    ack.lost_bytes = static_cast<Bytes>(packets * kMss + 0.5);
    ack.lost_packets = static_cast<std::uint32_t>(packets);
    controller.on_ack(ack);
  }
  /// Reduces the window to `packets` by losses, of at most 99% each.
  void window(double packets) {
    lose(0);
    for (int i = 0; i < 5; ++i) lose(cwnd() - packets);
    ASSERT_NEAR(cwnd(), packets, 1e-3);
  }
  /// Reports a mark below the target, so that marks are trusted.
  void mark() { ack(1, 0_us, 1); }

  Controller controller;
  Nanos now{1'000'000};
  Nanos base = 12_us;
  std::uint64_t round = 0;
  double gain = 1;
  double decrease_gain = 1;
};

TEST(Nscc, start__opens_one_and_a_half_bandwidth_delay_products) {
  EXPECT_EQ(Driver().controller.output().cwnd_bytes, 225 * kMss);
  EXPECT_TRUE(Driver().controller.output().timer.is_never());
}

TEST(Nscc, start__without_a_base_rtt_it_is_measured_first) {
  Parameters parameters = reference();
  parameters.edit<Nscc>().base_rtt = 0_us;
  Driver flow(parameters);
  EXPECT_EQ(flow.controller.output().cwnd_bytes, 10 * kMss);
  flow.base = 24_us;
  flow.ack(1, 0_us, 1);
  EXPECT_NEAR(flow.cwnd(), 450, 1e-3);
  flow.base = 12_us;
  flow.ack(1, 0_us, 1);
  EXPECT_NEAR(flow.cwnd(), 225, 1e-3);
}

TEST(Nscc, proportional_increase__by_the_unused_share_of_the_target) {
  for (const double gain : {0.25, 1.0, 2.0}) {
    Driver flow;
    flow.window(100);
    flow.gain = gain;
    flow.ack(100, 3_us);
    EXPECT_NEAR(flow.cwnd(), 100 + gain * 4 * 0.75, 1e-3) << "gain " << gain;
  }
}

TEST(Nscc, fair_increase__by_the_same_step_for_any_delay_if_the_path_marks) {
  for (const Nanos delay : {12_us, 40_us})
    for (const double gain : {0.25, 1.0, 2.0}) {
      Driver flow;
      flow.mark();
      flow.window(100);
      flow.gain = gain;
      flow.ack(100, delay);
      EXPECT_NEAR(flow.cwnd(), 100 + gain * 5, 1e-3) << "gain " << gain;
    }
}

TEST(Nscc, decrease__by_the_excess_of_the_average_delay) {
  for (const auto& [delay, factor] : {std::pair{16_us, 0.8}, {24_us, 0.6}, {60_us, 0.5}, {1_s, 0.5}}) {
    Driver flow(without_memory());
    flow.window(100);
    flow.ack(1e6, delay, 1e6);
    EXPECT_NEAR(flow.cwnd(), 100 * factor, 1e-3) << delay.count;
  }
}

TEST(Nscc, decrease__waits_until_the_average_delay_exceeds_the_target) {
  Driver flow;
  flow.window(100);
  flow.ack(50, 24_us, 50);  // the average is 24 us * 0.625 / 1.625 = 9.2 us
  EXPECT_NEAR(flow.cwnd(), 100, 1e-3);
  flow.ack(50, 24_us, 50);  // 14.9 us
  EXPECT_NEAR(flow.cwnd(), 100 * (1 - 0.8 * (14.911 - 12) / 14.911), 1e-2);
}

TEST(Nscc, decrease__once_per_round_trip) {
  Driver flow(without_memory());
  flow.window(100);
  flow.ack(1e6, 24_us, 1e6);
  flow.now += kRtt - 1_ns;
  flow.ack(1e6, 24_us, 1e6);
  EXPECT_NEAR(flow.cwnd(), 60, 1e-3);
  flow.now += 1_ns;
  flow.ack(1e6, 24_us, 1e6);
  EXPECT_NEAR(flow.cwnd(), 36, 1e-3);
}

TEST(Nscc, mark_below_the_target__does_nothing) {
  Driver flow(without_memory());
  flow.window(100);
  flow.ack(100, 11_us, 100);
  EXPECT_NEAR(flow.cwnd(), 100, 1e-3);
}

TEST(Nscc, batch__its_marked_part_and_its_other_part_count_separately) {
  Driver flow;
  flow.window(100);
  flow.ack(100, 3_us, 60);
  EXPECT_NEAR(flow.cwnd(), 100 + 0.4 * 4 * 0.75, 1e-3);
}

TEST(Nscc, average_delay__a_draining_queue_counts_little) {
  Driver flow(without_memory());
  flow.mark();
  flow.window(100);
  flow.ack(1e6, 24_us);
  const double before = flow.cwnd();
  AckSample ack = flow.sample(1, 24_us, 1);
  ack.acked_packets = 0;  // leaves the average unchanged
  flow.controller.on_ack(ack);
  EXPECT_NEAR(flow.cwnd(), before, 1e-3);
}

TEST(Nscc, no_marks__the_delay_alone_counts_from_the_start) {
  Driver flow(without_memory());
  flow.window(100);
  flow.ack(1e6, 24_us);
  EXPECT_NEAR(flow.cwnd(), 60, 1e-3);
}

TEST(Nscc, no_marks__after_a_round_trip_above_the_target_the_delay_alone_counts) {
  Driver flow(without_memory());
  flow.mark();
  flow.window(100);
  flow.round = 5;
  flow.ack(10, 24_us);
  flow.round = 6;
  flow.ack(10, 24_us);
  EXPECT_GT(flow.cwnd(), 100);
  flow.round = 7;
  flow.ack(10, 24_us);
  flow.now += kRtt;
  flow.ack(1e6, 24_us);
  EXPECT_LT(flow.cwnd(), 75);
  flow.mark();
  const double before = flow.cwnd();
  flow.now += kRtt;
  flow.ack(10, 24_us);
  EXPECT_GT(flow.cwnd(), before) << "marks are trusted again";
}

TEST(Nscc, no_marks__a_delay_below_the_target_ends_the_round_trip) {
  Driver flow(without_memory());
  flow.mark();
  flow.window(100);
  for (const Nanos delay : {24_us, 3_us, 24_us}) {
    const double before = flow.cwnd();
    flow.ack(10, delay);
    EXPECT_GT(flow.cwnd(), before);
    ++flow.round;
  }
}

TEST(Nscc, fast_increase__after_a_window_without_a_queue) {
  for (const double gain : {0.25, 1.0, 2.0}) {
    Driver flow;
    flow.window(100);
    flow.gain = gain;
    for (int i = 0; i < 10; ++i) flow.ack(10, 500_ns);
    EXPECT_LT(flow.cwnd(), 100 + 4.1 * gain);
    flow.ack(10, 500_ns);  // with the largest gain, the window has grown in the meantime
    const double before = flow.cwnd();
    flow.ack(20, 500_ns);
    EXPECT_NEAR(flow.cwnd() - before, gain * 0.25 * 20, 1e-3) << "gain " << gain;
  }
}

TEST(Nscc, fast_increase__a_delay_ends_it) {
  Driver flow;
  flow.window(100);
  flow.ack(101, 500_ns);
  EXPECT_NEAR(flow.cwnd(), 125.25, 1e-3);
  flow.ack(10, 1_us);
  const double before = flow.cwnd();
  flow.ack(10, 500_ns);
  EXPECT_LT(flow.cwnd(), before + 1);
}

TEST(Nscc, fast_increase__at_most_doubles_the_window) {
  Parameters parameters = reference();
  parameters.edit<Nscc>().base_rtt = 1_ms;  // a is 83
  Driver flow(parameters);
  flow.base = 1_ms;
  flow.window(100);
  flow.ack(101, 500_ns);
  EXPECT_NEAR(flow.cwnd(), 201, 1e-3);
}

TEST(Nscc, fast_increase__in_a_small_network_gives_way_to_the_faster_proportional_increase) {
  Parameters parameters = reference();
  parameters.edit<Nscc>().rate = Rate(10'000'000'000);  // a is 0.1, and the largest window 22.5 packets
  Driver flow(parameters);
  flow.window(10);
  flow.ack(11, 0_us);
  EXPECT_NEAR(flow.cwnd(), 10 + 0.4 * 1.1, 1e-3);
}

TEST(Nscc, proportional_increase__at_most_a_quarter_of_the_bandwidth_delay_product) {
  Parameters parameters = reference();
  parameters.edit<Nscc>().base_rtt = 1_ms;  // b is 83, the BDP 12500 packets
  Driver flow(parameters);
  flow.base = 1_ms;
  flow.window(12'500);
  flow.ack(12'500, 500_us);
  EXPECT_NEAR(flow.cwnd(), 12'500 * (1 + 0.25 / 2), 1);
}

TEST(Nscc, increase__at_most_a_quarter_of_the_window_or_a_packet) {
  for (const auto& [window, grown] : {std::pair{8.0, 10.0}, {2.0, 3.0}, {0.5, 1.0}}) {
    Driver flow;
    flow.mark();
    flow.window(window);
    flow.ack(window, 40_us);
    flow.now += 12_us;
    flow.ack(1e-3, 11'999_ns);
    EXPECT_NEAR(flow.cwnd(), grown, 1e-2);
  }
}

TEST(Nscc, adjustment__after_eight_packets_or_a_base_round_trip) {
  Driver flow;
  flow.window(100);
  flow.ack(4, 3_us);
  flow.ack(4, 3_us);
  EXPECT_NEAR(flow.cwnd(), 100, 1e-3);
  flow.ack(1, 3_us);
  EXPECT_NEAR(flow.cwnd(), 100 + 0.09 * 3, 1e-3);
  flow.now += 12_us;
  flow.ack(1, 3_us);
  EXPECT_NEAR(flow.cwnd(), 100 + 0.1 * 3, 1e-3);
}

TEST(Nscc, eta__once_per_base_round_trip) {
  for (const double gain : {0.25, 1.0, 2.0}) {
    Parameters parameters = reference();
    parameters.edit<Nscc>().eta = 0.15F;
    Driver flow(parameters);
    flow.window(100);
    flow.gain = gain;
    for (int i = 0; i < 12; ++i) {
      flow.now += 4_us;
      flow.ack(20, 11_us, 20);
    }
    EXPECT_NEAR(flow.cwnd(), 100 + 4 * 0.15 * 2 * gain, 1e-3) << "gain " << gain;
  }
}

TEST(Nscc, loss__takes_the_lost_bytes_from_the_window) {
  Driver flow;
  flow.window(100);
  flow.lose(7);
  EXPECT_NEAR(flow.cwnd(), 93, 1e-3);
  flow.controller.on_congestion({flow.now, CongestionEvent::Cause::loss, 0});
  flow.controller.on_congestion({flow.now, CongestionEvent::Cause::ecn, 0});
  EXPECT_NEAR(flow.cwnd(), 93, 1e-3);
}

TEST(Nscc, decreases__whatever_the_gain_unless_asked_to) {
  for (const double gain : {0.25, 2.0}) {
    Driver flow(without_memory());
    flow.window(100);
    flow.gain = gain;
    flow.ack(1e6, 24_us, 1e6);
    EXPECT_NEAR(flow.cwnd(), 60, 1e-3);
  }
  Driver flow(without_memory());
  flow.window(100);
  flow.decrease_gain = 2;  // the variant of MLTCP that scales decreases
  flow.ack(1e6, 24_us, 1e6);
  EXPECT_NEAR(flow.cwnd(), 80, 1e-3);
  flow.lose(8);
  EXPECT_NEAR(flow.cwnd(), 76, 1e-3);
}

/// Returns a flow in whose first period of QuickAdapt 20 of 225 packets were delivered. The period ends with the next
/// sample.
Driver nearly_stopped(const Parameters& parameters = reference()) {
  Driver flow(parameters);
  flow.ack(1, 11_us, 1);
  flow.now += 10_us;
  flow.ack(20, 11_us, 20);
  flow.now += 15_us;
  return flow;
}

TEST(Nscc, quick_adapt__the_delivered_bytes_become_the_window_and_what_is_in_flight_is_ignored) {
  Driver flow = nearly_stopped();
  AckSample ack = flow.sample(5, 49_us, 5);
  ack.bytes_in_flight_before = 205'000;
  flow.controller.on_ack(ack);
  EXPECT_NEAR(flow.cwnd(), 25, 1e-3);
  flow.now += kRtt;
  flow.ack(100, 49_us, 100);
  flow.lose(50);
  flow.ack(50, 3_us);
  EXPECT_NEAR(flow.cwnd(), 25, 1e-3);
  flow.ack(25, 3_us);
  EXPECT_NEAR(flow.cwnd(), 25 + 3, 1e-3);
}

TEST(Nscc, quick_adapt__a_loss_is_a_reason_too) {
  Driver flow = nearly_stopped();
  AckSample ack = flow.sample(5, 11_us, 5);
  ack.lost_bytes = 1'000;
  ack.lost_packets = 1;
  flow.controller.on_ack(ack);
  EXPECT_NEAR(flow.cwnd(), 25, 1e-3);
}

TEST(Nscc, quick_adapt__not_without_a_reason) {
  Driver flow = nearly_stopped();
  flow.ack(5, 48_us, 5);
  EXPECT_GT(flow.cwnd(), 200) << "four targets";

  flow = nearly_stopped();
  flow.ack(9, 49_us, 9);
  EXPECT_GT(flow.cwnd(), 200) << "an eighth of the window was delivered";

  flow = nearly_stopped();
  AckSample ack = flow.sample(5, 49_us, 5);
  ack.app_limited = true;
  flow.controller.on_ack(ack);
  EXPECT_GT(flow.cwnd(), 200) << "there was not more to send";

  flow = nearly_stopped();
  flow.controller.on_idle_restart(flow.now);
  flow.ack(5, 49_us, 5);
  EXPECT_GT(flow.cwnd(), 200) << "the flow was idle";

  Parameters parameters = reference();
  parameters.edit<Nscc>().quick_adapt = false;
  flow = nearly_stopped(parameters);
  flow.ack(5, 49_us, 5);
  EXPECT_GT(flow.cwnd(), 200) << "switched off";
}

TEST(Nscc, timeout__falls_to_the_smallest_window_and_returns) {
  Driver flow;
  flow.ack(1, 0_us, 1);
  flow.controller.on_timeout(flow.now);
  EXPECT_NEAR(flow.cwnd(), 0.1, 1e-4);
  EXPECT_NEAR(flow.controller.output().cwnd_bytes, 0.1 * kMss, 1e-3);
  flow.now += 12_us;
  flow.ack(1, 3_us);
  EXPECT_NEAR(flow.cwnd(), 1.1, 1e-3);
}

TEST(Nscc, window__stays_between_its_bounds) {
  Parameters parameters = without_memory();
  parameters.edit<Nscc>().min_window = 2;
  parameters.edit<Nscc>().max_window = 1.2F;
  Driver flow(parameters);
  for (int i = 0; i < 100; ++i) flow.ack(100, 3_us);
  EXPECT_NEAR(flow.cwnd(), 180, 1e-3);
  for (int i = 0; i < 20; ++i) {
    flow.now += 1_s;
    flow.ack(1e6, 1_s, 1e6);
  }
  EXPECT_NEAR(flow.cwnd(), 2, 1e-3);
}

TEST(Nscc, window__has_room_for_two_packets_more_than_a_small_bandwidth_delay_product) {
  Parameters parameters = reference();
  parameters.edit<Nscc>().rate = Rate(1'000'000'000);  // the BDP is 1.5 packets
  Driver flow(parameters);
  flow.ack(1, 3_us);
  EXPECT_NEAR(flow.cwnd(), 3.5, 1e-3);
  EXPECT_EQ(flow.controller.output().cwnd_bytes, 4 * kMss) << "whole packets; the pacing rate is exact";
}

TEST(Nscc, target__in_base_round_trip_times) {
  Parameters parameters = without_memory();
  parameters.edit<Nscc>().target = 0.75F;
  Driver flow(parameters);
  flow.window(100);
  flow.ack(100, 4'500_ns);  // half of the target; b is 0.75
  EXPECT_NEAR(flow.cwnd(), 100 + 4 * 0.75 / 2, 1e-3);
  flow.ack(1e6, 10_us, 1e6);
  EXPECT_LT(flow.cwnd(), 100);
}

TEST(Nscc, rate__is_the_connections_if_it_is_not_given) {
  Parameters parameters = reference();
  parameters.edit<Nscc>().rate = Rate();
  EXPECT_EQ(Driver(parameters, Rate(200'000'000'000)).controller.output().cwnd_bytes, 450 * kMss);
  EXPECT_EQ(Driver(reference(), Rate(200'000'000'000)).controller.output().cwnd_bytes, 225 * kMss);
}

TEST(Nscc, without_a_rate__a_window_of_acknowledgements_adds_a_packet) {
  Parameters parameters = reference();
  parameters.edit<Nscc>().rate = Rate();
  for (const double gain : {0.25, 1.0, 2.0}) {
    Driver flow(parameters);
    flow.mark();
    flow.gain = gain;
    flow.ack(10, 3_us);
    EXPECT_NEAR(flow.cwnd(), 10 + gain * 0.75, 1e-3) << "gain " << gain;
  }
  Driver flow(parameters);
  flow.mark();
  flow.ack(10, 40_us);
  EXPECT_NEAR(flow.cwnd(), 10 + 1.25, 1e-3);
}

TEST(Nscc, without_a_round_trip_sample__waits) {
  Driver flow((Parameters()));
  AckSample ack = flow.sample(10, 0_us);
  ack.latest_rtt = ack.min_rtt = 0_us;
  flow.controller.on_ack(ack);
  EXPECT_EQ(flow.controller.output().cwnd_bytes, 10 * kMss);
}

TEST(Nscc, fit__sets_what_is_not_given) {
  Parameters parameters;
  parameters.edit<Nscc>().base_rtt = 50_us;
  parameters.fit({.unloaded_round_trip = 30_us, .rate = Rate(1'000'000'000)});
  EXPECT_EQ(parameters.of<Nscc>().base_rtt, 50_us);
  EXPECT_EQ(parameters.of<Nscc>().rate, Rate(1'000'000'000));
  for (const auto& [unloaded, base] : {std::pair{30_us, 30_us}, {12_us, 20_us}}) {
    Parameters fitted;
    fitted.fit({.unloaded_round_trip = unloaded, .rate = Rate(1'000'000'000)});
    EXPECT_EQ(fitted.of<Nscc>().base_rtt, base);
  }
}

}  // namespace
}  // namespace mltcp::cc::nscc_test
