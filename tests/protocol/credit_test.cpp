// Tests credit: a sender waits for posted buffers, continues when it learns of them, and recovers if the packet with
// the credit is lost.
#include <gtest/gtest.h>

#include "../transport/test_network.h"

namespace mltcp::credit_test {
namespace {

using namespace testing_network;
using CreditConnected = ConnectedTest;

TEST_F(CreditConnected, none__holds_data_back) {
  const auto message = random_bytes(5000);
  pair.log.clear();
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  pair.run_for(20_s);
  EXPECT_EQ(pair.count(is_data), 0u);
  EXPECT_EQ(pair.client().count(Kind::sent), 0u);
  EXPECT_TRUE(pair.c().exists(c)) << "a peer that answers is not given up";
  EXPECT_LT(pair.log.size(), 100u) << "asks now and then, no more";
  EXPECT_EQ(pair.s().stats().beyond_credit, 0u);
  ByteVector buffer(5000);
  const Nanos begin = pair.now();
  ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(buffer, message);
  EXPECT_LT(pair.now() - begin, 1_ms) << "news of a buffer goes out at once";
}

TEST_F(CreditConnected, posted__is_the_number_of_messages_that_leave) {
  const auto message = random_bytes(2000);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  ByteVector buffer(2000);
  for (int round = 1; round <= 5; ++round) {
    ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
    ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
    pair.run_for(5_ms);
    EXPECT_EQ(pair.server().count(Kind::received), 2U * static_cast<unsigned>(round));
    EXPECT_EQ(pair.client().count(Kind::sent), 2U * static_cast<unsigned>(round));
  }
  EXPECT_EQ(pair.s().stats().beyond_credit, 0u);
}

TEST_F(CreditConnected, lost__first_news_is_repeated_after_a_probe_timeout) {
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  pair.run_for(1_ms);
  int left = 1;
  pair.fate = [&](const Parsed& packet, Fate& fate) { fate.drop = packet.has(FrameType::credit) && left-- > 0; };
  const Nanos begin = pair.now();
  ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_LE(left, 0);
  EXPECT_LT(pair.now() - begin, 20_ms);
}

TEST(Credit, lost__news_is_repeated_as_soon_as_the_loss_is_seen) {
  // The packet with the credit is lost. A later packet of the receiver is acknowledged, so that the receiver detects
  // the loss without a probe.
  Pair pair;
  const auto [c, s] = pair.connect();
  std::byte byte{};
  ASSERT_EQ(pair.c().receive_virtual(c, 10, 0), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  pair.run_for(10_ms);
  int left = 1;
  pair.fate = [&](const Parsed& packet, Fate& fate) { fate.drop = packet.has(FrameType::credit) && left-- > 0; };
  const Nanos begin = pair.now();
  ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
  pair.run_for(10_us);
  ASSERT_EQ(pair.s().send(s, {&byte, 1}, 0), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_LE(left, 0);
  EXPECT_LT(pair.now() - begin, 20_ms) << "it waited for the sender to ask";
}

TEST_F(CreditConnected, lost_for_a_long_time__recovers) {
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  pair.run_for(1_ms);
  const Nanos end = pair.now() + 5_s;
  pair.fate = [&](const Parsed& packet, Fate& fate) { fate.drop = packet.has(FrameType::credit) && packet.at < end; };
  ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_LT(pair.now() - end, 3_s);
}

TEST_F(CreditConnected, old_news__that_arrives_late_takes_nothing_back) {
  int seen = 0;
  pair.fate = [&](const Parsed& packet, Fate& fate) {
    if (packet.has(FrameType::credit) && ++seen == 1) fate.extra_delay = 200_us;
  };
  ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
  pair.run_for(10_us);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
  pair.run_for(5_ms);
  for (int i = 0; i < 6; ++i) ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  EXPECT_TRUE(pair.transfer(6, 6, 50_ms));
}

TEST_F(CreditConnected, data_beyond_it__is_counted_and_not_acknowledged) {
  pair.log.clear();
  pair.inject(pair.server(), pair.client().address, forge(header_for(s, 1000), [&](wire::Writer& w) {
                w.data({.last = true, .message = 0, .offset = 0, .length = 0});
              }));
  pair.run_for(10_ms);
  EXPECT_EQ(pair.s().stats().beyond_credit, 1u);
  EXPECT_TRUE(pair.log.empty());
  EXPECT_EQ(pair.server().count(Kind::received), 0u);
}

TEST(Credit, few_buffers__still_keep_the_sender_going) {
  // Two buffers are used for all messages in turn, so that each message waits for at most a round trip.
  Pair pair;
  const auto [c, s] = pair.connect();
  const auto message = random_bytes(1000);
  std::uint64_t sent = 0;
  while (sent < 200 && pair.c().send(c, message, 0) == PostResult::ok) ++sent;
  ByteVector buffer(1000);
  pair.server().on_completion = [&, server = s](const Completion&) {
    EXPECT_EQ(pair.s().receive(server, buffer, 0), PostResult::ok);
  };
  const Nanos begin = pair.now();
  ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  ASSERT_TRUE(pair.transfer(200, 200));
  EXPECT_LT(pair.now() - begin, 150_us * 200);
}

/// Sends 12 messages one after another. The receiver has `buffers` buffers, and posts each again after use. If
/// `answers`, the receiver answers each message. Loses packets `lost` to `lost` + `length` - 1 in both directions,
/// counted from 0 after the handshake. Returns the number of all packets after the handshake.
std::size_t exchange(std::size_t buffers, bool answers, bool in_acks, std::size_t lost, std::size_t length) {
  const auto config = config_with([&](ConnectionConfig& c) { c.credit_in_acks = c.await_answer = in_acks; });
  Pair pair(config, config);
  const auto [c, s] = pair.connect();
  std::size_t packets = 0;
  pair.fate = [&](const Parsed&, Fate& fate) {
    fate.drop = packets >= lost && packets < lost + length;
    ++packets;
  };
  constexpr std::size_t messages = 12;
  std::byte byte{};
  const std::span<std::byte> one(&byte, 1);
  std::size_t sent = 1;
  const auto go_on = [&, client = c](Kind kind) {
    return [&, client, kind](const Completion& completion) {
      if (completion.kind == Kind::received) {
        EXPECT_EQ(pair.c().receive(client, one, 0), PostResult::ok);
      }
      if (completion.kind == kind && sent < messages) {
        ++sent;
        EXPECT_EQ(pair.c().send(client, one, 0), PostResult::ok);
      }
    };
  };
  pair.client().on_completion = go_on(answers ? Kind::received : Kind::sent);
  pair.server().on_completion = [&, server = s](const Completion& completion) {
    if (completion.kind != Kind::received) return;
    EXPECT_EQ(pair.s().receive(server, one, 0), PostResult::ok);
    if (answers) {
      EXPECT_EQ(pair.s().send(server, one, 0), PostResult::ok);
    }
  };
  for (std::size_t i = 0; i < buffers; ++i) {
    EXPECT_EQ(pair.s().receive(s, one, 0), PostResult::ok);
    EXPECT_EQ(pair.c().receive(c, one, 0), PostResult::ok);
  }
  EXPECT_EQ(pair.c().send(c, one, 0), PostResult::ok);
  // A blocked sender asks for credit after 1 s. The time limit of this test is shorter, so that such a request cannot
  // hide a failure.
  const auto finished = [&] {
    return pair.server().count(Kind::received) == messages && pair.client().count(Kind::sent) == messages &&
           pair.client().count(Kind::received) == (answers ? messages : 0);
  };
  EXPECT_TRUE(pair.run(finished, pair.now() + 900_ms))
      << buffers << " buffers, answers " << answers << ", in acks " << in_acks << ", lost from " << lost;
  pair.run_for(100_ms);
  EXPECT_EQ(pair.s().stats().beyond_credit + pair.c().stats().beyond_credit, 0u);
  return packets;
}

TEST(Credit, packets_lost__any_one_or_three_in_a_row_never_stop_it) {
  for (const bool in_acks : {true, false})
    for (const bool answers : {false, true})
      for (const std::size_t buffers : {1U, 2U, 5U}) {
        const std::size_t packets = exchange(buffers, answers, in_acks, 0, 0);
        for (std::size_t lost = 0; lost < packets; ++lost)
          for (const std::size_t length : {1U, 3U}) exchange(buffers, answers, in_acks, lost, length);
      }
}

TEST(Credit, in_acks__costs_no_packet_of_its_own) {
  // Each of the 12 messages needs one packet and one acknowledgement. Up to five more packets are allowed, because the
  // credit for the first buffers is reported before the messages.
  for (const std::size_t buffers : {1U, 2U, 5U}) EXPECT_LE(exchange(buffers, false, true, 0, 0), 2 * 12 + 5u);
  EXPECT_GE(exchange(1, false, false, 0, 0), 3 * 12u) << "or the test shows nothing";
  EXPECT_LE(exchange(2, true, true, 0, 0), 2 * 12 + 5u) << "an answer takes acknowledgement and credit along";
}

}  // namespace
}  // namespace mltcp::credit_test
