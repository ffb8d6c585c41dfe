// Tests packet by packet how a receiver reports its buffers: when a CREDIT is sent, when an acknowledgement carries the
// credit, what happens when the CREDIT or the acknowledgement is lost, and the final credit of a side that closes.
#include <gtest/gtest.h>

#include "lone_connection.h"

namespace mltcp::credit_told_test {
namespace {

using namespace testing_network;

const auto ping = [](wire::Writer& w) { w.ping(); };

struct Buffers : LoneConnection {
  using LoneConnection::LoneConnection;
  void receive(int buffers) {
    for (int i = 0; i < buffers; ++i) ASSERT_EQ(connection.receive(nullptr, 1000, 0, Nanos::never()), PostResult::ok);
    build();
  }
  /// Receives a packet that requests an immediate acknowledgement.
  void exchange() {
    arrive(ping, Ecn::not_ect, wire::ack_now);
    end_burst();
  }
  /// Returns the CREDIT frame of the packet that was sent last, or null if the packet has none.
  [[nodiscard]] const wire::Frame* credit() const { return sent.back().find(FrameType::credit); }
  [[nodiscard]] std::optional<std::uint32_t> announced_credit() const {
    return credit() == nullptr ? std::nullopt : std::optional(credit()->credit.messages);
  }
  [[nodiscard]] const wire::Frame* acknowledgement() const { return sent.back().find(FrameType::ack); }
};

TEST(CreditTold, news__at_once_when_the_peer_has_no_buffer_left_or_half_of_them_are_news) {
  Buffers buffers;
  for (int i = 0; i < 10; ++i) ASSERT_EQ(buffers.connection.receive(nullptr, 1000, 0, Nanos::never()), PostResult::ok);
  buffers.build();
  ASSERT_EQ(buffers.sent.size(), 2u);
  ASSERT_EQ(buffers.announced_credit(), 10u);
  EXPECT_FALSE(buffers.credit()->credit.final);
  buffers.ack({{1, 1}});
  buffers.receive(9);
  EXPECT_EQ(buffers.sent.size(), 2u) << "9 of 19";
  buffers.receive(1);
  ASSERT_EQ(buffers.sent.size(), 3u) << "10 of 20";
  EXPECT_EQ(buffers.credit()->credit.messages, 20u);
  buffers.run_for(1_us);
  EXPECT_EQ(buffers.sent.size(), 3u) << "once";
}

TEST(CreditTold, news_that_can_wait__goes_with_data_or_in_an_acknowledgement) {
  for (const bool with_data : {true, false}) {
    Buffers buffers;
    buffers.receive(4);
    buffers.ack({{1, buffers.connection.next_packet_number() - 1}});
    buffers.receive(1);
    const std::size_t before = buffers.sent.size();
    if (with_data)
      buffers.send(1, 100);
    else
      buffers.exchange();
    ASSERT_EQ(buffers.sent.size(), before + 1);
    if (with_data) {
      EXPECT_EQ(buffers.announced_credit(), 5u);
    } else {
      EXPECT_EQ(buffers.credit(), nullptr);
      EXPECT_TRUE(buffers.acknowledgement()->ack.has_credit);
      EXPECT_EQ(buffers.acknowledgement()->ack.credit, 5u);
    }
    buffers.send(1, 100);
    EXPECT_EQ(buffers.credit(), nullptr) << "no news any more";
  }
}

TEST(CreditTold, what_an_acknowledgement_has_told__is_no_news) {
  Buffers buffers;
  buffers.receive(4);
  buffers.ack({{1, buffers.connection.next_packet_number() - 1}});
  buffers.receive(1);
  buffers.exchange();
  ASSERT_EQ(buffers.acknowledgement()->ack.credit, 5u);
  const std::size_t before = buffers.sent.size();
  buffers.receive(3);
  EXPECT_EQ(buffers.sent.size(), before) << "3 of 8, the fifth has been told";
  buffers.receive(2);
  ASSERT_EQ(buffers.sent.size(), before + 1) << "5 of 10";
  EXPECT_EQ(buffers.credit()->credit.messages, 10u);
}

TEST(CreditTold, acknowledgements__repeat_it_until_the_peer_certainly_knows) {
  Buffers buffers;
  buffers.receive(4);
  buffers.exchange();
  EXPECT_FALSE(buffers.acknowledgement()->ack.has_credit) << "the CREDIT is repeated until acknowledged";
  buffers.receive(1);
  for (int i = 0; i < 3; ++i) {
    buffers.exchange();
    EXPECT_TRUE(buffers.acknowledgement()->ack.has_credit) << "an acknowledgement may be lost";
  }
  const auto use = [&](std::uint32_t message) {
    buffers.take(
        [=](wire::Writer& w) {
          w.data({.last = false, .message = message, .offset = 0, .length = 1});
          const std::byte byte{};
          w.copy(&byte, 1);
        },
        Ecn::not_ect, wire::ack_now);
  };
  use(3);
  EXPECT_TRUE(buffers.acknowledgement()->ack.has_credit);
  use(4);
  EXPECT_FALSE(buffers.acknowledgement()->ack.has_credit) << "the peer uses the last of it";
}

TEST(CreditTold, acknowledgements__leave_it_out_if_so_configured) {
  ConnectionConfig config = round_timers();
  config.credit_in_acks = false;
  Buffers buffers(config);
  buffers.receive(4);
  buffers.ack({{1, buffers.connection.next_packet_number() - 1}});
  buffers.receive(1);
  buffers.exchange();
  EXPECT_FALSE(buffers.acknowledgement()->ack.has_credit);
  EXPECT_EQ(buffers.credit(), nullptr);
  buffers.send(1, 100);
  EXPECT_EQ(buffers.announced_credit(), 5u);
}

TEST(CreditTold, its_acknowledgement__completes_no_message) {
  Buffers buffers({.credit = 0});
  buffers.send(1, 0);  // an empty message that waits for credit
  buffers.receive(1);
  ASSERT_NE(buffers.credit(), nullptr);
  buffers.ack({{1, 1}});
  EXPECT_TRUE(buffers.completions().empty());
}

TEST(CreditTold, connect__tells_it_once) {
  ConnectionConfig config = round_timers();
  config.credit_in_acks = false;
  Buffers buffers({.config = config, .start = LoneConnection::Start::connecting});
  ASSERT_EQ(buffers.sent.at(0).find(FrameType::connect)->connect.credit, 0u);
  ASSERT_EQ(buffers.connection.receive(nullptr, 1000, 0, Nanos::never()), PostResult::ok);
  buffers.run_for(20_ms);
  ASSERT_GE(buffers.sent.size(), 2u);
  EXPECT_EQ(buffers.sent[1].find(FrameType::connect)->connect.credit, 1u) << "when it is repeated";
  const std::size_t before = buffers.sent.size();
  buffers.take([](wire::Writer& w) { w.accept({.max_packet = 1472, .source_connection = 99, .credit = 0}); });
  ASSERT_EQ(buffers.sent.size(), before + 1);
  EXPECT_EQ(buffers.credit(), nullptr);
}

TEST(CreditTold, lost__is_told_again_at_once_by_whatever_leaves_next) {
  for (const bool in_ack : {true, false}) {
    Buffers buffers;
    buffers.receive(4);
    const std::uint64_t lost = buffers.sent.back().header.packet_number;
    ASSERT_NE(buffers.credit(), nullptr);
    const std::uint64_t next = buffers.send(3, 100);
    const std::size_t before = buffers.sent.size();
    if (in_ack) buffers.arrive(ping, Ecn::not_ect, wire::ack_now);
    buffers.ack({{next, next + 2}});
    EXPECT_EQ(buffers.stats().lost_packets, next - lost);
    ASSERT_EQ(buffers.sent.size(), before + 1);
    if (in_ack) {
      EXPECT_TRUE(buffers.acknowledgement()->ack.has_credit);
      EXPECT_EQ(buffers.acknowledgement()->ack.credit, 4u);
    } else {
      EXPECT_EQ(buffers.announced_credit(), 4u);
    }
  }
}

// ---- The final credit ----

TEST(CreditTold, end_that_closes_without_credit__says_that_no_more_comes) {
  Buffers buffers({.credit = 0});
  buffers.send(1, 100);
  buffers.connection.close();
  buffers.build();
  ASSERT_NE(buffers.credit(), nullptr);
  EXPECT_TRUE(buffers.credit()->credit.final);
  EXPECT_EQ(buffers.credit()->credit.messages, 0u);
  const std::size_t before = buffers.sent.size();
  buffers.build();
  EXPECT_EQ(buffers.sent.size(), before) << "once";
  buffers.run_for(1'100_us);
  ASSERT_EQ(buffers.sent.size(), before + 1) << "but again when it seems lost";
  EXPECT_TRUE(buffers.credit()->credit.final);
}

TEST(CreditTold, end_that_closes_with_credit_for_all_it_sends__says_nothing_of_it) {
  Buffers buffers({.window = 2.0 * LoneConnection::kPacket, .credit = 5});
  buffers.send(5);
  buffers.connection.close();
  buffers.build();
  EXPECT_EQ(buffers.sent.size(), 3u) << "ACCEPT, and what the window has room for";
  EXPECT_EQ(buffers.credit(), nullptr);
}

TEST(CreditTold, end_that_closes_after_credit_was_lost__says_that_no_more_comes_all_the_same) {
  Buffers buffers({.credit = 0});
  buffers.receive(4);
  ASSERT_NE(buffers.credit(), nullptr);
  buffers.run_for(1'100_us);  // the packet seems lost, and its CREDIT is sent again
  ASSERT_NE(buffers.credit(), nullptr);
  EXPECT_FALSE(buffers.credit()->credit.final);
  buffers.ack({{1, buffers.connection.next_packet_number() - 1}});
  buffers.send(1, 100);
  buffers.connection.close();
  buffers.build();
  ASSERT_NE(buffers.credit(), nullptr);
  EXPECT_TRUE(buffers.credit()->credit.final);
  EXPECT_EQ(buffers.credit()->credit.messages, 4u);
}

TEST(CreditTold, last_word_of_the_peer__is_its_last_to_an_end_that_closes) {
  Buffers buffers({.credit = 1});
  buffers.send(4, 100);
  EXPECT_EQ(std::count_if(buffers.sent.begin(), buffers.sent.end(), is_data), 1);
  buffers.take([](wire::Writer& w) { w.credit({2, true}); });
  EXPECT_EQ(std::count_if(buffers.sent.begin(), buffers.sent.end(), is_data), 2);
  EXPECT_TRUE(buffers.completions().empty()) << "this end may wait for ever";
  buffers.connection.close();
  const auto done = buffers.completions();
  ASSERT_EQ(done.size(), 2u);
  for (const Completion& one : done) EXPECT_EQ(one.status, Status::closed);
  buffers.take([](wire::Writer& w) { w.credit({5, false}); });
  EXPECT_EQ(std::count_if(buffers.sent.begin(), buffers.sent.end(), is_data), 2) << "they have been given up";
  EXPECT_FALSE(buffers.sent.back().has(FrameType::close)) << "two are still under way";
  buffers.ack({{1, buffers.connection.next_packet_number() - 1}});
  EXPECT_TRUE(buffers.sent.back().has(FrameType::close));
}

TEST(CreditTold, last_word_and_then_more__was_not_the_peers) {
  Buffers buffers({.credit = 1});
  buffers.arrive([](wire::Writer& w) { w.credit({2, true}); });
  // A packet that the peer sent before the final credit arrives after it, and must have no effect.
  buffers.arrive([](wire::Writer& w) { w.credit({2, false}); });
  buffers.take([](wire::Writer& w) { w.credit({3, false}); });
  buffers.send(4, 100);
  EXPECT_EQ(std::count_if(buffers.sent.begin(), buffers.sent.end(), is_data), 3);
  buffers.connection.close();
  EXPECT_TRUE(buffers.completions().empty()) << "the peer may post another buffer";
}

}  // namespace
}  // namespace mltcp::credit_told_test
