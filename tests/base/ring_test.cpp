// Compares the ring with a std::deque, over growth and wrap-around.
#include "mltcp/base/ring.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "mltcp/base/random.h"

namespace mltcp {
namespace {

TEST(GrowableRing, empty__has_no_storage) {
  const GrowableRing<int> ring;
  EXPECT_TRUE(ring.empty());
  EXPECT_EQ(ring.size(), 0U);
  EXPECT_EQ(ring.capacity(), 0U);
  EXPECT_EQ(ring.begin(), ring.end());
}

TEST(GrowableRing, reserve__rounds_up_to_a_power_of_two_and_never_shrinks) {
  GrowableRing<int> ring(5);
  EXPECT_EQ(ring.capacity(), 8U);
  ring.reserve(3);
  EXPECT_EQ(ring.capacity(), 8U);
  ring.reserve(9);
  EXPECT_EQ(ring.capacity(), 16U);
}

TEST(GrowableRing, push__returns_the_position_that_names_the_element) {
  GrowableRing<int> ring;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ring.push(i * 10), static_cast<std::uint64_t>(i));
  for (std::uint64_t p = ring.begin(); p != ring.end(); ++p) EXPECT_EQ(ring[p], static_cast<int>(p) * 10);
  ring.pop();
  ring.pop();
  EXPECT_EQ(ring.begin(), 2U);
  EXPECT_EQ(ring.front(), 20);
  EXPECT_EQ(ring.back(), 990);
}

TEST(GrowableRing, push__within_the_reserve_does_not_move_elements) {
  GrowableRing<int> ring(64);
  ring.push(1);
  const int* first = &ring.front();
  for (int i = 0; i < 63; ++i) ring.push(i);
  EXPECT_EQ(&ring.front(), first);
  EXPECT_EQ(ring.capacity(), 64U);
}

TEST(GrowableRing, skip__passes_over_a_position_of_an_empty_ring) {
  GrowableRing<int> ring;
  ring.prefetch();  // prefetching an empty ring is allowed
  ring.skip();
  EXPECT_TRUE(ring.empty());
  EXPECT_EQ(ring.push(7), 1U);
  ring.prefetch();
  EXPECT_EQ(ring.front(), 7);
  ring.pop();
  ring.skip();
  ring.skip();
  EXPECT_EQ(ring.push(8), 4U);
  EXPECT_EQ(ring[4], 8);
  EXPECT_EQ(ring.size(), 1U);
}

TEST(GrowableRing, clear__keeps_positions_going) {
  GrowableRing<int> ring;
  ring.push(1);
  ring.push(2);
  ring.clear();
  EXPECT_TRUE(ring.empty());
  EXPECT_EQ(ring.push(3), 2U);
  EXPECT_EQ(ring.front(), 3);
}

TEST(GrowableRing, truncate__drops_the_youngest_whose_positions_are_given_again) {
  GrowableRing<int> ring;
  for (int i = 0; i < 10; ++i) ring.push(i);
  ring.pop();
  ring.truncate(4);
  EXPECT_EQ(ring.size(), 3U);
  EXPECT_EQ(ring.back(), 3);
  EXPECT_EQ(ring.push(40), 4U);
  ring.truncate(ring.begin());
  EXPECT_TRUE(ring.empty());
  EXPECT_EQ(ring.push(10), 1U);
}

TEST(GrowableRing, holds_what_can_only_be_moved) {
  GrowableRing<std::unique_ptr<int>> ring;
  for (int i = 0; i < 40; ++i) ring.push(std::make_unique<int>(i));
  EXPECT_EQ(*ring.front(), 0);
  EXPECT_EQ(*ring.back(), 39);
}

TEST(GrowableRing, push_reused__hands_out_the_slot_as_it_was_left) {
  GrowableRing<std::vector<int>> ring(2);
  ring.push(std::vector<int>(100, 7));
  const int* memory = ring.front().data();
  ring.pop();
  ring.push({});
  ring.pop();
  std::vector<int>& slot = ring.push_reused();
  EXPECT_EQ(slot.size(), 100U);
  EXPECT_EQ(slot.data(), memory);
  EXPECT_EQ(&slot, &ring.back());
  ring.push_reused();
  ring.push_reused();  // grows
  EXPECT_EQ(ring.size(), 3U);
  EXPECT_EQ(ring.front().data(), memory);
}

TEST(GrowableRing, random_operations__as_a_deque) {
  Random random(3);
  GrowableRing<std::uint64_t> ring;
  std::deque<std::uint64_t> model;
  std::uint64_t begin = 0;
  for (int i = 0; i < 200'000; ++i) {
    // The ring grows and shrinks in long phases, so that it wraps at every fill level.
    const bool growing = (i / 5'000) % 2 == 0;
    if (model.empty() || random.chance(growing ? 0.6 : 0.4)) {
      const std::uint64_t value = random.next();
      ASSERT_EQ(ring.push(value), begin + model.size());
      model.push_back(value);
    } else {
      ASSERT_EQ(ring.front(), model.front());
      ring.pop();
      model.pop_front();
      ++begin;
    }
    ASSERT_EQ(ring.size(), model.size());
    ASSERT_EQ(ring.begin(), begin);
    if (!model.empty()) {
      const std::uint64_t at = random.below(model.size());
      ASSERT_EQ(ring[begin + at], model[at]);
      ASSERT_EQ(ring.back(), model.back());
    }
  }
}

}  // namespace
}  // namespace mltcp
