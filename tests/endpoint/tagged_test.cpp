// Tests messages with tags: matching, order, unexpected messages and their limit, long messages, cancel, and peek.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "endpoint_pair.h"

namespace mltcp::endpoint::tagged_test {
namespace {

using namespace testing_pair;

constexpr std::size_t kLong = 20'000;  // bytes; above the eager limit

class TaggedTest : public EndpointPair {
 protected:
  TaggedTest() {
    open();
    connect(ConnectionKind::tagged);
  }
  ConnectionReport report_of(Endpoint& endpoint, ConnectionHandle connection) {
    ConnectionReport report;
    EXPECT_EQ(endpoint.report(connection, report), Code::ok);
    return report;
  }
  Completion peek(Endpoint& endpoint, ConnectionHandle connection, std::uint64_t tag, std::uint64_t mask, Take take) {
    OperationHandle operation = 0;
    EXPECT_EQ(endpoint.peek(connection, tag, mask, take, {}, operation), Code::ok);
    return end_of(endpoint, operation);
  }
};

TEST_F(TaggedTest, messages__of_all_lengths_find_their_receives) {
  const std::vector<std::size_t> lengths{0, 1, 1000, 1024, 1025, kLong, 300'000};
  std::vector<ByteVector> messages;
  std::vector<ByteVector> buffers;
  std::vector<OperationHandle> sends;
  std::vector<OperationHandle> receives;
  for (const std::size_t length : lengths) {
    messages.push_back(bytes_of(length, length + 1));
    buffers.emplace_back(length);
  }
  for (std::size_t i = lengths.size(); i-- > 0;)  // receives are posted in the reverse order of the sends
    receives.push_back(receive_tagged(*right, there, buffers[i], i));
  for (std::size_t i = 0; i < lengths.size(); ++i) sends.push_back(send_tagged(*left, here, messages[i], i));
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Completion received = end_of(*right, receives[lengths.size() - 1 - i]);
    EXPECT_EQ(received.code, Code::ok);
    EXPECT_EQ(received.tag, i);
    EXPECT_EQ(received.bytes, lengths[i]);
    EXPECT_EQ(buffers[i], messages[i]);
    EXPECT_EQ(end_of(*left, sends[i]).code, Code::ok);
  }
}

TEST_F(TaggedTest, messages__wait_for_their_receives_at_the_receiver_or_the_sender) {
  const ByteVector brief = bytes_of(100);
  const ByteVector lengthy = bytes_of(kLong);
  const OperationHandle first = send_tagged(*left, here, brief, 1);
  const OperationHandle second = send_tagged(*left, here, lengthy, 2);
  EXPECT_EQ(end_of(*left, first).code, Code::ok) << "it is held by the peer";
  EXPECT_TRUE(is_pending(*left, second));
  EXPECT_EQ(report_of(*right, there).unexpected_messages, 2U);
  ByteVector buffer(kLong);
  EXPECT_EQ(end_of(*right, receive_tagged(*right, there, buffer, 2)).bytes, kLong);
  EXPECT_EQ(buffer, lengthy);
  EXPECT_EQ(end_of(*left, second).code, Code::ok);
  buffer.resize(100);
  EXPECT_EQ(end_of(*right, receive_tagged(*right, there, buffer, 1)).bytes, 100U);
  EXPECT_EQ(buffer, brief);
  EXPECT_EQ(report_of(*right, there).unexpected_messages, 0U);
}

TEST_F(TaggedTest, messages__that_fit_the_same_receive_do_not_overtake) {
  // Long and short messages alternate. A short message could arrive before the long message that was sent first.
  std::vector<ByteVector> messages;
  for (std::size_t i = 0; i < 40; ++i) messages.push_back(bytes_of(i % 2 == 0 ? kLong : 10, i));
  std::vector<OperationHandle> sends;
  for (const ByteVector& message : messages) sends.push_back(send_tagged(*left, here, message, 5));
  run_for(2_ms);
  for (const ByteVector& message : messages) {
    ByteVector buffer(kLong);
    const Completion received = end_of(*right, receive_tagged(*right, there, buffer, 5));
    buffer.resize(static_cast<std::size_t>(received.bytes));
    EXPECT_EQ(buffer, message);
  }
  for (const OperationHandle operation : sends) EXPECT_EQ(end_of(*left, operation).code, Code::ok);
}

TEST_F(TaggedTest, receives__match_in_the_order_in_which_they_were_posted) {
  ByteVector a(10);
  ByteVector b(10);
  ByteVector c(10);
  ByteVector d(10);
  const OperationHandle masked = receive_tagged(*right, kAnyConnection, a, 0x10, 0xF0);
  const OperationHandle exact = receive_tagged(*right, there, b, 0x17);
  const OperationHandle any = receive_tagged(*right, kAnyConnection, c, 0x17);
  const OperationHandle all = receive_tagged(*right, there, d, 0, 0);
  for (const std::uint64_t value : {1U, 2U, 3U, 4U}) {
    const ByteVector message(10, static_cast<std::byte>(value));
    end_of(*left, send_tagged(*left, here, message, 0x17));
  }
  EXPECT_EQ(end_of(*right, masked).tag, 0x17U);
  EXPECT_EQ(end_of(*right, exact).connection, there);
  EXPECT_EQ(end_of(*right, any).connection, there);
  EXPECT_EQ(end_of(*right, all).tag, 0x17U);
  EXPECT_EQ(a[0], std::byte{1});
  EXPECT_EQ(b[0], std::byte{2});
  EXPECT_EQ(c[0], std::byte{3});
  EXPECT_EQ(d[0], std::byte{4});
}

TEST_F(TaggedTest, receive__takes_the_earliest_unexpected_message_that_fits) {
  for (const std::uint64_t tag : {0x21U, 0x31U, 0x22U}) {
    const ByteVector message(8, static_cast<std::byte>(tag));
    end_of(*left, send_tagged(*left, here, message, tag));
  }
  ByteVector buffer(8);
  EXPECT_EQ(end_of(*right, receive_tagged(*right, there, buffer, 0x30, 0xF0)).tag, 0x31U);
  EXPECT_EQ(end_of(*right, receive_tagged(*right, kAnyConnection, buffer, 0x20, 0xF0)).tag, 0x21U);
  EXPECT_EQ(end_of(*right, receive_tagged(*right, kAnyConnection, buffer, 0x22)).tag, 0x22U);
}

TEST_F(TaggedTest, receive__from_any_connection_takes_it_of_each) {
  third = std::make_unique<Endpoint>(config(3));
  ConnectionHandle from_third = 0;
  ASSERT_EQ(third->connect(right->address().bytes(), {.kind = ConnectionKind::tagged, .post = {}}, from_third),
            Code::ok);
  const ConnectionHandle thirds = event(*right).connection;
  ByteVector a(10);
  ByteVector b(10);
  ByteVector named(10);
  const OperationHandle of_third = receive_tagged(*right, thirds, named, 7);
  const OperationHandle first = receive_tagged(*right, kAnyConnection, a, 7);
  const OperationHandle second = receive_tagged(*right, kAnyConnection, b, 7);
  const ByteVector message = bytes_of(10);
  end_of(*left, send_tagged(*left, here, message, 7));
  EXPECT_EQ(end_of(*right, first).connection, there);
  end_of(*third, send_tagged(*third, from_third, message, 7));
  EXPECT_EQ(end_of(*right, of_third).connection, thirds);
  end_of(*third, send_tagged(*third, from_third, message, 7));
  EXPECT_EQ(end_of(*right, second).connection, thirds);
}

TEST_F(TaggedTest, unexpected__messages_are_no_more_than_the_window_and_the_others_wait_in_order) {
  const ByteVector message = bytes_of(1000);
  std::vector<OperationHandle> sends;
  for (std::uint64_t i = 0; i < 50; ++i) sends.push_back(send_tagged(*left, here, message, i));
  run_for(10_ms);
  EXPECT_EQ(report_of(*right, there).unexpected_messages, 8U);
  EXPECT_EQ(report_of(*left, here).held_back, 42U);
  Completion end;
  for (std::size_t i = 0; i < sends.size(); ++i)
    EXPECT_EQ(left->test(sends[i], end), i < 8 ? Code::ok : Code::timed_out) << i;
  // Messages are received in order. Each receive frees a place for a waiting message.
  ByteVector buffer(1000);
  for (std::uint64_t i = 0; i < 50; ++i)
    EXPECT_EQ(end_of(*right, receive_tagged(*right, there, buffer, i)).code, Code::ok);
  for (std::size_t i = 8; i < sends.size(); ++i) EXPECT_EQ(end_of(*left, sends[i]).code, Code::ok);
}

TEST_F(TaggedTest, unexpected__window_does_not_keep_long_messages_from_matched_receives) {
  // The window is full of messages that nobody receives. A message whose receive was posted before the window filled
  // still arrives.
  ByteVector buffer(kLong);
  const ByteVector lengthy = bytes_of(kLong);
  const ByteVector brief = bytes_of(10);
  const OperationHandle receiving = receive_tagged(*right, there, buffer, 99);
  const OperationHandle sending = send_tagged(*left, here, lengthy, 99);
  for (std::uint64_t i = 0; i < 20; ++i) send_tagged(*left, here, brief, i);
  EXPECT_EQ(end_of(*right, receiving).code, Code::ok);
  EXPECT_EQ(end_of(*left, sending).code, Code::ok);
  // A message in the opposite direction also arrives.
  const OperationHandle back = receive_tagged(*left, here, buffer, 1);
  end_of(*right, send_tagged(*right, there, lengthy, 1));
  EXPECT_EQ(end_of(*left, back).code, Code::ok);
}

TEST_F(TaggedTest, receive__of_a_longer_message_is_truncated) {
  for (const std::size_t length : {std::size_t{500}, kLong}) {
    for (const bool expected : {true, false}) {
      const ByteVector message = bytes_of(length);
      ByteVector buffer(100);
      OperationHandle receiving = 0;
      if (expected) receiving = receive_tagged(*right, there, buffer, 3);
      const OperationHandle sending = send_tagged(*left, here, message, 3);
      run_for(1_ms);
      if (!expected) receiving = receive_tagged(*right, there, buffer, 3);
      const Completion received = end_of(*right, receiving);
      EXPECT_EQ(received.code, Code::truncated);
      EXPECT_EQ(received.bytes, length);
      EXPECT_TRUE(std::equal(buffer.begin(), buffer.end(), message.begin()));
      EXPECT_EQ(end_of(*left, sending).code, Code::ok);
    }
  }
  ByteVector nothing;
  const ByteVector message = bytes_of(kLong);
  const OperationHandle sending = send_tagged(*left, here, message, 3);
  EXPECT_EQ(end_of(*right, receive_tagged(*right, there, nothing, 3)).code, Code::truncated);
  EXPECT_EQ(end_of(*left, sending).code, Code::ok);
}

TEST_F(TaggedTest, cancel__of_a_receive_before_its_message) {
  ByteVector buffer(100);
  ByteVector other(100);
  const OperationHandle cancelled = receive_tagged(*right, there, buffer, 4);
  const OperationHandle masked = receive_tagged(*right, kAnyConnection, buffer, 4, 0xF);
  const OperationHandle kept = receive_tagged(*right, there, other, 4);
  EXPECT_EQ(right->cancel(cancelled), Code::ok);
  EXPECT_EQ(right->cancel(masked), Code::ok);
  EXPECT_EQ(end_of(*right, cancelled).code, Code::cancelled);
  EXPECT_EQ(end_of(*right, masked).code, Code::cancelled);
  const ByteVector message = bytes_of(100);
  send_tagged(*left, here, message, 4);
  EXPECT_EQ(end_of(*right, kept).code, Code::ok);
  EXPECT_EQ(other, message);
}

TEST_F(TaggedTest, cancel__of_a_send_that_is_held_back_announced_or_sent) {
  const ByteVector lengthy = bytes_of(kLong);
  const ByteVector brief = bytes_of(10);
  const OperationHandle announced = send_tagged(*left, here, lengthy, 1);
  const OperationHandle eager = send_tagged(*left, here, brief, 2);
  run_for(1_ms);
  for (std::uint64_t i = 0; i < 6; ++i) send_tagged(*left, here, brief, 3);
  const OperationHandle held = send_tagged(*left, here, brief, 4);
  run_for(1_ms);
  EXPECT_EQ(left->cancel(eager), Code::unknown) << "it has ended";
  EXPECT_EQ(left->cancel(held), Code::ok);
  EXPECT_EQ(end_of(*left, held).code, Code::cancelled);
  EXPECT_EQ(left->cancel(announced), Code::ok);
  EXPECT_EQ(end_of(*left, announced).code, Code::cancelled);
  EXPECT_EQ(peek(*right, there, 1, kWholeTag, Take::no).code, Code::nothing) << "the peer has forgotten it";
  ByteVector buffer(kLong);
  EXPECT_EQ(end_of(*right, receive_tagged(*right, there, buffer, 2)).bytes, 10U);
  // All places of the window are free again.
  for (std::uint64_t i = 0; i < 6; ++i) end_of(*right, receive_tagged(*right, there, buffer, 3));
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(end_of(*left, send_tagged(*left, here, brief, 5)).code, Code::ok);
}

TEST_F(TaggedTest, cancel__that_crosses_the_match_is_too_late) {
  const ByteVector lengthy = bytes_of(kLong);
  ByteVector buffer(kLong);
  const OperationHandle sending = send_tagged(*left, here, lengthy, 1);
  run_for(1_ms);
  // The receive has a match, but its CTS has not left yet.
  const OperationHandle receiving = receive_tagged(*right, there, buffer, 1);
  EXPECT_EQ(left->cancel(sending), Code::ok);
  EXPECT_EQ(right->cancel(receiving), Code::too_late);
  EXPECT_EQ(end_of(*left, sending).code, Code::ok);
  EXPECT_EQ(end_of(*right, receiving).code, Code::ok);
  EXPECT_EQ(buffer, lengthy);
}

TEST_F(TaggedTest, time_limit__takes_an_announced_message_back_and_the_connection_goes_on) {
  const ByteVector lengthy = bytes_of(kLong);
  const ByteVector brief = bytes_of(10);
  const OperationHandle sending = send_tagged(*left, here, lengthy, 1, {.time_limit = 5_ms});
  EXPECT_EQ(end_of(*left, sending).code, Code::timed_out);
  run_for(1_ms);
  EXPECT_EQ(peek(*right, there, 1, kWholeTag, Take::no).code, Code::nothing);
  ByteVector buffer(kLong);
  const OperationHandle limited = receive_tagged(*right, there, buffer, 1, kWholeTag, {.time_limit = 5_ms});
  EXPECT_EQ(end_of(*right, limited).code, Code::timed_out);
  const OperationHandle receiving = receive_tagged(*right, there, buffer, 1);
  send_tagged(*left, here, brief, 1);
  EXPECT_EQ(end_of(*right, receiving).bytes, 10U);
}

TEST_F(TaggedTest, time_limit__that_crosses_the_match_fails_the_receive_alone) {
  const ByteVector lengthy = bytes_of(kLong);
  ByteVector buffer(kLong);
  ByteVector other(kLong);
  const OperationHandle sending = send_tagged(*left, here, lengthy, 1, {.time_limit = 5_ms});
  const OperationHandle second = send_tagged(*left, here, lengthy, 2);
  run_for(4_ms);
  network->loses = [](const Address&, const Address&, std::span<const std::byte>) { return true; };
  const OperationHandle receiving = receive_tagged(*right, there, buffer, 1);
  const OperationHandle next = receive_tagged(*right, there, other, 2);
  EXPECT_EQ(end_of(*left, sending).code, Code::timed_out) << "before the CTS could get there";
  network->loses = nullptr;
  EXPECT_TRUE(ended(end_of(*right, receiving), Code::cancelled, Cause::peer));
  EXPECT_EQ(end_of(*right, next).code, Code::ok);
  EXPECT_EQ(other, lengthy);
  EXPECT_EQ(end_of(*left, second).code, Code::ok);
}

TEST_F(TaggedTest, peek__shows_and_takes_what_a_receive_would_get) {
  const ByteVector brief = bytes_of(77);
  const ByteVector lengthy = bytes_of(kLong);
  EXPECT_EQ(peek(*right, kAnyConnection, 0, 0, Take::no).code, Code::nothing);
  end_of(*left, send_tagged(*left, here, brief, 6));
  send_tagged(*left, here, lengthy, 6);
  run_for(1_ms);
  Completion seen = peek(*right, there, 6, kWholeTag, Take::no);
  EXPECT_EQ(seen.code, Code::ok);
  EXPECT_EQ(seen.bytes, 77U);
  EXPECT_EQ(seen.message, 0U);
  seen = peek(*right, kAnyConnection, 0, 0, Take::yes);
  EXPECT_EQ(seen.bytes, 77U);
  EXPECT_EQ(seen.tag, 6U);
  EXPECT_EQ(seen.connection, there);
  ByteVector buffer(kLong);
  const Completion next = end_of(*right, receive_tagged(*right, there, buffer, 6));
  EXPECT_EQ(next.bytes, kLong) << "what was taken is nobody else's";
  OperationHandle operation = 0;
  ASSERT_EQ(right->receive_message(seen.message, buffer, {}, operation), Code::ok);
  const Completion received = end_of(*right, operation);
  EXPECT_EQ(received.code, Code::ok);
  EXPECT_EQ(received.tag, 6U);
  buffer.resize(77);
  EXPECT_EQ(buffer, brief);
  ASSERT_EQ(right->receive_message(seen.message, buffer, {}, operation), Code::ok);
  EXPECT_EQ(end_of(*right, operation).code, Code::unknown);
}

TEST_F(TaggedTest, close__lets_messages_arrive_that_the_peer_has_yet_to_receive) {
  const ByteVector brief = bytes_of(100);
  const ByteVector lengthy = bytes_of(kLong);
  end_of(*left, send_tagged(*left, here, brief, 1));
  const OperationHandle sending = send_tagged(*left, here, lengthy, 2);
  ASSERT_EQ(left->close(here), Code::ok);
  EXPECT_TRUE(is_pending(*left, sending)) << "announced: the peer may still ask for it";
  ByteVector buffer(kLong);
  EXPECT_EQ(end_of(*right, receive_tagged(*right, there, buffer, 2)).code, Code::ok);
  EXPECT_EQ(buffer, lengthy);
  EXPECT_EQ(end_of(*left, sending).code, Code::ok);
  EXPECT_EQ(event(*left).kind, Completion::Kind::closed);
  EXPECT_EQ(event(*right).kind, Completion::Kind::closed);
  // A message that arrived before the close can still be received.
  const Completion received = end_of(*right, receive_tagged(*right, there, buffer, 1));
  EXPECT_EQ(received.code, Code::ok);
  EXPECT_EQ(received.bytes, 100U);
  OperationHandle operation = 0;
  EXPECT_EQ(right->receive_tagged(there, buffer, 1, kWholeTag, {}, operation), Code::closed) << "nothing is left";
}

TEST_F(TaggedTest, abort__ends_sends_and_receives_but_not_those_from_any) {
  const ByteVector lengthy = bytes_of(kLong);
  ByteVector a(10);
  ByteVector b(10);
  const OperationHandle sending = send_tagged(*left, here, lengthy, 1);
  run_for(1_ms);
  const OperationHandle named = receive_tagged(*right, there, a, 9);
  const OperationHandle any = receive_tagged(*right, kAnyConnection, b, 9);
  left->abort(here);
  EXPECT_EQ(end_of(*left, sending).code, Code::aborted);
  EXPECT_TRUE(ended(end_of(*right, named), Code::aborted, Cause::peer));
  EXPECT_TRUE(is_pending(*right, any));
  EXPECT_EQ(peek(*right, kAnyConnection, 1, kWholeTag, Take::no).code, Code::nothing) << "who announced it is gone";
  right->close();
  Completion last;
  EXPECT_EQ(right->test(any, last), Code::ok);
  EXPECT_EQ(last.code, Code::destroyed);
}

TEST_F(TaggedTest, messages__survive_loss) {
  Random random(7);
  network->loses = [&](const Address&, const Address&, std::span<const std::byte>) { return random.chance(0.05); };
  std::vector<ByteVector> messages;
  std::vector<ByteVector> buffers;
  std::vector<OperationHandle> receives;
  for (std::size_t i = 0; i < 100; ++i) {
    messages.push_back(bytes_of(i % 3 == 0 ? kLong : i, i));
    buffers.emplace_back(messages.back().size());
  }
  for (auto& buffer : buffers) receives.push_back(receive_tagged(*right, there, buffer, 0));
  for (const auto& message : messages) send_tagged(*left, here, message, 0);
  for (std::size_t i = 0; i < 100; ++i) {
    const Completion end = end_of(*right, receives[i], 20_s);
    ASSERT_EQ(end.code, Code::ok) << to_text(end);
    ASSERT_EQ(buffers[i], messages[i]) << i;
  }
}

}  // namespace
}  // namespace mltcp::endpoint::tagged_test
