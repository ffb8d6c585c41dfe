// Tests the demand of a job on a link.
#include "mltcp/scheduler/demand.h"

#include <gtest/gtest.h>

#include "mltcp/base/error.h"

namespace mltcp::scheduler {
namespace {

using namespace literals;

TEST(demand, check__refuses_bursts_out_of_order_or_period) {
  EXPECT_NO_THROW(check({100_ms, {{0_ms, 20_ms, Rate(5)}, {20_ms, 100_ms, Rate(7)}}}));
  EXPECT_THROW(check({0_ms, {}}), InputError);
  EXPECT_THROW(check({100_ms, {{20_ms, 20_ms, Rate(5)}}}), InputError);
  EXPECT_THROW(check({100_ms, {{20_ms, 40_ms, Rate(5)}, {30_ms, 50_ms, Rate(5)}}}), InputError);
  EXPECT_THROW(check({100_ms, {{20_ms, 101_ms, Rate(5)}}}), InputError);
  EXPECT_THROW(check({100_ms, {{20_ms, 30_ms, Rate(0)}}}), InputError);
}

TEST(demand, sums__of_two_bursts) {
  const Demand demand{100_ms, {{0_ms, 20_ms, Rate(1'000)}, {50_ms, 60_ms, Rate(3'000)}}};
  EXPECT_EQ(busy_time(demand), 30_ms);
  EXPECT_DOUBLE_EQ(bits(demand), 50);
  EXPECT_EQ(peak(demand), Rate(3'000));
  EXPECT_EQ(peak(multiplied(demand, 3)), Rate(9'000));
  EXPECT_THROW(multiplied(demand, 0), InputError);
  EXPECT_THROW(multiplied({100_ms, {{0_ms, 20_ms, kHighestRate}}}, 4'000'000'000), InputError);
}

TEST(fold, refuses_iterations_beyond_all_time) {
  EXPECT_THROW(fold(std::vector<Bytes>{1000}, 1_ms, Nanos::never(), 10_ms), InputError);
}

TEST(fold, bins_become_bursts) {
  // A bin of 1 ms with 1000 bytes has a rate of 8 Mbps.
  const std::vector<Bytes> series{0, 0, 1000, 1050, 1000, 10, 0, 500, 500, 0, 0, 0, 1000};
  const Demand demand = fold(series, 1_ms, 1_ms, 10_ms);
  ASSERT_EQ(demand.bursts.size(), 2U);
  EXPECT_EQ(demand.period, 10_ms);
  EXPECT_EQ(demand.bursts[0].from, 1_ms);
  EXPECT_EQ(demand.bursts[0].to, 4_ms);
  EXPECT_NEAR(static_cast<double>(demand.bursts[0].rate.bits_per_second), 8e6 * 3.05 / 3, 1);
  EXPECT_EQ(demand.bursts[1], (Burst{6_ms, 8_ms, Rate(4'000'000)}));
  EXPECT_NEAR(bits(demand), 8.0 * (3050 + 1000), 1e-2);  // the 10 bytes of one bin count as silence
}

TEST(fold, levels_apart_are_bursts_of_their_own) {
  const std::vector<Bytes> series{1000, 1000, 600, 600};
  EXPECT_EQ(fold(series, 1_ms, 0_ms, 4_ms).bursts.size(), 2U);
  FoldOptions options;
  options.merge = 0.5;
  const Demand merged = fold(series, 1_ms, 0_ms, 4_ms, options);
  ASSERT_EQ(merged.bursts.size(), 1U);
  EXPECT_NEAR(bits(merged), 8.0 * 3200, 1e-2);
}

TEST(fold, iteration_that_begins_within_a_bin_and_outlasts_the_series) {
  const std::vector<Bytes> series{1000, 1000};
  const Demand demand = fold(series, 2_ms, 1_ms, 10_ms);
  ASSERT_EQ(demand.bursts.size(), 1U);
  EXPECT_EQ(demand.bursts[0], (Burst{0_ms, 3_ms, Rate(4'000'000)}));
  EXPECT_TRUE(fold(series, 2_ms, 8_ms, 10_ms).bursts.empty());
}

TEST(fold, refuses_bad_input) {
  const std::vector<Bytes> series{1000};
  EXPECT_THROW(fold(series, 0_ms, 0_ms, 1_ms), InputError);
  EXPECT_THROW(fold(series, 1_ms, Nanos(-1), 1_ms), InputError);
  EXPECT_THROW(fold(series, 1_ms, 0_ms, 0_ms), InputError);
  FoldOptions options;
  options.silence = 2;
  EXPECT_THROW(fold(series, 1_ms, 0_ms, 1_ms, options), InputError);
  EXPECT_THROW(fold(std::vector<Bytes>{1'000'000'000'000}, Nanos(1), 0_ms, 1_ms), InputError);
}

}  // namespace
}  // namespace mltcp::scheduler
