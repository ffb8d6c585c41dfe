// The time that packets spend in queues on their way to the peer (transport/internal/forward_delay.h).
#include "mltcp/transport/internal/forward_delay.h"

#include <gtest/gtest.h>

namespace mltcp::transport {
namespace {

using namespace literals;

/// A path of 40 us to a peer whose clock differs by `offset` and runs faster by `ppm`.
struct Path {
  std::int64_t offset = 0;
  double ppm = 0;
  [[nodiscard]] std::uint32_t arrival(Nanos sent, Nanos queue) const {
    const Nanos at = sent + 40_us + queue;
    return static_cast<std::uint32_t>(at.count + offset + static_cast<std::int64_t>(ppm * 1e-6 * at.seconds() * 1e9));
  }
};

TEST(ForwardDelay, queue__is_known_from_the_second_packet_whatever_the_clocks_show) {
  for (const std::int64_t offset : {0L, 1L << 31, -(1L << 40), 123'456'789L}) {
    const Path path{offset};
    ForwardDelay delay;
    EXPECT_EQ(delay.queue(path.arrival(1_s, 0_us), 1_s, true, 0), 0_us);
    EXPECT_EQ(delay.queue(path.arrival(1_s + 1_us, 70_us), 1_s + 1_us, true, 0), 70_us);
    EXPECT_EQ(delay.queue(path.arrival(1_s + 2_us, 0_us), 1_s + 2_us, true, 0), 0_us);
  }
}

TEST(ForwardDelay, short_packets__do_not_set_the_minimum) {
  ForwardDelay delay;
  EXPECT_EQ(delay.queue(1'000, 0_ns, false, 0), 0_ns) << "not known yet";
  delay.queue(40'000, 0_ns, true, 0);
  EXPECT_EQ(delay.queue(10'000, 0_ns, false, 0), 0_ns);
  EXPECT_EQ(delay.queue(45'000, 0_ns, true, 0), 5_us);
}

TEST(ForwardDelay, another_measurement__begins_with_another_minimum) {
  ForwardDelay delay;
  delay.queue(40'000, 0_ns, true, 0);
  EXPECT_EQ(delay.queue(45'000, 0_ns, true, 0), 5_us);
  EXPECT_EQ(delay.queue(45'000, 0_ns, true, 1), 0_ns);
  EXPECT_EQ(delay.queue(46'000, 0_ns, true, 1), 1_us);
}

TEST(ForwardDelay, disciplined_clocks__do_not_look_like_a_queue) {
  for (const double ppm : {7.0, -7.0}) {
    const Path path{.ppm = ppm};
    ForwardDelay delay;
    for (Nanos now = 1_s; now < 600_s; now += 100_ms)
      ASSERT_LT(delay.queue(path.arrival(now, 0_us), now, true, 0), 1_us);
  }
}

TEST(ForwardDelay, queue__is_still_seen_after_a_second) {
  const Path path;
  ForwardDelay delay;
  delay.queue(path.arrival(1_s, 0_us), 1_s, true, 0);
  EXPECT_NEAR(static_cast<double>(delay.queue(path.arrival(2_s, 100_us), 2_s, true, 0).count), 100'000, 10'000);
}

TEST(ForwardDelay, reset__forgets) {
  ForwardDelay delay;
  delay.queue(0, 0_ns, true, 0);
  delay.reset();
  EXPECT_EQ(delay.queue(90'000, 0_ns, true, 0), 0_ns);
}

}  // namespace
}  // namespace mltcp::transport
