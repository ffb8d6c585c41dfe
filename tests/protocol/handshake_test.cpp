// Tests opening connections: the loss of each packet of the handshake, refusals, and repeated and forged packets.
#include <gtest/gtest.h>

#include "../transport/test_network.h"
#include "mltcp/base/error.h"

namespace mltcp::handshake_test {
namespace {

using namespace testing_network;

TEST(Handshake, connect__completes_on_both_sides_after_one_round_trip) {
  Pair pair;
  const Nanos begin = pair.now();
  Nanos connected;
  pair.client().on_completion = [&](const Completion&) { connected = pair.now(); };
  const auto [c, s] = pair.connect();
  EXPECT_EQ(connected - begin, TestNetwork::kDefaultDelay * 2);
  ASSERT_EQ(pair.client().completions.size(), 1u);
  EXPECT_EQ(pair.client().completions[0].connection, c);
  EXPECT_EQ(pair.client().completions[0].status, Status::ok);
  ASSERT_EQ(pair.server().completions.size(), 1u);
  EXPECT_EQ(pair.server().completions[0].kind, Kind::accepted);
  EXPECT_EQ(pair.c().stats(c)->smoothed_rtt, 100_us);
  EXPECT_TRUE(pair.delivers(c, s));
}

TEST(Handshake, posted_before__goes_out_with_the_first_credit) {
  Pair pair;
  const auto message = random_bytes(5000);
  ByteVector buffer(5000);
  pair.server().on_completion = [&](const Completion& completion) {
    if (completion.kind == Kind::accepted) {
      EXPECT_EQ(pair.s().receive(completion.connection, buffer, 9), PostResult::ok);
    }
  };
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  EXPECT_EQ(pair.c().send(c, message, 8), PostResult::ok);
  EXPECT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(buffer, message);
}

TEST(Handshake, loss__of_the_first_packets_of_either_side_is_made_good) {
  for (const std::size_t side : {0U, 1U})
    for (int lost = 1; lost <= 5; ++lost) {
      Pair pair;
      pair.lose_first_of(side, lost);
      const auto [c, s] = pair.connect();
      ASSERT_NE(s, 0u) << side << " loses " << lost;
      EXPECT_EQ(pair.server().count(Kind::accepted), 1u);
      EXPECT_TRUE(pair.delivers(c, s));
    }
}

TEST(Handshake, duplicates__make_one_connection) {
  Pair pair;
  pair.fate = [](const Parsed&, Fate& fate) { fate.copies = 3; };
  const auto [c, s] = pair.connect();
  EXPECT_EQ(pair.server().count(Kind::accepted), 1u);
  EXPECT_EQ(pair.client().count(Kind::connected), 1u);
  EXPECT_TRUE(pair.delivers(c, s));
}

TEST(Handshake, data__that_overtakes_accept_is_made_good) {
  Pair pair;
  const auto message = random_bytes(3000);
  ByteVector buffer(3000);
  pair.fate = [](const Parsed& packet, Fate& fate) {
    if (packet.has(FrameType::accept)) fate.extra_delay = 300_us;
  };
  pair.serve(message);
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  EXPECT_EQ(pair.c().receive(c, buffer, 8), PostResult::ok);
  EXPECT_TRUE(pair.client_receives(1_s));
  EXPECT_EQ(buffer, message);
}

Status refused_status(Pair& pair) {
  EXPECT_TRUE(pair.run([&] { return pair.client().count(Kind::closed) == 1; }, pair.now() + 60_s));
  pair.run_for(10_ms);
  EXPECT_EQ(pair.client().count(Kind::connected), 0u);
  return pair.client().completions.back().status;
}

TEST(Handshake, refused__by_who_does_not_listen) {
  Pair pair;
  const ConnectionId id = pair.s().connect(pair.client().address, {}, pair.now());
  ASSERT_TRUE(pair.run([&] { return pair.server().count(Kind::closed) == 1; }, pair.now() + 1_s));
  EXPECT_EQ(pair.server().completions.back().status, Status::refused);
  EXPECT_EQ(pair.server().completions.back().connection, id);
  EXPECT_FALSE(pair.s().exists(id));
  EXPECT_EQ(pair.c().stats().refused_connects, 1u);
}

TEST(Handshake, slots_kept_for_connect__are_not_for_others_to_take) {
  Pair pair({}, {}, 50_us, {}, {.max_connections = 3, .kept_for_connect = 2});
  pair.connect();
  const ConnectionId refused = pair.c().connect(pair.server().address, {}, pair.now());
  ASSERT_TRUE(pair.run([&] { return pair.client().count(Kind::closed) == 1; }, pair.now() + 1_s));
  EXPECT_EQ(pair.client().completions.back().connection, refused);
  EXPECT_EQ(pair.client().completions.back().status, Status::full);
  for (int i = 0; i < 2; ++i) EXPECT_NO_THROW((void)pair.s().connect(pair.client().address, {}, pair.now()));
  EXPECT_THROW((void)pair.s().connect(pair.client().address, {}, pair.now()), RunError);
}

TEST(Handshake, slots_of_own_connections_that_have_ended__are_not_for_others_to_take) {
  Pair pair({}, {}, 50_us, {}, {.max_connections = 3, .kept_for_connect = 2});
  TestHost& other = pair.add();
  other.shard->listen({});
  pair.connect();
  const ConnectionId own = pair.s().connect(other.address, {}, pair.now());
  (void)pair.s().connect(other.address, {}, pair.now());
  ASSERT_TRUE(pair.run([&] { return pair.server().count(Kind::connected) == 2; }, pair.now() + 1_s));
  // The aborted connection keeps its slot while it sends CLOSE to its peer, which receives nothing.
  pair.fate = [](const Parsed& packet, Fate& fate) { fate.drop = packet.to == 2; };
  pair.s().abort(own, pair.now());
  (void)pair.c().connect(pair.server().address, {}, pair.now());
  ASSERT_TRUE(pair.run([&] { return pair.client().count(Kind::closed) == 1; }, pair.now() + 1_s));
  EXPECT_EQ(pair.client().completions.back().status, Status::full);
  EXPECT_NO_THROW((void)pair.s().connect(other.address, {}, pair.now())) << "its place is for this program";
}

TEST(Handshake, full__when_the_server_has_no_slot) {
  Pair pair({}, {}, 50_us, {}, {.max_connections = 1});
  TestHost& other = pair.add();
  pair.connect();
  const ConnectionId id = other.shard->connect(pair.server().address, {}, pair.now());
  std::byte byte{};
  EXPECT_EQ(other.shard->send(id, {&byte, 1}, 5), PostResult::ok);
  EXPECT_EQ(other.shard->receive(id, {&byte, 1}, 6), PostResult::ok);
  ASSERT_TRUE(pair.run([&] { return other.count(Kind::closed) == 1; }, pair.now() + 1_s));
  // Posted operations must complete before the connection completes as closed.
  ASSERT_EQ(other.completions.size(), 3u);
  EXPECT_EQ(other.completions[0].kind, Kind::sent);
  EXPECT_EQ(other.completions[0].tag, 5u);
  EXPECT_EQ(other.completions[1].kind, Kind::received);
  EXPECT_EQ(other.completions[1].tag, 6u);
  for (const Completion& completion : other.completions) EXPECT_EQ(completion.status, Status::full);
  EXPECT_EQ(pair.s().stats().refused_connects, 1u);
}

TEST(Handshake, version__without_one_in_common_both_are_told) {
  for (const bool is_newer : {true, false}) {
    Pair pair;
    TestHost& other = pair.add();
    pair.fate = [](const Parsed& packet, Fate& fate) { fate.drop = packet.from == 2; };
    // This is the CONNECT of a shard with another version. The answer must be in a format that the other shard
    // understands.
    const ConnectionId id = other.shard->connect(pair.server().address, {}, pair.now());
    pair.run_for(1_us);
    const std::uint8_t version = is_newer ? wire::kProtocolVersion + 1 : wire::kMinVersion - 1;
    pair.inject(pair.server(), other.address, forge(header_for(0), [&](wire::Writer& w) {
                  w.connect({.version = version,
                             .max_packet = 1472,
                             .source_connection = id,
                             .credit = 0,
                             .tag = pair.tag_of(other, id),
                             .lowest = version,
                             .highest = version});
                }));
    ASSERT_TRUE(pair.run([&] { return other.count(Kind::closed) == 1; }, pair.now() + 1_s));
    EXPECT_EQ(other.completions.back().status, Status::version);
    EXPECT_EQ(pair.server().count(Kind::accepted), 0u);
    EXPECT_EQ(pair.s().stats().refused_connects, 1u);
  }
}

TEST(Handshake, version__of_several_the_highest_in_common_is_chosen) {
  Pair pair;
  pair.inject(pair.server(), pair.client().address, forge(header_for(0), [&](wire::Writer& w) {
                w.connect({.version = wire::kProtocolVersion + 5,
                           .max_packet = 1472,
                           .source_connection = 5,
                           .tag = 6,
                           .lowest = wire::kMinVersion,
                           .highest = wire::kProtocolVersion + 5});
              }));
  pair.run_for(40_us);
  ASSERT_EQ(pair.log.size(), 1u);
  ASSERT_TRUE(pair.log[0].has(FrameType::accept));
  EXPECT_EQ(pair.log[0].find(FrameType::accept)->connect.version, wire::kProtocolVersion);
  EXPECT_EQ(pair.log[0].header.tag, 6u);
}

TEST(Handshake, downgrade__is_noticed_by_the_client) {
  struct Answer {
    std::uint8_t version;
    std::uint8_t highest;
  };
  for (const Answer answer :
       {Answer{wire::kProtocolVersion - 1, wire::kProtocolVersion}, Answer{wire::kProtocolVersion - 1, 200},
        Answer{wire::kProtocolVersion + 1, 200}, Answer{wire::kProtocolVersion, wire::kProtocolVersion - 1}}) {
    Pair pair;
    pair.server().dead = true;
    const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
    pair.run_for(1_us);
    pair.inject(pair.client(), pair.server().address, forge(header_for(c), [&](wire::Writer& w) {
                  w.accept({.version = answer.version,
                            .max_packet = 1472,
                            .source_connection = 7,
                            .tag = 8,
                            .highest = answer.highest});
                }));
    EXPECT_EQ(refused_status(pair), Status::version);
    EXPECT_EQ(pair.c().stats().downgrades, 1u);
  }
}

TEST(Handshake, version_2__is_told_in_its_own_form) {
  Pair pair;
  ByteVector connect(52);
  connect[0] = std::byte{0xA1};
  connect[2] = std::byte{52};
  connect[32] = std::byte{5};
  connect[33] = std::byte{2};
  connect[36] = std::byte{9};  // source
  const std::uint32_t checksum = crc32c(0, connect);
  std::memcpy(connect.data() + 4, &checksum, 4);
  std::vector<ByteVector> answers;
  pair.raw = [&](std::size_t from, const ByteVector& bytes) {
    if (from == 1) answers.push_back(bytes);
  };
  pair.logging = false;
  pair.inject_as_it_is(pair.server(), pair.client().address, connect);
  pair.run_for(1_ms);
  const auto expected = wire::version_2_close(9);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0], ByteVector(expected.begin(), expected.end()));
  EXPECT_EQ(pair.s().stats().refused_connects, 1u);
  // A damaged CONNECT of version 2 must count as foreign. The answer, if it is sent back, must count as foreign, too.
  connect[40] ^= std::byte{1};
  pair.inject_as_it_is(pair.server(), pair.client().address, connect);
  pair.inject_as_it_is(pair.server(), pair.client().address, answers[0]);
  pair.run_for(1_ms);
  EXPECT_EQ(answers.size(), 1u);
  EXPECT_EQ(pair.s().stats().foreign_packets, 2u);
}

TEST(Handshake, connect_that_makes_no_sense__is_not_answered) {
  Pair pair;
  pair.logging = true;
  for (const wire::ConnectFrame& frame : {wire::ConnectFrame{.max_packet = 1472, .source_connection = 0},
                                          wire::ConnectFrame{.max_packet = 100, .source_connection = 5}}) {
    pair.inject(pair.server(), pair.client().address, forge(header_for(0), [&](wire::Writer& w) { w.connect(frame); }));
    pair.run_for(1_s);
  }
  EXPECT_EQ(pair.s().stats().malformed_packets, 2u);
  EXPECT_EQ(pair.server().count(Kind::accepted), 0u);
  EXPECT_TRUE(pair.log.empty());
}

TEST(Handshake, accept_with_an_impossible_packet_size__does_no_harm) {
  // No packet can be as short as the following sizes. With the smallest sizes, even the header would be longer than the
  // packet.
  for (const std::uint16_t size : std::initializer_list<std::uint16_t>{0, 31, 40, 100}) {
    Pair pair;
    pair.server().dead = true;
    const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
    std::array<std::byte, 200> bytes{};
    for (int i = 0; i < 50; ++i) ASSERT_EQ(pair.c().send(c, bytes, 0), PostResult::ok);
    pair.run_for(100_us);
    pair.inject(pair.client(), pair.server().address, forge(header_for(c), [&](wire::Writer& w) {
                  w.accept({.max_packet = size, .source_connection = 7, .credit = 1000});
                }));
    pair.run_for(1_s);
    EXPECT_EQ(pair.client().count(Kind::connected), 0u) << size;
    for (const Parsed& packet : pair.log) EXPECT_FALSE(is_data(packet));
  }
}

TEST(Handshake, accept_without_a_connection_id__is_ignored) {
  Pair pair;
  pair.server().dead = true;
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  pair.run_for(100_us);
  pair.inject(pair.client(), pair.server().address, forge(header_for(c), [&](wire::Writer& w) {
                w.accept({.max_packet = 1472, .source_connection = 0, .credit = 1});
              }));
  pair.run_for(1_s);
  EXPECT_EQ(pair.client().count(Kind::connected), 0u);
}

TEST(Handshake, server_that_vanishes_before_accept__is_unreachable) {
  ConnectionConfig slow;
  slow.initial_rtt = 20_ms;  // so that the server's first timeout comes after the client's first timeout
  Pair pair({}, slow);
  // Only one answer arrives. It acknowledges CONNECT, but does not accept the connection.
  pair.fate = [](const Parsed& packet, Fate& fate) { fate.drop = packet.from == 1 && packet.has(FrameType::accept); };
  pair.c().connect(pair.server().address, {}, pair.now());
  pair.run([&] { return pair.count([](const Parsed& p) { return p.from == 1 && !p.has(FrameType::accept); }) > 0; },
           pair.now() + 5_s);
  pair.run_for(60_us);
  pair.server().dead = true;
  pair.run_for(40_s);
  ASSERT_EQ(pair.client().count(Kind::closed), 1u) << "it waits for ever";
  EXPECT_EQ(pair.client().completions.back().status, Status::unreachable);
}

TEST(Handshake, no_peer__is_unreachable_after_give_up) {
  ConnectionConfig config;
  config.give_up_after = 5_s;
  Pair pair(config);
  pair.server().dead = true;
  const Nanos begin = pair.now();
  pair.c().connect(pair.server().address, config, begin);
  EXPECT_EQ(refused_status(pair), Status::unreachable);
  EXPECT_GE(pair.now() - begin, 5_s);
  EXPECT_LE(pair.now() - begin, 8_s);
  EXPECT_TRUE(pair.c().poll(pair.now()).is_never());
}

TEST(Handshake, packet_size__is_the_smaller_of_the_two) {
  TestNetwork network;
  TestHost& a = network.add({}, {.max_packet_bytes = 1472});
  TestHost& b = network.add({}, {.max_packet_bytes = 900});
  b.shard->listen({});
  const ConnectionId c = a.shard->connect(b.address, {}, network.now());
  const auto message = random_bytes(50'000);
  ByteVector to_b(message.size());
  ByteVector to_a(message.size());
  b.on_completion = [&](const Completion& completion) {
    if (completion.kind != Kind::accepted) return;
    EXPECT_EQ(b.shard->receive(completion.connection, to_b, 0), PostResult::ok);
    EXPECT_EQ(b.shard->send(completion.connection, message, 0), PostResult::ok);
  };
  ASSERT_EQ(a.shard->receive(c, to_a, 0), PostResult::ok);
  ASSERT_EQ(a.shard->send(c, message, 0), PostResult::ok);
  network.run_for(1_s);
  EXPECT_EQ(to_a, message);
  EXPECT_EQ(to_b, message);
  for (const Parsed& packet : network.log) EXPECT_LE(packet.size, 900u);
}

}  // namespace
}  // namespace mltcp::handshake_test
