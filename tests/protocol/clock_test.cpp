// Tests wrong clocks: clocks that are set back, that jump ahead, or that are at the limits of their range. A shard's
// time must never decrease, and no data may be lost. TestNetwork checks that no shard is polled without end, and
// sanitizers check that no sum overflows.
#include <gtest/gtest.h>

#include "../transport/test_network.h"
#include "mltcp/transport/internal/rtt.h"

namespace mltcp::transport {
namespace {

using namespace testing_network;
using ClockConnected = ConnectedTest;

/// Sends a message of 300 packets, and changes the client's clock by `jump` while packets are in flight.
void expect_transfer_over(Nanos jump, Pair& pair) {
  const auto [c, s] = pair.connect();
  const auto message = random_bytes(300 * kFullPayload);
  ByteVector buffer(message.size());
  ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  pair.run_for(1_ms);
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  pair.run_for(120_us);
  ASSERT_GT(pair.c().stats(c)->in_flight, 0u);
  pair.client().clock = jump;
  ASSERT_TRUE(pair.transfer(1, 1, 60_s));
  EXPECT_EQ(buffer, message);
  const ConnectionStats stats = pair.c().stats(c).value();
  EXPECT_GE(stats.smoothed_rtt.count, 0);
  EXPECT_GE(stats.min_rtt.count, 0);
  EXPECT_LE(stats.smoothed_rtt, RttEstimator::kLongest);
  EXPECT_LT(stats.lost_packets, 400u);
  EXPECT_LT(stats.packets_sent, 2000u);
}

TEST(Clock, set_back_by_a_second__nothing_is_lost) {
  Pair pair;
  expect_transfer_over(Nanos(-1'000'000'000), pair);
  EXPECT_EQ(pair.client().of(Kind::sent).front().status, Status::ok);
}

TEST_F(ClockConnected, set_back_again_and_again__nothing_is_lost) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
    pair.client().clock = Nanos(i % 2 == 0 ? -1'000'000 : 0);
    ASSERT_TRUE(pair.transfer(1, 1, 10_s)) << i;
    ASSERT_GE(pair.c().stats(c)->min_rtt.count, 0);
  }
  EXPECT_EQ(pair.c().stats(c)->lost_packets, 0u);
}

TEST(Clock, jump_ahead_by_hours__neither_spins_nor_takes_hours_after) {
  for (const Nanos jump : {20'000_s, 3600_s, 1_s}) {
    Pair pair;
    expect_transfer_over(jump, pair);
    // A lost packet must be detected within seconds, not hours.
    const auto [c, s] = pair.connect();
    std::byte byte{};
    int left = 1;
    pair.fate = [&](const Parsed& packet, Fate& fate) { fate.drop = is_data(packet) && left-- > 0; };
    ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1, 60_s));
    EXPECT_LT(left, 0);
  }
}

TEST_F(ClockConnected, jump_ahead_with_a_peer_that_is_gone__ends) {
  pair.server().dead = true;
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  pair.run_for(3_s);
  pair.client().clock = 20'000_s;
  pair.run_for(60_s);
  EXPECT_EQ(pair.client().statuses(Kind::closed), Statuses{Status::unreachable});
}

TEST_F(ClockConnected, end_of_time__changes_nothing_and_overflows_nowhere) {
  ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
  pair.run_for(1_ms);
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  for (int i = 0; i < 10; ++i) {
    (void)pair.c().poll(Nanos::never());
    (void)pair.c().poll(Nanos(std::numeric_limits<std::int64_t>::min()));
  }
  EXPECT_TRUE(pair.c().exists(c));
}

TEST_F(ClockConnected, every_call_with_an_earlier_time__takes_the_latest) {
  pair.run_for(5_s);
  pair.run_for(1_ns);  // one more poll, so that the shards have read this time
  const JobId job = pair.c().add_job({});
  PhasePlan plan;
  plan.period = 10_ms;
  plan.valid_until = 4_s;
  EXPECT_EQ(pair.c().set_plan(job, plan, Nanos(0)), PlanState::stale) << "it ended a second ago";
  plan.valid_until = Nanos::never();
  EXPECT_EQ(pair.c().set_plan(job, plan, Nanos(0)), PlanState::active);
  pair.c().clear_plan(job, Nanos(0));
  EXPECT_EQ(pair.c().gate_stats(job).waited, 0_ns);
  // The first CONNECT of a new connection is lost. The exchange after this loss measures round-trip times.
  pair.lose_first(1, FrameType::connect);
  const std::size_t connects_before = pair.count([](const Parsed& p) { return p.has(FrameType::connect); });
  const ConnectionId another = pair.c().connect(pair.server().address, {}, Nanos(0));
  pair.run_for(2_s);
  EXPECT_TRUE(pair.c().exists(another));
  EXPECT_LE(pair.count([](const Parsed& p) { return p.has(FrameType::connect); }) - connects_before, 3u);
  // The copies of an abort's CLOSE must be sent a probe timeout apart, not all at once.
  pair.fate = nullptr;
  pair.run_for(1_ns);
  pair.log.clear();
  pair.c().abort(c, Nanos(0));
  pair.run_for(1_s);
  std::vector<Nanos> closes;
  for (const Parsed& packet : pair.log)
    if (packet.has(FrameType::close)) closes.push_back(packet.at);
  ASSERT_EQ(closes.size(), 3u);
  EXPECT_GT(closes[1] - closes[0], 100_us);
  EXPECT_GT(closes[2] - closes[1], 100_us);
}

}  // namespace
}  // namespace mltcp::transport
