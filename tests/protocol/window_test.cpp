// Tests the inputs of the congestion window and of the delivery rate: packet sizes, spurious congestion, and idle time
// before the first sample.
#include <gtest/gtest.h>

#include "../transport/test_network.h"

namespace mltcp {
namespace {

using namespace testing_network;

TEST(Window, counts_in_packets_of_the_size_agreed_on) {
  TestNetwork network;
  TestHost& client = network.add({}, {.max_packet_bytes = 8972});
  TestHost& server = network.add({}, {.max_packet_bytes = 1472});
  server.shard->listen({});
  const ConnectionId c = client.shard->connect(server.address, {}, network.now());
  network.run_for(10_ms);
  EXPECT_NEAR(client.shard->stats(c)->cwnd_bytes, 10 * 1472, 1);
}

TEST(Window, connects_that_were_not_received__are_no_persistent_congestion) {
  for (const int lost : {0, 1, 2, 5}) {
    Pair pair;
    pair.lose_first_of(0, lost);
    const auto [c, s] = pair.connect();
    EXPECT_EQ(pair.c().stats(c)->persistent_congestions, 0u) << lost;
    EXPECT_GE(pair.c().stats(c)->cwnd_bytes, 5 * 1472) << lost;
  }
}

TEST(Window, mark_with_a_reordered_packet_behind_it__stays_a_mark) {
  const auto config = config_with([](ConnectionConfig& changed) { changed.ecn = true; });
  Pair pair(config, config);
  pair.rate = Rate(1'000'000'000);
  const auto [c, s] = pair.connect();
  const auto message = random_bytes(400'000);
  ByteVector buffer(message.size());
  ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  pair.run_for(1_ms);
  int number = 0;
  pair.fate = [&](const Parsed& packet, Fate& fate) {
    if (packet.from != 0 || !is_data(packet)) return;
    ++number;
    if (number == 100) fate.ecn = Ecn::ce;
    if (number == 104) fate.extra_delay = 75_us;
  };
  ASSERT_EQ(pair.c().send(c, message, 1), PostResult::ok);
  double before = 0;
  double after = 0;
  pair.run(
      [&, connection = c] {
        const ConnectionStats stats = pair.c().stats(connection).value();
        (stats.congestion_events == 0 ? before : after) = stats.cwnd_bytes;
        return pair.server().count(Kind::received) == 1;
      },
      pair.now() + 1_s);
  ASSERT_EQ(pair.c().stats(c)->congestion_events, 1u);
  ASSERT_GE(pair.c().stats(c)->spurious_losses, 1u);
  EXPECT_LT(after, 0.7 * before);
}

TEST(Window, small_packets__fill_it_and_so_let_it_grow) {
  const auto config = config_with([](ConnectionConfig& changed) {
    changed.pack_messages = false;
    changed.max_sends = changed.max_receives = 65'536;
  });
  Pair pair(config, config);
  pair.logging = false;
  const auto [c, s] = pair.connect();
  std::byte byte{};
  constexpr int messages = 20'000;
  for (int i = 0; i < messages; ++i) ASSERT_EQ(pair.s().receive_virtual(s, 1, 0), PostResult::ok);
  pair.run_for(5_ms);
  int number = 0;
  pair.fate = [&](const Parsed& packet, Fate& fate) {
    fate.drop = packet.from == 0 && is_data(packet) && ++number == 500;
  };
  for (int i = 0; i < messages; ++i) ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  double lowest = 1e18;
  double last = 0;
  pair.run(
      [&, connection = c] {
        const ConnectionStats stats = pair.c().stats(connection).value();
        last = stats.cwnd_bytes;
        if (stats.congestion_events > 0) lowest = std::min(lowest, last);
        return pair.client().count(Kind::sent) == messages;
      },
      pair.now() + 1_s);
  EXPECT_GT(last, lowest + 3 * 1472);
}

TEST(Window, one_buffer_in_two_messages__the_second_one_is_not_dropped_with_the_first) {
  Pair pair;
  const auto [c, s] = pair.connect();
  const auto message = random_bytes(2000);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(pair.s().receive_virtual(s, 2000, 0), PostResult::ok);
  pair.run_for(5_ms);
  pair.client().free_places = 3;
  ASSERT_EQ(pair.c().send(c, message, 1), PostResult::ok);
  pair.run_for(20_us);
  ASSERT_EQ(pair.c().send(c, message, 2), PostResult::ok);
  pair.run_for(500_us);
  pair.client().free_places = ~std::size_t{0};
  pair.wake_all();
  ASSERT_TRUE(pair.run([&] { return pair.client().count(Kind::sent) == 2; }, pair.now() + 10_s));
  EXPECT_EQ(pair.c().stats(c)->lost_packets, 0u);
}

TEST(DeliveryRate, app_limited__only_while_the_application_is_the_limit) {
  Pair pair;
  pair.rate = Rate(1'000'000'000);
  const auto [c, s] = pair.connect();
  const auto message = random_bytes(2'000'000);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(pair.s().receive_virtual(s, message.size(), 0), PostResult::ok);
  pair.run_for(5_ms);
  // Sends two short messages. Between them, the client has no data to send for a short time. The second message leaves
  // while the first is in flight.
  ASSERT_EQ(pair.c().send(c, std::span(message).first(1400), 0), PostResult::ok);
  pair.run_for(20_us);
  ASSERT_EQ(pair.c().send(c, std::span(message).first(1400), 0), PostResult::ok);
  ASSERT_TRUE(pair.run([&] { return pair.client().count(Kind::sent) == 2; }, pair.now() + 1_s));
  EXPECT_TRUE(pair.c().stats(c)->app_limited);
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  pair.run_for(10_ms);
  EXPECT_FALSE(pair.c().stats(c)->app_limited);
  EXPECT_NEAR(pair.c().stats(c)->delivery_rate.gbps(), 0.95, 0.07);
}

}  // namespace
}  // namespace mltcp
