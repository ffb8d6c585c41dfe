// Compares the range set with a std::set of every position, with random operations. Also checks the guarantees about
// the ranges.
#include "mltcp/transport/internal/range_set.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "mltcp/base/random.h"

namespace mltcp::transport {
namespace {

using Pairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Pairs ranges_of(const RangeSet& set) {
  Pairs result;
  for (std::size_t i = 0; i < set.size(); ++i) result.emplace_back(set[i].begin, set[i].end);
  return result;
}

Pairs gaps_of(const RangeSet& set, std::uint64_t begin, std::uint64_t end) {
  Pairs result;
  set.for_gaps(begin, end, [&](std::uint64_t a, std::uint64_t b) { result.emplace_back(a, b); });
  return result;
}

TEST(RangeSet, empty__contains_nothing) {
  const RangeSet set;
  EXPECT_TRUE(set.empty());
  EXPECT_FALSE(set.contains(0));
  EXPECT_TRUE(set.would_grow(0, 1));
  EXPECT_EQ(gaps_of(set, 3, 9), (Pairs{{3, 9}}));
}

TEST(RangeSet, add__grows_at_the_end) {
  RangeSet set;
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(set.add(i, i + 1), 1u);
  EXPECT_EQ(ranges_of(set), (Pairs{{0, 100}}));
  EXPECT_EQ(set.add(99, 100), 0u);
  EXPECT_EQ(set.add(50, 120), 20u);
  EXPECT_EQ(set.back().end, 120u);
}

TEST(RangeSet, add__nothing_adds_nothing) {
  RangeSet set;
  EXPECT_EQ(set.add(5, 5), 0u);
  EXPECT_EQ(set.add(7, 3), 0u);
  EXPECT_TRUE(set.empty());
}

TEST(RangeSet, add__merges_neighbours_that_touch) {
  RangeSet set;
  set.add(10, 20);
  set.add(30, 40);
  set.add(50, 60);
  EXPECT_EQ(set.add(20, 30), 10u);
  EXPECT_EQ(ranges_of(set), (Pairs{{10, 40}, {50, 60}}));
  EXPECT_EQ(set.add(5, 55), 5u + 10u);
  EXPECT_EQ(ranges_of(set), (Pairs{{5, 60}}));
}

TEST(RangeSet, add__fills_below_and_between) {
  RangeSet set;
  set.add(100, 110);
  EXPECT_EQ(set.add(10, 20), 10u);
  EXPECT_EQ(set.add(50, 60), 10u);
  EXPECT_EQ(ranges_of(set), (Pairs{{10, 20}, {50, 60}, {100, 110}}));
  EXPECT_EQ(set.add(0, 10), 10u);
  EXPECT_EQ(ranges_of(set), (Pairs{{0, 20}, {50, 60}, {100, 110}}));
}

TEST(RangeSet, add__positions_up_to_the_largest) {
  constexpr std::uint64_t top = std::numeric_limits<std::uint64_t>::max();
  RangeSet set;
  EXPECT_EQ(set.add(top - 1, top), 1u);
  EXPECT_TRUE(set.contains(top - 1));
  EXPECT_FALSE(set.contains(top));
  EXPECT_FALSE(set.contains(top - 2));
  EXPECT_EQ(set.add(0, top), top - 1);
}

TEST(RangeSet, clear__forgets) {
  RangeSet set;
  set.add(1, 5);
  set.clear();
  EXPECT_TRUE(set.empty());
  EXPECT_FALSE(set.contains(2));
}

TEST(RangeSet, remove_highest_range__leaves_the_others) {
  RangeSet set;
  set.remove_highest_range();
  EXPECT_TRUE(set.empty());
  set.add(1, 3);
  set.add(5, 6);
  set.add(9, 20);
  set.remove_highest_range();
  EXPECT_EQ(set.size(), 2u);
  EXPECT_EQ(set.back().begin, 5u);
  EXPECT_EQ(set.back().end, 6u);
  EXPECT_FALSE(set.contains(9));
  set.add(6, 8);
  EXPECT_EQ(set.back().end, 8u);
  set.remove_highest_range();
  set.remove_highest_range();
  EXPECT_TRUE(set.empty());
  EXPECT_FALSE(set.contains(1));
}

TEST(RangeSet, remove_lowest_range_but__spares_the_range_of_the_position) {
  const auto left = [](std::uint64_t position, bool three) {
    RangeSet set;
    set.add(1, 3);
    set.add(5, 8);
    if (three) set.add(10, 12);
    set.remove_lowest_range_but(position);
    Pairs ranges;
    for (std::size_t i = 0; i < set.size(); ++i) ranges.emplace_back(set[i].begin, set[i].end);
    return ranges;
  };
  for (const std::uint64_t position : {1U, 2U}) {
    EXPECT_EQ(left(position, true), (Pairs{{1, 3}, {10, 12}}));
    EXPECT_EQ(left(position, false), (Pairs{{1, 3}}));
  }
  for (const std::uint64_t position : {0U, 3U, 5U, 11U}) {
    EXPECT_EQ(left(position, true), (Pairs{{5, 8}, {10, 12}}));
    EXPECT_EQ(left(position, false), (Pairs{{5, 8}}));
  }
}

TEST(RangeSet, random_operations__equal_a_set_of_positions) {
  constexpr std::uint64_t universe = 200;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    RangeSet set;
    std::set<std::uint64_t> model;
    for (int step = 0; step < 400; ++step) {
      const std::uint64_t begin = random.below(universe);
      const std::uint64_t end = begin + random.below(1 + random.below(random.chance(0.1) ? 100 : 6));
      switch (random.below(12)) {
        case 0:
          set.remove_below(begin);
          model.erase(model.begin(), model.lower_bound(begin));
          break;
        case 1:
          if (set.size() > 1 && random.chance(0.3)) {
            const RangeSet::Range gone = set[set[0].begin <= begin && begin < set[0].end ? 1 : 0];
            set.remove_lowest_range_but(begin);
            model.erase(model.lower_bound(gone.begin), model.lower_bound(gone.end));
          }
          break;
        default: {
          const std::size_t before = model.size();
          const std::size_t ranges_before = set.size();
          const bool grows = begin < end && set.would_grow(begin, end);
          for (std::uint64_t p = begin; p < end; ++p) model.insert(p);
          ASSERT_EQ(set.add(begin, end), model.size() - before);
          ASSERT_EQ(grows, set.size() > ranges_before);
        }
      }
      // The ranges must be sorted, disjoint, not adjacent and not empty, and must contain the same positions as the
      // model.
      std::size_t count = 0;
      for (std::size_t i = 0; i < set.size(); ++i) {
        ASSERT_LT(set[i].begin, set[i].end);
        if (i > 0) {
          ASSERT_LT(set[i - 1].end, set[i].begin);
        }
        count += set[i].end - set[i].begin;
      }
      ASSERT_EQ(count, model.size());
      ASSERT_EQ(set.empty(), model.empty());
      for (std::uint64_t p = 0; p < universe + 110; ++p) ASSERT_EQ(set.contains(p), model.contains(p)) << p;
      const std::uint64_t from = random.below(universe);
      const std::uint64_t to = from + random.below(100);
      std::uint64_t next = from;
      Pairs expected;
      while (next < to) {
        while (next < to && model.contains(next)) ++next;
        const std::uint64_t gap = next;
        while (next < to && !model.contains(next)) ++next;
        if (gap < next) expected.emplace_back(gap, next);
      }
      ASSERT_EQ(gaps_of(set, from, to), expected);
    }
  }
}

}  // namespace
}  // namespace mltcp::transport
