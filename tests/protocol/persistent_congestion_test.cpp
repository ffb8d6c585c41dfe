// Tests persistent congestion (RFC 9002 section 7.6): which losses indicate it, and its effect on the window.
#include <gtest/gtest.h>

#include <set>

#include "lone_connection.h"

namespace mltcp::persistent_congestion_test {
namespace {

using namespace testing_network;

constexpr Nanos kThreeTimeouts = 3'300_us;  // three timeouts, at a round trip of 100 us and a granularity of 1 ms

/// Sends one packet at each of `times` after the handshake, and a last packet at 10 ms. The peer acknowledges the last
/// packet, and the packets with an index (from 0) in `acked`. All other packets are lost.
struct Losses {
  Losses(std::initializer_list<Nanos> times, const std::set<std::size_t>& acked = {},
         LoneConnection::Start start = LoneConnection::Start::acknowledged)
      : alone({.start = start}) {
    const Nanos begin = alone.now;
    LoneConnection::Ranges ranges;
    for (const Nanos time : times) {
      alone.now = begin + time;
      const std::uint64_t number = alone.send();
      if (acked.contains(ranges.size() + lost)) {
        ranges.push_back({number, number});
      } else {
        ++lost;
      }
    }
    alone.now = begin + 10_ms;
    const std::uint64_t last = alone.send();
    alone.now += LoneConnection::kRoundTrip;
    ranges.push_back({last, last});
    alone.ack(ranges);
  }
  [[nodiscard]] bool persistent() const {
    EXPECT_EQ(alone.stats().persistent_congestions, alone.count(Event::Kind::timeout));
    return alone.count(Event::Kind::timeout) == 1;
  }

  LoneConnection alone;
  std::size_t lost = 0;
};

TEST(PersistentCongestion, losses__longer_apart_than_three_timeouts_show_it) {
  EXPECT_FALSE(Losses({0_us, kThreeTimeouts}).persistent());
  EXPECT_TRUE(Losses({0_us, kThreeTimeouts + 1_ns}).persistent());
  EXPECT_TRUE(Losses({0_us, 1_ms, 2_ms, kThreeTimeouts + 1_ns}).persistent());
}

TEST(PersistentCongestion, losses__with_an_acknowledged_packet_between_them_do_not) {
  EXPECT_FALSE(Losses({0_us, 1_ms, 4_ms}, {1}).persistent());
  EXPECT_FALSE(Losses({0_us, 3_ms, 4_ms, 6_ms}, {2}).persistent()) << "neither run is long enough";
  EXPECT_TRUE(Losses({0_us, 1_ms, 2_ms, 6_ms}, {1}).persistent()) << "the second run is";
  EXPECT_TRUE(Losses({0_us, 4_ms, 5_ms, 6_ms}, {2}).persistent()) << "the first run is, the last loss is not of it";
}

TEST(PersistentCongestion, silence_before_the_first_round_trip__says_nothing) {
  EXPECT_FALSE(Losses({0_us, 2_ms, 5_ms}, {}, LoneConnection::Start::accepted).persistent());
}

TEST(PersistentCongestion, controller__is_notified_of_the_loss_first_and_of_recovery_not_at_all) {
  Losses losses({0_us, 4_ms});
  LoneConnection& alone = losses.alone;
  ASSERT_EQ(alone.events.size(), 3u);
  EXPECT_EQ(alone.events[0].kind, Event::Kind::congestion);
  EXPECT_EQ(alone.events[1].kind, Event::Kind::timeout);
  EXPECT_EQ(alone.events[1].now, alone.now);
  EXPECT_EQ(alone.events[2].kind, Event::Kind::ack);
  EXPECT_FALSE(alone.sample().in_recovery) << "slow start begins at once";
  EXPECT_EQ(alone.stats().congestion_events, 1u);
}

TEST(PersistentCongestion, response__is_not_undone_by_a_late_packet) {
  LoneConnection alone;
  alone.send();
  alone.now += 4_ms;
  const std::uint64_t late = alone.send();
  const std::uint64_t next = alone.send(3);
  alone.answer({{next, next + 2}});
  ASSERT_EQ(alone.count(Event::Kind::timeout), 1u);
  ASSERT_EQ(alone.stats().lost_packets, 2u);
  alone.ack({{late, late}, {next + 3, next + 3}});
  EXPECT_EQ(alone.stats().spurious_losses, 1u);
  EXPECT_EQ(alone.undone(), 0u);
}

TEST(PersistentCongestion, window__falls_to_two_packets_and_slow_start_leads_back_to_half) {
  Pair pair;
  pair.rate = Rate(1'000'000'000);
  const auto [c, s] = pair.connect();
  ASSERT_EQ(pair.s().receive_virtual(s, 6'000'000, 0), PostResult::ok);
  pair.run_for(1_ms);
  const auto message = random_bytes(6'000'000);
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  ASSERT_FALSE(pair.transfer(1, 1, 5_ms));
  const double before = pair.c().stats(c)->cwnd_bytes;
  ASSERT_GT(before, 100'000);
  const Nanos end = pair.now() + 200_ms;
  pair.fate = [&](const Parsed& packet, Fate& fate) { fate.drop = packet.from == 0 && packet.at < end; };
  ASSERT_TRUE(pair.run([&, id = c] { return pair.c().stats(id)->persistent_congestions == 1; }, pair.now() + 1_s));
  EXPECT_LE(pair.c().stats(c)->cwnd_bytes, 3 * 1472) << "two packets, and what their acknowledgement adds";
  pair.run_for(60_ms);
  EXPECT_GT(pair.c().stats(c)->cwnd_bytes, before / 3);
  EXPECT_EQ(pair.c().stats(c)->congestion_events, 1u);
}

}  // namespace
}  // namespace mltcp::persistent_congestion_test
