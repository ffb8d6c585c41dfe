// Tests the number of bytes that a worker sends in a collective.
#include "mltcp/lab/workload/collective.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace mltcp::workload {
namespace {

constexpr std::array<Collective, 7> kAll{
    Collective::none,       Collective::all_reduce, Collective::all_gather,           Collective::reduce_scatter,
    Collective::all_to_all, Collective::broadcast,  Collective::all_reduce_all_to_all};

TEST(Collective, bytes_sent__by_algorithm) {
  EXPECT_EQ(bytes_sent(Collective::none, 1000, 4), 0U);
  EXPECT_EQ(bytes_sent(Collective::all_reduce, 1000, 4), 1500U);
  EXPECT_EQ(bytes_sent(Collective::all_gather, 1000, 4), 750U);
  EXPECT_EQ(bytes_sent(Collective::reduce_scatter, 1000, 4), 750U);
  EXPECT_EQ(bytes_sent(Collective::all_to_all, 1000, 4), 750U);
  EXPECT_EQ(bytes_sent(Collective::broadcast, 1000, 4), 1000U);
  EXPECT_EQ(bytes_sent(Collective::all_reduce_all_to_all, 1000, 4), 2250U);
}

TEST(Collective, bytes_sent__all_gather_of_shards) {
  EXPECT_EQ(bytes_sent(Collective::all_gather, 250, 4, GatherSize::shard), 750U);
  EXPECT_EQ(bytes_sent(Collective::reduce_scatter, 1000, 4, GatherSize::shard), 750U);
}

TEST(Collective, bytes_sent__two_workers) {
  EXPECT_EQ(bytes_sent(Collective::all_reduce, 1000, 2), 1000U);
  EXPECT_EQ(bytes_sent(Collective::all_to_all, 1000, 2), 500U);
}

TEST(Collective, bytes_sent__rounds_up) {
  EXPECT_EQ(bytes_sent(Collective::all_reduce, 1, 3), 2U);   // 1.33
  EXPECT_EQ(bytes_sent(Collective::all_gather, 10, 3), 7U);  // 6.67
  EXPECT_EQ(bytes_sent(Collective::all_gather, 9, 3), 6U);
}

TEST(Collective, bytes_sent__alone_or_empty_sends_nothing) {
  for (const Collective collective : kAll) {
    EXPECT_EQ(bytes_sent(collective, 1000, 1), 0U) << name(collective);
    EXPECT_EQ(bytes_sent(collective, 1000, 0), 0U) << name(collective);
    EXPECT_EQ(bytes_sent(collective, 0, 8), 0U) << name(collective);
  }
}

// The intermediate products exceed 64 bits.
TEST(Collective, bytes_sent__large_sizes_do_not_wrap) {
  constexpr Bytes size = 4'000'000'000'000'000'000;
  EXPECT_EQ(bytes_sent(Collective::all_reduce, size, 1'000'000), 7'999'992'000'000'000'000U);
  EXPECT_EQ(bytes_sent(Collective::all_gather, size, 4'000'000'000), 3'999'999'999'000'000'000U);
}

TEST(Collective, bytes_sent__nothing_when_63_bits_do_not_hold_it) {
  constexpr Bytes max = std::numeric_limits<Bytes>::max();
  EXPECT_EQ(bytes_sent(Collective::all_reduce, max, 4'000'000'000), std::nullopt);
  EXPECT_EQ(bytes_sent(Collective::broadcast, max, 2), std::nullopt);
  EXPECT_EQ(bytes_sent(Collective::all_gather, Bytes{1} << 62, 4, GatherSize::shard), std::nullopt);
  EXPECT_EQ(bytes_sent(Collective::all_gather, max, 4'294'967'295, GatherSize::shard), std::nullopt);
}

TEST(Collective, name__all_differ) {
  for (const Collective a : kAll)
    for (const Collective b : kAll) EXPECT_EQ(name(a) == name(b), a == b);
}

}  // namespace
}  // namespace mltcp::workload
