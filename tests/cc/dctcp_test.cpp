// Tests DCTCP event by event. The recurrence of alpha is computed by hand. Covers the responses to marks and to losses,
// which values the gain changes, and the sawtooth that the paper predicts for one flow under step marking.
#include "mltcp/cc/dctcp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>

#include "mltcp/cc/controller.h"
#include "mltcp/cc/registry.h"

namespace mltcp::cc::dctcp_test {
namespace {

constexpr double kMss = 1000;

struct Driver {
  explicit Driver(double initial_alpha = 1.0, double g = 1.0 / 16) {
    Parameters parameters;
    parameters.edit<Dctcp>().initial_alpha = initial_alpha;
    parameters.edit<Dctcp>().g = g;
    dctcp.start({.max_packet_bytes = 1000, .max_rate = {}, .parameters = &parameters}, out);
  }

  /// Returns all acknowledgements of a round as one sample.
  AckSample round_of(Bytes acked, Bytes marked, double gain = 1.0) {
    AckSample ack;
    ack.now = Nanos(1'000'000);
    ack.acked_bytes = acked;
    ack.acked_packets = static_cast<std::uint32_t>(acked / 1000);
    ack.ce_bytes = marked;
    // DCTCP counts marked bytes, so the number of marked packets is only a placeholder.
    ack.ce_packets = marked > 0 ? 1 : 0;
    ack.smoothed_rtt = ack.min_rtt = ack.latest_rtt = Nanos(1'000'000);
    ack.round_count = ++round;
    ack.cwnd_limited = true;
    ack.gain = gain;
    return ack;
  }
  void observe(Bytes acked, Bytes marked) {
    AckSample ack = round_of(acked, marked);
    ack.in_recovery = true;
    dctcp.on_ack(ack, out);
  }
  /// Calls the algorithm as the transport does after a batch of acknowledgements with the first marks of a window.
  void answer(AckSample ack, double decrease_gain = 1.0) {
    dctcp.on_congestion({ack.now, CongestionEvent::Cause::ecn, 0, decrease_gain}, out);
    ack.in_recovery = true;
    dctcp.on_ack(ack, out);
  }
  void lose() { dctcp.on_congestion({Nanos(2'000'000), CongestionEvent::Cause::loss, 0}, out); }
  /// Begins congestion avoidance with a window of `packets`.
  void avoid_at(double packets) {
    while (out.cwnd_bytes < 16 * packets * kMss)
      dctcp.on_ack(round_of(static_cast<Bytes>(16 * packets * kMss - out.cwnd_bytes), 0), out);
    for (int i = 0; i < 4; ++i) lose();
    ASSERT_DOUBLE_EQ(out.cwnd_bytes, packets * kMss);
  }

  Dctcp dctcp;
  Output out;
  std::uint64_t round = 0;
};

TEST(Dctcp, start__opens_ten_packets_and_expects_the_worst) {
  const Driver d;
  EXPECT_DOUBLE_EQ(d.out.cwnd_bytes, 10 * kMss);
  EXPECT_EQ(d.dctcp.alpha(), 1.0);
  EXPECT_TRUE(find_algorithm("dctcp").capabilities.needs_ecn);
}

TEST(Dctcp, start__takes_the_parameters) {
  Driver d(0.5, 0.25);
  EXPECT_EQ(d.dctcp.alpha(), 0.5);
  d.observe(1000, 1000);
  EXPECT_DOUBLE_EQ(d.dctcp.alpha(), 0.625);
}

TEST(Dctcp, alpha__follows_the_recurrence) {
  // By RFC 8257 section 3.3, alpha = alpha (1 - g) + g M. The values follow by hand for g = 1/16.
  constexpr std::array<std::array<double, 2>, 6> steps{{{0.0, 0.9375},
                                                        {0.25, 0.89453125},
                                                        {1.0, 0.901123046875},
                                                        {0.5, 0.8760528564453125},
                                                        {0.0, 0.82129955291748046875},
                                                        {0.125, 0.777780830860137939453125}}};
  Driver d;
  for (const auto& [marked_share, alpha] : steps) {
    d.observe(16'000, static_cast<Bytes>(16'000 * marked_share));
    EXPECT_DOUBLE_EQ(d.dctcp.alpha(), alpha);
  }
}

TEST(Dctcp, alpha__is_taken_once_per_window_and_over_all_of_it) {
  Driver d(0.5);
  d.observe(1000, 0);
  const double before = d.dctcp.alpha();
  AckSample ack = d.round_of(1000, 1000);
  for (int i = 0; i < 3; ++i) {
    ack.round_count = d.round - 1;  // the unchanged round count shows that the window of the last sample has not ended
    d.dctcp.on_ack(ack, d.out);
    EXPECT_EQ(d.dctcp.alpha(), before);
  }
  // So far, 3 kB of 3 kB in this window were marked. After 27 kB more without a mark, a tenth of the bytes is marked.
  --d.round;
  d.observe(27'000, 0);
  EXPECT_DOUBLE_EQ(d.dctcp.alpha(), before * 15 / 16 + 0.1 / 16);
}

TEST(Dctcp, alpha__falls_to_nothing_without_marks) {
  Driver d;
  for (int i = 0; i < 1000; ++i) d.observe(1000, 0);
  EXPECT_LT(d.dctcp.alpha(), 1e-27);
}

TEST(Dctcp, marks__halve_the_window_while_alpha_is_one_and_end_slow_start) {
  Driver d;
  d.answer(d.round_of(10'000, 10'000));
  EXPECT_DOUBLE_EQ(d.out.cwnd_bytes, 5 * kMss);
  d.dctcp.on_ack(d.round_of(5000, 0), d.out);
  EXPECT_DOUBLE_EQ(d.out.cwnd_bytes, 6 * kMss);
}

TEST(Dctcp, marks__take_half_of_alpha_off_the_window) {
  for (const double alpha : {0.0, 0.1, 0.5, 1.0}) {
    Driver d(alpha);
    d.avoid_at(40);
    const double sampled = d.dctcp.alpha() * 15 / 16 + 0.25 / 16;
    d.answer(d.round_of(40'000, 10'000));  // alpha already includes the marks of this sample
    EXPECT_DOUBLE_EQ(d.dctcp.alpha(), sampled);
    EXPECT_DOUBLE_EQ(d.out.cwnd_bytes, 40 * kMss * (1 - sampled / 2));
  }
}

TEST(Dctcp, marks__decrease_once_per_window) {
  Driver d;
  d.avoid_at(40);
  d.answer(d.round_of(10'000, 10'000));
  const double after = d.out.cwnd_bytes;
  ASSERT_LT(after, 40 * kMss);
  for (int i = 0; i < 10; ++i) {
    AckSample ack = d.round_of(3000, 3000);
    ack.round_count = --d.round;
    ack.in_recovery = true;
    d.dctcp.on_ack(ack, d.out);
    EXPECT_EQ(d.out.cwnd_bytes, after);
  }
}

TEST(Dctcp, marks__never_below_two_packets) {
  Driver d;
  for (int i = 0; i < 20; ++i) d.answer(d.round_of(2000, 2000));
  EXPECT_DOUBLE_EQ(d.out.cwnd_bytes, 2 * kMss);
}

TEST(Dctcp, marks__take_less_with_a_gain_on_decreases) {
  Driver d(0.8);
  d.avoid_at(40);
  AckSample ack = d.round_of(1000, 1000);
  ack.round_count = --d.round;  // the sample belongs to the round of the last sample, so alpha does not change
  const double alpha = d.dctcp.alpha();
  d.answer(ack, 2.0);
  EXPECT_DOUBLE_EQ(d.out.cwnd_bytes, 40 * kMss * (1 - alpha / 4));
}

TEST(Dctcp, loss__halves_whatever_alpha_is_and_leaves_alpha) {
  Driver d(0.01);
  d.avoid_at(40);
  const double alpha = d.dctcp.alpha();
  d.lose();
  EXPECT_DOUBLE_EQ(d.out.cwnd_bytes, 20 * kMss);
  EXPECT_EQ(d.dctcp.alpha(), alpha);
}

TEST(Dctcp, undo__restores_what_a_loss_took) {
  Driver d;
  d.avoid_at(40);
  d.lose();
  d.dctcp.on_spurious_congestion(Nanos(3'000'000), d.out);
  EXPECT_DOUBLE_EQ(d.out.cwnd_bytes, 40 * kMss);
}

TEST(Dctcp, timeout_and_idle__leave_alpha) {
  Driver d(0.3);
  d.avoid_at(40);
  const double alpha = d.dctcp.alpha();
  d.dctcp.on_idle_restart(Nanos(3'000'000), d.out);
  EXPECT_DOUBLE_EQ(d.out.cwnd_bytes, 10 * kMss);
  EXPECT_EQ(d.dctcp.alpha(), alpha);
  d.dctcp.on_timeout(Nanos(3'000'000), d.out);
  EXPECT_DOUBLE_EQ(d.out.cwnd_bytes, 2 * kMss);
  EXPECT_EQ(d.dctcp.alpha(), alpha);
}

TEST(Dctcp, gain__scales_the_additive_increase) {
  for (const double gain : {0.25, 1.0, 2.0}) {
    Driver d;
    d.avoid_at(40);
    d.dctcp.on_ack(d.round_of(40'000, 0, gain), d.out);
    EXPECT_DOUBLE_EQ(d.out.cwnd_bytes, (40 + gain) * kMss);
  }
}

TEST(Dctcp, gain__scales_neither_slow_start_nor_alpha_nor_the_decrease) {
  for (const double gain : {0.25, 1.0, 2.0}) {
    Driver d(0.5);
    d.dctcp.on_ack(d.round_of(5000, 0, gain), d.out);
    EXPECT_DOUBLE_EQ(d.out.cwnd_bytes, 15 * kMss);
    EXPECT_DOUBLE_EQ(d.dctcp.alpha(), 0.5 * 15 / 16);
    d.answer(d.round_of(15'000, 7'500, gain));
    EXPECT_DOUBLE_EQ(d.dctcp.alpha(), 0.5 * 225 / 256 + 0.5 / 16);
    EXPECT_DOUBLE_EQ(d.out.cwnd_bytes, 15 * kMss * (1 - d.dctcp.alpha() / 2));
  }
}

/// A model of one flow over a queue. The queue marks each packet that raises the number of packets in flight above
/// `limit`. Packets are acknowledged one by one. Rounds and congestion events are as in the transport.
struct StepMarking {
  struct Packet {
    bool marked = false;
  };
  explicit StepMarking(double limit_packets, double g) : d(0.1, g), limit(limit_packets) { d.avoid_at(limit); }

  void acknowledge_one() {
    while (static_cast<double>(underway.size() + 1) * kMss <= d.out.cwnd_bytes) {
      underway.push_back({static_cast<double>(underway.size() + 1) > limit});
      ++next;
    }
    const std::uint64_t number = next - underway.size();
    const bool marked = underway.front().marked;
    underway.pop_front();
    AckSample ack = d.round_of(1000, marked ? 1000 : 0);
    if (number >= round_end)
      round_end = next;
    else
      ack.round_count = --d.round;
    if (marked && number >= recovery_until) {
      recovery_until = next;
      d.dctcp.on_congestion({ack.now, CongestionEvent::Cause::ecn, 0}, d.out);
    }
    ack.in_recovery = number < recovery_until;
    d.dctcp.on_ack(ack, d.out);
  }

  Driver d;
  double limit;
  std::deque<Packet> underway;
  std::uint64_t next = 0;
  std::uint64_t round_end = 0;
  std::uint64_t recovery_until = 0;
};

TEST(Dctcp, steady_state__swings_by_the_square_root_of_the_window) {
  // By section 3.3 of the SIGCOMM 2010 paper, with marking from a window of W packets, alpha is about sqrt(2 / W) and
  // the window oscillates by sqrt(W / 2). The round without growth after each response (RFC 3168) makes alpha and the
  // oscillation a little smaller. By section 3.4, g must be below 1.386 / sqrt(2 W), so that alpha averages over more
  // than one oscillation.
  for (const double limit : {50.0, 100.0, 400.0}) {
    StepMarking model(limit, 1.0 / 64);
    for (int i = 0; i < 1000 * static_cast<int>(limit); ++i) model.acknowledge_one();
    double min = model.d.out.cwnd_bytes;
    double max = min;
    double alpha = 0;
    const int acks = 200 * static_cast<int>(limit);
    for (int i = 0; i < acks; ++i) {
      model.acknowledge_one();
      min = std::min(min, model.d.out.cwnd_bytes);
      max = std::max(max, model.d.out.cwnd_bytes);
      alpha += model.d.dctcp.alpha() / acks;
    }
    EXPECT_NEAR(alpha / std::sqrt(2 / limit), 0.95, 0.1) << "limit " << limit;
    EXPECT_NEAR((max - min) / kMss / std::sqrt(limit / 2), 0.95, 0.1) << "limit " << limit;
  }
}

}  // namespace
}  // namespace mltcp::cc::dctcp_test
