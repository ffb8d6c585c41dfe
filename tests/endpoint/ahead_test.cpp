// Tests receives that are granted before their message is announced (endpoint/internal/worker_ahead.cpp). Covers which
// messages are sent without announcement, and every order in which a grant, a message and the end of either can cross,
// with any packet lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <thread>

#include "endpoint_pair.h"

namespace mltcp::endpoint::ahead_test {
namespace {

using namespace testing_pair;

constexpr std::size_t kLong = 6'000;
constexpr std::size_t kShort = 100;

class AheadTest : public EndpointPair {
 protected:
  AheadTest() {
    open();
    connect(ConnectionKind::tagged);
  }
  void lose_what_comes_from(std::uint32_t host) {
    network->loses = [host](const Address& from, const Address&, std::span<const std::byte>) {
      return from.v4_ip() == 0x0A000000 + host;
    };
  }
  void lose_nothing() { network->loses = nullptr; }
  /// Sends a message of tag 9 in each direction. This shows that the connection works and that no earlier message is
  /// left over.
  void expect_goes_on() {
    for (const bool back : {false, true}) {
      const ByteVector message = bytes_of(kLong, 77);
      ByteVector buffer(kLong);
      const OperationHandle receiving =
          back ? receive_tagged(*left, here, buffer, 9) : receive_tagged(*right, there, buffer, 9);
      const OperationHandle sending =
          back ? send_tagged(*right, there, message, 9) : send_tagged(*left, here, message, 9);
      ASSERT_EQ(end_of(back ? *left : *right, receiving).code, Code::ok);
      ASSERT_EQ(end_of(back ? *right : *left, sending).code, Code::ok);
      ASSERT_EQ(buffer, message);
    }
    ConnectionReport report;
    ASSERT_EQ(right->report(there, report), Code::ok);
    EXPECT_EQ(report.unexpected_messages, 0U);
    EndpointReport all;
    ASSERT_EQ(right->report(all), Code::ok);
    EXPECT_EQ(all.broken_protocols, 0U);
  }
};

TEST_F(AheadTest, message__for_a_receive_that_waits_needs_no_answer) {
  const ByteVector message = bytes_of(kLong);
  ByteVector buffer(kLong);
  const OperationHandle receiving = receive_tagged(*right, there, buffer, 1);
  run_for(1_ms);
  lose_what_comes_from(2);  // from now on, no CTS can arrive
  const OperationHandle sending = send_tagged(*left, here, message, 1);
  const Completion received = end_of(*right, receiving, 50_ms);
  EXPECT_EQ(received.code, Code::ok);
  EXPECT_EQ(received.bytes, kLong);
  EXPECT_EQ(received.tag, 1U);
  EXPECT_EQ(received.connection, there);
  EXPECT_EQ(buffer, message);
  lose_nothing();
  EXPECT_EQ(end_of(*left, sending).code, Code::ok);
  expect_goes_on();
}

TEST_F(AheadTest, message__that_is_shorter_goes_ahead_too) {
  for (const std::size_t length : {std::size_t{1}, kShort, kLong - 1}) {
    const ByteVector message = bytes_of(length);
    ByteVector buffer(kLong);
    const OperationHandle receiving = receive_tagged(*right, there, buffer, 1);
    run_for(1_ms);
    lose_what_comes_from(2);
    const OperationHandle sending = send_tagged(*left, here, message, 1);
    EXPECT_EQ(end_of(*right, receiving, 50_ms).bytes, length);
    buffer.resize(length);
    EXPECT_EQ(buffer, message);
    lose_nothing();
    EXPECT_EQ(end_of(*left, sending).code, Code::ok);
  }
  expect_goes_on();
}

/// Messages of all length classes reach a receive of kLong bytes. The receive may be posted before, with, or after the
/// send, and any packet may be lost.
TEST_F(AheadTest, crossing__of_grant_and_message_ends_the_same_whatever_packet_is_lost) {
  for (const std::size_t length : {std::size_t{0}, kShort, kLong, kLong + 500}) {
    for (int order = 0; order < 4; ++order) {
      for (std::uint64_t lost = 0; lost < 14; ++lost) {
        SCOPED_TRACE(testing::Message() << length << " bytes, order " << order << ", packet " << lost << " lost");
        std::uint64_t number = 0;
        network->loses = [&](const Address&, const Address&, std::span<const std::byte>) { return number++ == lost; };
        const ByteVector message = bytes_of(length, lost + 1);
        const ByteVector next = bytes_of(kShort, lost + 2);
        ByteVector buffer(kLong);
        ByteVector second(kLong);
        OperationHandle receiving = 0;
        OperationHandle sending = 0;
        const auto receives = [&] { receiving = receive_tagged(*right, there, buffer, 1); };
        const auto sends = [&] { sending = send_tagged(*left, here, message, 1); };
        if (order == 0) receives(), run_for(1_ms), sends();
        if (order == 1) receives(), sends();
        if (order == 2) sends(), step(), receives();
        if (order == 3) sends(), run_for(1_ms), receives();
        // The second message has the same tag as the first, and must not overtake it.
        const OperationHandle following = send_tagged(*left, here, next, 1);
        const OperationHandle last = receive_tagged(*right, there, second, 1);
        const Completion received = end_of(*right, receiving);
        ASSERT_EQ(received.code, length > kLong ? Code::truncated : Code::ok);
        ASSERT_EQ(received.bytes, length);
        ASSERT_TRUE(std::equal(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(std::min(length, kLong)),
                               buffer.begin()));
        ASSERT_EQ(end_of(*left, sending).code, Code::ok);
        ASSERT_EQ(end_of(*right, last).bytes, kShort);
        second.resize(kShort);
        ASSERT_EQ(second, next);
        ASSERT_EQ(end_of(*left, following).code, Code::ok);
      }
    }
  }
  lose_nothing();
  expect_goes_on();
}

TEST_F(AheadTest, message__that_follows_does_not_overtake_one_whose_bytes_are_late) {
  for (const bool is_posted : {true, false}) {
    for (const std::size_t length : {kShort, kLong}) {
      const ByteVector first = bytes_of(kLong, 1);
      const ByteVector second = bytes_of(length, 2);
      ByteVector a(kLong);
      ByteVector b(kLong);
      const OperationHandle of_first = receive_tagged(*right, there, a, 1);
      OperationHandle of_second = 0;
      if (is_posted) of_second = receive_tagged(*right, there, b, 1);
      run_for(1_ms);
      // Loses only packets of the long message. These packets have short headers, because the bytes of the message are
      // in the payload.
      network->loses = [](const Address& from, const Address&, std::span<const std::byte> header) {
        return from.v4_ip() == 0x0A000001 && header.size() < 60;
      };
      send_tagged(*left, here, first, 1);
      run_for(200_us);
      send_tagged(*left, here, second, 1);
      run_for(1_ms);
      Completion none;
      EXPECT_EQ(right->test(of_first, none), Code::timed_out);
      lose_nothing();
      EXPECT_EQ(end_of(*right, of_first).code, Code::ok);
      EXPECT_EQ(a, first);
      if (!is_posted) of_second = receive_tagged(*right, there, b, 1);
      EXPECT_EQ(end_of(*right, of_second).bytes, length);
      b.resize(length);
      EXPECT_EQ(b, second);
    }
  }
  expect_goes_on();
}

TEST_F(AheadTest, grants__that_are_used_in_another_order_come_back_and_are_given_again) {
  constexpr std::size_t kMany = 40;  // more than the limit of grants
  for (const bool backwards : {false, true}) {
    std::vector<ByteVector> messages;
    std::vector<ByteVector> buffers;
    std::vector<OperationHandle> receives;
    std::vector<OperationHandle> sends(kMany);
    for (std::size_t i = 0; i < kMany; ++i) {
      messages.push_back(bytes_of(kLong, i));
      buffers.emplace_back(kLong);
    }
    for (std::size_t i = 0; i < kMany; ++i) receives.push_back(receive_tagged(*right, there, buffers[i], i));
    run_for(1_ms);
    for (std::size_t i = 0; i < kMany; ++i) {
      const std::size_t at = backwards ? kMany - 1 - i : i;
      sends[at] = send_tagged(*left, here, messages[at], at);
      if (i % 3 == 0) run_for(100_us);
    }
    for (std::size_t i = 0; i < kMany; ++i) {
      ASSERT_EQ(end_of(*right, receives[i]).code, Code::ok) << i;
      ASSERT_EQ(end_of(*left, sends[i]).code, Code::ok) << i;
      ASSERT_EQ(buffers[i], messages[i]) << i;
    }
  }
  expect_goes_on();
}

TEST_F(AheadTest, grant__of_a_receive_that_waits_long_is_given_back_by_what_is_announced) {
  ByteVector waits(kLong);
  const OperationHandle waiting = receive_tagged(*right, there, waits, 50);
  run_for(1_ms);
  for (std::uint64_t i = 0; i < 20; ++i) {
    // The message is announced before its receive is posted, so a CTS requests it.
    const ByteVector message = bytes_of(kLong, i);
    ByteVector buffer(kLong);
    const OperationHandle sending = send_tagged(*left, here, message, i);
    run_for(1_ms);
    ASSERT_EQ(end_of(*right, receive_tagged(*right, there, buffer, i)).code, Code::ok);
    ASSERT_EQ(end_of(*left, sending).code, Code::ok);
    ASSERT_EQ(buffer, message);
  }
  const ByteVector message = bytes_of(kLong, 50);
  const OperationHandle sending = send_tagged(*left, here, message, 50);
  EXPECT_EQ(end_of(*right, waiting).code, Code::ok);
  EXPECT_EQ(waits, message);
  EXPECT_EQ(end_of(*left, sending).code, Code::ok);
  expect_goes_on();
}

TEST_F(AheadTest, receives__that_could_take_the_message_and_are_older_get_it) {
  for (int kind = 0; kind < 4; ++kind) {
    for (const std::size_t length : {kShort, kLong}) {
      ByteVector older(kLong);
      ByteVector younger(kLong);
      OperationHandle first = 0;
      if (kind == 0) first = receive_tagged(*right, kAnyConnection, older, 1);
      if (kind == 1) first = receive_tagged(*right, kAnyConnection, older, 0, 0);
      if (kind == 2) first = receive_tagged(*right, there, older, 1, 0xF);
      // A receive with a time limit is not granted.
      if (kind == 3) first = receive_tagged(*right, there, older, 1, kWholeTag, {.time_limit = 1_s});
      const OperationHandle second = receive_tagged(*right, there, younger, 1);
      run_for(1_ms);
      const ByteVector message = bytes_of(length, 1);
      const ByteVector next = bytes_of(kLong, 2);
      send_tagged(*left, here, message, 1);
      EXPECT_EQ(end_of(*right, first).bytes, length) << kind;
      EXPECT_TRUE(std::equal(message.begin(), message.end(), older.begin()));
      EXPECT_TRUE(is_pending(*right, second));
      send_tagged(*left, here, next, 1);
      EXPECT_EQ(end_of(*right, second).code, Code::ok);
      EXPECT_EQ(younger, next);
    }
  }
  expect_goes_on();
}

TEST_F(AheadTest, receive__with_a_mask_that_is_younger_gets_what_comes_later) {
  ByteVector first(kLong);
  ByteVector second(kLong);
  const OperationHandle exact = receive_tagged(*right, there, first, 1);
  const OperationHandle any = receive_tagged(*right, kAnyConnection, second, 0, 0);
  run_for(1_ms);
  const ByteVector a = bytes_of(kLong, 1);
  const ByteVector b = bytes_of(kLong, 2);
  const ByteVector c = bytes_of(kLong, 3);
  send_tagged(*left, here, a, 2);  // does not match the exact receive, whose tag is 1
  EXPECT_EQ(end_of(*right, any).tag, 2U);
  EXPECT_EQ(second, a);
  send_tagged(*left, here, b, 1);
  EXPECT_EQ(end_of(*right, exact).code, Code::ok);
  EXPECT_EQ(first, b);
  expect_goes_on();
}

/// Whether the grant is given back or used, the message is received at most once. If the message is not received,
/// nothing accesses the buffer after the operation has ended.
TEST_F(AheadTest, cancel__at_any_time_around_the_message_loses_nothing) {
  int cancelled = 0;
  int received = 0;
  for (const std::size_t length : {std::size_t{0}, kShort, kLong, kLong + 500}) {
    for (int steps = -4; steps < 12; ++steps) {
      for (std::uint64_t lost = 0; lost < 10; ++lost) {
        SCOPED_TRACE(testing::Message() << length << " bytes, cancelled at " << steps << ", packet " << lost
                                        << " lost");
        std::uint64_t number = 0;
        network->loses = [&](const Address&, const Address&, std::span<const std::byte>) { return number++ == lost; };
        const ByteVector message = bytes_of(length, lost + 1);
        ByteVector buffer(kLong, std::byte{0xAA});
        const OperationHandle receiving = receive_tagged(*right, there, buffer, 1);
        OperationHandle sending = 0;
        // If `steps` is negative, the receive is cancelled `-steps` steps before the send. If `steps` is 0 or more, the
        // receive is cancelled after the send.
        if (steps >= 0) {
          run_for(steps % 2 == 0 ? 1_ms : 1_us);
          sending = send_tagged(*left, here, message, 1);
          for (int i = 0; i < steps / 2; ++i) step();
        }
        const Code asked = right->cancel(receiving);
        if (steps < 0) {
          for (int i = 0; i < -steps; ++i) step();
          sending = send_tagged(*left, here, message, 1);
        }
        const Completion end = asked == Code::unknown ? end_of(*right, receiving, 1_us) : end_of(*right, receiving);
        const std::size_t kept = std::min(length, kLong);
        if (end.code == Code::cancelled) {
          ++cancelled;
          buffer.assign(kLong, std::byte{0x55});
          ByteVector again(kLong);
          const Completion next = end_of(*right, receive_tagged(*right, there, again, 1));
          ASSERT_EQ(next.bytes, length);
          ASSERT_TRUE(std::equal(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(kept), again.begin()));
          run_for(1_ms);
          ASSERT_EQ(buffer, ByteVector(kLong, std::byte{0x55})) << "written to after its operation has ended";
        } else {
          ++received;
          ASSERT_EQ(end.code, length > kLong ? Code::truncated : Code::ok);
          ASSERT_EQ(end.bytes, length);
          ASSERT_TRUE(std::equal(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(kept), buffer.begin()));
        }
        ASSERT_EQ(end_of(*left, sending).code, Code::ok);
      }
    }
  }
  EXPECT_GT(cancelled, 50);
  EXPECT_GT(received, 50);
  lose_nothing();
  expect_goes_on();
}

TEST_F(AheadTest, cancel__of_a_receive_is_heard_without_any_message) {
  ByteVector buffer(kLong);
  ByteVector other(kLong);
  const OperationHandle cancelled = receive_tagged(*right, there, buffer, 1);
  const OperationHandle kept = receive_tagged(*right, there, other, 2);
  run_for(1_ms);
  EXPECT_EQ(right->cancel(cancelled), Code::ok);
  EXPECT_EQ(right->cancel(cancelled), Code::ok) << "is asked for already";
  const Completion end = end_of(*right, cancelled, 10_ms);
  EXPECT_EQ(end.code, Code::cancelled);
  EXPECT_EQ(end.cause, Cause::here);
  EXPECT_EQ(end.tag, 1U);
  const ByteVector message = bytes_of(kLong);
  send_tagged(*left, here, message, 2);
  EXPECT_EQ(end_of(*right, kept).code, Code::ok);
  EXPECT_EQ(other, message);
  expect_goes_on();
}

TEST_F(AheadTest, cancel__of_a_send_and_time_limits_that_cross_a_grant) {
  for (int way = 0; way < 3; ++way) {
    for (std::uint64_t lost = 0; lost < 12; ++lost) {
      SCOPED_TRACE(testing::Message() << "way " << way << ", packet " << lost << " lost");
      const ByteVector message = bytes_of(kLong, 1);
      const ByteVector next = bytes_of(kLong, 2);
      ByteVector buffer(kLong);
      std::uint64_t number = 0;
      network->loses = [&](const Address&, const Address&, std::span<const std::byte>) { return number++ == lost; };
      PostOptions options;
      if (way == 2) options.time_limit = Nanos(1'000);
      const OperationHandle sending = send_tagged(*left, here, message, 1, options);
      if (way == 1) step();
      const OperationHandle receiving = receive_tagged(*right, there, buffer, 1);
      if (way < 2) (void)left->cancel(sending);
      const Completion sent = end_of(*left, sending);
      if (sent.code == Code::ok) {
        EXPECT_EQ(end_of(*right, receiving).code, Code::ok);
        EXPECT_EQ(buffer, message);
        continue;
      }
      EXPECT_EQ(sent.code, way == 2 ? Code::timed_out : Code::cancelled);
      run_for(2_ms);
      Completion end;
      if (right->test(receiving, end) == Code::ok) {
        EXPECT_EQ(end.code, Code::cancelled) << "matched meanwhile";
        EXPECT_EQ(end.cause, Cause::peer);
        continue;
      }
      send_tagged(*left, here, next, 1);
      EXPECT_EQ(end_of(*right, receiving).code, Code::ok);
      EXPECT_EQ(buffer, next);
    }
  }
  lose_nothing();
  expect_goes_on();
}

TEST_F(AheadTest, end__of_the_connection_ends_granted_receives_with_its_code) {
  for (int way = 0; way < 6; ++way) {
    SCOPED_TRACE(way);
    ByteVector granted(kLong);
    ByteVector withdrawn(kLong);
    ByteVector reserved(kLong);
    const OperationHandle a = receive_tagged(*right, there, granted, 1);
    const OperationHandle b = receive_tagged(*right, there, withdrawn, 2);
    run_for(1_ms);
    if (way == 0) left->abort(here);
    if (way == 1) right->abort(there);
    if (way == 2) left->close(here);
    if (way == 3) right->close(there);
    if (way == 4) lose_what_comes_from(1);
    if (way == 5) right->close();
    if (way < 4) (void)right->cancel(b);
    const Completion end = end_of(*right, a);
    const std::array<Code, 6> codes{Code::aborted, Code::aborted,     Code::closed,
                                    Code::closed,  Code::unreachable, Code::destroyed};
    EXPECT_EQ(end.code, codes[static_cast<std::size_t>(way)]) << to_text(end);
    const Completion other = end_of(*right, b);
    EXPECT_TRUE(other.code == Code::cancelled || other.code == end.code) << to_text(other);
    lose_nothing();
    if (way == 5) break;
    while (event(*left, 400_ms).kind == Completion::Kind::closed) break;
    run_for(400_ms);
    left.reset();
    right.reset();
    open();
    connect(ConnectionKind::tagged);
  }
}

/// If `crosses` is true, the message and the grant cross each other on the way. If `crosses` is false, the grant
/// arrives before the message is sent.
TEST_F(AheadTest, message__that_is_short_does_not_wait_for_a_long_one_on_the_data_connection) {
  JobOptions limited;
  limited.max_rate = Rate(100'000'000);
  JobHandle job = 0;
  ASSERT_EQ(left->create_job(limited, job), Code::ok);
  ASSERT_EQ(left->attach(here, job), Code::ok);
  for (const bool crosses : {true, false}) {
    SCOPED_TRACE(crosses);
    const ByteVector big = bytes_of(3'000'000);  // takes 240 ms at the job's rate
    const ByteVector brief = bytes_of(kShort, 2);
    ByteVector into(big.size());
    ByteVector other(kLong);
    const OperationHandle of_big = receive_tagged(*right, there, into, 1);
    run_for(1_ms);
    const OperationHandle sending_big = send_tagged(*left, here, big, 1);
    run_for(1_ms);
    const OperationHandle of_brief = receive_tagged(*right, there, other, 2);
    if (!crosses) run_for(200_us);
    const OperationHandle sending_brief = send_tagged(*left, here, brief, 2);
    const Completion end = end_of(*right, of_brief, 10_ms);
    EXPECT_EQ(end.code, Code::ok);
    EXPECT_EQ(end.bytes, kShort);
    EXPECT_TRUE(std::equal(brief.begin(), brief.end(), other.begin()));
    EXPECT_TRUE(is_pending(*right, of_big));
    other.assign(kLong, std::byte{0x55});
    EXPECT_EQ(end_of(*right, of_big).code, Code::ok);
    EXPECT_EQ(into, big);
    EXPECT_EQ(end_of(*left, sending_big).code, Code::ok);
    EXPECT_EQ(end_of(*left, sending_brief).code, Code::ok);
    EXPECT_EQ(other, ByteVector(kLong, std::byte{0x55})) << "written to after its operation has ended";
  }
  expect_goes_on();
}

TEST_F(AheadTest, close__delivers_what_was_sent_for_a_grant) {
  const ByteVector message = bytes_of(50'000);
  ByteVector buffer(50'000);
  const OperationHandle receiving = receive_tagged(*right, there, buffer, 1);
  run_for(1_ms);
  const OperationHandle sending = send_tagged(*left, here, message, 1);
  left->close(here);
  EXPECT_EQ(end_of(*right, receiving).code, Code::ok);
  EXPECT_EQ(end_of(*left, sending).code, Code::ok);
  EXPECT_EQ(buffer, message);
}

/// Returns a message whose content identifies it by tag and number.
ByteVector numbered(std::size_t length, std::uint64_t tag, std::uint64_t number) {
  ByteVector bytes(std::max<std::size_t>(length, 16));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i + number);
  std::memcpy(bytes.data(), &tag, 8);
  std::memcpy(bytes.data() + 8, &number, 8);
  return bytes;
}
std::uint64_t number_in(const ByteVector& bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + 8, 8);
  return number;
}
bool is_whole(const ByteVector& bytes, std::size_t length, std::uint64_t tag) {
  return bytes.size() >= length && std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length),
                                              numbered(length, tag, number_in(bytes)).begin());
}

/// Posts sends, receives of all kinds and cancels at random, under loss. Each message is received once. If two messages
/// have the same tag, the receive that was posted first gets the message that was sent first.
TEST_F(AheadTest, random__sends_receives_and_cancels_keep_what_MPI_promises) {
  struct Receive {
    OperationHandle operation = 0;
    ByteVector buffer;
    bool over = false;
  };
  constexpr std::uint64_t kTags = 4;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    network->loses = [&](const Address&, const Address&, std::span<const std::byte>) {
      return seed % 3 == 0 && random.chance(0.03);
    };
    const bool all_kinds = seed % 2 == 0;
    std::deque<ByteVector> messages;
    std::deque<OperationHandle> sends;
    std::deque<Receive> receives;  // in the order in which they were posted
    std::array<std::uint64_t, kTags> sent{};
    std::array<std::vector<std::uint64_t>, kTags> got;  // message numbers, in the order of the receives
    const auto post = [&](std::uint64_t tag, bool exact) {
      Receive& receive = receives.emplace_back();
      receive.buffer.resize(8'000);
      const bool any = !exact && random.chance(0.5);
      const std::uint64_t mask = exact || any ? kWholeTag : 1;
      receive.operation = receive_tagged(*right, any ? kAnyConnection : there, receive.buffer, tag, mask);
    };
    for (int turn = 0; turn < 150; ++turn) {
      const std::uint64_t tag = random.below(kTags);
      const std::uint64_t what = random.below(10);
      if (what < 4 && sends.size() < 100) {
        const std::size_t length = 16 + (random.chance(0.3) ? random.below(900) : random.below(7'000));
        sends.push_back(send_tagged(*left, here, messages.emplace_back(numbered(length, tag, sent[tag]++)), tag));
      } else if (what < 8) {
        post(tag, !all_kinds || random.chance(0.7));
      } else if (!receives.empty() && random.chance(0.5)) {
        (void)right->cancel(receives[random.below(receives.size())].operation);
      }
      if (random.chance(0.6)) step();
      if (random.chance(0.05)) run_for(1_ms);
    }
    // Each tag gets enough receives for all its messages.
    for (std::uint64_t tag = 0; tag < kTags; ++tag)
      for (std::uint64_t i = 0; i < sent[tag] && receives.size() < 240; ++i) post(tag, true);
    for (const OperationHandle operation : sends) ASSERT_EQ(end_of(*left, operation, 5_s).code, Code::ok);
    lose_nothing();
    run_for(3_ms);
    for (Receive& receive : receives) (void)right->cancel(receive.operation);
    for (Receive& receive : receives) {
      const Completion end = end_of(*right, receive.operation);
      if (end.code == Code::cancelled) continue;
      ASSERT_EQ(end.code, Code::ok) << to_text(end);
      ASSERT_LT(end.tag, kTags);
      ASSERT_TRUE(is_whole(receive.buffer, static_cast<std::size_t>(end.bytes), end.tag));
      got[end.tag].push_back(number_in(receive.buffer));
    }
    for (std::uint64_t tag = 0; tag < kTags; ++tag) {
      ASSERT_EQ(got[tag].size(), sent[tag]) << "of tag " << tag;
      for (std::uint64_t i = 0; i < sent[tag]; ++i) ASSERT_EQ(got[tag][i], i) << "of tag " << tag;
    }
  }
  expect_goes_on();
}

/// Runs threads at both ends in real time, for MLTCP_STRESS_SECONDS or one second.
TEST(AheadStress, threads__send_receive_and_cancel_and_lose_nothing) {
  const char* const seconds = std::getenv("MLTCP_STRESS_SECONDS");
  const Nanos until = monotonic_now() + Nanos::from_seconds(seconds != nullptr ? std::atof(seconds) : 1);
  loop_network::register_datapath();
  const auto network = loop_network::Network::make("ahead", false);
  std::array<std::unique_ptr<Endpoint>, 2> ends;
  for (std::uint32_t side = 0; side < 2; ++side) {
    EndpointConfig config = caller_config("ahead", side + 1);
    config.driving = Driving::threads;
    config.max_operations = 1024;
    config.peer_timeout = 5_s;
    config.seed.reset();
    ends[side] = std::make_unique<Endpoint>(config);
  }
  const std::array<ConnectionHandle, 2> connections{
      connection_to(ends[1]->address().bytes(), *ends[0], ConnectionKind::tagged), next_event(*ends[1]).connection};

  constexpr std::uint64_t kTags = 3;
  std::array<std::atomic<std::uint64_t>, 2> received{};
  std::array<std::array<std::atomic<std::uint64_t>, kTags>, 2> sent{};
  std::array<std::atomic<bool>, 2> sender_done{};
  const auto sender = [&](std::size_t side) {
    Random random(side + 1);
    std::deque<std::pair<ByteVector, OperationHandle>> under_way;
    while (monotonic_now() < until || !under_way.empty()) {
      if (monotonic_now() < until && under_way.size() < 20) {
        const std::uint64_t tag = random.below(kTags);
        const std::size_t length = 16 + (random.chance(0.3) ? random.below(900) : random.below(20'000));
        auto& [bytes, operation] = under_way.emplace_back(numbered(length, tag, sent[side][tag]), 0);
        ASSERT_EQ(ends[side]->send_tagged(connections[side], bytes, tag, {}, operation), Code::ok);
        ++sent[side][tag];
        if (random.chance(0.5)) continue;
      }
      Completion over;
      ASSERT_EQ(ends[side]->wait(under_way.front().second, over, 20_s), Code::ok) << "a send that never ends";
      ASSERT_EQ(over.code, Code::ok) << to_text(over);
      under_way.pop_front();
    }
    sender_done[side] = true;
  };
  const auto receiver = [&](std::size_t side) {
    Random random(side + 11);
    std::array<std::deque<std::pair<ByteVector, OperationHandle>>, kTags> posted;
    std::array<std::uint64_t, kTags> next{};
    const auto all = [&] {
      for (std::uint64_t tag = 0; tag < kTags; ++tag)
        if (next[tag] != sent[1 - side][tag]) return false;
      return sender_done[1 - side].load();
    };
    while (!all()) {
      const std::uint64_t tag = random.below(kTags);
      auto& of_tag = posted[tag];
      if (of_tag.size() < 5) {
        auto& [bytes, operation] = of_tag.emplace_back(ByteVector(21'000), 0);
        ASSERT_EQ(ends[side]->receive_tagged(connections[side], bytes, tag, kWholeTag, {}, operation), Code::ok);
        continue;
      }
      if (random.chance(0.1)) (void)ends[side]->cancel(of_tag[random.below(of_tag.size())].second);
      Completion over;
      const Code code = ends[side]->wait(of_tag.front().second, over, 1_ms);
      if (code == Code::timed_out) continue;
      ASSERT_EQ(code, Code::ok);
      if (over.code != Code::cancelled) {
        ASSERT_EQ(over.code, Code::ok) << to_text(over);
        ASSERT_TRUE(is_whole(of_tag.front().first, static_cast<std::size_t>(over.bytes), tag));
        ASSERT_EQ(number_in(of_tag.front().first), next[tag]);
        ++next[tag];
        ++received[side];
      }
      of_tag.pop_front();
    }
    // The operations must end first, because their buffers are freed at the end of this function.
    for (auto& of_tag : posted)
      for (auto& [bytes, operation] : of_tag) {
        (void)ends[side]->cancel(operation);
        Completion over;
        ASSERT_EQ(ends[side]->wait(operation, over, 20_s), Code::ok) << "a receive that never ends";
      }
  };
  std::vector<std::thread> threads;
  for (std::size_t side = 0; side < 2; ++side) {
    threads.emplace_back(sender, side);
    threads.emplace_back(receiver, side);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(received[0] + received[1], 100U);
  printf("received %llu and %llu\n", static_cast<unsigned long long>(received[0]),
         static_cast<unsigned long long>(received[1]));
}

}  // namespace
}  // namespace mltcp::endpoint::ahead_test
