// Tests the event queue (lab/sim/event_queue.h) against a plain ordered set.
#include "mltcp/lab/sim/event_queue.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "mltcp/base/random.h"

namespace mltcp::sim {
namespace {

using namespace mltcp::literals;

TEST(EventQueue, set__orders_by_time_then_source) {
  EventQueue queue;
  queue.add(2);
  queue.add(EventQueue::kSecond + 1);
  EXPECT_TRUE(queue.empty());
  queue.set(EventQueue::kSecond, 5_ns);
  queue.set(2, 5_ns);
  queue.set(1, 7_ns);
  EXPECT_EQ(queue.source(), 2U);
  EXPECT_EQ(queue.time(), 5_ns);
  queue.set(2, Nanos::never());
  EXPECT_EQ(queue.source(), EventQueue::kSecond);
  queue.set(1, 5_ns);
  EXPECT_EQ(queue.source(), 1U);
  EXPECT_EQ(queue.time(EventQueue::kSecond), 5_ns);
  EXPECT_TRUE(queue.time(EventQueue::kSecond + 1).is_never());
}

TEST(EventQueue, set__matches_an_ordered_set) {
  EventQueue queue;
  constexpr std::uint32_t each = 40;
  queue.add(each - 1);
  queue.add(EventQueue::kSecond + each - 1);
  std::set<std::pair<std::int64_t, EventQueue::Source>> model;
  std::vector<std::int64_t> times(std::size_t{2} * each, -1);
  Random random(5);
  for (int i = 0; i < 200'000; ++i) {
    const auto index = static_cast<std::uint32_t>(random.below(std::uint64_t{2} * each));
    const EventQueue::Source source = index < each ? index : EventQueue::kSecond + (index - each);
    const std::int64_t time = random.chance(0.2) ? -1 : static_cast<std::int64_t>(random.below(50));
    if (times[index] >= 0) model.erase({times[index], source});
    if (time >= 0) model.insert({time, source});
    times[index] = time;
    queue.set(source, time < 0 ? Nanos::never() : Nanos(time));
    ASSERT_EQ(queue.empty(), model.empty());
    if (model.empty()) continue;
    ASSERT_EQ(queue.time().count, model.begin()->first);
    ASSERT_EQ(queue.source(), model.begin()->second);
  }
}

}  // namespace
}  // namespace mltcp::sim
