// Tests the estimated offsets of other hosts' clocks.
#include "mltcp/lab/experiment/hosts/clock_offset.h"

#include <gtest/gtest.h>

#include "mltcp/base/random.h"

namespace mltcp::experiment {
namespace {

using namespace literals;

constexpr Nanos kAhead{123'456'789'012};

/// Returns the result of `count` exchanges from the time `at` on. One-way delays are `min` plus up to 500 us.
ClockOffset measured(Nanos at, Nanos min, Nanos offset, std::uint64_t seed, int count = 16) {
  ClockOffset clock;
  Random random(seed);
  for (int i = 0; i < count; ++i) {
    const Nanos sent = at + Nanos(i * 1'000'000);
    const Nanos there = sent + min + Nanos(static_cast<std::int64_t>(random.below(500'000)));
    const Nanos back = there + min + Nanos(static_cast<std::int64_t>(random.below(500'000)));
    clock.add(sent, there + offset, back);
  }
  return clock;
}

TEST(clock_offset, exchange_with_the_least_round_trip__counts_and_bounds_the_error) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const ClockOffset clock = measured(5_s, 20_us, kAhead, seed);
    EXPECT_LE(std::abs((clock.offset() - kAhead).count), clock.uncertainty().count);
    EXPECT_LT(clock.uncertainty(), 400_us);
    EXPECT_GE(clock.uncertainty(), 20_us);
  }
}

TEST(clock_offset, symmetric_exchange__is_exact) {
  ClockOffset clock;
  EXPECT_FALSE(clock.known());
  clock.add(100_us, 110_us + kAhead, 120_us);
  clock.add(200_us, 900_us + kAhead, 1000_us);
  EXPECT_TRUE(clock.known());
  EXPECT_EQ(clock.offset(), kAhead);
  EXPECT_EQ(clock.uncertainty(), 10_us);
  EXPECT_EQ(clock.at(), 110_us);
}

TEST(clock_map, one_estimate__shifts) {
  ClockOffset clock;
  clock.add(1_s, 1_s + 5_us - 7_ms, 1_s + 10_us);
  const ClockMap map(clock);
  EXPECT_EQ(map.to_other(3_s), 3_s - 7_ms);
  EXPECT_EQ(map.to_ours(3_s - 7_ms), 3_s);
}

TEST(clock_map, two_estimates__follow_a_clock_that_is_faster) {
  // The other clock is faster than this host's clock by 20 ppm, which is 2 ms in 100 s.
  const auto other = [](Nanos ours) { return ours + kAhead + ours / 50'000; };
  const auto exchange = [&](Nanos at) {
    ClockOffset clock;
    clock.add(at - 10_us, other(at), at + 10_us);
    return clock;
  };
  ClockMap map(exchange(10_s));
  map.add(exchange(110_s));
  for (const Nanos time : {10_s, 42_s, 60_s, 110_s}) {
    EXPECT_NEAR(static_cast<double>((map.to_other(time) - other(time)).count), 0, 2);
    EXPECT_NEAR(static_cast<double>((map.to_ours(other(time)) - time).count), 0, 100);
  }
  EXPECT_EQ(map.uncertainty(), 10_us);
}

}  // namespace
}  // namespace mltcp::experiment
