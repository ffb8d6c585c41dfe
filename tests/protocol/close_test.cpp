// Tests how connections end: close with and without outstanding work, close from both sides, lost and repeated CLOSE,
// abort, and a peer that dies. A connection must report the completion `closed` exactly once, after all its other
// completions.
#include <gtest/gtest.h>

#include "../transport/test_network.h"

namespace mltcp {
namespace {

using namespace testing_network;
using CloseConnected = ConnectedTest;
using AbortConnected = ConnectedTest;
using PeerDeathConnected = ConnectedTest;

/// Expects that the last completion of `connection` is `closed` with `status`, and that there is only one such
/// completion.
void expect_closed(const TestHost& host, ConnectionId connection, Status status) {
  std::vector<Completion> own;
  for (const Completion& completion : host.completions)
    if (completion.connection == connection) own.push_back(completion);
  ASSERT_FALSE(own.empty());
  EXPECT_EQ(own.back().kind, Kind::closed);
  EXPECT_EQ(own.back().status, status);
  EXPECT_EQ(std::count_if(own.begin(), own.end(), [](const auto& c) { return c.kind == Kind::closed; }), 1);
}

void expect_closed(Pair& pair, ConnectionId c, ConnectionId s, Status status) {
  expect_closed(pair.client(), c, status);
  expect_closed(pair.server(), s, status);
}

TEST_F(CloseConnected, idle__closes_both_sides_and_frees_them) {
  pair.c().close(c);
  pair.run_for(100_ms);
  expect_closed(pair, c, s, Status::ok);
  EXPECT_FALSE(pair.c().exists(c));
  EXPECT_FALSE(pair.s().exists(s));
  EXPECT_TRUE(pair.c().poll(pair.now()).is_never());
  EXPECT_TRUE(pair.s().poll(pair.now()).is_never());
}

TEST_F(CloseConnected, outstanding_sends__are_done_first) {
  const auto message = random_bytes(300'000);
  ByteVector buffer(message.size());
  ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  ASSERT_EQ(pair.s().receive_virtual(s, 10, 1), PostResult::ok);
  ASSERT_EQ(pair.c().receive_virtual(c, 10, 2), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  pair.c().close(c);
  EXPECT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::closed);
  EXPECT_EQ(pair.c().receive(c, {&byte, 1}, 0), PostResult::closed);
  pair.run_for(1_s);
  EXPECT_EQ(buffer, message);
  EXPECT_EQ(pair.client().statuses(Kind::sent), Statuses{Status::ok});
  EXPECT_EQ(pair.client().of(Kind::received)[0].status, Status::closed);
  const auto received = pair.server().of(Kind::received);
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[0].status, Status::ok);
  EXPECT_EQ(received[1].status, Status::closed);
  EXPECT_EQ(received[1].tag, 1u);
  expect_closed(pair, c, s, Status::ok);
}

TEST_F(CloseConnected, twice__is_once) {
  pair.c().close(c);
  pair.c().close(c);
  pair.run_for(20_us);
  pair.c().close(c);
  pair.run_for(100_ms);
  expect_closed(pair, c, s, Status::ok);
}

TEST_F(CloseConnected, from_both_sides_at_once__is_a_close_like_any_other) {
  ASSERT_EQ(pair.c().receive_virtual(c, 1, 1), PostResult::ok);
  ASSERT_EQ(pair.s().receive_virtual(s, 1, 1), PostResult::ok);
  pair.run_for(1_ms);
  pair.c().close(c);
  pair.s().close(s);
  pair.run_for(100_ms);
  expect_closed(pair, c, s, Status::ok);
  EXPECT_FALSE(pair.c().exists(c));
  EXPECT_FALSE(pair.s().exists(s));
}

TEST_F(CloseConnected, sends_of_the_peer__complete_as_closed) {
  ASSERT_EQ(pair.s().send(s, {&byte, 1}, 7), PostResult::ok);  // the client has posted no receive
  pair.run_for(1_ms);
  pair.c().close(c);
  pair.run_for(100_ms);
  EXPECT_EQ(pair.server().statuses(Kind::sent), Statuses{Status::closed});
  expect_closed(pair.server(), s, Status::ok);
}

TEST(Close, loss__of_close_and_of_its_acknowledgement) {
  for (const std::size_t side : {0U, 1U})
    for (int lost = 1; lost <= 2; ++lost) {
      Pair pair;
      const auto [c, s] = pair.connect();
      pair.lose_first_of(side, lost);
      pair.c().close(c);
      pair.run_for(1_s);
      expect_closed(pair, c, s, Status::ok);
      EXPECT_FALSE(pair.c().exists(c)) << side << " " << lost;
    }
}

// CLOSE acknowledges the data that arrived before it, as TCP's FIN does. This must hold whichever packets of the
// receiver are lost.
TEST(Close, by_the_receiver_as_its_receive_ends__leaves_the_send_done) {
  for (const std::size_t length : {1U, 30'000U}) {
    for (int lost = 0; lost < 10; ++lost) {
      Pair pair;
      const auto [c, s] = pair.connect();
      const auto message = random_bytes(length);
      ByteVector buffer(length);
      ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
      pair.run_for(1_ms);
      pair.server().on_completion = [&, s = s](const Completion& completion) {
        if (completion.kind == Kind::received) pair.s().close(s);
      };
      pair.lose_first_of(1, lost);
      ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
      if (length > 1) pair.fate = [&](const Parsed& packet, Fate& fate) { fate.drop = packet.at.count % 11 == lost; };
      pair.run_for(20_s);
      ASSERT_EQ(pair.server().of(Kind::received)[0].status, Status::ok) << lost;
      ASSERT_EQ(pair.client().count(Kind::sent), 1U) << lost;
      EXPECT_EQ(pair.client().of(Kind::sent)[0].status, Status::ok) << lost;
      expect_closed(pair, c, s, Status::ok);
    }
  }
}

TEST_F(CloseConnected, message_that_crosses_it__has_come_for_both_ends_or_for_none) {
  const auto message = random_bytes(10);
  ByteVector buffer(10);
  ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  pair.run_for(1_ms);
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  pair.s().close(s);
  pair.run_for(1_s);
  EXPECT_EQ(pair.client().of(Kind::sent)[0].status, Status::closed);
  EXPECT_EQ(pair.server().of(Kind::received)[0].status, Status::closed);
  expect_closed(pair, c, s, Status::ok);
}

TEST(Close, while_connecting__ends_at_once) {
  Pair pair;
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  std::byte byte{};
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 7), PostResult::ok);
  pair.c().close(c);
  EXPECT_FALSE(pair.c().exists(c));
  pair.run_for(1_ms);
  expect_closed(pair.client(), c, Status::closed);
  EXPECT_EQ(pair.client().of(Kind::sent)[0].status, Status::closed);
}

TEST(Close, by_a_server_right_after_accepting__is_no_refusal_even_if_accept_is_late) {
  Pair pair;
  pair.fate = [](const Parsed& packet, Fate& fate) {
    if (packet.has(FrameType::accept) && !packet.has(FrameType::close)) fate.extra_delay = 150_us;
  };
  pair.server().on_completion = [&](const Completion& completion) {
    if (completion.kind == Kind::accepted) pair.s().close(completion.connection);
  };
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  pair.run_for(60_s);
  EXPECT_EQ(pair.client().count(Kind::connected), 1u);
  expect_closed(pair.client(), c, Status::ok);
  expect_closed(pair.server(), pair.server().of(Kind::accepted)[0].connection, Status::ok);
}

TEST_F(CloseConnected, with_a_datapath_that_takes_nothing__ends_later) {
  pair.client().free_places = 0;
  pair.c().close(c);
  pair.run_for(1_s);
  EXPECT_EQ(pair.client().count(Kind::closed), 0u);
  pair.client().free_places = ~std::size_t{0};
  pair.run_for(1_s);
  expect_closed(pair, c, s, Status::ok);
}

TEST_F(AbortConnected, open__ends_both_sides_as_aborted) {
  const auto message = random_bytes(100'000);
  ByteVector buffer(message.size());
  ASSERT_EQ(pair.s().receive(s, buffer, 1), PostResult::ok);
  pair.run_for(1_ms);
  ASSERT_EQ(pair.c().send(c, message, 2), PostResult::ok);
  ASSERT_EQ(pair.c().receive_virtual(c, 1, 3), PostResult::ok);
  pair.run_for(60_us);
  pair.c().abort(c, pair.now());
  EXPECT_FALSE(pair.c().exists(c));
  EXPECT_EQ(pair.c().send(c, message, 2), PostResult::closed);
  pair.run_for(100_ms);
  EXPECT_EQ(pair.client().of(Kind::sent)[0].status, Status::aborted);
  EXPECT_EQ(pair.client().of(Kind::received)[0].status, Status::aborted);
  EXPECT_EQ(pair.server().of(Kind::received)[0].status, Status::aborted);
  expect_closed(pair, c, s, Status::aborted);
  EXPECT_FALSE(pair.s().exists(s));
}

TEST_F(AbortConnected, after_the_peer_closed__does_not_close_twice) {
  pair.c().close(c);
  ASSERT_TRUE(pair.run([&] { return pair.server().count(Kind::closed) == 1; }, pair.now() + 1_s));
  pair.s().abort(s, pair.now());  // imitates a program that aborts every connection it has, to clean up
  pair.run_for(100_ms);
  expect_closed(pair.server(), s, Status::ok);
}

TEST_F(AbortConnected, twice_before_the_peer_is_told__tells_it) {
  EXPECT_TRUE(pair.c().abort(c, pair.now()));
  EXPECT_TRUE(pair.c().abort(c, pair.now()));
  pair.run_for(1_ms);
  expect_closed(pair, c, s, Status::aborted);
  EXPECT_TRUE(pair.c().abort(c, pair.now())) << "it would tell the peer twice more";
  pair.run_for(1_us);
  EXPECT_FALSE(pair.c().abort(c, pair.now()));
  EXPECT_EQ(pair.c().stats().connections, 0u);
}

TEST_F(AbortConnected, twice_while_the_datapath_is_full__tells_the_peer) {
  pair.client().free_places = 0;
  EXPECT_TRUE(pair.c().abort(c, pair.now()));
  pair.run_for(1_us);
  EXPECT_TRUE(pair.c().abort(c, pair.now())) << "its CLOSE has been built, and waits";
  pair.run_for(1_us);
  EXPECT_EQ(pair.c().stats().connections, 1u);
  pair.client().free_places = ~std::size_t{0};
  pair.run_for(1_ms);
  expect_closed(pair.server(), s, Status::aborted);
  EXPECT_TRUE(pair.c().abort(c, pair.now()));
  pair.run_for(1_us);
  EXPECT_EQ(pair.c().stats().connections, 0u) << "it has left, and so a further one frees the place";
}

TEST(Abort, of_what_the_peer_has_closed_while_the_datapath_is_full__still_answers_it) {
  Pair pair({}, {}, 50_us, {}, {.resets_per_second = 0});
  const auto [c, s] = pair.connect();
  pair.run_for(1_ms);
  pair.server().free_places = 0;
  EXPECT_TRUE(pair.c().close(c));
  pair.run_for(100_us);
  expect_closed(pair.server(), s, Status::ok);
  pair.s().abort(s, pair.now());
  pair.run_for(1_us);
  pair.server().free_places = ~std::size_t{0};
  pair.run_for(1_s);
  expect_closed(pair.client(), c, Status::ok);
}

TEST_F(CloseConnected, of_what_has_ended__is_of_something_unknown) {
  pair.c().close(c);
  ASSERT_TRUE(pair.run([&] { return pair.server().count(Kind::closed) == 1; }, pair.now() + 1_s));
  EXPECT_EQ(pair.s().stats().connections, 1u) << "or the test shows nothing: it still answers";
  EXPECT_FALSE(pair.s().exists(s));
  EXPECT_FALSE(pair.s().close(s));
  EXPECT_FALSE(pair.s().attach(s, pair.s().add_job({})));
  pair.run_for(1_s);
  EXPECT_EQ(pair.s().stats().connections, 0u);
}

TEST_F(AbortConnected, while_closing__closes_once) {
  pair.c().close(c);
  pair.run_for(20_us);
  pair.c().abort(c, pair.now());
  pair.run_for(100_ms);
  expect_closed(pair.client(), c, Status::aborted);
}

TEST(Abort, of_who_has_acknowledged_nothing__is_told_once_and_frees_the_slot_soon) {
  Pair pair({}, {}, 50_us, {}, {.max_connections = 1});
  pair.inject(pair.server(), Address::v4(0x0A0000FF, 9), forge(header_for(0), [](wire::Writer& w) {
                w.connect({.max_packet = 1472, .source_connection = 5, .credit = 1, .tag = 1});
              }));
  ASSERT_TRUE(pair.run([&] { return pair.server().count(Kind::accepted) == 1; }, pair.now() + 1_ms));
  pair.s().abort(pair.server().of(Kind::accepted)[0].connection, pair.now());
  pair.run_for(4_ms);  // longer than a probe timeout
  EXPECT_EQ(pair.count([](const Parsed& packet) { return packet.has(FrameType::close); }), 1U);
  pair.connect();
}

TEST(PeerDeath, outstanding_send__becomes_unreachable_after_give_up) {
  ConnectionConfig config;
  config.give_up_after = 3_s;
  Pair pair(config, config);
  const auto [c, s] = pair.connect();
  ASSERT_EQ(pair.s().receive_virtual(s, 100, 0), PostResult::ok);
  pair.run_for(10_ms);
  pair.server().dead = true;
  std::byte byte{};
  const Nanos begin = pair.now();
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 6), PostResult::ok);
  ASSERT_TRUE(pair.run([&] { return pair.client().count(Kind::closed) == 1; }, pair.now() + 60_s));
  EXPECT_GE(pair.now() - begin, 3_s);
  EXPECT_LE(pair.now() - begin, 6_s);
  EXPECT_EQ(pair.client().statuses(Kind::sent), Statuses{Status::unreachable});
  expect_closed(pair.client(), c, Status::unreachable);
  EXPECT_FALSE(pair.c().exists(c));
}

TEST(PeerDeath, waiting_for_credit__is_noticed) {
  ConnectionConfig config;
  config.give_up_after = 3_s;
  Pair pair(config, config);
  const auto [c, s] = pair.connect();
  pair.server().dead = true;
  std::byte byte{};
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 6), PostResult::ok);
  pair.run_for(10_s);
  expect_closed(pair.client(), c, Status::unreachable);
}

TEST(PeerDeath, while_closing__ends) {
  ConnectionConfig config;
  config.give_up_after = 3_s;
  Pair pair(config, config);
  const auto [c, s] = pair.connect();
  pair.server().dead = true;
  pair.c().close(c);
  pair.run_for(10_s);
  expect_closed(pair.client(), c, Status::unreachable);
}

TEST_F(PeerDeathConnected, that_was_only_not_heard__is_told_to_it) {
  for (std::uint64_t tag = 0; tag < 2; ++tag) ASSERT_EQ(pair.s().receive_virtual(s, 1, tag), PostResult::ok);
  pair.run_for(1_ms);
  pair.fate = [](const Parsed& packet, Fate& fate) { fate.drop = packet.from == 1; };
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  pair.run_for(60_s);
  expect_closed(pair, c, s, Status::unreachable);
  EXPECT_FALSE(pair.c().exists(c));
  EXPECT_FALSE(pair.s().exists(s));
  const auto received = pair.server().of(Kind::received);
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[0].status, Status::ok) << "it has arrived";
  EXPECT_EQ(received[1].status, Status::unreachable);
}

TEST_F(PeerDeathConnected, probes__slow_down) {
  pair.server().dead = true;
  ASSERT_EQ(pair.s().receive_virtual(s, 100, 0), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 6), PostResult::ok);
  pair.log.clear();
  pair.run_for(60_s);
  EXPECT_EQ(pair.client().count(Kind::closed), 1u);
  EXPECT_LT(pair.log.size(), 120u) << "doubling, up to one second";
}

TEST_F(PeerDeathConnected, long_silence_without_anything_outstanding__is_no_death) {
  pair.run_for(1000_s);
  EXPECT_TRUE(pair.c().exists(c));
  ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  EXPECT_TRUE(pair.transfer(1, 1));
}

}  // namespace
}  // namespace mltcp
