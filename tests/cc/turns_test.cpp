// Waiting and overtaking (cc/turns.h), driven by a model of a link on which another burst leaves a queue at times.
#include "mltcp/cc/turns.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace mltcp::cc {
namespace {

using namespace literals;

constexpr Rate kLine{1'000'000'000};
constexpr Nanos kRtt = 50_us;
constexpr std::uint32_t kPacket = 1500;
constexpr TurnsParameters kParameters;

/// A job that sends bursts on a link of rate kLine. Packets are acknowledged one by one, a round trip after they left.
class Job {
 public:
  explicit Job(Bytes burst, bool waits = true, Rate max_rate = kLine)
      : turns(waits, max_rate, kParameters), max_rate_(max_rate.is_zero() ? kLine : max_rate), burst_(burst) {}

  /// Sets the maximum rate of the next bursts, at most kLine.
  void set_max_rate(Rate rate) {
    turns.set_max_rate(rate);
    max_rate_ = rate;
  }

  /// Runs an iteration: a burst, then `compute`. `queue(time)` is the queue that a packet meets at that time; a
  /// negative queue stands for a congestion mark. Returns the time from the burst's begin to its end.
  Nanos iterate(
      Nanos compute, const std::function<Nanos(Nanos)>& queue = [](Nanos) { return Nanos(); }) {
    ++iteration_;
    const Nanos began = now;
    overtook = false;
    limits.clear();
    for (Bytes sent = 0; sent < burst_; sent += kPacket) {
      turns.on_send(now, iteration_, burst_, sent == 0);
      overtook = overtook || turns.overtakes();
      const Rate limit = turns.limit();
      limits.push_back(limit);
      now += (limit.is_zero() ? max_rate_ : limit).time_for(kPacket);
      acknowledge(queue(now));
    }
    now += kRtt;
    const Nanos took = now - began;
    now += compute;
    return took;
  }
  /// Returns the time that a burst takes alone.
  [[nodiscard]] Nanos alone() const { return kLine.time_for(burst_); }

  Turns turns;
  Nanos now = 1_s;
  bool overtook = false;
  std::vector<Rate> limits;  ///< limit of each packet of the last burst

 private:
  void acknowledge(Nanos queue) {
    turns.on_delivered(now, kPacket);
    turns.on_queue({.now = now,
                    .delay = std::max(queue, Nanos()),
                    .min_rtt = kRtt,
                    .packets = 1,
                    .packet_bytes = kPacket,
                    .is_marked = queue < Nanos()});
  }

  Rate max_rate_;
  Bytes burst_;
  std::uint64_t iteration_ = 0;
};

constexpr Bytes kBurst = 5'000'000;  // 40 ms
constexpr Nanos kCompute = 60_ms;
constexpr Nanos kQueue = 200_us;

TEST(Turns, idle_link__costs_the_test_only) {
  Job job(kBurst);
  for (int i = 0; i < 5; ++i) {
    const Nanos took = job.iterate(kCompute);
    EXPECT_GT(took, job.alone());
    EXPECT_LT(took, job.alone() + 500_us) << i;
    EXPECT_NEAR(static_cast<double>(job.limits.front().bits_per_second), 0.25e9, 0.01e9);
    EXPECT_TRUE(job.limits.back().is_zero());
  }
}

TEST(Turns, busy_link__is_left_to_the_other_burst_until_its_queue_is_gone) {
  Job job(kBurst);
  job.iterate(kCompute);
  const Nanos until = job.now + 20_ms;
  const Nanos took = job.iterate(kCompute, [&](Nanos at) { return at < until ? kQueue : Nanos(); });
  EXPECT_GT(took, 20_ms + job.alone());
  EXPECT_LT(took, 23_ms + job.alone()) << "few packets of the hold pass before the queue is seen to be gone";
  EXPECT_LT(job.limits[20].bits_per_second, kLine.bits_per_second / 40);
}

TEST(Turns, marks__are_a_queue) {
  Job job(kBurst);
  job.iterate(kCompute);
  const Nanos until = job.now + 20_ms;
  EXPECT_GT(job.iterate(kCompute, [&](Nanos at) { return at < until ? Nanos(-1) : Nanos(); }), 20_ms + job.alone());
}

TEST(Turns, queue_that_stays__holds_at_most_one_burst_and_soon_counts_as_none) {
  Job job(kBurst);
  job.iterate(kCompute);
  const auto waited = [&](Nanos queue) {
    const Nanos took = job.iterate(kCompute, [=](Nanos) { return queue; }) - job.alone();
    return static_cast<double>(took.count) / static_cast<double>(job.alone().count);
  };
  EXPECT_NEAR(waited(kQueue), 1, 0.05);
  EXPECT_TRUE(job.overtook) << "the rest of a burst that has waited in vain";
  const std::uint8_t measurement = job.turns.measurement();
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(waited(kQueue), 0.5, 0.05);
  EXPECT_TRUE(job.turns.meets_steady_traffic());
  EXPECT_FALSE(job.overtook) << "traffic that hardly pauses, or late hosts";
  EXPECT_NE(job.turns.measurement(), measurement);
  for (int i = 0; i < 20; ++i) EXPECT_LT(waited(kQueue), 0.05);
  EXPECT_FALSE(job.turns.meets_steady_traffic());
  EXPECT_NEAR(waited(kQueue * 3), 0.5, 0.05) << "a longer queue";
}

TEST(Turns, wait_in_vain_although_short_delays_count_as_no_queue__doubles_what_counts_as_none) {
  Job job(kBurst);
  job.iterate(kCompute);
  const auto waits = [&](Nanos queue) {
    return job.iterate(kCompute, [=](Nanos) { return queue; }) > job.alone() + 5_ms;
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(waits(100_us));
  EXPECT_TRUE(waits(350_us)) << "the limit is 200 us";
  EXPECT_FALSE(waits(350_us)) << "the limit is 400 us";
}

TEST(Turns, delays_that_are_no_queue__are_forgotten_when_they_end) {
  Job job(kBurst);
  job.iterate(kCompute);
  const auto waits = [&] {
    const Nanos took = job.iterate(kCompute, [](Nanos) { return kQueue; });
    return took > job.alone() + 5_ms;
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(waits());
  EXPECT_FALSE(waits());
  job.iterate(kCompute);
  EXPECT_FALSE(waits()) << "a single test changes little";
  for (int i = 0; i < 20; ++i) job.iterate(kCompute);
  EXPECT_TRUE(waits());
}

// Delays of a host that sleeps, drawn evenly from 0 to 150 us: 12 times the time of a packet.
TEST(Turns, hosts_that_are_late__do_not_hide_a_queue) {
  Job job(kBurst);
  std::uint32_t random = 1;
  const auto late = [&] {
    random = random * 1'664'525 + 1'013'904'223;
    return Nanos(150'000) * static_cast<std::int64_t>(random >> 16) / 65'536;
  };
  for (int i = 0; i < 5; ++i) job.iterate(kCompute, [&](Nanos) { return late(); });
  for (int i = 0; i < 20; ++i) EXPECT_LT(job.iterate(kCompute, [&](Nanos) { return late(); }), job.alone() + 2_ms) << i;
  const Nanos until = job.now + 15_ms;
  EXPECT_GT(job.iterate(kCompute, [&](Nanos at) { return late() + (at < until ? 400_us : Nanos()); }),
            job.alone() + 14_ms);
}

TEST(Turns, marks_of_traffic_that_never_pauses__hold_up_about_half_of_the_bursts) {
  Job job(kBurst);
  job.iterate(kCompute);
  int waited = 0;
  for (int i = 0; i < 40; ++i)
    if (job.iterate(kCompute, [](Nanos) { return Nanos(-1); }) > job.alone() + 5_ms) ++waited;
  EXPECT_NEAR(waited, 20, 3);
}

TEST(Turns, hold_that_has_failed__is_followed_by_holds_of_half_a_burst) {
  Job job(kBurst);
  job.iterate(kCompute);
  const auto fails = [&](Nanos queue_lasts) {
    const Nanos until = job.now + queue_lasts;
    job.iterate(kCompute, [&](Nanos at) { return at < until ? kQueue : Nanos(); });
    return job.overtook;
  };
  EXPECT_FALSE(fails(job.alone() * 6 / 10));
  EXPECT_TRUE(fails(job.alone() * 11 / 10));
  EXPECT_FALSE(fails(job.alone() * 4 / 10));
  EXPECT_TRUE(fails(job.alone() * 6 / 10));
}

TEST(Turns, same_wait_in_three_iterations__is_followed_by_overtaking) {
  Job job(kBurst);
  job.iterate(kCompute);
  std::vector<bool> overtook;
  for (int i = 0; i < 4; ++i) {
    const Nanos until = job.now + 20_ms;
    job.iterate(kCompute, [&](Nanos at) { return at < until ? kQueue : Nanos(); });
    overtook.push_back(job.overtook);
  }
  EXPECT_EQ(overtook, (std::vector<bool>{false, false, false, true}));
  EXPECT_TRUE(job.limits.front().is_zero()) << "a burst that overtakes does not test";
}

TEST(Turns, job_that_always_waits__overtakes_in_every_sixth_iteration) {
  Job job(kBurst);
  job.iterate(kCompute);
  std::vector<int> overtook;
  for (int i = 1; i <= 20; ++i) {
    const Nanos until = job.now + 20_ms;
    job.iterate(kCompute, [&](Nanos at) { return at < until ? kQueue : Nanos(); });
    if (job.overtook) overtook.push_back(i);
  }
  EXPECT_EQ(overtook, (std::vector<int>{4, 10, 16}));
}

TEST(Turns, period_of_less_than_2_3_bursts__never_overtakes) {
  Job job(kBurst);
  job.iterate(job.alone());
  for (int i = 0; i < 12; ++i) {
    const Nanos until = job.now + 10_ms;
    job.iterate(job.alone(), [&](Nanos at) { return at < until ? kQueue : Nanos(); });
    EXPECT_FALSE(job.overtook) << i;
  }
}

TEST(Turns, short_bursts__do_not_wait_and_have_gain_one) {
  Job job(kLine.bytes_in(kRtt * 19));
  job.iterate(1_ms);
  EXPECT_TRUE(job.turns.is_short());
  const Nanos took = job.iterate(1_ms, [](Nanos) { return kQueue; });
  EXPECT_LT(took, job.alone() + kRtt * 3);
  Job longer(kLine.bytes_in(kRtt * 40));
  longer.iterate(1_ms);
  EXPECT_FALSE(longer.turns.is_short());
}

TEST(Turns, test_that_would_take_more_than_3_percent_of_an_iteration__is_left_out) {
  Job job(kLine.bytes_in(4_ms));
  job.iterate(4_ms);  // a test takes 0.34 ms
  EXPECT_FALSE(job.turns.is_short());
  job.iterate(4_ms, [](Nanos) { return kQueue; });
  EXPECT_TRUE(job.limits.front().is_zero());
}

TEST(Turns, only_long_bursts_of_an_iteration__wait) {
  // An iteration of a pipeline: three short bursts, then a long one.
  Turns turns(true, kLine, kParameters);
  Nanos now = 1_s;
  std::vector<bool> limited;
  for (std::uint64_t iteration = 1; iteration <= 4; ++iteration) {
    for (int burst = 0; burst < 4; ++burst) {
      for (Bytes sent = 0; sent < (burst == 3 ? kBurst : 3 * kPacket); sent += kPacket) {
        turns.on_send(now, iteration, kBurst, sent == 0);
        if (sent == 0) limited.push_back(!turns.limit().is_zero());
        now += kLine.time_for(kPacket);
        turns.on_delivered(now, kPacket);
        turns.on_queue({.now = now, .delay = {}, .min_rtt = kRtt, .packets = 1, .packet_bytes = kPacket});
      }
      now += 20_ms;
    }
  }
  const std::vector<bool> last(limited.end() - 4, limited.end());
  EXPECT_EQ(last, (std::vector<bool>{false, false, false, true}));
}

TEST(Turns, rate_of_the_path__is_measured) {
  Job job(kBurst, true, Rate());
  job.iterate(kCompute);
  EXPECT_TRUE(job.limits.front().is_zero()) << "nothing is known yet";
  job.iterate(kCompute);
  EXPECT_NEAR(static_cast<double>(job.limits.front().bits_per_second), 0.25e9, 0.01e9);
}

// A burst that shares the link with others for most of its time shows the link's rate at its fastest part.
TEST(Turns, rate_of_the_path__is_that_of_the_fastest_part_of_a_burst) {
  Turns turns(true, {}, kParameters);
  Nanos now = 1_s;
  double limit = 0;
  for (std::uint64_t iteration = 1; iteration <= 3; ++iteration) {
    for (Bytes sent = 0; sent < kBurst; sent += kPacket) {
      turns.on_send(now, iteration, kBurst, sent == 0);
      if (sent == 0) limit = static_cast<double>(turns.limit().bits_per_second);
      const bool alone = sent > kBurst / 2 && sent < kBurst * 3 / 4;
      now += kLine.time_for(kPacket) * (alone ? 1 : 5);
      turns.on_delivered(now, kPacket);
      turns.on_queue({.now = now, .delay = {}, .min_rtt = kRtt, .packets = 1, .packet_bytes = kPacket});
    }
    now += kCompute;
  }
  EXPECT_NEAR(limit, 0.25e9, 0.03e9);
}

TEST(Turns, burst_with_a_slot__does_not_wait) {
  for (const bool has_slot : {false, true}) {
    Turns turns(true, kLine, kParameters);
    turns.on_send(1_s, 1, kBurst, true, has_slot);
    EXPECT_EQ(turns.limit().is_zero(), has_slot);
  }
}

TEST(Turns, maximum_rate_that_changes__ends_a_wait) {
  Turns turns(true, kLine, kParameters);
  turns.on_send(1_s, 1, kBurst, true);
  ASSERT_FALSE(turns.limit().is_zero());
  turns.set_max_rate(kLine);
  EXPECT_FALSE(turns.limit().is_zero()) << "the same rate";
  turns.set_max_rate({});
  EXPECT_TRUE(turns.limit().is_zero());
}

TEST(Turns, maximum_rate__limits_tests_and_is_not_the_rate_of_the_path) {
  Job job(kBurst);
  job.iterate(kCompute);
  const auto test = [&](Rate max_rate) {
    job.set_max_rate(max_rate);
    job.iterate(kCompute);
    return static_cast<double>(job.limits.front().bits_per_second);
  };
  EXPECT_NEAR(test(kLine), 0.25e9, 1e6);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(test(Rate(500'000'000)), 0.125e9, 1e6);
    EXPECT_NEAR(test(kLine), 0.25e9, 0.01e9) << "at once, though the last burst was slower";
  }
}

TEST(Turns, higher_maximum_rate__is_the_rate_of_the_path_until_it_is_measured) {
  Job job(kBurst, true, Rate(500'000'000));
  job.iterate(kCompute);
  job.set_max_rate(kLine);
  job.iterate(kCompute);
  EXPECT_NEAR(static_cast<double>(job.limits.front().bits_per_second), 0.25e9, 1e6);
  job.set_max_rate(Rate(4'000'000'000));
  job.set_max_rate(kLine);
  job.iterate(kCompute);
  EXPECT_NEAR(static_cast<double>(job.limits.front().bits_per_second), 0.25e9, 1e6);
}

TEST(Turns, hold_of_a_burst_with_a_low_maximum_rate__ends_as_that_of_others) {
  Job job(kBurst);
  job.iterate(kCompute);
  job.set_max_rate(Rate(500'000'000));
  job.iterate(kCompute, [](Nanos) { return kQueue; });
  Nanos held;
  for (const Rate limit : job.limits) held += limit.is_zero() ? Nanos() : limit.time_for(kPacket);
  EXPECT_NEAR(held.seconds(), job.alone().seconds(), 0.1 * job.alone().seconds());
}

TEST(Turns, largest_parameters__fit) {
  TurnsParameters parameters;
  const ParameterTable table = parameter_table<Turns>();
  for (const Parameter& parameter : table.parameters)
    if (std::holds_alternative<std::uint32_t>(parameter.by_default))
      parameter.set(&parameters, static_cast<std::uint32_t>(parameter.range.max));
  EXPECT_LT(parameters.overtaking_pause + 1, 256U);
  EXPECT_LT(std::max({parameters.test_packets, parameters.low_samples, parameters.steady_failures}), 256U);
}

// Acknowledgements that were held back show no higher rate. Traffic before the first iteration shows none.
TEST(Turns, acknowledgements_that_arrive_together__do_not_raise_the_rate) {
  Turns turns(true, {}, kParameters);
  Nanos now = 1_s;
  double limit = 0;
  for (std::uint64_t iteration = 0; iteration <= 3; ++iteration) {
    for (Bytes sent = 0; sent < kBurst; sent += kPacket) {
      turns.on_send(now, iteration, kBurst, sent == 0);
      if (sent == 0) limit = static_cast<double>(turns.limit().bits_per_second);
      now += kLine.time_for(kPacket);
      if (sent / kPacket % 200 != 199) continue;
      for (int packet = 0; packet < 200; ++packet) turns.on_delivered(now, kPacket);
      turns.on_queue({.now = now, .delay = {}, .min_rtt = kRtt, .packets = 200, .packet_bytes = kPacket});
    }
    now += kCompute;
    EXPECT_FALSE(turns.is_short()) << iteration;
  }
  EXPECT_GT(limit, 0.2e9);
  EXPECT_LT(limit, 0.3e9);
}

TEST(Turns, burst_without_an_end__does_not_overtake_for_ever) {
  Job job(kBurst);
  job.iterate(kCompute);
  job.turns.on_send(job.now, 9, kBurst, true);
  bool did = false;
  for (int packet = 0; packet < 20'000; ++packet) {
    job.now += kLine.time_for(kPacket);
    job.turns.on_send(job.now, 9, kBurst, false);
    job.turns.on_delivered(job.now, kPacket);
    job.turns.on_queue({.now = job.now, .delay = kQueue, .min_rtt = kRtt, .packets = 1, .packet_bytes = kPacket});
    did = did || job.turns.overtakes();
  }
  EXPECT_TRUE(did);
  EXPECT_FALSE(job.turns.overtakes());
}

TEST(Turns, policy_mltcp__never_waits) {
  Job job(kBurst, false);
  for (int i = 0; i < 6; ++i) {
    EXPECT_LT(job.iterate(kCompute, [](Nanos) { return kQueue; }), job.alone() + kRtt * 2);
    EXPECT_FALSE(job.overtook);
  }
}

}  // namespace
}  // namespace mltcp::cc
