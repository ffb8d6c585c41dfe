// Tests that the scaled TSC agrees with CLOCK_MONOTONIC.
#include "mltcp/base/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace mltcp {
namespace {

TEST(Clock, ReadsTheMonotonicClockBeforeCalibration) {
  const Clock clock;
  EXPECT_FALSE(clock.uses_tsc());
  const Nanos before = monotonic_now();
  const Nanos time = clock.now();
  EXPECT_LE(before, time);
  EXPECT_LE(time, monotonic_now());
  EXPECT_EQ(clock.ticks_per_second(), 0);
}

TEST(Clock, FollowsTheMonotonicClockAfterCalibration) {
  Clock clock;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  clock.calibrate();
  if (!has_invariant_tsc()) GTEST_SKIP() << "this CPU has no invariant TSC";
  ASSERT_TRUE(clock.uses_tsc());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  // A context switch between the two clock readings makes their difference larger. The test therefore takes the
  // smallest difference of 100 pairs.
  std::int64_t min = 1'000'000'000;
  for (int i = 0; i < 100; ++i) {
    const std::int64_t difference = (clock.now() - monotonic_now()).count;
    if (std::abs(difference) < std::abs(min)) min = difference;
  }
  EXPECT_LT(std::abs(min), 20'000) << "after 400 ms";
}

TEST(Clock, DoesNotGoBack) {
  Clock clock;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  clock.calibrate();
  Nanos last = clock.now();
  for (int i = 0; i < 100'000; ++i) {
    const Nanos now = clock.now();
    ASSERT_LE(last, now);
    last = now;
  }
}

}  // namespace
}  // namespace mltcp
