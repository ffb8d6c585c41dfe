// Tests the pacer: its exact long-run rate, its bounded bursts, and changes of the rate.
#include "mltcp/transport/internal/pacer.h"

#include <gtest/gtest.h>

#include "mltcp/base/random.h"

namespace mltcp::transport {
namespace {

using namespace mltcp::literals;

constexpr Nanos kNone;  // sets no quantum, so that each packet is paced on its own

TEST(Pacer, unlimited__never_waits) {
  Pacer pacer;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(pacer.ready_at(7_ns), 7_ns);
    pacer.on_sent(7_ns, 1'000'000);
  }
}

TEST(Pacer, rate__spaces_packets_by_their_time_on_the_wire) {
  Pacer pacer;
  pacer.set(Rate(1'000'000'000), 0, kNone);
  Nanos now = 1_s;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(pacer.ready_at(now), now);
    pacer.on_sent(now, 1250);  // 1250 bytes take 10 us
    now += 10_us;
    ASSERT_EQ(pacer.ready_at(now - 10_us), now);
  }
}

TEST(Pacer, burst__may_leave_at_once_after_a_pause) {
  Pacer pacer;
  pacer.set(Rate(1'000'000'000), 5000, kNone);
  int sent = 0;
  for (; pacer.ready_at(1_s) <= 1_s; ++sent) pacer.on_sent(1_s, 1250);
  EXPECT_EQ(sent, 5) << "the allowance of four, and the one that is due";
  sent = 0;
  for (; pacer.ready_at(5_s) <= 5_s; ++sent) pacer.on_sent(5_s, 1250);
  EXPECT_EQ(sent, 5) << "a long pause saves up no more than a short one";
}

TEST(Pacer, late_wake_ups__cost_no_rate) {
  Random random(1);
  Pacer pacer;
  const Rate rate(1'000'000'000);
  pacer.set(rate, 10'000, kNone);
  Nanos now = 1_s;
  Bytes bytes = 0;
  while (now < 2_s) {
    for (; pacer.ready_at(now) <= now; bytes += 1250) pacer.on_sent(now, 1250);
    now = pacer.ready_at(now) + Nanos(static_cast<std::int64_t>(random.below(40'000)));
  }
  EXPECT_NEAR(static_cast<double>(bytes), 125'000'000, 10'000 + 5000);
}

TEST(Pacer, late__is_made_up_for_and_no_more) {
  Pacer pacer;
  pacer.set(Rate(1'000'000'000), 0, kNone);  // 1250 bytes take 10 us, and no burst is allowed
  const auto count = [&](Nanos now, Nanos late) {
    int sent = 0;
    for (; pacer.ready_at(now) <= now; ++sent) pacer.on_sent(now, 1250, late);
    return sent;
  };
  EXPECT_EQ(count(1_s, {}), 1);
  EXPECT_EQ(count(1_s + 110_us, 100_us), 11) << "those of 100 us, and the one that is due";
  EXPECT_EQ(count(1_s + 120_us, 100_us), 1) << "what was made up for is not owed again";
  EXPECT_EQ(count(2_s, 50_us), 6) << "a pause that nobody was late for saves up nothing";
}

TEST(Pacer, late_wake_ups__cost_no_rate_where_packets_are_gathered) {
  for (const std::uint64_t gbps : {10U, 100U}) {
    Random random(1);
    Pacer pacer;
    const Rate rate(gbps * 1'000'000'000);
    pacer.set(rate, 1500, 10_us);
    Nanos now = 1_s;
    Bytes bytes = 0;
    while (now < 1_s + 100_ms) {
      for (; pacer.ready_at(now) <= now; bytes += 1514) pacer.on_sent(now, 1514);
      now = pacer.ready_at(now) + Nanos(static_cast<std::int64_t>(random.below(5'000)));
    }
    const auto possible = static_cast<double>(rate.bytes_in(100_ms));
    EXPECT_NEAR(static_cast<double>(bytes), possible, 0.01 * possible) << gbps;
  }
}

TEST(Pacer, long_run__keeps_rates_that_do_not_divide_evenly) {
  for (const std::uint64_t bps : {7'777ULL, 999'999'937ULL, 40'000'000'000ULL, 399'999'999'999ULL}) {
    Pacer pacer;
    pacer.set(Rate(bps), 0, kNone);
    const Nanos begin = 1_s;
    Nanos now = begin;
    Bytes bytes = 0;
    for (int i = 0; i < 100'000; ++i) {
      pacer.on_sent(now, 9042);
      bytes += 9042;
      now = pacer.ready_at(now);
    }
    const double rate = static_cast<double>(bytes) * 8 / (now - begin).seconds();
    EXPECT_NEAR(rate / static_cast<double>(bps), 1.0, 5e-3) << bps;
  }
}

TEST(Pacer, set__to_unlimited_and_back) {
  Pacer pacer;
  pacer.set(Rate(1'000'000), 0, kNone);
  pacer.on_sent(1_s, 1250);
  EXPECT_EQ(pacer.ready_at(1_s), 1_s + 10_ms);
  pacer.set(Rate(0), 0, kNone);
  EXPECT_EQ(pacer.ready_at(1_s), 1_s);
  EXPECT_TRUE(pacer.rate().is_zero());
}

TEST(Pacer, set__a_higher_rate_shortens_the_wait_of_the_old_one) {
  // One packet takes ten seconds at 1 kbps. After a change to 1 Gbps, the sender does not wait for the rest of the ten
  // seconds.
  Pacer pacer;
  pacer.set(Rate(1'000), 0, kNone);
  pacer.on_sent(1_s, 1250);
  ASSERT_EQ(pacer.ready_at(1_s), 11_s);
  pacer.set(Rate(1'000'000'000), 0, kNone);
  EXPECT_LE(pacer.ready_at(1_s), 1_s + 10_ms);
}

TEST(Pacer, quantum__gathers_packets_at_high_rates_without_losing_rate) {
  // 1250 bytes take 100 ns at 100 Gbps. So with a quantum of 10 us, about a hundred packets leave at each wake-up.
  Pacer pacer;
  const Rate rate(100'000'000'000);
  pacer.set(rate, 500'000, 10_us);
  Nanos now = 1_s;
  Bytes bytes = 0;
  int wakes = 0;
  for (; now < 1_s + 10_ms; ++wakes) {
    for (; pacer.ready_at(now) <= now; bytes += 1250) pacer.on_sent(now, 1250);
    ASSERT_LE(pacer.ready_at(now) - now, 10_us + 100_ns);
    now = pacer.ready_at(now);
  }
  EXPECT_NEAR(static_cast<double>(bytes), 125e6, 500'000 + 125'000);
  EXPECT_LE(wakes, 1010);
}

TEST(Pacer, quantum__does_not_stretch_single_packets_at_low_rates) {
  Pacer pacer;
  pacer.set(Rate(1'000'000), 5000, 10_us);
  while (pacer.ready_at(1_s) <= 1_s) pacer.on_sent(1_s, 1250);
  EXPECT_EQ(pacer.ready_at(1_s), 1_s + 10_ms);
}

}  // namespace
}  // namespace mltcp::transport
