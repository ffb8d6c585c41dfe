// Tests that the two sides never wait for each other without end: credit, CLOSE and the handshake must arrive whichever
// packets are lost or late, and in whatever order the two sides act.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "../transport/test_network.h"

namespace mltcp::stall_test {
namespace {

using namespace testing_network;
using StallConnected = ConnectedTest;

TEST(Stall, accept_lost_while_the_server_has_data__is_repeated) {
  Pair pair;
  const auto message = random_bytes(1'000'000);
  ByteVector buffer(message.size());
  pair.lose_first(1, FrameType::accept);
  pair.serve(message);
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  ASSERT_EQ(pair.c().receive(c, buffer, 8), PostResult::ok);
  EXPECT_TRUE(pair.client_receives(100_ms));
  EXPECT_EQ(buffer, message);
}

TEST(Stall, credit_of_a_repeated_connect__counts) {
  // The delay is longer than the first probe timeout, so that CONNECT is repeated although nothing is lost.
  Pair pair({}, {}, 2_ms);
  std::byte byte{};
  pair.serve({&byte, 1});
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  pair.run_for(1_ms);
  ASSERT_EQ(pair.c().receive(c, {&byte, 1}, 8), PostResult::ok);
  EXPECT_TRUE(pair.client_receives(1_s));
  EXPECT_GE(pair.count([](const Parsed& packet) { return packet.has(FrameType::connect); }), 2u);
}

TEST(Stall, credit_posted_before_a_late_accept__counts) {
  Pair pair;
  pair.lose_first(1, FrameType::accept);
  std::byte byte{};
  pair.serve({&byte, 1});
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  pair.run_for(1_ms);
  ASSERT_EQ(pair.c().receive(c, {&byte, 1}, 8), PostResult::ok);
  EXPECT_TRUE(pair.client_receives(1_s));
}

TEST(Stall, credit_of_a_repeated_accept__counts) {
  // The program posts the receive between two polls of the server. The second poll repeats ACCEPT.
  Pair pair;
  const Nanos begin = pair.now();
  pair.fate = [&](const Parsed& packet, Fate& fate) {
    fate.drop = packet.from == 0 && !packet.has(FrameType::connect) && packet.at < begin + 3_ms;
  };
  std::byte byte{};
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 1), PostResult::ok);
  pair.run_until(begin + 3_ms);
  const ConnectionId s = pair.server().of(Kind::accepted).at(0).connection;
  const Nanos due = pair.server().deadline;
  ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 8), PostResult::ok);
  pair.s().poll(due);
  pair.run_for(1_s);
  EXPECT_EQ(pair.server().count(Kind::received), 1u);
}

// The client closes while a message of each side waits for a buffer. The server posts a buffer for the client's message
// only after its own message was sent, for which the client has a buffer.
void close_with_a_late_answer(bool lose_credit) {
  Pair pair;
  const auto [c, s] = pair.connect();
  std::byte byte{};
  std::byte in{};
  int left = lose_credit ? 1 : 0;
  pair.fate = [&](const Parsed& packet, Fate& fate) { fate.drop = packet.has(FrameType::credit) && left-- > 0; };
  ASSERT_EQ(pair.s().send(s, {&byte, 1}, 1), PostResult::ok);
  pair.server().on_completion = [&, connection = s](const Completion& completion) {
    if (completion.kind == Kind::sent) {
      EXPECT_EQ(pair.s().receive(connection, {&in, 1}, 2), PostResult::ok);
    }
  };
  pair.run_for(5_ms);
  ASSERT_EQ(pair.c().receive(c, {&in, 1}, 3), PostResult::ok);
  if (lose_credit) pair.run_for(10_us);
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 4), PostResult::ok);
  pair.c().close(c);
  pair.run_for(10_s);
  EXPECT_EQ(pair.client().statuses(Kind::sent), Statuses{Status::ok});
  EXPECT_EQ(pair.server().count(Kind::sent), 1u);
  EXPECT_FALSE(pair.c().exists(c));
  EXPECT_FALSE(pair.s().exists(s));
}
TEST(Stall, close_right_after_receive__still_gives_credit) { close_with_a_late_answer(false); }
TEST(Stall, close_after_credit_was_lost__gives_it_again) { close_with_a_late_answer(true); }

TEST(Stall, both_close_with_sends_that_have_no_buffer__ends) {
  for (const bool lossy : {false, true}) {
    Pair pair;
    const auto [c, s] = pair.connect();
    pair.lose_first(lossy ? 3 : 0, FrameType::credit);
    std::byte byte{};
    std::byte in{};
    ASSERT_EQ(pair.s().receive(s, {&in, 1}, 0), PostResult::ok);
    ASSERT_EQ(pair.s().send(s, {&byte, 1}, 1), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, {&byte, 1}, 2), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, {&byte, 1}, 3), PostResult::ok);
    pair.run_for(1_ms);
    pair.c().close(c);
    pair.s().close(s);
    pair.run_for(20_s);
    EXPECT_FALSE(pair.c().exists(c)) << lossy;
    EXPECT_FALSE(pair.s().exists(s)) << lossy;
    ASSERT_EQ(pair.client().count(Kind::sent), 2u);
    for (const Completion& sent : pair.client().of(Kind::sent))
      EXPECT_EQ(sent.status, sent.tag == 2 ? Status::ok : Status::closed) << "only the first had a buffer";
    EXPECT_EQ(pair.server().statuses(Kind::sent), Statuses{Status::closed});
  }
}

// The program withdraws a buffer for which the peer already has credit. The peer's message for this buffer is refused.
TEST(Stall, both_close_with_a_send_whose_buffer_was_withdrawn__ends) {
  for (const int lost : {0, 1, 3}) {
    Pair pair;
    const auto [c, s] = pair.connect();
    int left = lost;
    pair.fate = [&](const Parsed& packet, Fate& fate) { fate.drop = packet.has(FrameType::credit) && left-- > 0; };
    std::byte byte{};
    std::byte in{};
    ASSERT_EQ(pair.s().receive(s, {&in, 1}, 0), PostResult::ok);
    ASSERT_EQ(pair.s().receive(s, {&in, 1}, 1), PostResult::ok);
    pair.run_for(20_s);
    ASSERT_TRUE(pair.s().cancel_receive(s, 1));
    ASSERT_EQ(pair.s().send(s, {&byte, 1}, 2), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, {&byte, 1}, 3), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, {&byte, 1}, 4), PostResult::ok);
    pair.run_for(1_s);
    ASSERT_GT(pair.s().stats().beyond_credit, 0u) << "or the test shows nothing";
    ASSERT_EQ(pair.client().count(Kind::sent), 1u);
    left = lost;
    pair.c().close(c);
    pair.s().close(s);
    pair.run_for(20_s);
    EXPECT_FALSE(pair.c().exists(c)) << lost;
    EXPECT_FALSE(pair.s().exists(s)) << lost;
    ASSERT_EQ(pair.client().count(Kind::sent), 2u);
    EXPECT_EQ(pair.client().of(Kind::sent)[1].status, Status::closed);
    EXPECT_EQ(pair.server().statuses(Kind::sent), Statuses{Status::closed});
  }
}

TEST(Stall, both_close_with_sends_whose_buffers_were_withdrawn__ends) {
  for (const int lost : {0, 1, 3}) {
    Pair pair;
    const auto [c, s] = pair.connect();
    std::byte byte{};
    std::byte in{};
    ASSERT_EQ(pair.s().receive(s, {&in, 1}, 0), PostResult::ok);
    ASSERT_EQ(pair.c().receive(c, {&in, 1}, 0), PostResult::ok);
    pair.run_for(20_s);
    ASSERT_TRUE(pair.s().cancel_receive(s, 0));
    ASSERT_TRUE(pair.c().cancel_receive(c, 0));
    ASSERT_EQ(pair.s().send(s, {&byte, 1}, 1), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, {&byte, 1}, 1), PostResult::ok);
    pair.run_for(1_s);
    pair.lose_first(lost, FrameType::credit);
    pair.c().close(c);
    pair.s().close(s);
    pair.run_for(20_s);
    EXPECT_FALSE(pair.c().exists(c)) << lost;
    EXPECT_FALSE(pair.s().exists(s)) << lost;
    for (const TestHost* host : {&pair.client(), &pair.server()}) {
      EXPECT_EQ(host->statuses(Kind::sent), Statuses{Status::closed});
    }
  }
}

// The program withdraws a buffer for which the peer already has credit. A packet contains a message for this buffer and
// other messages. The other messages must arrive.
TEST(Stall, messages_in_one_packet_with_one_that_is_refused__arrive) {
  for (const bool in_disorder : {false, true}) {
    Pair pair;
    const auto [c, s] = pair.connect();
    std::array<std::byte, 3> in{};
    for (std::uint64_t i = 0; i < 3; ++i)
      ASSERT_EQ(pair.s().receive(s, std::span(in).subspan(i, 1), i), PostResult::ok);
    pair.run_for(1_s);
    ASSERT_TRUE(pair.s().cancel_receive(s, 2));
    // If `in_disorder`, the first packets of all messages are lost. The messages are sent again in one packet, the last
    // message first.
    int left = in_disorder ? 3 : 0;
    pair.fate = [&](const Parsed& packet, Fate& fate) {
      fate.drop = packet.from == 0 && is_data(packet) && left-- > 0;
    };
    std::array<std::byte, 3> out{std::byte{1}, std::byte{2}, std::byte{3}};
    for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(pair.c().send(c, std::span(out).subspan(i, 1), i), PostResult::ok);
    pair.run_for(5_s);
    EXPECT_GT(pair.s().stats().beyond_credit, 0u) << "or the test shows nothing";
    EXPECT_EQ(pair.server().count(Kind::received), 3u) << "one was cancelled";
    EXPECT_EQ(pair.client().count(Kind::sent), 2u);
    ASSERT_EQ(pair.s().receive(s, std::span(in).subspan(2, 1), 3), PostResult::ok);
    pair.run_for(5_s);
    EXPECT_EQ(pair.client().count(Kind::sent), 3u);
    EXPECT_EQ(in, out);
  }
}

// The server has withdrawn a buffer for which the client has credit, and then closes. The client sends a message for
// this buffer.
TEST_F(StallConnected, send_for_which_the_closing_peer_has_no_buffer_any_more__ends_and_the_connection_goes_on) {
  std::byte in{};
  ASSERT_EQ(pair.s().receive(s, {&in, 1}, 0), PostResult::ok);
  pair.run_for(1_s);
  ASSERT_TRUE(pair.s().cancel_receive(s, 0));
  ASSERT_EQ(pair.s().send(s, {&byte, 1}, 1), PostResult::ok);
  pair.s().close(s);
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 2), PostResult::ok);
  pair.run_for(60_s);
  EXPECT_EQ(pair.client().statuses(Kind::sent), Statuses{Status::closed});
  ASSERT_TRUE(pair.c().exists(c));
  ASSERT_EQ(pair.c().receive(c, {&in, 1}, 3), PostResult::ok);
  pair.run_for(1_s);
  EXPECT_EQ(pair.server().statuses(Kind::sent), Statuses{Status::ok});
}

TEST(Stall, message_that_has_its_buffer__does_not_wait_for_a_long_one_that_is_refused) {
  for (const int lost : {0, 3}) {
    Pair pair;
    const auto [c, s] = pair.connect();
    const auto taken = random_bytes(100);
    const auto refused = random_bytes(2'000'000);
    ByteVector buffer(taken.size());
    ByteVector withdrawn(refused.size());
    ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
    ASSERT_EQ(pair.s().receive(s, withdrawn, 1), PostResult::ok);
    pair.run_for(1_s);
    ASSERT_TRUE(pair.s().cancel_receive(s, 1));
    int left = lost;
    pair.fate = [&](const Parsed& packet, Fate& fate) {
      for (const wire::Frame& frame : packet.frames)
        if (packet.from == 0 && frame.type == FrameType::data && frame.data.message == 0) fate.drop = left-- > 0;
    };
    ASSERT_EQ(pair.c().send(c, taken, 2), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, refused, 3), PostResult::ok);
    EXPECT_TRUE(pair.run([&] { return pair.client().count(Kind::sent) == 1; }, pair.now() + 10_s)) << lost;
    EXPECT_EQ(buffer, taken);
  }
}

// When a message has ended for lack of a buffer, its memory belongs to the program again. A late acknowledgement that
// grants credit must not change this.
TEST_F(StallConnected, late_credit_after_the_last_word__has_nothing_sent_that_has_ended) {
  constexpr std::size_t bytes = 1200;
  ByteVector in(bytes * 8);
  const auto receive = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i)
      EXPECT_EQ(pair.s().receive(s, std::span(in).subspan(i * bytes, bytes), i), PostResult::ok);
  };
  receive(0, 4);
  pair.run_for(1_s);
  pair.server().on_completion = [&](const Completion& completion) {
    if (completion.kind == Kind::received && completion.tag == 0) receive(4, 6);
  };
  // The acknowledgement with credit for six messages is late. The second of the eight messages is lost.
  bool is_late = false;
  bool loses = true;
  constexpr std::byte again{0xEE};
  pair.fate = [&](const Parsed& packet, Fate& fate) {
    const wire::Frame* const ack = packet.find(FrameType::ack);
    if (packet.from == 1 && ack != nullptr && ack->ack.has_credit && ack->ack.credit >= 6) {
      fate.extra_delay = 30_ms;
      is_late = true;
    }
    for (const wire::Frame& frame : packet.frames)
      if (packet.from == 0 && frame.type == FrameType::data && frame.data.message == 1) fate.drop = loses;
  };
  std::size_t sent_again = 0;
  pair.raw = [&](std::size_t from, const ByteVector& packet) {
    if (from == 0) sent_again += std::count(packet.begin(), packet.end(), again) > 200 ? 1U : 0U;
  };
  std::vector<ByteVector> messages(8, ByteVector(bytes, std::byte{1}));
  pair.client().on_completion = [&](const Completion& completion) {
    if (completion.kind == Kind::sent) std::ranges::fill(messages[completion.tag], again);
  };
  ASSERT_EQ(pair.c().send(c, messages[0], 0), PostResult::ok);
  pair.run_for(400_us);
  for (const std::uint64_t tag : {5U, 4U, 3U, 2U}) ASSERT_TRUE(pair.s().cancel_receive(s, tag));
  for (std::uint64_t i = 1; i < 8; ++i) ASSERT_EQ(pair.c().send(c, messages[i], i), PostResult::ok);
  pair.run_for(200_us);
  std::byte waits{};
  ASSERT_EQ(pair.s().send(s, {&waits, 1}, 99), PostResult::ok);
  pair.s().close(s);
  pair.run_for(100_ms);
  ASSERT_TRUE(is_late);
  ASSERT_EQ(pair.client().count(Kind::sent), 7u) << "all but the one that is lost, or the test shows nothing";
  loses = false;
  pair.run_for(5_s);
  EXPECT_EQ(sent_again, 0u);
  std::byte more{};
  ASSERT_EQ(pair.c().send(c, {&more, 1}, 0), PostResult::ok);
  pair.run_for(1_us);
  EXPECT_EQ(pair.client().of(Kind::sent).back().status, Status::closed) << "no buffer comes any more";
}

// The closing side answers a refused packet with the final credit only if no packet with the final credit is in flight.
// If it always answered, it would never give the peer up.
TEST(Stall, peer_that_floods_a_closing_end_and_acknowledges_nothing__is_given_up) {
  const ConnectionConfig config = config_with([](ConnectionConfig& one) { one.give_up_after = 5_s; });
  Pair pair(config, config);
  const auto [c, s] = pair.connect();
  std::byte byte{};
  ASSERT_EQ(pair.s().send(s, {&byte, 1}, 1), PostResult::ok);
  pair.run_for(10_ms);
  pair.s().close(s);
  pair.run_for(10_ms);
  pair.client().dead = true;
  std::uint64_t number = pair.c().stats(c)->packets_sent + 10;
  const std::uint64_t out = pair.s().stats().packets_sent;
  const Nanos begin = pair.now();
  std::uint64_t packets = 0;
  for (; pair.s().exists(s) && pair.now() - begin < 20_s; ++packets) {
    pair.inject(pair.server(), pair.client().address, forge(header_for(s, number++), [&](wire::Writer& w) {
                  w.data({.last = true, .message = 7, .offset = 0, .length = 1});
                  w.copy(&byte, 1);
                }));
    pair.run_for(1_ms);
  }
  EXPECT_FALSE(pair.s().exists(s));
  EXPECT_LT(pair.s().stats().packets_sent - out, packets / 50);
}

TEST_F(StallConnected, client_that_starts_anew_with_the_same_seed__connects) {
  pair.run_for(1_s);
  pair.client().shard = std::make_unique<Shard>(pair.client(), ShardConfig{.seed = 1});
  pair.client().forget_completions();
  const ConnectionId again = pair.c().connect(pair.server().address, {}, pair.now());
  ASSERT_EQ(again, c) << "or the test shows nothing";
  pair.run_for(1_s);
  EXPECT_EQ(pair.client().count(Kind::connected), 1u);
  EXPECT_FALSE(pair.s().exists(s));
}

/// Adds `packets` packets of unknown connections to the server's queue. One poll may read only some of them.
void flood(Pair& pair, std::size_t packets) {
  const ByteVector stray = forge(header_for(7 << 12), [](wire::Writer& w) { w.ping(); });
  for (std::size_t i = 0; i < packets; ++i) pair.inject_as_it_is(pair.server(), pair.client().address, stray);
}

TEST(Stall, packet_behind_more_than_a_poll_takes__is_heard_before_its_connection_is_given_up) {
  Pair pair({}, config_with([](ConnectionConfig& config) { config.idle_limit = 1_s; }), 50_us, {},
            {.resets_per_second = 0});
  const auto [c, s] = pair.connect();
  std::byte byte{};
  ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
  pair.run_for(900_ms);
  ASSERT_TRUE(pair.s().exists(s));
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 1), PostResult::ok);
  pair.poll(pair.client());
  flood(pair, 2000);
  pair.stand_still(5_s);
  pair.run_for(1_ms);
  ASSERT_TRUE(pair.s().exists(s));
  EXPECT_EQ(pair.server().count(Kind::received), 1u);
  pair.run_for(990_ms);
  EXPECT_TRUE(pair.s().exists(s));
  pair.run_for(10_ms);
  EXPECT_FALSE(pair.s().exists(s)) << "in its time, when nobody says anything";
}

TEST(Stall, flood_of_packets__keeps_a_dead_connection_for_one_more_limit_at_most) {
  Pair pair({}, config_with([](ConnectionConfig& config) { config.idle_limit = 1_s; }), 50_us, {},
            {.resets_per_second = 0});
  const auto [c, s] = pair.connect();
  pair.client().dead = true;
  const Nanos begin = pair.now();
  while (pair.s().exists(s) && pair.now() - begin < 10_s) {
    flood(pair, 300);
    pair.stand_still(10_ms);
    pair.run_for(0_ns);
  }
  EXPECT_GT(pair.now() - begin, 1500_ms) << "or the test shows nothing";
  EXPECT_LE(pair.now() - begin, 2100_ms);
}

TEST(Stall, proof_behind_more_than_a_poll_takes__is_heard_before_its_place_is_given_back) {
  Pair pair({}, {}, 50_us, {}, {.resets_per_second = 0});
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  ASSERT_TRUE(pair.run([&] { return pair.client().count(Kind::connected) == 1; }, pair.now() + 1_s));
  pair.poll(pair.client());
  ASSERT_EQ(pair.s().stats().half_open, 1u);
  flood(pair, 2000);
  pair.stand_still(5_s);
  pair.run_for(1_ms);
  EXPECT_EQ(pair.s().stats().unproven_ended, 0u);
  EXPECT_EQ(pair.s().stats().half_open, 0u);
  EXPECT_TRUE(pair.c().exists(c));
}

TEST(Stall, packet_behind_more_than_a_poll_takes__is_heard_however_often_that_was_so_before) {
  Pair pair({}, config_with([](ConnectionConfig& config) {
              config.idle_limit = 1_s;
              config.keep_alive = 10_ms;
            }),
            50_us, {}, {.resets_per_second = 0});
  const auto [c, s] = pair.connect();
  std::byte byte{};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
    pair.run_for(900_ms);
    ASSERT_TRUE(pair.s().exists(s));
    ASSERT_EQ(pair.c().send(c, {&byte, 1}, 1), PostResult::ok);
    pair.poll(pair.client());
    flood(pair, 8000);
    pair.stand_still(1200_ms);
    for (int poll = 0; poll < 20; ++poll) {
      pair.stand_still(30_ms);
      pair.poll(pair.server());
    }
    ASSERT_EQ(pair.server().count(Kind::received), static_cast<std::size_t>(i)) << "or the test shows nothing";
    pair.run_for(1_ms);
    ASSERT_TRUE(pair.s().exists(s)) << i;
    EXPECT_EQ(pair.server().count(Kind::received), static_cast<std::size_t>(i) + 1);
  }
}

TEST_F(StallConnected, abort_whose_first_packets_are_lost__still_ends_an_idle_receiver) {
  ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 1), PostResult::ok);
  pair.run_for(5_ms);
  pair.lose_first(2, FrameType::close);
  pair.c().abort(c, pair.now());
  pair.run_for(1_s);
  EXPECT_EQ(pair.server().statuses(Kind::closed), Statuses{Status::aborted});
}

TEST_F(StallConnected, abort_with_a_datapath_that_takes_nothing__is_told_later) {
  pair.client().free_places = 0;
  pair.c().abort(c, pair.now());
  pair.run_for(20_us);
  pair.client().free_places = ~std::size_t{0};
  pair.wake_all();
  pair.run_for(100_ms);
  EXPECT_EQ(pair.server().statuses(Kind::closed), Statuses{Status::aborted});
}

}  // namespace
}  // namespace mltcp::stall_test
