// Tests DCQCN step by step: alpha, the cut, fast recovery, additive and hyper increase, which notifications count,
// timers and bounds, and which parameters the gain changes. The expected numbers follow from the paper's equations by
// hand.
#include "mltcp/cc/dcqcn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "mltcp/cc/controller.h"
#include "mltcp/cc/registry.h"

namespace mltcp::cc::dcqcn_test {
namespace {

using namespace mltcp::literals;

constexpr double kLine = 40e9;
constexpr double kMbps = 1e6;
constexpr double kG = 1.0 / 256;
// This tolerance is needed because rates are whole bits per second.
constexpr double kRounding = 2;

struct Driver {
  explicit Driver(const Parameters& parameters = default_parameters, double line_rate = kLine)
      : controller(find_algorithm("dcqcn"), PathInfo{.max_packet_bytes = 1000,
                                                     .max_rate = Rate(static_cast<std::uint64_t>(line_rate)),
                                                     .parameters = &parameters}) {}

  Controller controller;
  Nanos now{1'000'000};

  [[nodiscard]] double rate() const { return static_cast<double>(controller.output().pacing_rate.bits_per_second); }
  [[nodiscard]] Nanos timer() const { return controller.output().timer; }

  void ack(Bytes bytes, std::uint32_t marked = 0, double gain = 1.0, double decrease_gain = 1.0) {
    AckSample sample;
    sample.now = now;
    sample.acked_bytes = bytes;
    sample.acked_packets = static_cast<std::uint32_t>(bytes / 1000);
    sample.ce_packets = marked;
    sample.latest_rtt = sample.min_rtt = sample.smoothed_rtt = 20_us;
    sample.gain = gain;
    sample.decrease_gain = decrease_gain;
    controller.on_ack(sample);
  }
  void notify(double gain = 1.0) { ack(1000, 1, gain); }
  /// Calls the timer when it is due.
  void tick() {
    now = timer();
    ASSERT_FALSE(now.is_never());
    controller.on_timer(now);
  }
};

/// only_timer() returns parameters with which only the timer makes steps. With those of only_bytes(), only the byte
/// counter makes steps.
Parameters only_timer() {
  Parameters parameters;
  parameters.edit<Dcqcn>().increase_bytes = 1'000'000'000'000;
  return parameters;
}
Parameters only_bytes() {
  Parameters parameters;
  parameters.edit<Dcqcn>().increase_interval = Nanos(100'000'000'000);
  return parameters;
}

/// Returns the rate after a cut of `before` by alpha / 2 and `halvings` halvings of the distance to `before`.
double recovered(double before, double alpha, int halvings) { return before - before * alpha / 2 / (1 << halvings); }

TEST(Dcqcn, start__at_line_rate_without_a_timer) {
  const Driver flow;
  EXPECT_EQ(flow.rate(), kLine);
  EXPECT_TRUE(flow.timer().is_never());
  EXPECT_TRUE(flow.controller.algorithm().capabilities.needs_ecn);
  EXPECT_TRUE(flow.controller.algorithm().capabilities.needs_timer);
  EXPECT_TRUE(flow.controller.algorithm().capabilities.rate_based);
  EXPECT_TRUE(flow.controller.algorithm().capabilities.timed_increase);
}

TEST(Dcqcn, notification__cuts_by_half_of_alpha_which_then_grows) {
  // Three notifications arrive at the shortest interval, and equation 1 applies after each. Before the fourth
  // notification, two periods K pass (equation 2).
  Driver flow(only_bytes());
  double alpha = 1;
  double rate = kLine;
  for (const Nanos wait : {0_us, 50_us, 50_us, 115_us}) {
    flow.now += wait;
    if (wait == 115_us) alpha *= (1 - kG) * (1 - kG);
    flow.notify();
    rate *= 1 - alpha / 2;
    alpha = (1 - kG) * alpha + kG;
    EXPECT_NEAR(flow.rate(), rate, kRounding);
  }
}

TEST(Dcqcn, alpha__grows_again_with_each_notification) {
  // Alpha decays to 0.01. Then a notification arrives every 50 us, so that alpha does not decay between notifications.
  Driver flow(only_bytes());
  flow.notify();
  double alpha = 1;
  const int periods = 1175;  // alpha is 0.01 after this number of periods
  flow.now += 55_us * periods;
  alpha = std::pow(1 - kG, periods);
  double rate = flow.rate();
  for (int i = 0; i < 20; ++i) {
    flow.notify();
    rate *= 1 - alpha / 2;
    alpha = (1 - kG) * alpha + kG;
    EXPECT_NEAR(flow.rate(), rate, kRounding * (i + 1)) << i;
    flow.now += 50_us;
  }
  EXPECT_GT(alpha, 0.08);
}

TEST(Dcqcn, alpha__falls_by_elapsed_periods_as_step_by_step) {
  for (const std::int64_t wait_ns : {50'000, 54'999, 55'000, 109'999, 110'000, 1'234'567, 55'000'000}) {
    Driver flow(only_bytes());
    flow.notify();
    const double before = flow.rate();
    double alpha = 1;
    for (std::int64_t t = 55'000; t <= wait_ns; t += 55'000) alpha *= 1 - kG;
    flow.now += Nanos(wait_ns);
    flow.notify();
    EXPECT_NEAR(flow.rate(), before * (1 - alpha / 2), kRounding) << wait_ns << " ns";
  }
}

TEST(Dcqcn, notification__at_most_one_per_interval) {
  Driver flow(only_bytes());
  flow.notify();
  const double once = flow.rate();
  flow.now += 49'999_ns;
  flow.notify();
  EXPECT_EQ(flow.rate(), once);
  // The interval N has passed since the first notification. The second notification did not restart N.
  flow.now += 1_ns;
  flow.notify();
  EXPECT_LT(flow.rate(), once);
}

TEST(Dcqcn, idle_restart__begins_a_flow_with_alpha_one_at_the_rate_it_has) {
  Driver again(only_bytes());
  Driver on(only_bytes());
  for (Driver* flow : {&again, &on}) {
    flow->notify();
    flow->now += 100_ms;
  }
  again.controller.on_idle_restart(again.now);
  EXPECT_EQ(again.rate(), kLine / 2);
  again.now += 100_ms;  // alpha does not decay before the first notification
  on.now += 100_ms;
  again.notify();
  on.notify();
  EXPECT_NEAR(again.rate(), kLine / 4, kRounding);
  EXPECT_GT(on.rate(), 0.499 * kLine) << "without it alpha would be next to nothing";
  again.now += 50_us;
  again.notify();
  EXPECT_NEAR(again.rate(), kLine / 8, kRounding) << "and has hardly fallen since";
}

TEST(Dcqcn, notification__sets_the_target_to_the_rate_before_it) {
  Driver flow(only_timer());
  flow.notify();
  flow.now += 50_us;
  const double before = flow.rate();
  flow.notify();
  for (int i = 0; i < 5; ++i) flow.tick();
  EXPECT_NEAR(flow.rate(), recovered(before, 1.0, 5), kRounding);
  EXPECT_LT(flow.rate(), before);
}

TEST(Dcqcn, notification__begins_recovery_anew) {
  Driver flow(only_timer());
  flow.notify();
  for (int i = 0; i < 5; ++i) flow.tick();
  flow.notify();
  // Five periods pass without a notification.
  const double alpha = (1 - kG) * (1 - kG) * (1 - kG) * (1 - kG) * (1 - kG);
  const double before = recovered(kLine, 1.0, 5);
  EXPECT_EQ(flow.timer(), flow.now + 55_us);
  for (int i = 1; i <= 5; ++i) {
    flow.tick();
    EXPECT_NEAR(flow.rate(), recovered(before, alpha, i), kRounding);
  }
}

TEST(Dcqcn, timer__five_halvings_of_the_distance_then_additive_steps) {
  Driver flow(only_timer());
  flow.notify();
  flow.now += 50_us;
  const double target = flow.rate();  // half of the line rate
  flow.notify();
  for (int i = 1; i <= 5; ++i) {
    flow.tick();
    EXPECT_NEAR(flow.rate(), recovered(target, 1.0, i), kRounding) << "step " << i;
  }
  // Steps follow equation 4. There is no hyper increase while the byte counter has not completed fast recovery.
  double rate = recovered(target, 1.0, 5);
  for (int i = 1; i <= 20; ++i) {
    flow.tick();
    rate = (target + i * 40 * kMbps + rate) / 2;
    EXPECT_NEAR(flow.rate(), rate, kRounding) << "additive step " << i;
  }
}

TEST(Dcqcn, byte_counter__makes_the_same_steps) {
  Driver flow(only_bytes());
  flow.notify();
  flow.now += 50_us;
  const double target = flow.rate();
  flow.notify();
  double rate = flow.rate();
  flow.ack(9'998'999);  // the byte counter is now one byte below B, 1000 marked bytes included
  EXPECT_EQ(flow.rate(), rate);
  flow.ack(1);
  for (int i = 1; i <= 5; ++i) {
    EXPECT_NEAR(flow.rate(), recovered(target, 1.0, i), kRounding) << "step " << i;
    rate = flow.rate();
    flow.ack(10'000'000);
  }
  EXPECT_NEAR(flow.rate(), (target + 40 * kMbps + rate) / 2, kRounding);
  rate = flow.rate();
  flow.ack(20'000'000);  // enough bytes for two steps at once
  rate = (target + 80 * kMbps + rate) / 2;
  rate = (target + 120 * kMbps + rate) / 2;
  EXPECT_NEAR(flow.rate(), rate, kRounding);
}

TEST(Dcqcn, hyper_increase__when_both_counters_are_beyond_fast_recovery) {
  Driver flow;
  flow.notify();
  flow.now += 50_us;
  double target = flow.rate();
  flow.notify();
  for (int i = 0; i < 5; ++i) {
    flow.tick();
    flow.ack(10'000'000);
  }
  double rate = flow.rate();
  EXPECT_NEAR(rate, recovered(target, 1.0, 10), kRounding);
  const auto expect_step = [&](double increase) {
    target += increase;
    rate = (target + rate) / 2;
    EXPECT_NEAR(flow.rate(), rate, kRounding);
  };
  flow.tick();
  expect_step(40 * kMbps);
  flow.ack(10'000'000);
  expect_step(200 * kMbps);
  flow.tick();
  expect_step(200 * kMbps);
}

TEST(Dcqcn, gain__scales_both_increases_and_nothing_else) {
  Driver plain;
  Driver twice;
  for (Driver* flow : {&plain, &twice}) {
    const double gain = flow == &twice ? 2.0 : 1.0;
    flow->notify(gain);
    flow->now += 50_us;
    flow->notify(gain);
    for (int i = 0; i < 5; ++i) flow->tick();
  }
  EXPECT_EQ(plain.rate(), twice.rate());  // the gain changes neither cuts nor fast recovery
  for (Driver* flow : {&plain, &twice}) {
    const double gain = flow == &twice ? 2.0 : 1.0;
    double rate = flow->rate();
    double target = kLine / 2;
    const auto step = [&](double increase) {
      target += gain * increase;
      rate = (target + rate) / 2;
    };
    flow->tick();
    step(40 * kMbps);
    EXPECT_NEAR(flow->rate(), rate, kRounding);
    flow->ack(60'000'000, 0, gain);  // six steps of the byte counter, the last of which is a hyper increase
    for (int i = 0; i < 5; ++i) step(40 * kMbps);
    step(200 * kMbps);
    EXPECT_NEAR(flow->rate(), rate, kRounding);
  }
}

TEST(Dcqcn, steps__regain_half_a_link_within_a_quarter_of_the_burst) {
  const auto additive_step = [](Bytes iteration_bytes) {
    Driver flow(only_timer());
    flow.notify();
    flow.now += 50_us;
    flow.notify();
    AckSample sample;
    sample.now = flow.now;
    sample.iteration_bytes = iteration_bytes;
    flow.controller.on_ack(sample);
    for (int i = 0; i < 5; ++i) flow.tick();
    const double recovery = flow.rate();
    flow.tick();
    return 2 * flow.rate() - recovery - kLine / 2;
  };
  constexpr Bytes a_second = 5'000'000'000;
  EXPECT_NEAR(additive_step(0), 40 * kMbps, 10) << "not under MLTCP";
  EXPECT_NEAR(additive_step(a_second), 40 * kMbps, 10) << "a burst that is long enough";
  // The burst takes 100 ms at the line rate. A quarter of this time contains 454.5 timer steps of 55 us.
  EXPECT_NEAR(additive_step(a_second / 10), kLine / 2 / (25e-3 / 55e-6), 10);
  EXPECT_NEAR(additive_step(a_second / 100), kLine / 2 / (2.5e-3 / 55e-6), 10);
  for (const Bytes short_burst : {a_second / 1000, Bytes{100'000}, Bytes{1}})
    EXPECT_NEAR(additive_step(short_burst), 0.02 * kLine, 10) << short_burst;
}

// The first five steps are fast recovery, which does not wait for an acknowledgement.
TEST(Dcqcn, additive_step__waits_for_an_acknowledgement_without_a_mark_under_mltcp) {
  constexpr Bytes a_second = 5'000'000'000;
  for (const Bytes iteration_bytes : {Bytes{0}, a_second}) {
    Driver flow(only_timer());
    flow.notify();
    flow.now += 50_us;
    AckSample marked;
    marked.now = flow.now;
    marked.ce_packets = 1;
    marked.iteration_bytes = iteration_bytes;
    flow.controller.on_ack(marked);
    for (int i = 0; i < 20; ++i) flow.tick();
    if (iteration_bytes == 0) {
      EXPECT_GT(flow.rate(), kLine / 2 + 10 * 40 * kMbps) << "not under MLTCP";
      continue;
    }
    EXPECT_NEAR(flow.rate(), kLine / 2, 1e-4 * kLine) << "recovered, and no more";
    AckSample unmarked = marked;
    unmarked.ce_packets = 0;
    flow.controller.on_ack(unmarked);
    const double before = flow.rate();
    flow.tick();
    EXPECT_GT(flow.rate(), before + 19 * kMbps);
    flow.now += 50_us;
    marked.now = flow.now;
    flow.controller.on_ack(marked);
    const double cut = flow.rate();
    for (int i = 0; i < 20; ++i) flow.tick();
    EXPECT_LT(flow.rate(), before + 41 * kMbps) << "each cut asks for another one";
    EXPECT_GT(flow.rate(), cut);
  }
}

TEST(Dcqcn, additive_step__shrinks_with_the_root_of_the_share_under_mltcp) {
  constexpr Bytes a_tenth_of_a_second = 500'000'000;
  const auto step_at = [](int cuts, double& share) {
    Driver flow(only_timer());
    AckSample sample;
    for (int i = 0; i < cuts; ++i) {
      flow.now += 50_us;
      flow.notify();
    }
    sample.now = flow.now;
    sample.iteration_bytes = a_tenth_of_a_second;
    flow.controller.on_ack(sample);
    for (int i = 0; i < 40 && flow.rate() < kLine; ++i) {
      if (i == 5) share = flow.rate() / kLine;  // the target as a share of the line rate, to within 1/32
      if (i == 5) {
        const double recovery = flow.rate();
        flow.tick();
        return 2 * flow.rate() - recovery;
      }
      flow.tick();
    }
    return 0.0;
  };
  // After c + 1 cuts in a row, the target is 2^-c of the line rate, and the rate is half of the target.
  constexpr double whole = 0.5 / (25e-3 / 55e-6);
  for (int cuts = 2; cuts < 7; ++cuts) {
    double share = 0;
    const double target = std::pow(0.5, cuts - 1);
    const double step = step_at(cuts, share) / kLine - target;
    EXPECT_NEAR(share, target, target / 30) << cuts;
    EXPECT_NEAR(step, std::max(whole * std::sqrt(target / 0.5), 1e-3), 0.02 * whole) << cuts;
  }
}

TEST(Dcqcn, gain__does_not_touch_the_cut_unless_asked_to) {
  for (const double gain : {0.25, 1.0, 2.0}) {
    Driver flow;
    flow.notify(gain);
    EXPECT_EQ(flow.rate(), kLine / 2);
  }
  Driver flow;
  flow.ack(1000, 1, 2.0, 2.0);  // the variant of MLTCP that scales decreases
  EXPECT_EQ(flow.rate(), kLine * 0.75);
}

TEST(Dcqcn, timer__stops_at_line_rate) {
  Driver flow;
  flow.notify();
  int steps = 0;
  while (!flow.timer().is_never()) {
    ASSERT_LT(++steps, 100);
    flow.tick();
    ASSERT_LE(flow.rate(), kLine);
  }
  EXPECT_EQ(flow.rate(), kLine);
  flow.ack(1'000'000'000);
  EXPECT_EQ(flow.rate(), kLine);
  EXPECT_TRUE(flow.timer().is_never());
  // The next notification starts the timer again. Alpha is small at that time.
  flow.now += 100_ms;
  flow.notify();
  EXPECT_LT(flow.rate(), kLine);
  EXPECT_GT(flow.rate(), 0.999 * kLine);
  EXPECT_EQ(flow.timer(), flow.now + 55_us);
}

TEST(Dcqcn, timer__a_late_call_makes_up_for_the_steps_it_missed) {
  Driver on_time(only_timer());
  Driver late(only_timer());
  on_time.notify();
  late.notify();
  for (int i = 0; i < 4; ++i) on_time.tick();
  late.now += 55_us * 4 + 10_us;
  late.controller.on_timer(late.now);
  EXPECT_EQ(late.rate(), on_time.rate());
  EXPECT_EQ(late.timer(), on_time.timer());
}

TEST(Dcqcn, rate__never_below_the_minimum) {
  Driver flow(only_bytes());
  for (int i = 0; i < 100; ++i) {
    flow.notify();
    flow.now += 50_us;
  }
  EXPECT_EQ(flow.rate(), 40 * kMbps);
  Parameters parameters = only_bytes();
  // This minimum is above the line rate, so the line rate limits it.
  parameters.edit<Dcqcn>().min_rate = Rate(1'000'000'000'000);
  Driver slow(parameters);
  slow.notify();
  EXPECT_EQ(slow.rate(), kLine);
}

TEST(Dcqcn, defaults__are_the_papers_at_40_gbps_and_in_proportion_elsewhere) {
  // At 1 Gbps, the defaults are R_AI = 1 Mbps and B = 250 kB. Configured values are used without change.
  const auto additive_step = [](const Parameters& parameters) {
    Driver flow(parameters, 1e9);
    flow.notify();
    flow.ack(1'249'000);  // enough bytes for five steps
    const double rate = flow.rate();
    EXPECT_NEAR(rate, recovered(1e9, 1.0, 5), kRounding);
    flow.now += 50_us;
    flow.notify();
    const double before = rate;
    flow.ack(5 * 250'000 - 1000);
    const double recovery = flow.rate();
    flow.ack(250'000);
    return 2 * flow.rate() - recovery - before;
  };
  EXPECT_NEAR(additive_step(default_parameters), 1e6, 10);
  Parameters parameters;
  parameters.edit<Dcqcn>().additive_increase = Rate(3'000'000);
  EXPECT_NEAR(additive_step(parameters), 3e6, 10);
}

TEST(Dcqcn, loss__is_a_notification_and_a_mark_event_is_none) {
  Driver flow;
  flow.controller.on_congestion({flow.now, CongestionEvent::Cause::ecn, 0});
  EXPECT_EQ(flow.rate(), kLine);
  flow.controller.on_congestion({flow.now, CongestionEvent::Cause::loss, 0});
  EXPECT_EQ(flow.rate(), kLine / 2);
  flow.notify();  // arrives less than the interval N after the previous notification
  EXPECT_EQ(flow.rate(), kLine / 2);
}

TEST(Dcqcn, timeout__falls_to_the_minimum_and_forgets_target_and_alpha) {
  Driver flow(only_timer());
  flow.notify();
  flow.now += 100_ms;
  flow.notify();  // after the long pause, alpha is almost 0
  flow.controller.on_timeout(flow.now);
  EXPECT_EQ(flow.rate(), 40 * kMbps);
  for (int i = 0; i < 5; ++i) flow.tick();
  EXPECT_EQ(flow.rate(), 40 * kMbps);
  flow.tick();
  EXPECT_EQ(flow.rate(), 60 * kMbps);
  for (int i = 0; i < 10; ++i) flow.tick();
  const double before = flow.rate();
  flow.notify();
  // 16 periods K ago, the timeout reset alpha to 1.
  EXPECT_NEAR(flow.rate(), before * (1 - std::pow(1 - kG, 16) / 2), kRounding);
}

TEST(Dcqcn, target__never_above_line_rate) {
  Parameters parameters = only_timer();
  parameters.edit<Dcqcn>().additive_increase = Rate(40'000'000'000);
  Driver flow(parameters);
  flow.notify();
  for (int i = 1; i <= 10; ++i) {
    flow.tick();
    EXPECT_NEAR(flow.rate(), recovered(kLine, 1.0, i), kRounding);
  }
}

TEST(Dcqcn, window__is_two_round_trips_at_the_rate_before_the_cut) {
  Driver flow;
  EXPECT_EQ(flow.controller.output().cwnd_bytes, 10'000);  // the value while no round-trip time is known
  flow.ack(1000);
  EXPECT_NEAR(flow.controller.output().cwnd_bytes, 2 * kLine / 8 * 20e-6, 1);
  flow.notify();
  EXPECT_NEAR(flow.controller.output().cwnd_bytes, 2 * kLine / 8 * 20e-6, 1);
  flow.now += 50_us;
  flow.notify();
  EXPECT_NEAR(flow.controller.output().cwnd_bytes, kLine / 8 * 20e-6, 1);
  flow.controller.on_timeout(flow.now);
  EXPECT_EQ(flow.controller.output().cwnd_bytes, 10'000);
}

}  // namespace
}  // namespace mltcp::cc::dcqcn_test
