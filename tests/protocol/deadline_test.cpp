// Tests time limits: deadlines of sends and receives, before and after their message has begun. Also tests keep-alive
// packets and the idle limit, which detect that a peer is silent.
#include <gtest/gtest.h>

#include "../transport/test_network.h"
#include "lone_connection.h"

namespace mltcp::deadline_test {
namespace {

using namespace testing_network;
using DeadlineConnected = ConnectedTest;
using CancelConnected = ConnectedTest;

/// A message of one byte. The value of the byte identifies the message.
struct Byte {
  std::byte value{};
  [[nodiscard]] std::span<std::byte> buffer() { return {&value, 1}; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {&value, 1}; }
};

std::vector<std::uint64_t> tags_of(const TestHost& host, Kind kind, Status status) {
  std::vector<std::uint64_t> tags;
  for (const Completion& completion : host.of(kind))
    if (completion.status == status) tags.push_back(completion.tag);
  return tags;
}
using Tags = std::vector<std::uint64_t>;

// Message 2 has been delivered before message 1, but is reported after message 1. While message 2 waits for this
// report, its deadline must have no effect.
TEST(Deadline, of_a_send_that_has_arrived__passes_unnoticed) {
  LoneConnection alone;
  const std::uint64_t first = alone.send(1, 100);
  ASSERT_EQ(alone.connection.send(nullptr, 100, 7, alone.now + 10_ms), PostResult::ok);
  alone.build();
  alone.answer({{first + 1, first + 1}});
  EXPECT_TRUE(alone.completions().empty()) << "in the order of the messages";
  alone.run_for(20_ms);
  EXPECT_TRUE(alone.completions().empty());
  alone.ack({{first, alone.connection.next_packet_number() - 1}});
  const auto done = alone.completions();
  ASSERT_EQ(done.size(), 2u);
  for (const Completion& completion : done) EXPECT_EQ(completion.status, Status::ok);
  EXPECT_EQ(done[1].tag, 7u);
}

TEST_F(DeadlineConnected, send_without_a_buffer__ends_in_time_and_the_next_takes_its_place) {
  auto message = std::make_unique<ByteVector>(random_bytes(5000));
  const Nanos deadline = pair.now() + 2500_ms;
  Nanos ended;
  pair.client().on_completion = [&](const Completion&) {
    if (ended == Nanos()) ended = pair.now();
  };
  ASSERT_EQ(pair.c().send(c, *message, 1, deadline), PostResult::ok);
  pair.run_for(10_s);
  EXPECT_EQ(tags_of(pair.client(), Kind::sent, Status::timed_out), Tags{1});
  EXPECT_EQ(ended, deadline);
  EXPECT_EQ(pair.client().of(Kind::sent)[0].bytes, 5000u);
  message.reset();  // the memory must not be read from now on

  Byte out{std::byte{0x55}};
  Byte in;
  ASSERT_EQ(pair.c().send(c, out.bytes(), 2), PostResult::ok);
  ASSERT_EQ(pair.s().receive(s, in.buffer(), 3), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(in.value, out.value);
  EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::ok), Tags{3});
  EXPECT_EQ(tags_of(pair.client(), Kind::sent, Status::ok), Tags{2});
}

TEST_F(CancelConnected, what_has_not_begun__counts_as_never_posted) {
  std::array<Byte, 4> out{{{std::byte{1}}, {std::byte{2}}, {std::byte{3}}, {std::byte{4}}}};
  std::array<Byte, 4> in;
  for (std::size_t i = 0; i < 4; ++i) ASSERT_EQ(pair.c().send(c, out[i].bytes(), i), PostResult::ok);
  pair.run_for(10_ms);
  EXPECT_FALSE(pair.c().cancel_send(c, 9)) << "no such tag";
  EXPECT_FALSE(pair.c().cancel_send(c + 1, 1)) << "no such connection";
  EXPECT_TRUE(pair.c().cancel_send(c, 1));
  EXPECT_FALSE(pair.c().cancel_send(c, 1)) << "it has ended";
  for (std::size_t i = 0; i < 4; ++i) ASSERT_EQ(pair.s().receive(s, in[i].buffer(), i), PostResult::ok);
  EXPECT_TRUE(pair.s().cancel_receive(s, 0));
  EXPECT_FALSE(pair.s().cancel_receive(s, 0));
  EXPECT_FALSE(pair.s().cancel_receive(s + 1, 1));
  ASSERT_TRUE(pair.transfer(3, 3));
  EXPECT_EQ(tags_of(pair.client(), Kind::sent, Status::timed_out), Tags{1});
  EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::timed_out), Tags{0});
  EXPECT_EQ(tags_of(pair.client(), Kind::sent, Status::ok), (Tags{0, 2, 3}));
  EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::ok), (Tags{1, 2, 3}));
  EXPECT_EQ(in[1].value, out[0].value);
  EXPECT_EQ(in[2].value, out[2].value);
  EXPECT_EQ(in[3].value, out[3].value);
}

TEST_F(CancelConnected, buffer_that_goes_back__keeps_its_place_and_is_not_written) {
  std::array<Byte, 3> out{{{std::byte{1}}, {std::byte{2}}, {std::byte{3}}}};
  std::array<Byte, 3> in;
  for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(pair.s().receive(s, in[i].buffer(), i), PostResult::ok);
  EXPECT_FALSE(pair.s().discard_receive(s, 9, 7)) << "no such tag";
  EXPECT_FALSE(pair.s().discard_receive(s + 1, 1, 7)) << "no such connection";
  EXPECT_TRUE(pair.s().discard_receive(s, 1, 7));
  EXPECT_FALSE(pair.s().discard_receive(s, 1, 7)) << "it has another tag";
  for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(pair.c().send(c, out[i].bytes(), i), PostResult::ok);
  ASSERT_TRUE(pair.transfer(3, 3));
  EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::ok), (Tags{0, 7, 2}));
  EXPECT_EQ(in[0].value, out[0].value);
  EXPECT_EQ(in[1].value, Byte().value);
  EXPECT_EQ(in[2].value, out[2].value);
  EXPECT_EQ(pair.s().stats(s)->messages_received, 3U);
  EXPECT_EQ(pair.s().stats(s)->end_of_next, 0U);
}

// A receive whose buffer was discarded must complete exactly once, with its new tag, whether a deadline or the peer
// ends it.
TEST(Cancel, place_of_a_buffer_that_went_back__ends_once_with_its_new_tag) {
  for (const bool by_deadline : {true, false}) {
    Pair pair;
    const auto [c, s] = pair.connect();
    Byte in;
    const Nanos deadline = by_deadline ? pair.now() + 100_ms : Nanos::never();
    ASSERT_EQ(pair.s().receive(s, in.buffer(), 1, deadline), PostResult::ok);
    ASSERT_TRUE(pair.s().discard_receive(s, 1, 7));
    if (!by_deadline) pair.c().close(c);
    pair.run_for(1_s);
    EXPECT_EQ(tags_of(pair.server(), Kind::received, by_deadline ? Status::timed_out : Status::closed), Tags{7});
    EXPECT_EQ(pair.server().count(Kind::received), 1U);
    EXPECT_FALSE(pair.s().discard_receive(s, 7, 8)) << "it has ended";
  }
}

TEST_F(CancelConnected, place_of_a_buffer_that_went_back__is_taken_back_as_one_that_has_its_buffer) {
  std::array<Byte, 2> in;
  for (std::size_t i = 0; i < 2; ++i) ASSERT_EQ(pair.s().receive(s, in[i].buffer(), i), PostResult::ok);
  ASSERT_TRUE(pair.s().discard_receive(s, 0, 7));
  EXPECT_FALSE(pair.s().cancel_receive(s, 0)) << "it has another tag";
  EXPECT_TRUE(pair.s().cancel_receive(s, 7));
  Byte out{std::byte{5}};
  ASSERT_EQ(pair.c().send(c, out.bytes(), 1), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(in[0].value, Byte().value);
  EXPECT_EQ(in[1].value, out.value) << "the first place is gone";
}

// A long message arrives for a receive whose buffer was discarded. Some of its packets are lost and sent again.
TEST(Cancel, place_of_a_buffer_that_went_back__takes_a_message_of_any_length) {
  for (const std::size_t capacity : {std::size_t{100'000}, std::size_t{5'000}}) {
    Pair pair;
    const auto [c, s] = pair.connect();
    const ByteVector message = random_bytes(100'000);
    auto buffer = std::make_unique<ByteVector>(capacity);
    ASSERT_EQ(pair.s().receive(s, *buffer, 1), PostResult::ok);
    ASSERT_TRUE(pair.s().discard_receive(s, 1, 7));
    buffer.reset();  // frees the memory, so that a sanitizer detects a write
    int number = 0;
    pair.fate = [&](const Parsed& packet, Fate& fate) { fate.drop = is_data(packet) && ++number % 7 == 0; };
    ASSERT_EQ(pair.c().send(c, message, 2), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1));
    const bool fits = capacity == message.size();
    EXPECT_EQ(tags_of(pair.server(), Kind::received, fits ? Status::ok : Status::truncated), Tags{7});
    EXPECT_EQ(pair.server().of(Kind::received)[0].bytes, message.size());
  }
}

TEST_F(CancelConnected, what_has_begun__goes_on) {
  const ByteVector message = random_bytes(1'000'000);
  ByteVector buffer(1'000'000);
  ASSERT_EQ(pair.s().receive(s, buffer, 5), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, message, 4), PostResult::ok);
  const std::uint64_t packets = pair.s().stats(s)->packets_received;
  ASSERT_TRUE(pair.run([&] { return pair.s().stats(s)->packets_received > packets + 1; }, pair.now() + 1_s));
  ASSERT_EQ(pair.server().count(Kind::received), 0u);
  EXPECT_FALSE(pair.c().cancel_send(c, 4));
  EXPECT_FALSE(pair.s().cancel_receive(s, 5));
  EXPECT_FALSE(pair.s().discard_receive(s, 5, 7));
  EXPECT_EQ(pair.s().stats(s)->messages_received, 0U);
  EXPECT_GT(pair.s().stats(s)->end_of_next, 0U);
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(buffer, message);
}

TEST_F(DeadlineConnected, some_sends_of_many__the_others_arrive_in_order) {
  std::array<Byte, 12> out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].value = static_cast<std::byte>(i);
    // Operations 0, 4, 8 have the same deadline, after 10 ms. Operations 2, 6, 10 have deadlines after 98, 94 and 90
    // ms. Operations with odd numbers have no deadline.
    const Nanos deadline = i % 2 == 1   ? Nanos::never()
                           : i % 4 == 0 ? pair.now() + 10_ms
                                        : pair.now() + 100_ms - Nanos(static_cast<std::int64_t>(i) * 1'000'000);
    ASSERT_EQ(pair.c().send(c, out[i].bytes(), i, deadline), PostResult::ok);
  }
  pair.run_for(50_ms);
  EXPECT_EQ(pair.client().count(Kind::sent), 3u);
  pair.run_for(41_ms);
  EXPECT_EQ(pair.client().count(Kind::sent), 4u) << "the deadline has moved up with its operation";
  EXPECT_EQ(pair.client().of(Kind::sent)[3].tag, 10u);
  pair.run_for(100_ms);
  EXPECT_EQ(pair.client().count(Kind::sent), 6u);
  std::array<Byte, 6> in;
  for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(pair.s().receive(s, in[i].buffer(), i), PostResult::ok);
  ASSERT_TRUE(pair.transfer(6, 6));
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(in[i].value, static_cast<std::byte>(2 * i + 1));
  EXPECT_EQ(tags_of(pair.client(), Kind::sent, Status::ok), (Tags{1, 3, 5, 7, 9, 11}));
}

TEST_F(DeadlineConnected, receive_for_which_nothing_came__ends_in_time_and_is_never_written) {
  auto buffer = std::make_unique<ByteVector>(100'000);
  const Nanos deadline = pair.now() + 300_ms;
  ASSERT_EQ(pair.s().receive(s, *buffer, 1, deadline), PostResult::ok);
  Nanos ended;
  pair.server().on_completion = [&](const Completion&) {
    if (ended == Nanos()) ended = pair.now();
  };
  pair.run_for(1_s);
  EXPECT_EQ(ended, deadline);
  EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::timed_out), Tags{1});
  buffer.reset();

  // The peer still has credit, and sends a message. The receiver must neither accept nor acknowledge the message until
  // the program posts another buffer.
  const auto message = random_bytes(100'000, 2);
  ASSERT_EQ(pair.c().send(c, message, 2), PostResult::ok);
  pair.run_for(3_s);
  EXPECT_EQ(pair.client().count(Kind::sent), 0u);
  EXPECT_GT(pair.s().stats().beyond_credit, 0u);
  ByteVector next(message.size());
  ASSERT_EQ(pair.s().receive(s, next, 3), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(next, message);
  EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::ok), Tags{3});
  EXPECT_EQ(tags_of(pair.client(), Kind::sent, Status::ok), Tags{2});
}

TEST_F(DeadlineConnected, some_receives_of_many__the_next_messages_go_to_the_others) {
  std::array<Byte, 6> in;
  for (std::size_t i = 0; i < in.size(); ++i)
    ASSERT_EQ(pair.s().receive(
                  s, in[i].buffer(), i,
                  i % 2 == 0 ? pair.now() + Nanos(static_cast<std::int64_t>(10 - i) * 1'000'000) : Nanos::never()),
              PostResult::ok);
  pair.run_for(7_ms);
  EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::timed_out), (Tags{4}));
  pair.run_for(1_s);
  EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::timed_out), (Tags{4, 2, 0}));
  std::array<Byte, 3> out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].value = static_cast<std::byte>(0x10 + i);
    ASSERT_EQ(pair.c().send(c, out[i].bytes(), i), PostResult::ok);
  }
  ASSERT_TRUE(pair.transfer(3, 3));
  EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::ok), (Tags{1, 3, 5}));
  for (std::size_t i = 0; i < in.size(); ++i)
    EXPECT_EQ(in[i].value, i % 2 == 0 ? std::byte{0} : static_cast<std::byte>(0x10 + i / 2)) << i;
}

TEST(Deadline, send_that_has_begun__ends_the_connection_at_both_ends) {
  for (const bool keeping : {false, true}) {
    PacketIo::Limits limits;
    limits.keeps_payload_from = keeping ? 500 : 0;
    Pair pair({}, {}, 50_us, limits);
    if (keeping) pair.keep = std::make_unique<std::deque<std::shared_ptr<const KeptPayload>>>();
    const auto [c, s] = pair.connect();
    pair.rate = Rate(100'000'000);
    auto message = std::make_unique<ByteVector>(random_bytes(1'000'000));
    ByteVector in(message->size());
    Byte other;
    ASSERT_EQ(pair.s().receive(s, in, 1), PostResult::ok);
    ASSERT_EQ(pair.c().receive(c, other.buffer(), 2), PostResult::ok);
    pair.run_for(1_ms);
    ASSERT_EQ(pair.c().send(c, *message, 3, pair.now() + 20_ms), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, other.bytes(), 4), PostResult::ok);
    pair.run_for(21_ms);
    if (keeping) {
      EXPECT_EQ(pair.client().count(Kind::sent), 1u) << "the datapath still reads the message";
      pair.keep.reset();
      pair.run_for(100_ms);
    }
    EXPECT_EQ(tags_of(pair.client(), Kind::sent, Status::timed_out), Tags{3});
    message.reset();  // the memory must not be read from now on
    pair.run_for(1_s);
    EXPECT_EQ(tags_of(pair.client(), Kind::sent, Status::aborted), Tags{4});
    EXPECT_EQ(tags_of(pair.client(), Kind::received, Status::aborted), Tags{2});
    EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::aborted), Tags{1});
    pair.expect_both_closed(Status::aborted);
    EXPECT_EQ(pair.client().completions.back().kind, Kind::closed);
  }
}

TEST_F(DeadlineConnected, receive_that_has_begun__ends_the_connection_at_both_ends) {
  pair.rate = Rate(100'000'000);
  const auto message = random_bytes(1'000'000);
  ByteVector in(message.size());
  ASSERT_EQ(pair.s().receive(s, in, 1, pair.now() + 20_ms), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, message, 2), PostResult::ok);
  pair.run_for(21_ms);
  ASSERT_EQ(tags_of(pair.server(), Kind::received, Status::timed_out), Tags{1});
  EXPECT_TRUE(std::any_of(in.begin(), in.end(), [](std::byte b) { return b != std::byte{}; }));
  std::fill(in.begin(), in.end(), std::byte{});
  pair.run_for(10_s);
  EXPECT_TRUE(std::all_of(in.begin(), in.end(), [](std::byte b) { return b == std::byte{}; })) << "written afterwards";
  EXPECT_EQ(tags_of(pair.client(), Kind::sent, Status::aborted), Tags{2});
  EXPECT_FALSE(pair.c().exists(c));
  EXPECT_FALSE(pair.s().exists(s));
}

TEST(Deadline, receive_before_a_message_that_has_arrived__ends_the_connection) {
  // The first message is lost and the second one arrives. The second message shows the receiver that the first one has
  // begun, although none of its data has arrived.
  Pair pair;
  const auto [c, s] = pair.connect();
  std::array<Byte, 2> in;
  ASSERT_EQ(pair.s().receive(s, in[0].buffer(), 0, pair.now() + 5_ms), PostResult::ok);
  ASSERT_EQ(pair.s().receive(s, in[1].buffer(), 1), PostResult::ok);
  pair.run_for(1_ms);
  pair.fate = [](const Parsed& packet, Fate& fate) {
    fate.drop = packet.from == 0 && is_data(packet) && packet.find(FrameType::data)->data.message == 0;
  };
  Byte out;
  ASSERT_EQ(pair.c().send(c, out.bytes(), 0), PostResult::ok);
  pair.run_for(20_us);
  ASSERT_EQ(pair.c().send(c, out.bytes(), 1), PostResult::ok);
  pair.run_for(1_s);
  EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::timed_out), Tags{0});
  EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::ok), Tags{1});
  EXPECT_TRUE(tags_of(pair.client(), Kind::sent, Status::ok).empty()) << "sent are in order: the first never was";
  EXPECT_EQ(pair.client().count(Kind::closed), 1u);
  EXPECT_EQ(pair.server().count(Kind::closed), 1u);
}

TEST_F(DeadlineConnected, not_reached__reports_nothing_and_does_not_wake_the_loop_for_ever) {
  Byte out;
  Byte in;
  for (std::uint64_t i = 0; i < 200; ++i) {
    // Every third operation has no deadline. It reuses a slot in which the previous operation had a deadline.
    const Nanos deadline = i % 3 == 0 ? Nanos::never() : pair.now() + 500_ms;
    ASSERT_EQ(pair.s().receive(s, in.buffer(), i, deadline), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, out.bytes(), i, deadline), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1));
  }
  // The following two receives reuse slots of these operations. The first receive has no deadline. The second one has a
  // deadline after 30 s.
  ASSERT_EQ(pair.s().receive(s, in.buffer(), 1000), PostResult::ok);
  ASSERT_EQ(pair.c().receive(c, in.buffer(), 1001, pair.now() + 30_s), PostResult::ok);
  pair.run_for(20_s);
  EXPECT_TRUE(tags_of(pair.client(), Kind::sent, Status::timed_out).empty());
  EXPECT_TRUE(tags_of(pair.server(), Kind::received, Status::timed_out).empty());
  EXPECT_TRUE(pair.s().poll(pair.now()).is_never());
  EXPECT_FALSE(pair.c().poll(pair.now()).is_never());
  pair.run_for(20_s);
  EXPECT_EQ(tags_of(pair.client(), Kind::received, Status::timed_out), Tags{1001});
  EXPECT_TRUE(pair.c().poll(pair.now()).is_never());
}

TEST_F(DeadlineConnected, in_the_past__ends_with_the_next_poll) {
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 1, pair.now() - 1_ms), PostResult::ok);
  ASSERT_EQ(pair.c().receive(c, {&byte, 1}, 2, Nanos(0)), PostResult::ok);
  pair.run_for(1_ns);
  EXPECT_EQ(tags_of(pair.client(), Kind::sent, Status::timed_out), Tags{1});
  EXPECT_EQ(tags_of(pair.client(), Kind::received, Status::timed_out), Tags{2});
  EXPECT_TRUE(pair.c().exists(c));
}

TEST(Deadline, before_the_peer_has_answered__the_connection_still_opens) {
  Pair pair;
  pair.server().dead = true;
  Byte byte;
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  ASSERT_EQ(pair.c().send(c, byte.bytes(), 1, pair.now() + 100_ms), PostResult::ok);
  ASSERT_EQ(pair.c().receive(c, byte.buffer(), 2, pair.now() + 100_ms), PostResult::ok);
  pair.run_for(500_ms);
  EXPECT_EQ(tags_of(pair.client(), Kind::sent, Status::timed_out), Tags{1});
  EXPECT_EQ(tags_of(pair.client(), Kind::received, Status::timed_out), Tags{2});
  pair.server().dead = false;
  pair.run_for(5_s);
  ASSERT_EQ(pair.client().count(Kind::connected), 1u);
  const ConnectionId s = pair.server().of(Kind::accepted)[0].connection;
  Byte in;
  ASSERT_EQ(pair.s().receive(s, in.buffer(), 3), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, byte.bytes(), 4), PostResult::ok);
  EXPECT_TRUE(pair.transfer(1, 1));
}

TEST_F(DeadlineConnected, of_the_last_send_of_a_closing_end__lets_it_close) {
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 1, pair.now() + 100_ms), PostResult::ok);
  pair.c().close(c);
  pair.run_for(50_ms);
  EXPECT_EQ(pair.client().count(Kind::closed), 0u);
  pair.run_for(1_s);
  EXPECT_EQ(tags_of(pair.client(), Kind::sent, Status::timed_out), Tags{1});
  EXPECT_EQ(pair.client().statuses(Kind::closed), Statuses{Status::ok});
  EXPECT_EQ(pair.server().count(Kind::closed), 1u);
}

TEST(Deadline, of_a_job__its_count_of_open_messages_stays_right) {
  // The learner of iterations counts open messages. Messages that have timed out must not count.
  Pair pair;
  const auto [c, s] = pair.connect();
  const JobId job = pair.c().add_job({});
  EXPECT_TRUE(pair.c().attach(c, job));
  Byte byte;
  ASSERT_EQ(pair.c().send(c, byte.bytes(), 1, pair.now() + 1_ms), PostResult::ok);
  pair.run_for(10_ms);
  Byte in;
  ASSERT_EQ(pair.s().receive(s, in.buffer(), 3), PostResult::ok);
  EXPECT_TRUE(pair.c().begin_iteration(job, 1));
  ASSERT_EQ(pair.c().send(c, byte.bytes(), 2), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(pair.c().job_progress(job)->tracker.bytes_ratio(), 1.0);
}

// ---- Keep-alive and idle limit ----

ConnectionConfig watching(Nanos keep_alive, Nanos idle_limit) {
  return config_with([&](ConnectionConfig& config) {
    config.keep_alive = keep_alive;
    config.idle_limit = idle_limit;
  });
}

TEST(KeepAlive, receiver_whose_peer_has_died__is_told) {
  Pair pair({}, watching(5_s, 0_s));
  const auto [c, s] = pair.connect();
  Byte byte;
  ASSERT_EQ(pair.s().receive(s, byte.buffer(), 1), PostResult::ok);
  pair.run_for(1_s);
  pair.client().dead = true;
  pair.run_for(30_s);
  EXPECT_EQ(pair.server().count(Kind::closed), 0u) << "give_up_after counts from the first question";
  pair.run_for(10_s);
  EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::unreachable), Tags{1});
  EXPECT_EQ(pair.server().statuses(Kind::closed), Statuses{Status::unreachable});
  EXPECT_TRUE(pair.s().poll(pair.now()).is_never());
}

TEST(KeepAlive, peer_that_lives__answers_for_ever) {
  Pair pair(watching(5_s, 12_s), watching(5_s, 12_s));
  const auto [c, s] = pair.connect();
  pair.log.clear();
  pair.run_for(1000_s);
  EXPECT_TRUE(pair.c().exists(c));
  EXPECT_TRUE(pair.s().exists(s));
  const std::size_t pings = pair.count([](const Parsed& p) { return p.has(FrameType::ping); });
  EXPECT_GE(pings, 195u);
  EXPECT_LE(pings, 410u) << "about one an interval, from each end at the most";
  EXPECT_LE(pair.log.size(), 2 * pings);
}

TEST(KeepAlive, traffic__needs_no_questions) {
  Pair pair(watching(1_s, 0_s), watching(1_s, 0_s));
  const auto [c, s] = pair.connect();
  pair.log.clear();
  Byte byte;
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(pair.s().receive(s, byte.buffer(), 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, byte.bytes(), 0), PostResult::ok);
    pair.run_for(900_ms);
  }
  EXPECT_EQ(pair.count([](const Parsed& p) { return p.has(FrameType::ping); }), 0u);
}

TEST(IdleLimit, nothing_heard__both_ends_give_up_alike) {
  Pair pair(watching(0_s, 10_s), watching(0_s, 10_s));
  const auto [c, s] = pair.connect();
  Byte byte;
  ASSERT_EQ(pair.s().receive(s, byte.buffer(), 1), PostResult::ok);
  pair.run_for(9_s);
  EXPECT_EQ(pair.server().count(Kind::closed), 0u);
  pair.run_for(2_s);
  EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::unreachable), Tags{1});
  pair.expect_both_closed(Status::unreachable);
}

TEST(IdleLimit, of_one_end__tells_the_other) {
  for (const bool of_client : {false, true}) {
    Pair pair(watching(0_s, of_client ? 10_s : 0_s), watching(0_s, of_client ? 0_s : 10_s));
    const auto [c, s] = pair.connect();
    Byte byte;
    ASSERT_EQ(pair.s().receive(s, byte.buffer(), 1), PostResult::ok);
    ASSERT_EQ(pair.c().receive(c, byte.buffer(), 2), PostResult::ok);
    int left = 2;
    pair.fate = [&](const Parsed& packet, Fate& fate) { fate.drop = packet.has(FrameType::close) && left-- > 0; };
    pair.run_for(11_s);
    EXPECT_LT(left, 0) << "lost twice";
    EXPECT_EQ(tags_of(pair.server(), Kind::received, Status::unreachable), Tags{1});
    EXPECT_EQ(tags_of(pair.client(), Kind::received, Status::unreachable), Tags{2});
    pair.expect_both_closed(Status::unreachable);
  }
}

TEST(IdleLimit, what_is_heard__starts_it_anew) {
  Pair pair(watching(0_s, 10_s), watching(0_s, 10_s));
  const auto [c, s] = pair.connect();
  Byte byte;
  for (int i = 0; i < 10; ++i) {
    pair.run_for(8_s);
    ASSERT_EQ(pair.s().receive(s, byte.buffer(), 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, byte.bytes(), 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1)) << i;
  }
  pair.run_for(9_s);
  EXPECT_TRUE(pair.c().exists(c));
  EXPECT_TRUE(pair.s().exists(s));
  pair.run_for(2_s);
  EXPECT_FALSE(pair.c().exists(c));
  EXPECT_FALSE(pair.s().exists(s));
}

TEST(IdleLimit, dead_peer_with_data_under_way__ends_at_the_limit) {
  Pair pair(watching(0_s, 3_s), {});
  const auto [c, s] = pair.connect();
  Byte byte;
  ASSERT_EQ(pair.s().receive(s, byte.buffer(), 1), PostResult::ok);
  pair.run_for(1_ms);
  pair.server().dead = true;
  ASSERT_EQ(pair.c().send(c, byte.bytes(), 2), PostResult::ok);
  pair.run_for(4_s);
  EXPECT_EQ(tags_of(pair.client(), Kind::sent, Status::unreachable), Tags{2});
}

TEST(IdleLimit, peer_whose_messages_are_refused__is_heard) {
  Pair pair({}, watching(0_s, 3_s));
  const auto [c, s] = pair.connect();
  Byte byte;
  ASSERT_EQ(pair.s().receive(s, byte.buffer(), 1), PostResult::ok);
  pair.run_for(1_ms);
  ASSERT_TRUE(pair.s().cancel_receive(s, 1));
  ASSERT_EQ(pair.c().send(c, byte.bytes(), 2), PostResult::ok);
  pair.run_for(8_s);
  EXPECT_TRUE(pair.s().exists(s));
  ASSERT_EQ(pair.s().receive(s, byte.buffer(), 3), PostResult::ok);
  pair.run_for(2_s);
  EXPECT_EQ(tags_of(pair.client(), Kind::sent, Status::ok), Tags{2});
}

TEST(IdleLimit, while_connecting__give_up_after_counts_alone) {
  Pair pair(watching(1_s, 2_s), {});
  pair.server().dead = true;
  const ConnectionId c = pair.c().connect(pair.server().address, watching(1_s, 2_s), pair.now());
  pair.run_for(20_s);
  EXPECT_TRUE(pair.c().exists(c));
  pair.server().dead = false;
  pair.run_for(1500_ms);
  EXPECT_EQ(pair.client().count(Kind::connected), 1u);
}

}  // namespace
}  // namespace mltcp::deadline_test
