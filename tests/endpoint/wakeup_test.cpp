// Tests the eventfd by which posts wake a sleeping thread.
#include "mltcp/endpoint/internal/wakeup.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

namespace mltcp::endpoint {
namespace {

bool readable(const Wakeup& wakeup) {
  pollfd file{.fd = wakeup.file(), .events = POLLIN, .revents = 0};
  return poll(&file, 1, 0) == 1;
}

TEST(Wakeup, wake__ends_a_sleep_that_is_armed_and_no_other) {
  Wakeup wakeup;
  EXPECT_FALSE(wakeup.wake());
  wakeup.arm();
  EXPECT_FALSE(readable(wakeup));
  EXPECT_TRUE(wakeup.wake());
  EXPECT_FALSE(wakeup.wake()) << "once is enough";
  EXPECT_TRUE(readable(wakeup));
  wakeup.disarm();
  EXPECT_FALSE(readable(wakeup));
}

// A waking thread may be delayed between announcing its write and writing, while the sleeping thread continues.
TEST(Wakeup, writes_that_come_late__end_one_sleep_and_not_all) {
  constexpr int rounds = 200;
  constexpr int sleeps = 20'000;
  for (int round = 0; round < rounds; ++round) {
    Wakeup wakeup;
    std::atomic<bool> stop{false};
    std::thread waker([&] {
      while (!stop.load(std::memory_order_relaxed)) wakeup.wake();
    });
    for (int i = 0; i < sleeps; ++i) {
      wakeup.arm();
      wakeup.disarm();
    }
    stop.store(true);
    waker.join();
    for (int i = 0; i < 2; ++i) {
      wakeup.arm();
      wakeup.disarm();
    }
    ASSERT_FALSE(readable(wakeup)) << "every sleep would end at once from here on";
  }
}

}  // namespace
}  // namespace mltcp::endpoint
