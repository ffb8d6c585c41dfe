// Tests the system's clock and its waits.
#include "mltcp/base/time_source.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace mltcp {
namespace {

class SystemTimeTest : public testing::Test {
 protected:
  ~SystemTimeTest() override { close(file_); }
  const Clock clock_;
  SystemTime time_{clock_};
  const int file_ = eventfd(0, EFD_NONBLOCK);
};

TEST_F(SystemTimeTest, sleep__is_as_long_as_asked_for) {
  const Nanos before = time_.now();
  time_.sleep(Nanos(2'000'000));
  EXPECT_GE(time_.now() - before, Nanos(2'000'000));
  time_.pause();
}

TEST_F(SystemTimeTest, wait__ends_with_time_or_by_a_file) {
  const std::array<int, 1> files{file_};
  const Nanos before = time_.now();
  EXPECT_EQ(time_.wait(files, Nanos(2'000'000)), WaitEnd::timed_out);
  EXPECT_GE(time_.now() - before, Nanos(2'000'000));
  const std::uint64_t one = 1;
  ASSERT_EQ(write(file_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  EXPECT_EQ(time_.wait(files, Nanos(900'000'000)), WaitEnd::readable);
}

TEST_F(SystemTimeTest, wait__tells_of_a_file_that_has_failed) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  close(ends[1]);  // no writer remains, so the pipe reports a hang-up
  const std::array<int, 2> files{file_, ends[0]};
  EXPECT_EQ(time_.wait(files, Nanos(900'000'000)), WaitEnd::failed);
  close(ends[0]);
}

TEST_F(SystemTimeTest, begin_loop__makes_sleeps_precise_until_its_end) {
  const int before = prctl(PR_GET_TIMERSLACK);
  time_.begin_loop();
  EXPECT_EQ(prctl(PR_GET_TIMERSLACK), 1);
  time_.end_loop();
  EXPECT_EQ(prctl(PR_GET_TIMERSLACK), before);
}

}  // namespace
}  // namespace mltcp
