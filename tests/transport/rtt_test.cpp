// Tests the round-trip estimator against the formulas in sections 5 and 6 of RFC 9002.
#include "mltcp/transport/internal/rtt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "mltcp/base/random.h"

namespace mltcp::transport {
namespace {

using namespace mltcp::literals;

TEST(RttEstimator, initial__is_what_it_was_told) {
  const RttEstimator rtt(1_ms);
  EXPECT_FALSE(rtt.has_sample());
  EXPECT_EQ(rtt.smoothed(), 1_ms);
  EXPECT_EQ(rtt.variation(), 500_us);
  EXPECT_EQ(rtt.probe_timeout(200_us, 100_us), 1_ms + 2_ms + 100_us);
}

TEST(RttEstimator, first_sample__sets_everything_and_ignores_the_delay) {
  RttEstimator rtt(1_ms);
  rtt.add(80_us, 50_us);
  EXPECT_TRUE(rtt.has_sample());
  EXPECT_EQ(rtt.latest(), 80_us);
  EXPECT_EQ(rtt.minimum(), 80_us);
  EXPECT_EQ(rtt.smoothed(), 80_us);
  EXPECT_EQ(rtt.variation(), 40_us);
}

TEST(RttEstimator, second_sample__weighs_an_eighth_and_a_quarter) {
  RttEstimator rtt(1_ms);
  rtt.add(80_us, 0_ns);
  rtt.add(160_us, 0_ns);
  EXPECT_EQ(rtt.minimum(), 80_us);
  EXPECT_EQ(rtt.variation(), Nanos((3 * 40'000 + 80'000) / 4));
  EXPECT_EQ(rtt.smoothed(), Nanos((7 * 80'000 + 160'000) / 8));
}

TEST(RttEstimator, delay__is_taken_off_unless_that_goes_below_the_minimum) {
  RttEstimator rtt(1_ms);
  rtt.add(100_us, 0_ns);
  rtt.add(180_us, 80_us);  // the delay reduces the sample exactly to the minimum
  EXPECT_EQ(rtt.smoothed(), 100_us);
  rtt.add(180_us, 81_us);  // the delay is false and is ignored, because the sample would fall below the minimum
  EXPECT_EQ(rtt.smoothed(), Nanos((7 * 100'000 + 180'000) / 8));
  EXPECT_EQ(rtt.latest(), 180_us);
  EXPECT_EQ(rtt.minimum(), 100_us);
}

TEST(RttEstimator, minimum__is_of_the_raw_samples) {
  RttEstimator rtt(1_ms);
  rtt.add(100_us, 0_ns);
  rtt.add(150_us, 50_us);
  EXPECT_EQ(rtt.minimum(), 100_us);
  rtt.add(60_us, 0_ns);
  EXPECT_EQ(rtt.minimum(), 60_us);
}

TEST(RttEstimator, samples_that_no_network_gives__count_as_the_nearest_that_one_could) {
  RttEstimator rtt(1_ms);
  rtt.add(100_us, 0_ns);
  rtt.add(Nanos(-1'000'000'000), 50_us);
  EXPECT_EQ(rtt.latest(), 0_ns);
  EXPECT_EQ(rtt.minimum(), 0_ns);
  EXPECT_EQ(rtt.smoothed(), Nanos(7 * 100'000 / 8));
  rtt.add(20'000_s, 0_ns);
  EXPECT_EQ(rtt.latest(), RttEstimator::kLongest);
  EXPECT_LT(rtt.smoothed(), RttEstimator::kLongest / 7);
}

TEST(RttEstimator, samples__equal_the_formulas_in_floating_point) {
  Random random(7);
  RttEstimator rtt(1_ms);
  double smoothed = 0;
  double variation = 0;
  double minimum = 1e18;
  for (int i = 0; i < 1000; ++i) {
    const auto sample = static_cast<std::int64_t>(50'000 + random.below(200'000));
    const auto delay = static_cast<std::int64_t>(random.below(60'000));
    rtt.add(Nanos(sample), Nanos(delay));
    const auto value = static_cast<double>(sample);
    minimum = std::min(minimum, value);
    if (i == 0) {
      smoothed = value;
      variation = value / 2;
    } else {
      const double adjusted =
          value >= minimum + static_cast<double>(delay) ? value - static_cast<double>(delay) : value;
      variation = 0.75 * variation + 0.25 * std::abs(smoothed - adjusted);
      smoothed = 0.875 * smoothed + 0.125 * adjusted;
    }
    ASSERT_NEAR(static_cast<double>(rtt.smoothed().count), smoothed, 10);
    ASSERT_NEAR(static_cast<double>(rtt.variation().count), variation, 10);
  }
}

TEST(RttEstimator, probe_timeout__has_at_least_the_granularity) {
  RttEstimator rtt(1_ms);
  for (int i = 0; i < 200; ++i) rtt.add(100_us, 0_ns);
  ASSERT_LT(rtt.variation(), 1_us);
  EXPECT_EQ(rtt.probe_timeout(200_us, 25_us), rtt.smoothed() + 200_us + 25_us);
}

TEST(RttEstimator, loss_delay__is_nine_eighths_of_the_larger_rtt) {
  RttEstimator rtt(1_ms);
  rtt.add(80_us, 0_ns);
  EXPECT_EQ(rtt.loss_delay(1_us), 90_us);
  rtt.add(800_us, 0_ns);
  EXPECT_EQ(rtt.loss_delay(1_us), 900_us) << "the latest is the larger one";
  rtt.add(80_us, 0_ns);
  EXPECT_EQ(rtt.loss_delay(1_us), rtt.smoothed() + rtt.smoothed() / 8);
  EXPECT_EQ(rtt.loss_delay(5_ms), 5_ms);
  EXPECT_EQ(rtt.loss_delay(1_us, rtt.smoothed()), rtt.smoothed() * 2) << "packets are known to be as late";
  EXPECT_EQ(rtt.loss_delay(1_us, 1_ns), rtt.loss_delay(1_us)) << "less than the eighth takes nothing away";
}

}  // namespace
}  // namespace mltcp::transport
