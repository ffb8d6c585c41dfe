// Compares the indexed heap of deadlines with a std::multimap, with random changes and removals.
#include "mltcp/transport/deadline_heap.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "mltcp/base/random.h"

namespace mltcp {
namespace {

TEST(DeadlineHeap, empty__has_no_next) {
  DeadlineHeap heap;
  EXPECT_TRUE(heap.next().is_never());
  heap.reserve(4);
  heap.set(2, Nanos::never());
  EXPECT_TRUE(heap.next().is_never());
  EXPECT_TRUE(heap.at(2).is_never());
}

TEST(DeadlineHeap, set__moves_earlier_and_later) {
  DeadlineHeap heap;
  heap.reserve(3);
  heap.set(0, Nanos(30));
  heap.set(1, Nanos(20));
  heap.set(2, Nanos(10));
  EXPECT_EQ(heap.top(), 2u);
  heap.set(2, Nanos(40));
  EXPECT_EQ(heap.top(), 1u);
  heap.set(0, Nanos(5));
  EXPECT_EQ(heap.top(), 0u);
  EXPECT_EQ(heap.next(), Nanos(5));
  EXPECT_EQ(heap.at(0), Nanos(5));
  EXPECT_EQ(heap.at(2), Nanos(40));
  heap.set(0, Nanos::never());
  EXPECT_EQ(heap.top(), 1u);
}

TEST(DeadlineHeap, reserve__more_keeps_what_is_set) {
  DeadlineHeap heap;
  heap.reserve(1);
  heap.set(0, Nanos(7));
  heap.reserve(100);
  heap.set(99, Nanos(3));
  EXPECT_EQ(heap.top(), 99u);
  heap.set(99, Nanos::never());
  EXPECT_EQ(heap.top(), 0u);
  EXPECT_EQ(heap.next(), Nanos(7));
}

TEST(DeadlineHeap, random_operations__equal_a_multimap) {
  constexpr std::uint32_t ids = 64;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    DeadlineHeap heap;
    heap.reserve(ids);
    std::multimap<Nanos, std::uint32_t> model;
    std::vector<Nanos> at(ids, Nanos::never());
    const auto set = [&](std::uint32_t id, Nanos when) {
      if (!at[id].is_never()) {
        auto [begin, end] = model.equal_range(at[id]);
        while (begin->second != id) ++begin;
        model.erase(begin);
      }
      at[id] = when;
      if (!when.is_never()) model.emplace(when, id);
      heap.set(id, when);
    };
    for (int step = 0; step < 5000; ++step) {
      const auto id = static_cast<std::uint32_t>(random.below(ids));
      if (random.chance(0.2) && !model.empty())
        set(heap.top(), Nanos::never());
      else
        set(id, random.chance(0.2) ? Nanos::never() : Nanos(static_cast<std::int64_t>(random.below(50))));
      ASSERT_EQ(heap.next(), model.empty() ? Nanos::never() : model.begin()->first);
      if (!model.empty()) {
        ASSERT_EQ(at[heap.top()], heap.next());
      }
    }
    while (!model.empty()) {
      ASSERT_EQ(heap.next(), model.begin()->first);
      set(heap.top(), Nanos::never());
    }
    ASSERT_TRUE(heap.next().is_never());
  }
}

}  // namespace
}  // namespace mltcp
