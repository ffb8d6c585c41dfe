// Tests CUBIC against the equations of RFC 9438, which this file computes independently. Covers the curve and its flat
// point, the Reno-friendly region, decreases, fast convergence, timeouts, undo, idle time, HyStart++ (RFC 9406), and
// the effect of a gain.
#include "mltcp/cc/cubic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "mltcp/cc/controller.h"
#include "mltcp/cc/reno.h"

namespace mltcp::cc::cubic_test {
namespace {

constexpr double kMss = 1000;
constexpr double kAlpha = 3 * 0.3 / 1.7;  // alpha of RFC 9438 section 4.3 for beta = 0.7

/// The curve of RFC 9438 section 4.2, figures 1 and 2, in packets and seconds.
struct Curve {
  long double w_max;
  long double k;
  Curve(double maximum, double begin)
      : w_max(static_cast<long double>(maximum)), k(std::cbrt((w_max - static_cast<long double>(begin)) / 0.4L)) {}
  [[nodiscard]] double at(double t) const {
    const long double d = static_cast<long double>(t) - k;
    return static_cast<double>(0.4L * d * d * d + w_max);
  }
};

/// A CUBIC controller whose events the test sets. Windows are in packets, times in seconds.
struct Driver {
  explicit Driver(double round_trip, const CubicParameters& cubic_parameters = {}) : rtt(round_trip) {
    Parameters parameters;
    parameters.edit<Cubic>() = cubic_parameters;
    cubic.start({.max_packet_bytes = 1000, .max_rate = {}, .parameters = &parameters}, out);
  }

  [[nodiscard]] double window() const { return out.cwnd_bytes / kMss; }

  [[nodiscard]] AckSample sample(double packets, double passed) {
    now += Nanos::from_seconds(passed);
    AckSample ack;
    ack.now = now;
    ack.acked_bytes = static_cast<Bytes>(std::llround(packets * kMss));
    ack.acked_packets = static_cast<std::uint32_t>(packets);
    ack.smoothed_rtt = ack.min_rtt = ack.latest_rtt = Nanos::from_seconds(rtt);
    ack.round_count = round;
    ack.cwnd_limited = true;
    ack.gain = gain;
    return ack;
  }
  void ack(double packets, double passed = 0) { cubic.on_ack(sample(packets, passed), out); }
  /// Acknowledges one window per round trip for `seconds`. Each window is divided into a hundred acknowledgements.
  void run(double seconds, bool cwnd_limited = true, bool in_recovery = false) {
    const double step = rtt / 100;
    for (long i = std::lround(seconds / step); i > 0; --i) {
      AckSample ack = sample(window() / 100, step);
      ack.cwnd_limited = cwnd_limited;
      ack.in_recovery = in_recovery;
      cubic.on_ack(ack, out);
    }
  }
  void lose(CongestionEvent::Cause cause = CongestionEvent::Cause::loss, double decrease_gain = 1.0) {
    cubic.on_congestion({now, cause, 0, decrease_gain}, out);
  }
  /// Lets the window grow to `packets` in slow start.
  void open(double packets) {
    ack(packets - window());
    ASSERT_DOUBLE_EQ(window(), packets);
  }
  /// Decreases the window once from `packets`, and begins congestion avoidance at t = 0.
  void avoid_from(double packets) {
    open(packets);
    lose();
    ack(0.001, rtt);
  }

  /// Simulates a round that acknowledges `packets` and measures `samples` round-trip times of `round_trip` seconds.
  void hystart_round(double round_trip, int samples, double packets) {
    ++round;
    rtt = round_trip;
    for (int i = 0; i < samples; ++i) ack(packets / samples, round_trip / samples);
  }

  Cubic cubic;
  Output out;
  Nanos now;
  double rtt;
  double gain = 1;
  std::uint64_t round = 0;
};

TEST(Cubic, start__opens_ten_packets_and_slow_start_adds_what_was_acknowledged) {
  Driver d(0.1);
  EXPECT_DOUBLE_EQ(d.window(), 10);
  d.ack(10);
  EXPECT_DOUBLE_EQ(d.window(), 20);
}

TEST(Cubic, curve__is_followed_through_both_regions) {
  // With a window of 2000 packets and a round trip of 100 ms, K is 11.4 s. The Reno-friendly window stays far below the
  // curve until long after K.
  Driver d(0.1);
  d.avoid_from(2000);
  const Curve curve(2000, 1400);
  ASSERT_NEAR(static_cast<double>(curve.k), 11.447, 0.001);
  double t = 0;
  for (const double next : {0.5, 2.0, 5.0, 8.0, 11.4, 15.0, 20.0}) {
    d.run(next - t);
    t = next;
    // Each step takes one round trip, and its target is the curve one round trip ahead. The window therefore differs
    // from the curve only by terms of second order.
    EXPECT_NEAR(d.window(), curve.at(t), 0.5) << "t = " << t;
  }
}

TEST(Cubic, curve__is_flat_at_the_old_maximum_after_k) {
  Driver d(0.1);
  d.avoid_from(2000);
  d.run(std::cbrt(2000 * 0.3 / 0.4));
  EXPECT_NEAR(d.window(), 2000, 0.1);
  const double before = d.window();
  d.run(0.5);
  EXPECT_NEAR(d.window(), before, 0.2);
}

TEST(Cubic, curve__one_acknowledgement_goes_its_share_of_the_way_to_the_target) {
  // By RFC 9438 section 4.4, each packet adds (target - cwnd) / cwnd. The target is the curve one round trip from now.
  Driver d(0.1);
  d.avoid_from(2000);
  d.run(3);
  const double before = d.window();
  d.ack(5, 0.002);
  const double target = Curve(2000, 1400).at(3.002 + 0.1);
  EXPECT_NEAR(d.window(), before + (target - before) * 5 / before, 1e-4);
}

TEST(Cubic, curve__takes_its_constants_from_the_parameters) {
  Driver d(0.1, {.c = 0.8, .beta = 0.5});
  d.avoid_from(2000);
  EXPECT_NEAR(d.window(), 1000, 0.1);
  const double k = std::cbrt(1000 / 0.8);
  d.run(4);
  EXPECT_NEAR(d.window(), 2000 + 0.8 * std::pow(4 - k, 3), 0.5);
}

TEST(Cubic, target__is_at_most_half_above_the_window) {
  Driver d(0.1);
  d.avoid_from(2000);
  d.run(3);
  d.rtt = 40;  // within a round trip of 40 s, the curve rises far above the window
  double before = d.window();
  d.ack(before / 2, 0.001);
  EXPECT_NEAR(d.window(), 1.25 * before, 0.01);
  before = d.window();
  d.ack(3 * before, 0.001);  // acknowledging more than one window has no further effect
  EXPECT_NEAR(d.window(), 1.5 * before, 0.01);
}

TEST(Cubic, target__is_not_below_the_window) {
  Driver d(0.1);
  d.avoid_from(2000);
  d.run(3);
  d.rtt = 40;
  d.ack(d.window() / 2, 0.001);
  const double before = d.window();
  ASSERT_GT(before, 2000);
  d.rtt = 0.1;
  d.ack(1, 0.001);
  EXPECT_DOUBLE_EQ(d.window(), before);
}

TEST(Cubic, reno_region__adds_alpha_per_window_up_to_the_last_maximum_and_then_one) {
  Driver d(0.001);
  d.open(40);
  d.lose();
  for (int i = 1; 28 + i * kAlpha < 40; ++i) {
    d.ack(d.window(), 0.001);
    ASSERT_NEAR(d.window(), 28 + i * kAlpha, 0.001);
  }
  d.ack(d.window(), 0.001);
  ASSERT_GT(d.window(), 40);
  for (int i = 0; i < 10; ++i) {
    const double before = d.window();
    d.ack(before, 0.001);
    EXPECT_NEAR(d.window(), before + 1, 0.001);
  }
}

TEST(Cubic, reno_region__has_renos_average_window_at_the_same_loss_rate) {
  // One packet in 2000 is lost. Reno's mean window is then sqrt(1.5 / p) = 55 packets.
  constexpr double packets_per_loss = 2000;
  const auto mean_window = [](auto&& window, auto&& acknowledge, auto&& lose) {
    double sum = 0;
    double rounds = 0;
    for (int loss = 0; loss < 200; ++loss) {
      for (double acked = 0; acked < packets_per_loss;) {
        const double packets = window();
        acknowledge(packets);
        acked += packets;
        if (loss < 50) continue;
        sum += packets;
        ++rounds;
      }
      lose();
    }
    return sum / rounds;
  };
  Driver d(0.001);
  const double cubic =
      mean_window([&] { return d.window(); }, [&](double packets) { d.ack(packets, 0.001); }, [&] { d.lose(); });
  Reno reno;
  Output out;
  reno.start({.max_packet_bytes = 1000, .max_rate = {}}, out);
  const double renos = mean_window([&] { return out.cwnd_bytes / kMss; },
                                   [&](double packets) { reno.on_ack(d.sample(packets, 0), out); },
                                   [&] { reno.on_congestion({}, out); });
  EXPECT_NEAR(renos, std::sqrt(1.5 * packets_per_loss), 3);
  EXPECT_NEAR(cubic / renos, 1, 0.03);
}

TEST(Cubic, growth__only_when_the_window_was_the_limit_and_not_in_recovery) {
  Driver d(0.1);
  d.run(1, false);
  EXPECT_DOUBLE_EQ(d.window(), 10);
  d.avoid_from(2000);
  const double before = d.window();
  d.run(1, false);
  d.run(1, true, true);
  EXPECT_DOUBLE_EQ(d.window(), before);
}

TEST(Cubic, congestion__keeps_beta_of_the_window_whatever_the_gain) {
  for (const auto cause : {CongestionEvent::Cause::loss, CongestionEvent::Cause::ecn})
    for (const double gain : {0.25, 1.0, 2.0}) {
      Driver d(0.1);
      d.gain = gain;
      d.open(1000);
      d.lose(cause);
      EXPECT_DOUBLE_EQ(d.window(), 700);
      d.lose(cause);
      EXPECT_DOUBLE_EQ(d.window(), 490);
    }
}

TEST(Cubic, congestion__takes_less_with_a_gain_on_decreases) {
  Driver d(0.1);
  d.open(1000);
  d.lose(CongestionEvent::Cause::loss, 2.0);
  EXPECT_DOUBLE_EQ(d.window(), 850);
  d.lose(CongestionEvent::Cause::loss, 0.25);
  EXPECT_DOUBLE_EQ(d.window(), 850 * 0.25);
}

TEST(Cubic, congestion__leaves_two_packets_after_a_loss_and_one_after_marks) {
  Driver d(0.1);
  for (int i = 0; i < 20; ++i) d.lose();
  EXPECT_DOUBLE_EQ(d.window(), 2);
  for (int i = 0; i < 20; ++i) d.lose(CongestionEvent::Cause::ecn);
  EXPECT_DOUBLE_EQ(d.window(), 1);
  d.ack(1);  // the slow-start threshold is two packets
  EXPECT_DOUBLE_EQ(d.window(), 2);
}

TEST(Cubic, fast_convergence__aims_lower_when_the_maximum_was_not_reached) {
  for (const bool fast : {true, false}) {
    Driver d(0.1, {.fast_convergence = fast});
    d.open(2000);
    d.lose();
    d.lose();
    ASSERT_DOUBLE_EQ(d.window(), 980);
    const double w_max = fast ? 1400 * 0.85 : 1400;
    const Curve curve(w_max, 980);
    d.ack(0.001, 0.1);
    d.run(4);
    EXPECT_NEAR(d.window(), curve.at(4), 0.5);
    d.run(static_cast<double>(curve.k) - 4);
    EXPECT_NEAR(d.window(), w_max, 0.2);
  }
}

TEST(Cubic, timeout__slow_starts_to_beta_and_begins_there_on_the_flat_of_the_curve) {
  Driver d(0.1);
  d.open(2000);
  d.lose();  // the transport reports the loss before the timeout
  d.cubic.on_timeout(d.now, d.out);
  ASSERT_DOUBLE_EQ(d.window(), 2);
  d.ack(1398);
  ASSERT_DOUBLE_EQ(d.window(), 1400);
  d.ack(0.001, 0.1);
  const Curve curve(1400, 1400);
  d.run(6);
  EXPECT_NEAR(d.window(), curve.at(6), 0.5);
  d.run(4);
  EXPECT_NEAR(d.window(), curve.at(10), 0.5);
}

TEST(Cubic, undo__restores_everything) {
  // Compares a flow whose last loss is undone with a flow without this loss, on the curve and in the Reno-friendly
  // region. All later windows of the two flows are bit-identical, also after the next decreases.
  for (const double rtt : {0.1, 0.001})
    for (const double seconds : {0.0, 30 * rtt, 200 * rtt}) {
      Driver undone(rtt);
      Driver spared(rtt);
      for (Driver* d : {&undone, &spared}) {
        d->open(100);
        if (seconds > 0) d->lose();
        d->run(seconds);
      }
      undone.lose();
      ASSERT_LT(undone.window(), spared.window());
      // Time passes in recovery before the loss is found to be spurious.
      const double acked = spared.window() / 100;
      for (Driver* d : {&undone, &spared})
        for (int i = 0; i < 100; ++i) {
          AckSample ack = d->sample(acked, rtt / 100);
          ack.in_recovery = true;
          d->cubic.on_ack(ack, d->out);
        }
      undone.cubic.on_spurious_congestion(undone.now, undone.out);
      for (int part = 0; part < 4; ++part) {
        EXPECT_EQ(undone.window(), spared.window()) << "rtt " << rtt << ", " << seconds << " s, part " << part;
        for (Driver* d : {&undone, &spared}) d->run(seconds > 0 ? 20 * rtt : rtt);
      }
      for (Driver* d : {&undone, &spared}) {
        d->lose();
        d->run(50 * rtt);
      }
      EXPECT_EQ(undone.window(), spared.window());
    }
}

TEST(Cubic, undo__keeps_what_has_grown_since) {
  Driver d(0.001);
  d.open(10);
  d.lose();
  for (int i = 0; i < 20; ++i) d.ack(d.window(), 0.001);
  const double grown = d.window();
  ASSERT_GT(grown, 10);
  d.cubic.on_spurious_congestion(d.now, d.out);
  EXPECT_DOUBLE_EQ(d.window(), grown);
}

TEST(Cubic, clock__stands_still_while_the_application_limits) {
  Driver paused(0.1);
  Driver busy(0.1);
  for (Driver* d : {&paused, &busy}) {
    d->avoid_from(2000);
    d->run(3);
  }
  paused.run(7, false);
  EXPECT_EQ(paused.window(), busy.window());
  for (Driver* d : {&paused, &busy}) d->run(5);
  EXPECT_EQ(paused.window(), busy.window());
}

TEST(Cubic, clock__stands_still_while_nothing_is_sent) {
  // After a minute of silence, the first acknowledgement counts for one round trip and not for a minute.
  Driver idle(0.1);
  Driver busy(0.1);
  for (Driver* d : {&idle, &busy}) {
    d->avoid_from(2000);
    d->run(3);
  }
  idle.ack(1, 60);
  busy.ack(1, 0.1);
  EXPECT_EQ(idle.window(), busy.window());
  for (Driver* d : {&idle, &busy}) d->run(5);
  EXPECT_EQ(idle.window(), busy.window());
}

TEST(Cubic, idle_restart__slow_starts_to_the_threshold_and_heads_for_the_old_maximum) {
  Driver d(0.1);
  d.avoid_from(2000);
  d.run(3);
  const double before = d.window();
  d.now += Nanos::from_seconds(60);
  d.cubic.on_idle_restart(d.now, d.out);
  EXPECT_DOUBLE_EQ(d.window(), 10);
  const double threshold = std::max(1400.0, 0.75 * before);
  d.ack(threshold - 10, 0.1);
  EXPECT_NEAR(d.window(), threshold, 0.01);
  d.ack(0.001);
  const Curve curve(2000, threshold);
  d.run(4);
  EXPECT_NEAR(d.window(), curve.at(4), 0.5);
}

TEST(Cubic, gain__runs_the_curve_that_much_faster) {
  for (const double gain : {0.25, 0.5, 2.0}) {
    Driver plain(0.05);
    Driver scaled(0.05);
    plain.avoid_from(2000);
    scaled.avoid_from(2000);
    scaled.gain = gain;
    for (int i = 0; i < 4; ++i) {
      plain.run(3.5 * std::max(gain, 1.0));
      scaled.run(3.5 * std::max(1 / gain, 1.0));
      EXPECT_NEAR(scaled.window(), plain.window(), 0.5) << "gain " << gain << ", step " << i;
    }
  }
}

TEST(Cubic, gain__may_change_along_the_curve) {
  // Time on the curve is the integral of the gain.
  Driver d(0.1);
  d.avoid_from(2000);
  d.run(2);
  d.gain = 2;
  d.run(3);
  d.gain = 0.5;
  d.run(4);
  EXPECT_NEAR(d.window(), Curve(2000, 1400).at(2 + 6 + 2), 0.5);
  // A new epoch begins at t = 0.
  const double maximum = d.window();
  d.lose();
  d.ack(0.001, 0.1);
  d.gain = 1;
  d.run(5);
  EXPECT_NEAR(d.window(), Curve(maximum * 0.85, maximum * 0.7).at(5), 0.5);
}

TEST(Cubic, gain__scales_the_reno_friendly_estimate) {
  for (const double gain : {0.25, 1.0, 2.0}) {
    Driver d(0.001);
    d.gain = gain;
    d.open(40);
    d.lose();
    d.ack(28, 0.001);
    EXPECT_NEAR(d.window(), 28 + gain * kAlpha, 1e-6);
    while (d.window() < 40) d.ack(d.window(), 0.001);
    const double before = d.window();
    d.ack(before, 0.001);
    EXPECT_NEAR(d.window(), before + gain, 0.001);
  }
}

TEST(Cubic, gain__does_not_scale_slow_start) {
  for (const double gain : {0.25, 2.0}) {
    Driver d(0.1);
    d.gain = gain;
    d.ack(5);
    EXPECT_DOUBLE_EQ(d.window(), 15);
  }
}

TEST(Cubic, hystart__slows_down_when_the_round_trip_grows_by_the_threshold) {
  // By RFC 9406 section 4.2, the threshold is an eighth of the round trip, but at least 4 ms and at most 16 ms.
  struct Case {
    double before, after;
    bool grown;
  };
  for (const auto& [before, after, grown] :
       {Case{0.1, 0.112, false}, Case{0.1, 0.113, true}, Case{0.01, 0.0139, false}, Case{0.01, 0.0141, true},
        Case{0.4, 0.415, false}, Case{0.4, 0.417, true}}) {
    Driver d(before);
    d.hystart_round(before, 8, 8);
    d.hystart_round(after, 8, 8);
    const double window = d.window();
    d.ack(4);
    EXPECT_DOUBLE_EQ(d.window(), window + (grown ? 1 : 4)) << before << " to " << after;
  }
}

TEST(Cubic, hystart__needs_eight_samples_in_the_round) {
  Driver d(0.1);
  d.hystart_round(0.1, 8, 8);
  d.hystart_round(0.2, 7, 7);
  const double window = d.window();
  d.hystart_round(0.4, 7, 7);
  EXPECT_DOUBLE_EQ(d.window(), window + 7);
}

TEST(Cubic, hystart__enters_avoidance_after_five_rounds_and_begins_there_on_the_flat) {
  Driver d(0.1);
  d.hystart_round(0.05, 8, 90);
  d.hystart_round(0.1, 8, 900);  // this round is the first of the five conservative rounds
  double window = d.window();
  for (int i = 0; i < 4; ++i) {
    d.hystart_round(0.1, 8, 80);
    EXPECT_NEAR(d.window(), window + 20, 1e-6) << "round " << i;
    window = d.window();
  }
  ++d.round;
  d.ack(0.001, 0.1);
  d.run(6);
  // The window equals the prior maximum, so alpha is one. The curve is nevertheless above the Reno-friendly window.
  EXPECT_NEAR(d.window(), Curve(window, window).at(6), 0.5);
}

TEST(Cubic, hystart__returns_to_slow_start_when_the_round_trip_falls_again) {
  Driver d(0.1);
  d.hystart_round(0.05, 8, 90);
  d.hystart_round(0.1, 8, 100);
  double window = d.window();
  d.hystart_round(0.11, 8, 80);  // this round is in the conservative phase
  EXPECT_NEAR(d.window(), window + 20, 1e-6);
  // The eighth sample shows that the round trip is shorter than at the start of the conservative phase.
  d.hystart_round(0.09, 8, 80);
  window = d.window();
  d.ack(40);
  EXPECT_NEAR(d.window(), window + 40, 1e-6);
}

TEST(Cubic, hystart__ends_with_congestion_and_is_for_the_first_slow_start_only) {
  Driver d(0.1);
  d.hystart_round(0.05, 8, 90);
  d.hystart_round(0.1, 8, 100);
  d.lose();
  d.cubic.on_timeout(d.now, d.out);
  ASSERT_DOUBLE_EQ(d.window(), 2);
  d.hystart_round(0.05, 8, 8);
  d.hystart_round(0.1, 8, 8);
  d.hystart_round(0.2, 8, 8);
  EXPECT_NEAR(d.window(), 26, 1e-6);
}

TEST(Cubic, hystart__can_be_off) {
  Driver d(0.1, {.hystart = false});
  d.hystart_round(0.05, 8, 8);
  d.hystart_round(0.1, 8, 8);
  d.hystart_round(0.2, 8, 8);
  EXPECT_DOUBLE_EQ(d.window(), 34);
}

TEST(Cubic, counts__a_sample_of_more_than_4_GiB) {
  Driver d(0.1);
  d.ack(5'000'000);
  EXPECT_DOUBLE_EQ(d.window(), 5'000'010);
}

}  // namespace
}  // namespace mltcp::cc::cubic_test
