// Tests the receiver of messages: reassembly, refused data, credit, reports of credit to the peer, and early ends.
#include "mltcp/transport/internal/message_receiver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mltcp::transport::message_receiver_test {
namespace {

using namespace mltcp::literals;
using Taken = MessageReceiver::Taken;

constexpr std::array<std::byte, 2000> kBytes{};

wire::DataFrame piece(std::uint32_t message, std::uint32_t offset, std::uint32_t length, bool last) {
  return {.last = last, .message = message, .offset = offset, .length = length, .bytes = kBytes.data()};
}

struct Receiver : MessageReceiver {
  std::vector<std::uint64_t> completed;  ///< tags of completed messages
  std::uint64_t hole_bytes = 0;
  Bytes max_hole_bytes = Bytes{1} << 20;
  std::uint64_t own_hole_bytes = 0;
  HoleLedger holes() { return {hole_bytes, max_hole_bytes, own_hole_bytes}; }
  Taken take(const wire::DataFrame& frame) {
    HoleLedger ledger = holes();
    return on_data(frame, ledger, [this](const Message& message) { completed.push_back(message.tag); });
  }
  void post_all(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) post(nullptr, 1'000'000, i);
  }
};

class MessageReceiverTest : public testing::Test {
 protected:
  Receiver receiver;
};

TEST_F(MessageReceiverTest, on_data__puts_a_message_together) {
  std::vector<std::byte> buffer(6, std::byte{0xFF});
  const std::array sent{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
  receiver.post(buffer.data(), 5, 7);
  wire::DataFrame end{.last = true, .message = 0, .offset = 3, .length = 2, .bytes = sent.data() + 3};
  wire::DataFrame begin{.last = false, .message = 0, .offset = 0, .length = 3, .bytes = sent.data()};
  EXPECT_EQ(receiver.take(end), Taken::news);
  EXPECT_EQ(receiver.take(end), Taken::nothing_new);
  EXPECT_TRUE(receiver.completed.empty());
  EXPECT_EQ(receiver.take(begin), Taken::oldest_whole);
  EXPECT_EQ(receiver.completed, (std::vector<std::uint64_t>{7}));
  EXPECT_EQ(receiver.whole(), 1U);
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), buffer.begin()));
  EXPECT_EQ(buffer[5], std::byte{0xFF});
  EXPECT_EQ(receiver.take(begin), Taken::nothing_new) << "completed long ago: to be acknowledged once more";
}

TEST_F(MessageReceiverTest, on_data__does_not_write_beyond_the_buffer) {
  std::vector<std::byte> buffer(8, std::byte{0xFF});
  receiver.post(buffer.data(), 4, 0);
  EXPECT_EQ(receiver.take(piece(0, 2, 6, true)), Taken::news);
  EXPECT_EQ(receiver.take(piece(0, 0, 2, false)), Taken::oldest_whole) << "what does not fit counts all the same";
  EXPECT_EQ(buffer[3], std::byte{0});
  EXPECT_EQ(buffer[4], std::byte{0xFF});
}

TEST_F(MessageReceiverTest, on_data__completes_messages_in_any_order_and_lets_them_go_in_turn) {
  receiver.post_all(3);
  EXPECT_EQ(receiver.take(piece(1, 0, 10, true)), Taken::news);
  EXPECT_EQ(receiver.take(piece(2, 0, 0, true)), Taken::news) << "an empty one";
  EXPECT_EQ(receiver.whole(), 0U);
  EXPECT_EQ(receiver.take(piece(0, 0, 10, true)), Taken::oldest_whole);
  EXPECT_EQ(receiver.completed, (std::vector<std::uint64_t>{1, 2, 0}));
  EXPECT_EQ(receiver.whole(), 3U);
  EXPECT_TRUE(receiver.empty());
}

TEST_F(MessageReceiverTest, on_data__refuses_what_has_no_buffer) {
  EXPECT_EQ(receiver.take(piece(0, 0, 10, true)), Taken::beyond_credit);
  receiver.post_all(1);
  EXPECT_EQ(receiver.take(piece(1, 0, 10, true)), Taken::beyond_credit);
  EXPECT_TRUE(MessageReceiver::refused(Taken::beyond_credit));
  EXPECT_FALSE(MessageReceiver::refused(Taken::nothing_new));
}

TEST_F(MessageReceiverTest, on_data__refuses_two_ends_of_a_message_and_forgets_both) {
  receiver.post_all(1);
  EXPECT_EQ(receiver.take(piece(0, 10, 10, true)), Taken::news);
  EXPECT_EQ(receiver.take(piece(0, 20, 10, true)), Taken::malformed) << "another end";
  EXPECT_EQ(receiver.take(piece(0, 0, 10, false)), Taken::news);
  EXPECT_EQ(receiver.take(piece(0, 0, 5, true)), Taken::malformed) << "an end before what has come";
  EXPECT_EQ(receiver.take(piece(0, 0, 20, true)), Taken::oldest_whole) << "nothing was kept of either";
  EXPECT_EQ(receiver.completed.size(), 1U);
}

TEST_F(MessageReceiverTest, on_data__refuses_the_impossible_and_forgets_nothing) {
  receiver.post_all(1);
  EXPECT_EQ(receiver.take(piece(0, 10, 10, true)), Taken::news);
  EXPECT_EQ(receiver.take(piece(0, 0, 0, false)), Taken::malformed) << "nothing at all";
  EXPECT_EQ(receiver.take(piece(0, ~std::uint32_t{0}, 2, false)), Taken::malformed) << "beyond 4 GiB";
  EXPECT_EQ(receiver.take(piece(0, 0, 10, false)), Taken::oldest_whole);
}

TEST_F(MessageReceiverTest, on_data__bounds_the_holes_of_a_message) {
  receiver.post_all(1);
  for (std::uint32_t i = 0; i < MessageReceiver::kMaxReassemblyRanges; ++i)
    ASSERT_EQ(receiver.take(piece(0, 2 * i, 1, false)), Taken::news);
  EXPECT_EQ(receiver.take(piece(0, 100'000, 1, false)), Taken::too_many_holes);
  EXPECT_EQ(receiver.take(piece(0, 1, 1, false)), Taken::news) << "what closes a hole is taken";
  EXPECT_EQ(receiver.take(piece(0, 100'000, 1, false)), Taken::news);
}

TEST_F(MessageReceiverTest, credit_urgent__when_the_peer_has_nothing_or_half_is_news) {
  EXPECT_FALSE(receiver.credit_urgent()) << "none";
  receiver.post_all(1);
  EXPECT_TRUE(receiver.credit_due());
  EXPECT_TRUE(receiver.credit_urgent());
  receiver.on_sent_in_credit(false);
  EXPECT_FALSE(receiver.credit_due());
  EXPECT_TRUE(receiver.credit_known());
  receiver.post_all(3);
  EXPECT_FALSE(receiver.credit_known());
  EXPECT_TRUE(receiver.credit_urgent()) << "three of four are news";
  receiver.on_sent_in_ack();
  EXPECT_FALSE(receiver.credit_due());
  EXPECT_FALSE(receiver.credit_known()) << "nobody repeats an ACK";
  receiver.post_all(1);
  EXPECT_TRUE(receiver.credit_due());
  EXPECT_FALSE(receiver.credit_urgent()) << "one of five";
  EXPECT_EQ(receiver.posted(), 5U);
}

TEST_F(MessageReceiverTest, credit_known__once_the_peer_uses_the_last_of_it) {
  receiver.post_all(2);
  receiver.on_sent_in_ack();
  receiver.take(piece(0, 0, 1, false));
  EXPECT_FALSE(receiver.credit_known());
  receiver.take(piece(1, 0, 1, false));
  EXPECT_TRUE(receiver.credit_known());
}

TEST_F(MessageReceiverTest, on_credit_lost__is_told_again) {
  receiver.post_all(8);
  receiver.on_sent_in_credit(true);
  EXPECT_TRUE(receiver.final_sent());
  receiver.on_credit_lost();
  EXPECT_TRUE(receiver.credit_urgent());
  EXPECT_FALSE(receiver.credit_known());
  EXPECT_FALSE(receiver.final_sent());
}

TEST_F(MessageReceiverTest, on_question__assumes_that_the_peer_does_not_know_when_it_asks_for_long) {
  receiver.on_question(0_ms);  // no buffer is posted, so the peer lacks no information
  receiver.post_all(2);
  receiver.on_sent_in_credit(false);
  receiver.on_question(1_s);
  receiver.on_question(1_s + MessageReceiver::kPatience - Nanos(1));
  EXPECT_TRUE(receiver.credit_known());
  receiver.take(piece(0, 0, 1, true));  // data counts as an answer to the peer's questions
  receiver.on_question(1_s + MessageReceiver::kPatience);
  EXPECT_TRUE(receiver.credit_known());
  receiver.on_question(1_s + MessageReceiver::kPatience * 2);
  EXPECT_FALSE(receiver.credit_known());
}

TEST_F(MessageReceiverTest, close_up__what_ended_untouched_was_never_posted) {
  OperationDeadlines deadlines(8, 8);
  receiver.post_all(4);
  receiver.take(piece(0, 0, 1, false));
  for (std::uint64_t i = 0; i < 4; ++i) deadlines.heap.set(deadlines.of_receive(i), Nanos(100 + static_cast<int>(i)));
  EXPECT_EQ(receiver.untouched_from(), 1U);
  EXPECT_EQ(receiver.finish(2).tag, 2U);
  EXPECT_FALSE(receiver.outstanding(2));
  EXPECT_TRUE(receiver.outstanding(3));
  deadlines.heap.set(deadlines.of_receive(2), Nanos::never());
  receiver.close_up(1, deadlines);
  EXPECT_EQ(receiver.posted(), 3U);
  EXPECT_EQ(deadlines.heap.at(deadlines.of_receive(2)), Nanos(103)) << "the last one's deadline came along";
  EXPECT_TRUE(deadlines.heap.at(deadlines.of_receive(3)).is_never());
  receiver.take(piece(0, 0, 1, true));
  receiver.take(piece(1, 0, 1, true));
  receiver.take(piece(2, 0, 1, true));
  EXPECT_EQ(receiver.completed, (std::vector<std::uint64_t>{0, 1, 3}));
}

/// Receives every second byte from offset 1 on, so that each of these bytes leaves a hole before it.
Taken take_with_holes(Receiver& receiver, std::uint32_t message, std::uint32_t from, std::uint32_t count) {
  Taken taken = Taken::news;
  for (std::uint32_t i = 0; i < count && taken == Taken::news; ++i)
    taken = receiver.take(piece(message, 2 * (from + i) + 1, 1, false));
  return taken;
}

TEST_F(MessageReceiverTest, holes__of_all_messages_together_are_bounded) {
  receiver.max_hole_bytes = 2000;  // one connection may use half of this
  receiver.post_all(100);
  // Each message has a few holes that do not count towards the limit.
  for (std::uint32_t message = 0; message < 100; ++message)
    ASSERT_EQ(take_with_holes(receiver, message, 0, MessageReceiver::kOwnHoles), Taken::news) << message;
  EXPECT_EQ(receiver.hole_bytes, 0U);
  std::uint32_t refused = 0;
  for (std::uint32_t message = 0; message < 100; ++message)
    if (take_with_holes(receiver, message, MessageReceiver::kOwnHoles, 8) == Taken::too_many_holes) ++refused;
  EXPECT_LE(receiver.hole_bytes, 1000U);
  EXPECT_EQ(receiver.hole_bytes, 7U * 128) << "for eight more, seven have found room";
  EXPECT_EQ(refused, 93U);
  // The receiver always accepts data that fills holes.
  EXPECT_EQ(receiver.take(piece(99, 0, 1, false)), Taken::news);
  EXPECT_EQ(receiver.take(piece(99, 2, 1, false)), Taken::news);
  EXPECT_EQ(take_with_holes(receiver, 99, 100, 1), Taken::news) << "where two are filled, there is room again";
}

TEST_F(MessageReceiverTest, holes__are_given_back_when_their_message_ends) {
  receiver.post_all(3);
  for (std::uint32_t message = 0; message < 3; ++message) take_with_holes(receiver, message, 0, 500);
  EXPECT_EQ(receiver.hole_bytes, 3U * (512 - MessageReceiver::kOwnHoles) * 16);
  EXPECT_EQ(receiver.take(piece(1, 0, 1000, true)), Taken::news);
  EXPECT_EQ(receiver.hole_bytes, 2U * (512 - MessageReceiver::kOwnHoles) * 16) << "complete";
  EXPECT_EQ(receiver.take(piece(2, 0, 10, true)), Taken::malformed);
  EXPECT_EQ(receiver.hole_bytes, 1U * (512 - MessageReceiver::kOwnHoles) * 16) << "forgotten";
  receiver.end_all(receiver.holes(), [](const MessageReceiver::Message&) {});
  EXPECT_EQ(receiver.hole_bytes, 0U);
}

TEST_F(MessageReceiverTest, end_all__those_that_are_outstanding) {
  receiver.post_all(3);
  receiver.take(piece(1, 0, 1, true));
  std::vector<std::uint64_t> ended;
  receiver.end_all(receiver.holes(), [&](const MessageReceiver::Message& message) { ended.push_back(message.tag); });
  EXPECT_EQ(ended, (std::vector<std::uint64_t>{0, 2}));
  EXPECT_TRUE(receiver.empty());
  EXPECT_EQ(receiver.take(piece(0, 0, 1, true)), Taken::beyond_credit);
}

}  // namespace
}  // namespace mltcp::transport::message_receiver_test
