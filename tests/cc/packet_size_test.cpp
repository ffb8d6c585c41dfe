// Tests a path whose packets become longer during a connection: windows keep their number of bytes, and steps use the
// new packet size.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "mltcp/cc/controller.h"
#include "mltcp/cc/registry.h"

namespace mltcp::cc::packet_size_test {
namespace {

constexpr std::uint32_t kShorter = 1000;
constexpr std::uint32_t kLonger = 4000;
constexpr Nanos kRoundTrip{1'000'000};

struct Driver {
  explicit Driver(std::string_view name)
      : controller(find_algorithm(name), {.max_packet_bytes = kShorter, .max_rate = Rate(1'000'000'000)}) {}
  /// Acknowledges `bytes` after one round trip.
  void ack(Bytes bytes) {
    AckSample ack;
    now += kRoundTrip;
    ack.now = now;
    ack.acked_bytes = bytes;
    ack.acked_packets = static_cast<std::uint32_t>(bytes / 1000);
    ack.smoothed_rtt = ack.min_rtt = ack.latest_rtt = kRoundTrip;
    ack.cwnd_limited = true;
    ack.round_count = ++rounds;
    controller.on_ack(ack);
  }
  void grow() { controller.on_packet_size({.max_packet_bytes = kLonger, .max_rate = Rate(1'000'000'000)}); }
  [[nodiscard]] double window() const { return controller.output().cwnd_bytes; }
  Controller controller;
  Nanos now{1'000'000'000};
  std::uint64_t rounds = 0;
};

TEST(PacketSize, longer__every_algorithm_keeps_its_window) {
  for (const std::string name : {"reno", "cubic", "dctcp", "swift", "nscc"}) {
    SCOPED_TRACE(name);
    Driver driver(name);
    for (int i = 0; i < 4; ++i) driver.ack(static_cast<Bytes>(driver.window()));
    driver.controller.on_congestion({driver.now, CongestionEvent::Cause::loss, 0});
    const double before = driver.window();
    ASSERT_GT(before, kLonger);
    driver.grow();
    EXPECT_NEAR(driver.window(), before, name == "swift" || name == "nscc" ? kLonger : 1e-6)
        << "whole packets, in the case of Swift and NSCC";
  }
}

TEST(PacketSize, longer__window_has_room_for_two) {
  for (const std::string name : {"reno", "cubic", "dctcp"}) {
    Driver driver(name);
    driver.controller.on_timeout(driver.now);
    ASSERT_LT(driver.window(), kLonger);
    driver.grow();
    EXPECT_DOUBLE_EQ(driver.window(), 2.0 * kLonger) << name;
  }
}

TEST(PacketSize, longer__a_step_is_of_that_size) {
  for (const std::string name : {"reno", "dctcp"}) {
    Driver driver(name);
    for (int i = 0; i < 4; ++i) driver.ack(static_cast<Bytes>(driver.window()));
    driver.controller.on_congestion({driver.now, CongestionEvent::Cause::loss, 0});
    const double before = driver.window();
    driver.grow();
    driver.ack(static_cast<Bytes>(before));
    EXPECT_DOUBLE_EQ(driver.window(), before + kLonger) << name;
  }
}

TEST(PacketSize, longer__cubic_grows_in_the_new_unit) {
  // CUBIC's constant C is in packets / s^3, so the growth of the window in bytes is proportional to the packet size.
  double gained[2] = {};
  for (const bool grows : {false, true}) {
    Driver driver("cubic");
    for (int i = 0; i < 4; ++i) driver.ack(static_cast<Bytes>(driver.window()));
    driver.controller.on_congestion({driver.now, CongestionEvent::Cause::loss, 0});
    driver.ack(1000);
    if (grows) driver.grow();
    const double before = driver.window();
    for (int i = 0; i < 20; ++i) driver.ack(static_cast<Bytes>(driver.window()));
    gained[grows ? 1 : 0] = driver.window() - before;
  }
  EXPECT_GT(gained[1], 2 * gained[0]);
}

TEST(PacketSize, longer__dcqcn_keeps_its_rate_and_a_window_of_ten) {
  Driver driver("dcqcn");
  driver.controller.on_timeout(driver.now);
  const Rate rate = driver.controller.output().pacing_rate;
  driver.grow();
  EXPECT_EQ(driver.controller.output().pacing_rate, rate);
  EXPECT_DOUBLE_EQ(driver.window(), 10.0 * kLonger);
}

/// An algorithm that does not support changes of the packet size.
struct Fixed {
  static constexpr std::string_view name = "fixed";
  static constexpr Capabilities capabilities{};
  void start(const PathInfo& path, Output& out) { out.cwnd_bytes = path.max_packet_bytes; }
  void on_ack(const AckSample&, Output& out) { out.cwnd_bytes += 1; }
  void on_congestion(const CongestionEvent&, Output&) {}
  void on_timeout(Nanos, Output&) {}
  void on_spurious_congestion(Nanos, Output&) {}
  void on_timer(Nanos, Output&) {}
  void on_idle_restart(Nanos, Output&) {}
};
static_assert(!ChangesPacketSize<Fixed>);

TEST(PacketSize, algorithm_that_knows_nothing_of_it__starts_anew) {
  Controller controller(table_of<Fixed>(), {.max_packet_bytes = kShorter, .max_rate = {}});
  controller.on_ack({});
  controller.on_packet_size({.max_packet_bytes = kLonger, .max_rate = {}});
  EXPECT_DOUBLE_EQ(controller.output().cwnd_bytes, kLonger);
}

}  // namespace
}  // namespace mltcp::cc::packet_size_test
