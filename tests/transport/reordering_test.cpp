// Tests what the sender learns from packets that arrive late, and when it forgets this.
#include "mltcp/transport/internal/reordering.h"

#include <gtest/gtest.h>

namespace mltcp::transport::reordering_test {
namespace {

using namespace literals;

constexpr Nanos kRoundTrip{100'000};

TEST(Reordering, unseen__has_the_thresholds_of_rfc_9002) {
  const Reordering reordering(false);
  EXPECT_FALSE(reordering.seen());
  EXPECT_EQ(reordering.packet_threshold(), 3U);
  EXPECT_EQ(reordering.window(), 0_ns);
}

TEST(Reordering, on_late__raises_both_as_far_as_was_seen) {
  Reordering reordering(false);
  reordering.on_late(5, 80_us, 0, kRoundTrip);
  EXPECT_TRUE(reordering.seen());
  EXPECT_EQ(reordering.packet_threshold(), 6U);
  EXPECT_EQ(reordering.window(), 90_us) << "and an eighth";
  reordering.on_late(7, 8_us, 0, kRoundTrip);
  EXPECT_EQ(reordering.packet_threshold(), 8U);
  EXPECT_EQ(reordering.window(), 90_us) << "less takes nothing back";
  reordering.on_late(1, 160_us, 0, kRoundTrip);
  EXPECT_EQ(reordering.packet_threshold(), 8U);
  EXPECT_EQ(reordering.window(), 180_us);
}

TEST(Reordering, on_late__within_the_round_trip_is_a_matter_of_packets) {
  Reordering reordering(false);
  reordering.on_late(1, Nanos(-50'000), 0, kRoundTrip);
  EXPECT_TRUE(reordering.seen());
  EXPECT_EQ(reordering.packet_threshold(), 3U) << "never below the first";
  EXPECT_EQ(reordering.window(), 0_ns);
}

TEST(Reordering, beyond_63_packets__only_time_counts) {
  Reordering reordering(false);
  reordering.on_late(63, 0_ns, 0, kRoundTrip);
  EXPECT_EQ(reordering.packet_threshold(), 64U);
  reordering.on_late(64, 0_ns, 0, kRoundTrip);
  EXPECT_EQ(reordering.packet_threshold(), Reordering::kNoThreshold);
  reordering.on_late(1'000'000, 0_ns, 0, kRoundTrip);
  EXPECT_EQ(reordering.packet_threshold(), Reordering::kNoThreshold);
}

TEST(Reordering, window__is_bounded_by_10_ms_or_two_round_trips) {
  Reordering quick(false);
  quick.on_late(1, 9_s, 0, kRoundTrip);
  EXPECT_EQ(quick.window(), 10_ms);
  Reordering slow(false);
  slow.on_late(1, 9_s, 0, 20_ms);
  EXPECT_EQ(slow.window(), 40_ms);
  Reordering broken(false);
  broken.on_late(1, 99_s, 0, 10_s);
  EXPECT_EQ(broken.window(), 2_s);
}

TEST(Reordering, on_round__forgets_after_a_period_without) {
  Reordering reordering(false);
  reordering.on_late(10, 80_us, 1000, kRoundTrip);
  reordering.on_round(1000 + Reordering::kPeriod - 1, kRoundTrip);
  reordering.on_round(1000 + Reordering::kPeriod, kRoundTrip);
  EXPECT_EQ(reordering.packet_threshold(), 11U) << "of the period before";
  reordering.on_late(4, 40_us, 1000 + Reordering::kPeriod + 5, kRoundTrip);
  EXPECT_EQ(reordering.packet_threshold(), 11U);
  EXPECT_EQ(reordering.window(), 90_us);
  reordering.on_round(1000 + 2 * Reordering::kPeriod, kRoundTrip);
  EXPECT_EQ(reordering.packet_threshold(), 5U) << "of what was seen lately";
  EXPECT_EQ(reordering.window(), 45_us);
  reordering.on_round(1000 + 3 * Reordering::kPeriod, kRoundTrip);
  EXPECT_FALSE(reordering.seen());
  EXPECT_EQ(reordering.packet_threshold(), 3U);
  EXPECT_EQ(reordering.window(), 0_ns);
}

TEST(Reordering, periods__begin_with_what_was_seen_first) {
  Reordering reordering(false);
  // close to 2^32, because round trips are counted modulo 2^32
  const std::uint64_t late = (std::uint64_t{1} << 32) - 10;
  reordering.on_late(10, 80_us, late, kRoundTrip);
  reordering.on_round(late + Reordering::kPeriod - 1, kRoundTrip);
  reordering.on_late(20, 160_us, late + Reordering::kPeriod - 1, kRoundTrip);
  reordering.on_round(late + Reordering::kPeriod, kRoundTrip);
  reordering.on_round(late + 2 * Reordering::kPeriod - 1, kRoundTrip);
  EXPECT_EQ(reordering.packet_threshold(), 21U);
  reordering.on_round(late + 2 * Reordering::kPeriod, kRoundTrip);
  EXPECT_FALSE(reordering.seen());
}

}  // namespace
}  // namespace mltcp::transport::reordering_test
