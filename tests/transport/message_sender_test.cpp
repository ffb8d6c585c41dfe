// Tests the sender of messages: pieces, credit, loss and retransmission, completion, and early ends.
#include "mltcp/transport/internal/message_sender.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace mltcp::transport::message_sender_test {
namespace {

using FrontStep = MessageSender::FrontStep;

struct Sender : MessageSender {
  void post_all(std::uint64_t count, Bytes length) {
    for (std::uint64_t i = 0; i < count; ++i) post(nullptr, length, end(), 0);
  }
  /// Sends all data for which there is credit, in pieces of at most `free_bytes` bytes. Returns the pieces.
  std::vector<Chunk> send_all(std::size_t free_bytes) {
    std::vector<Chunk> sent;
    while (has_credited()) sent.push_back(take_new(free_bytes));
    return sent;
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> send_lost(std::size_t free_bytes) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> sent;
    for (Chunk chunk; take_lost(free_bytes, chunk);) sent.emplace_back(chunk.offset, chunk.offset + chunk.length);
    return sent;
  }
};
using Offsets = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

class MessageSenderTest : public testing::Test {
 protected:
  Sender sender;
};

TEST_F(MessageSenderTest, take_new__cuts_messages_into_pieces_as_far_as_credit_goes) {
  sender.post_all(3, 250);
  EXPECT_FALSE(sender.has_credited());
  EXPECT_TRUE(sender.waits_for_credit());
  sender.begin_credit(2);
  EXPECT_EQ(sender.unsent_from(), 0U);
  const Chunk first = sender.take_new(100);
  EXPECT_EQ(first.length, 100U);
  EXPECT_EQ(sender.unsent_from(), 1U) << "the first has begun";
  const std::vector<Chunk> rest = sender.send_all(100);
  ASSERT_EQ(rest.size(), 5U);
  EXPECT_EQ(rest[1].offset, 200U);
  EXPECT_EQ(rest[1].length, 50U);
  EXPECT_EQ(rest[2].message, 1U);
  EXPECT_TRUE(sender.waits_for_credit());
  EXPECT_EQ(sender.unsent_from(), 2U);
}

TEST_F(MessageSenderTest, raise_credit__only_as_far_as_a_peer_can_have_it) {
  sender.begin_credit(~std::uint32_t{0});
  EXPECT_EQ(sender.credit(), MessageSender::kMaxReceives);
  EXPECT_FALSE(sender.raise_credit(MessageSender::kMaxReceives + 1, true)) << "beyond what was sent";
  EXPECT_TRUE(sender.raise_credit(5, true)) << "an old word";
  EXPECT_EQ(sender.credit(), MessageSender::kMaxReceives);
  sender.post_all(1, 1);
  sender.send_all(1);
  EXPECT_TRUE(sender.raise_credit(MessageSender::kMaxReceives + 1, true));
  EXPECT_EQ(sender.credit(), MessageSender::kMaxReceives + 1);
}

TEST_F(MessageSenderTest, raise_credit__after_the_last_word_only_if_that_was_somebody_else_s) {
  sender.begin_credit(1);
  EXPECT_TRUE(sender.end_credit(1));
  EXPECT_TRUE(sender.raise_credit(2, false));
  EXPECT_EQ(sender.credit(), 1U);
  EXPECT_TRUE(sender.credit_ended());
  EXPECT_TRUE(sender.raise_credit(2, true));
  EXPECT_EQ(sender.credit(), 2U);
  EXPECT_FALSE(sender.credit_ended());
}

TEST_F(MessageSenderTest, end_credit__may_withdraw_what_was_told_and_only_falls_from_then_on) {
  sender.begin_credit(3);
  sender.post_all(3, 10);
  sender.send_all(10);
  EXPECT_TRUE(sender.end_credit(2));
  EXPECT_EQ(sender.credit(), 2U);
  EXPECT_TRUE(sender.end_credit(3)) << "an earlier one, late";
  EXPECT_EQ(sender.credit(), 2U);
  EXPECT_TRUE(sender.end_credit(1));
  EXPECT_EQ(sender.credit(), 1U);
  std::vector<std::uint64_t> ended;
  sender.end_beyond_credit([&](std::uint64_t number, const MessageSender::Message&) { ended.push_back(number); });
  EXPECT_EQ(ended, (std::vector<std::uint64_t>{1, 2})) << "though they had been sent";
  EXPECT_FALSE(sender.has_credited());
}

TEST_F(MessageSenderTest, end_credit__may_bring_the_last_buffers_and_not_more_than_there_can_be) {
  EXPECT_TRUE(sender.end_credit(2));
  EXPECT_EQ(sender.credit(), 2U);
  Sender deceived;
  EXPECT_FALSE(deceived.end_credit(MessageSender::kMaxReceives + 1));
  EXPECT_FALSE(deceived.credit_ended());
}

TEST_F(MessageSenderTest, take_lost__what_has_not_arrived_after_all) {
  sender.begin_credit(1);
  sender.post_all(1, 300);
  const std::vector<Chunk> sent = sender.send_all(100);
  for (const Chunk& chunk : sent) sender.on_lost(chunk);
  EXPECT_TRUE(sender.has_lost());
  EXPECT_EQ(sender.on_acked(sent[1]), 100U);
  EXPECT_EQ(sender.on_acked(sent[1]), 0U) << "again";
  EXPECT_EQ(sender.send_lost(60), (Offsets{{0, 60}, {60, 100}, {200, 260}, {260, 300}}));
  EXPECT_FALSE(sender.has_lost());
}

TEST(MessageSender, on_acked__leaves_out_what_is_not_charged_however_it_is_acknowledged) {
  MessageSender sender;
  sender.begin_credit(1);
  sender.post(nullptr, 300, 0, 0, 132);
  std::vector<Chunk> sent;
  while (sender.has_credited()) sent.push_back(sender.take_new(100));
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sender.on_acked(sent[2]), 0U);
  EXPECT_EQ(sender.on_acked(sent[2]), 0U) << "again";
  EXPECT_EQ(sender.on_acked(sent[0]), 68U);
  EXPECT_EQ(sender.on_acked(sent[1]), 100U);
  EXPECT_TRUE(sender.front_acked());
}

TEST_F(MessageSenderTest, take_lost__an_empty_message) {
  sender.begin_credit(1);
  sender.post_all(1, 0);
  const std::vector<Chunk> sent = sender.send_all(100);
  ASSERT_EQ(sent.size(), 1U);
  sender.on_lost(sent[0]);
  EXPECT_EQ(sender.send_lost(100), (Offsets{{0, 0}}));
  sender.on_acked(sent[0]);
  EXPECT_TRUE(sender.front_acked());
}

TEST_F(MessageSenderTest, front__done_when_acknowledged_and_the_peer_does_not_deny_it) {
  sender.begin_credit(2);
  sender.post_all(2, 100);
  const std::vector<Chunk> sent = sender.send_all(100);
  EXPECT_FALSE(sender.front_acked());
  sender.on_acked(sent[0]);
  EXPECT_TRUE(sender.front_acked());
  EXPECT_TRUE(sender.front_whole()) << "a peer that never tells is believed";
  sender.on_whole(0);
  EXPECT_FALSE(sender.front_whole());
  sender.on_whole(1);
  EXPECT_TRUE(sender.front_whole());
  sender.on_completed();
  sender.pop_front();
  EXPECT_EQ(sender.begin(), 1U);
  EXPECT_EQ(sender.open(), 1);
}

TEST_F(MessageSenderTest, on_whole__not_of_what_has_not_been_sent) {
  sender.begin_credit(5);
  sender.post_all(5, 10);
  sender.take_new(10);
  sender.on_whole(4);  // a forged report, because only one message has been sent
  sender.pop_front();
  EXPECT_FALSE(sender.front_whole());
}

TEST_F(MessageSenderTest, check_front__repairs_what_the_peer_has_acknowledged_and_does_not_have) {
  sender.begin_credit(1);
  sender.post_all(1, 100'000);
  for (const Chunk& chunk : sender.send_all(60'000)) sender.on_acked(chunk);
  sender.on_whole(0);
  ASSERT_TRUE(sender.front_acked());
  ASSERT_FALSE(sender.front_whole());
  for (std::uint32_t repair = 0; repair < MessageSender::kMaxRepairs; ++repair) {
    const std::uint64_t next = 10 * repair + 10;
    EXPECT_EQ(sender.check_front(next, next - 1), FrontStep::ask);
    EXPECT_EQ(sender.check_front(next + 1, next - 1), FrontStep::wait) << "what was under way may bring it";
    EXPECT_EQ(sender.check_front(next + 1, next), FrontStep::repaired);
    EXPECT_FALSE(sender.front_acked());
    EXPECT_EQ(sender.send_lost(100'000), (Offsets{{0, 65'535}, {65'535, 100'000}}));
  }
  EXPECT_EQ(sender.check_front(1000, 999), FrontStep::ask);
  EXPECT_EQ(sender.check_front(1000, 1000), FrontStep::failed);
}

TEST_F(MessageSenderTest, check_front__begins_anew_with_the_next_message) {
  sender.begin_credit(2);
  sender.post_all(2, 10);
  sender.send_all(10);
  EXPECT_EQ(sender.check_front(5, 4), FrontStep::ask);
  sender.pop_front();
  EXPECT_EQ(sender.check_front(5, 5), FrontStep::ask) << "not yet repaired";
}

TEST_F(MessageSenderTest, set_rounds__from_what_has_not_been_sent_on) {
  sender.begin_credit(3);
  sender.post_all(3, 10);
  sender.take_new(10);
  sender.set_rounds(7);
  EXPECT_EQ(sender[0].round, 0U);
  EXPECT_EQ(sender.next_round(), 7U);
  EXPECT_EQ(sender[2].round, 7U);
}

TEST_F(MessageSenderTest, close_up__what_ended_unsent_was_never_posted) {
  OperationDeadlines deadlines(8, 8);
  sender.begin_credit(4);
  sender.post_all(4, 100);
  sender.take_new(50);
  for (std::uint64_t i = 0; i < 4; ++i) deadlines.heap.set(deadlines.of_send(i), Nanos(100 + static_cast<int>(i)));
  EXPECT_EQ(sender.finish(1).tag, 1U);
  EXPECT_FALSE(sender.outstanding(1));
  deadlines.heap.set(deadlines.of_send(1), Nanos::never());
  sender.close_up(sender.unsent_from(), deadlines);
  EXPECT_EQ(sender.end(), 3U);
  EXPECT_EQ(sender[1].tag, 2U);
  EXPECT_EQ(deadlines.heap.at(deadlines.of_send(1)), Nanos(102));
  EXPECT_TRUE(deadlines.heap.at(deadlines.of_send(3)).is_never());
}

TEST_F(MessageSenderTest, end_beyond_credit__what_no_buffer_will_come_for) {
  sender.begin_credit(1);
  sender.post_all(3, 10);
  sender.send_all(10);
  std::vector<std::uint64_t> ended;
  sender.end_beyond_credit([&](std::uint64_t, const MessageSender::Message& message) { ended.push_back(message.tag); });
  EXPECT_EQ(ended, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_TRUE(sender.outstanding(0));
  sender.pop_front();
  EXPECT_TRUE(sender.empty()) << "those behind it left with it";
}

TEST_F(MessageSenderTest, end_all__those_that_are_outstanding) {
  sender.begin_credit(3);
  sender.post_all(3, 10);
  const std::vector<Chunk> sent = sender.send_all(10);
  sender.on_lost(sent[0]);
  sender.finish(1);
  std::vector<std::uint64_t> ended;
  sender.end_all([&](std::uint64_t number, const MessageSender::Message&) { ended.push_back(number); });
  EXPECT_EQ(ended, (std::vector<std::uint64_t>{0, 2}));
  EXPECT_TRUE(sender.empty());
  EXPECT_FALSE(sender.has_lost());
  EXPECT_FALSE(sender.has_credited());
  sender.on_lost(sent[2]);
  EXPECT_FALSE(sender.has_lost()) << "of a message that has ended";
}

}  // namespace
}  // namespace mltcp::transport::message_sender_test
