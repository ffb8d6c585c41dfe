// Tests address validation: a connecting peer has to prove that it receives packets at its address. Covers cookies,
// half-open connections, a peer that restarts and uses the same connection ID, and the packets that a shard accepts
// from an unknown peer. Until the peer has proven its address, a shard sends to it at most three times the bytes that
// arrived from there.
#include <gtest/gtest.h>

#include "../transport/test_network.h"
#include "mltcp/transport/internal/address_counts.h"
#include "mltcp/transport/internal/cookies.h"

namespace mltcp::transport::proof_test {
namespace {

using namespace testing_network;

constexpr std::size_t kConnectBytes = wire::kHeaderBytes + wire::kConnectFrameBytes;

ByteVector connect_as(std::uint32_t source, std::uint64_t tag, std::optional<std::uint64_t> cookie = std::nullopt,
                      std::uint32_t credit = 1000) {
  return forge(header_for(0), [&](wire::Writer& w) {
    w.connect({.max_packet = 1472, .source_connection = source, .credit = credit, .tag = tag});
    if (cookie) w.token(*cookie);
  });
}

ShardConfig with_half_open(std::uint32_t max, std::uint32_t connections = 64) {
  return {.max_connections = connections, .max_half_open = max, .seed = 1};
}

/// Returns the bytes that the server has sent to addresses at which there is no host.
std::size_t bytes_to_unproven_peers(const Pair& pair) {
  std::size_t sum = 0;
  for (const Parsed& packet : pair.log)
    if (packet.from == 1 && packet.to >= 2) sum += packet.size;
  return sum;
}

Address unproven_peer(std::uint32_t number) { return Address::v4(0x0A010000 + number, 9); }

TEST(Proof, flood_of_connects__takes_no_more_places_than_may_be_half_open) {
  Pair pair({}, {}, 50_us, {}, with_half_open(3));
  for (std::uint32_t i = 0; i < 1000; ++i) pair.inject(pair.server(), unproven_peer(i % 7), connect_as(1 + i, i));
  pair.run_for(1_ms);
  EXPECT_EQ(pair.server().count(Kind::accepted), 3u);
  EXPECT_EQ(pair.s().stats().half_open, 3u);
  EXPECT_EQ(pair.s().stats().retries_sent, 997u);
  for (const Parsed& packet : pair.log)
    if (packet.has(FrameType::retry)) {
      EXPECT_LE(packet.size, kConnectBytes) << "never longer than the question";
    }
  // A real host can connect at the same time, but needs one additional round trip.
  const Nanos begin = pair.now();
  Nanos connected;
  pair.client().on_completion = [&](const Completion&) { connected = pair.now(); };
  const auto [c, s] = pair.connect();
  EXPECT_EQ(connected - begin, TestNetwork::kDefaultDelay * 4);
  EXPECT_EQ(pair.s().stats().cookies_accepted, 1u);
  EXPECT_EQ(pair.c().stats(c)->lost_packets, 0u);
  EXPECT_EQ(pair.c().stats(c)->congestion_events, 0u) << "what was answered by RETRY is not lost";
  EXPECT_TRUE(pair.delivers(c, s));
}

TEST(Proof, places_that_prove_nothing__end_after_three_seconds) {
  Pair pair({}, {}, 50_us, {}, with_half_open(3));
  for (std::uint32_t i = 0; i < 10; ++i) pair.inject(pair.server(), unproven_peer(i), connect_as(1 + i, i));
  pair.run_for(2900_ms);
  EXPECT_EQ(pair.s().stats().half_open, 3u);
  EXPECT_EQ(pair.server().count(Kind::closed), 0u);
  pair.run_for(200_ms);
  EXPECT_EQ(pair.s().stats().half_open, 0u);
  EXPECT_EQ(pair.s().stats().unproven_ended, 3u);
  ASSERT_EQ(pair.server().count(Kind::closed), 3u);
  EXPECT_EQ(pair.server().of(Kind::closed)[0].status, Status::unreachable);
  EXPECT_TRUE(pair.s().poll(pair.now()).is_never());
}

TEST(Proof, unknown_peer_that_asks_again__is_waited_for_no_longer) {
  Pair pair({}, {}, 50_us, {}, with_half_open(3));
  for (int i = 0; i < 29; ++i) {
    pair.inject(pair.server(), unproven_peer(1), connect_as(1, 1));
    pair.run_for(100_ms);
  }
  EXPECT_EQ(pair.server().count(Kind::accepted), 1u);
  EXPECT_EQ(pair.s().stats().half_open, 1u);
  pair.run_for(200_ms);
  EXPECT_EQ(pair.s().stats().half_open, 0u);
  EXPECT_EQ(pair.s().stats().unproven_ended, 1u);
}

TEST(Proof, path_that_is_said_to_be_long__is_waited_for) {
  ConnectionConfig config;
  config.initial_rtt = 8_s;  // long, so that CONNECT is not sent again during the test
  Pair pair(config, config, 4_s, {}, with_half_open(3));
  const auto [c, s] = pair.connect();
  ASSERT_NE(s, 0u);
  EXPECT_EQ(pair.s().stats().unproven_ended, 0u);
  EXPECT_TRUE(pair.delivers(c, s));
}

TEST(Proof, path_that_is_said_to_be_long__is_waited_for_with_a_cookie_too) {
  ConnectionConfig config;
  config.initial_rtt = 8_s;
  Pair pair({}, config, 4_s, {}, with_half_open(0));
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  pair.run_for(30_s);
  ASSERT_EQ(pair.server().count(Kind::accepted), 1u);
  EXPECT_TRUE(pair.delivers(c, pair.server().of(Kind::accepted)[0].connection));
}

TEST(Proof, peer_of_a_place_that_the_program_ends_while_the_datapath_is_full__is_told) {
  for (const Nanos full_for : {100_us, 5_ms}) {
    Pair pair({}, {}, 50_us, {}, {.max_half_open = 1, .resets_per_second = 0, .seed = 1});
    const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
    ASSERT_TRUE(pair.run([&] { return pair.server().count(Kind::accepted) == 1; }, pair.now() + 1_s));
    pair.server().free_places = 0;
    pair.s().abort(pair.server().of(Kind::accepted)[0].connection, pair.now());
    pair.run_for(full_for);
    EXPECT_EQ(pair.s().stats().connections, full_for < 1_ms ? 1u : 0u) << "its place is held for a moment alone";
    pair.server().free_places = ~std::size_t{0};
    pair.run_for(1_ms);
    EXPECT_EQ(pair.s().stats().connections, 0u);
    if (full_for > 1_ms) continue;
    ASSERT_EQ(pair.client().count(Kind::closed), 1u);
    EXPECT_EQ(pair.client().of(Kind::closed)[0].connection, c);
    EXPECT_EQ(pair.client().of(Kind::closed)[0].status, Status::aborted);
  }
}

TEST(Proof, place_that_the_program_ends__is_free_again) {
  Pair pair({}, {}, 50_us, {}, with_half_open(1));
  pair.inject(pair.server(), unproven_peer(1), connect_as(1, 1));
  pair.run_for(1_ms);
  ASSERT_EQ(pair.s().stats().half_open, 1u);
  pair.s().abort(pair.server().of(Kind::accepted)[0].connection, pair.now());
  pair.run_for(100_ms);
  EXPECT_EQ(pair.s().stats().half_open, 0u);
  EXPECT_EQ(pair.s().stats().unproven_ended, 0u);
}

TEST(Proof, without_half_open_places__every_connection_brings_a_cookie) {
  // The handshake must recover from the loss of any of its packets.
  for (const std::size_t side : {0U, 1U})
    for (int which = 0; which < 5; ++which) {
      Pair pair({}, {}, 50_us, {}, with_half_open(0));
      int left = which;
      pair.fate = [&](const Parsed& packet, Fate& fate) { fate.drop = packet.from == side && left-- == 0; };
      const auto [c, s] = pair.connect();
      ASSERT_NE(s, 0u) << side << which;
      EXPECT_EQ(pair.server().count(Kind::accepted), 1u);
      EXPECT_EQ(pair.s().stats().half_open, 0u);
      EXPECT_EQ(pair.s().stats().cookies_accepted, 1u);
      EXPECT_TRUE(pair.delivers(c, s)) << side << which;
    }
}

TEST(Proof, client_that_only_receives__says_that_it_is_there_until_the_server_knows) {
  // For 5 ms, all packets of the client except CONNECT are lost. These are its answers to ACCEPT and to copies of
  // ACCEPT.
  Pair pair;
  const Nanos begin = pair.now();
  std::size_t dropped = 0;
  pair.fate = [&](const Parsed& packet, Fate& fate) {
    fate.drop = packet.from == 0 && !packet.has(FrameType::connect) && packet.at - begin < 5_ms;
    dropped += fate.drop ? 1 : 0;
  };
  std::byte buffer{};
  const std::byte message{0x42};
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  ASSERT_EQ(pair.c().receive(c, {&buffer, 1}, 0), PostResult::ok);
  pair.run_for(10_s);  // longer than the time limit of a half-open connection
  EXPECT_GE(dropped, 2u);
  ASSERT_EQ(pair.server().count(Kind::accepted), 1u);
  const ConnectionId s = pair.server().of(Kind::accepted)[0].connection;
  EXPECT_EQ(pair.s().stats().half_open, 0u);
  EXPECT_EQ(pair.s().stats().unproven_ended, 0u);
  ASSERT_EQ(pair.s().send(s, {&message, 1}, 0), PostResult::ok);
  ASSERT_TRUE(pair.client_receives(1_s));
  EXPECT_EQ(buffer, message);
}

TEST(Proof, forged_cookies__do_not_keep_the_servers_out) {
  // An attacker on the path answers CONNECT before the server does, with forged cookies.
  Pair pair({}, {}, 50_us, {}, with_half_open(0));
  std::uint64_t forged = 0;
  std::optional<ByteVector> answer;
  pair.fate = [&](const Parsed& packet, Fate& /*fate*/) {
    if (packet.from != 0 || !packet.has(FrameType::connect) || forged >= 8) return;
    const wire::Frame* const connect = packet.find(FrameType::connect);
    wire::Header header = header_for(connect->connect.source_connection, forged + 1);
    header.tag = connect->connect.tag;
    const std::uint64_t cookie = 0x1000 + forged++;
    answer = forge(header, [&](wire::Writer& w) { w.retry(cookie); });
  };
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  for (int i = 0; i < 5'000 && pair.client().count(Kind::connected) == 0; ++i) {
    pair.run_for(10_us);
    if (answer) pair.inject_as_it_is(pair.client(), pair.server().address, *std::exchange(answer, std::nullopt));
  }
  EXPECT_GE(forged, 4u) << "more than are answered at once";
  EXPECT_EQ(pair.client().count(Kind::connected), 1u);
  EXPECT_EQ(pair.client().count(Kind::closed), 0u);
  EXPECT_NE(c, 0u);
}

/// Returns the cookie that the server sent last.
std::uint64_t last_cookie(const Pair& pair) {
  for (auto packet = pair.log.rbegin(); packet != pair.log.rend(); ++packet)
    if (const wire::Frame* retry = packet->find(FrameType::retry)) return retry->cookie;
  ADD_FAILURE() << "no RETRY";
  return 0;
}

TEST(Proof, cookie__is_of_one_address_id_and_tag_for_ten_to_twenty_seconds) {
  Pair pair({}, {}, 50_us, {}, with_half_open(0));
  const auto accepted = [&] { return pair.server().count(Kind::accepted); };
  const auto ask = [&](const Address& from, const ByteVector& packet) {
    pair.inject(pair.server(), from, packet);
    pair.run_for(1_ms);
  };
  pair.run_for(101_s);
  ask(unproven_peer(1), connect_as(5, 6));
  const std::uint64_t cookie = last_cookie(pair);
  EXPECT_NE(cookie, 0u);
  std::uint64_t retries = pair.s().stats().retries_sent;
  for (const ByteVector& other : {connect_as(5, 6, cookie ^ 1), connect_as(6, 6, cookie), connect_as(5, 7, cookie)})
    ask(unproven_peer(1), other);
  ask(unproven_peer(2), connect_as(5, 6, cookie));
  ask(Address::v4(unproven_peer(1).v4_ip(), 10), connect_as(5, 6, cookie));
  EXPECT_EQ(pair.s().stats().retries_sent, retries + 5);
  EXPECT_EQ(accepted(), 0u);
  pair.run_for(10_s);
  ask(unproven_peer(1), connect_as(5, 6, cookie));
  EXPECT_EQ(accepted(), 1u) << "of the slot before";
  pair.run_for(40_s);
  ask(unproven_peer(1), connect_as(8, 9));
  const std::uint64_t other = last_cookie(pair);
  pair.run_for(20_s);
  ask(unproven_peer(1), connect_as(8, 9, other));
  EXPECT_EQ(accepted(), 1u) << "too old";
}

TEST(Proof, before_it__no_more_than_three_bytes_for_one) {
  for (const bool repeats : {false, true}) {
    Pair pair({}, {}, 50_us, {}, with_half_open(8));
    const auto message = random_bytes(100'000);
    pair.server().on_completion = [&](const Completion& completion) {
      if (completion.kind != Kind::accepted) return;
      for (int i = 0; i < 10; ++i) EXPECT_EQ(pair.s().send(completion.connection, message, 0), PostResult::ok);
      EXPECT_EQ(pair.s().receive_virtual(completion.connection, 1000, 0), PostResult::ok);
    };
    std::size_t asked = 0;
    for (int i = 0; i < 3500; ++i) {
      if (i == 0 || (repeats && i % 100 == 0)) {
        asked += kConnectBytes;
        pair.inject(pair.server(), unproven_peer(1), connect_as(5, 6));
      }
      pair.run_for(1_ms);
      ASSERT_LE(bytes_to_unproven_peers(pair), asked * 3) << i;
    }
    EXPECT_GT(bytes_to_unproven_peers(pair), asked * 2) << "it is used";
  }
}

TEST(Proof, before_it__an_abort_is_within_the_three_bytes) {
  Pair pair({}, {}, 50_us, {}, with_half_open(8));
  pair.inject(pair.server(), unproven_peer(1), connect_as(5, 6));
  pair.run_for(50_ms);
  pair.s().abort(pair.server().of(Kind::accepted)[0].connection, pair.now());
  pair.run_for(10_s);
  EXPECT_LE(bytes_to_unproven_peers(pair), kConnectBytes * 3);
}

TEST(Proof, data_of_the_server__goes_when_the_client_has_proven_its_address) {
  Pair pair;
  const auto message = random_bytes(30'000);
  ByteVector buffer(message.size());
  pair.serve(message);
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  EXPECT_EQ(pair.c().receive(c, buffer, 8), PostResult::ok);
  const Nanos begin = pair.now();
  EXPECT_TRUE(pair.client_receives(1_s));
  EXPECT_EQ(buffer, message);
  EXPECT_LE(pair.now() - begin, TestNetwork::kDefaultDelay * 8) << "no timer was waited for";
  EXPECT_EQ(pair.s().stats().half_open, 0u);
}

TEST(Proof, restart_under_a_known_id__one_packet_ends_nothing) {
  Pair pair;
  const auto [c, s] = pair.connect();
  const std::size_t before = pair.log.size();
  for (std::uint64_t tag = 1; tag < 100; ++tag) {
    pair.inject(pair.server(), pair.client().address, connect_as(c, tag));
    pair.inject(pair.server(), pair.client().address, connect_as(c, tag, tag));
  }
  pair.client().dead = true;
  pair.run_for(10_ms);
  pair.client().dead = false;
  EXPECT_EQ(pair.s().stats().retries_sent, 198u);
  for (std::size_t i = before; i < pair.log.size(); ++i) EXPECT_TRUE(pair.log[i].has(FrameType::retry));
  EXPECT_EQ(pair.server().count(Kind::closed), 0u);
  EXPECT_TRUE(pair.delivers(c, s));
}

TEST(Proof, restart_under_a_known_id__with_a_cookie_replaces_the_old_connection) {
  Pair pair;
  const auto [old_c, old_s] = pair.connect();
  // The new shard has the same seed, so that it draws the same connection IDs as the old one.
  pair.client().shard = std::make_unique<Shard>(pair.client(), ShardConfig{.seed = 1});
  const Nanos begin = pair.now();
  const auto [c, s] = pair.connect();
  ASSERT_EQ(c, old_c);
  ASSERT_NE(s, old_s);
  EXPECT_EQ(pair.s().stats().cookies_accepted, 1u);
  ASSERT_EQ(pair.server().count(Kind::closed), 1u);
  const Completion closed = pair.server().of(Kind::closed)[0];
  EXPECT_EQ(closed.connection, old_s);
  EXPECT_EQ(closed.status, Status::unreachable);
  EXPECT_LE(pair.now() - begin, 11_ms) << "it needs no timer";
  EXPECT_TRUE(pair.delivers(c, s));
}

TEST(Proof, restart_under_a_known_id__has_closed_what_was_being_closed) {
  Pair pair;
  const auto [old_c, old_s] = pair.connect();
  pair.run_for(1_ms);
  pair.fate = [](const Parsed& packet, Fate& fate) { fate.drop = packet.has(FrameType::reset); };
  pair.client().shard = std::make_unique<Shard>(pair.client(), ShardConfig{.seed = 1});
  ASSERT_TRUE(pair.s().close(old_s));
  pair.run_for(1_ms);
  ASSERT_EQ(pair.server().count(Kind::closed), 0u) << "or the test shows nothing";
  const auto [c, s] = pair.connect();
  ASSERT_EQ(c, old_c) << "or the test shows nothing";
  EXPECT_EQ(pair.server().statuses(Kind::closed), Statuses{Status::ok});
}

TEST(Proof, unknown_peer__may_say_connect_and_nothing_else) {
  using Write = std::function<void(wire::Writer&)>;
  const auto both = [](const Write& first, const Write& second) {
    return [=](wire::Writer& w) {
      first(w);
      second(w);
    };
  };
  const Write connect = [](wire::Writer& w) {
    w.connect({.max_packet = 1472, .source_connection = 5, .credit = 1, .tag = 6});
  };
  const Write ping = [](wire::Writer& w) { w.ping(); };
  const Write token = [](wire::Writer& w) { w.token(1); };
  const std::vector<Write> packets{
      [](wire::Writer&) {},
      ping,
      token,
      [](wire::Writer& w) { w.retry(5); },
      [](wire::Writer& w) { w.close(wire::CloseReason::done); },
      [](wire::Writer& w) { w.accept({.max_packet = 1472, .source_connection = 5}); },
      both(ping, connect),
      both(connect,
           [](wire::Writer& w) {
             w.data({.last = true, .message = 0, .offset = 0, .length = 1});
             w.zeros(1);
           }),
      both(connect, [](wire::Writer& w) { w.credit({.messages = 100}); }),
      both(connect, [](wire::Writer& w) { acknowledge(w, 0, 0); }),
      both(connect, connect),
      both(connect, both(token, token)),
      both(connect, both(token, ping)),
      [](wire::Writer& w) {
        w.connect({.version = 9, .max_packet = 1472, .source_connection = 5, .tag = 6, .lowest = 3, .highest = 8});
      },
      both([](wire::Writer& w) { w.reset(5); }, ping),
  };
  Pair pair;
  pair.connect();
  pair.log.clear();
  const std::uint64_t before = pair.s().stats().malformed_packets;
  for (const auto& write : packets) pair.inject(pair.server(), unproven_peer(1), forge(header_for(0), write));
  // A CONNECT inside an open connection must not be accepted.
  pair.inject(pair.server(), pair.client().address,
              forge(header_for(pair.server().of(Kind::accepted)[0].connection, 50), connect));
  pair.run_for(1_ms);
  EXPECT_EQ(pair.s().stats().malformed_packets, before + packets.size() + 1);
  EXPECT_TRUE(pair.log.empty()) << "nothing of it is answered";
  EXPECT_EQ(pair.server().count(Kind::accepted), 1u);
}

TEST(Proof, retries_without_end__are_answered_four_times) {
  Pair pair;
  pair.server().dead = true;
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  pair.run_for(1_us);
  const auto connects = [&] { return pair.count([](const Parsed& p) { return p.has(FrameType::connect); }); };
  for (std::uint64_t cookie = 1; cookie <= 100; ++cookie) {
    const auto retry = forge(header_for(c), [&](wire::Writer& w) { w.retry(cookie); });
    for (int copy = 0; copy < 2; ++copy) pair.inject(pair.client(), pair.server().address, retry);
    pair.run_for(1_us);
  }
  EXPECT_EQ(connects(), 5u);
  EXPECT_EQ(pair.log.back().find(FrameType::token)->cookie, 4u);
  pair.run_for(60_s);
  EXPECT_EQ(pair.client().of(Kind::closed)[0].status, Status::unreachable) << "and then it gives up in its time";
}

TEST(Proof, server_that_asks_for_cookies_without_end__is_given_up) {
  Pair pair;
  pair.server().dead = true;
  pair.fate = [&](const Parsed& packet, Fate&) {
    if (!packet.has(FrameType::connect)) return;
    const ConnectionId c = packet.find(FrameType::connect)->connect.source_connection;
    pair.inject(pair.client(), pair.server().address,
                forge(header_for(c), [&](wire::Writer& w) { w.retry(packet.header.packet_number); }));
  };
  pair.c().connect(pair.server().address, config_with([](ConnectionConfig& c) { c.give_up_after = 2_s; }), pair.now());
  pair.run_for(5_s);
  EXPECT_EQ(pair.client().statuses(Kind::closed), Statuses{Status::unreachable});
}

TEST(Proof, address_that_has_its_share__is_asked_for_proof_and_refused) {
  Pair pair({}, {}, 50_us, {}, {.max_connections = 64, .max_accepted_per_address = 2, .seed = 1});
  const auto [c, s] = pair.connect();
  std::vector<ConnectionId> further;
  for (int i = 0; i < 3; ++i) further.push_back(pair.c().connect(pair.server().address, {}, pair.now()));
  pair.run_for(1_s);
  // The three connections were half-open at the same time. An address may have two accepted connections, and the first
  // connection is one of them. So two of the three end after they have proven their address.
  EXPECT_EQ(pair.s().stats().connections, 2u);
  EXPECT_EQ(pair.client().count(Kind::closed), 2u);
  const ConnectionId late = pair.c().connect(pair.server().address, {}, pair.now());
  pair.run_for(1_s);
  ASSERT_EQ(pair.client().count(Kind::closed), 3u);
  EXPECT_EQ(pair.client().of(Kind::closed)[2].connection, late);
  EXPECT_EQ(pair.client().of(Kind::closed)[2].status, Status::full);
  EXPECT_EQ(pair.s().stats().retries_sent, 1u);
  EXPECT_EQ(pair.s().stats().refused_connects, 1u);
  EXPECT_TRUE(pair.delivers(c, s));
  // Connections from another address do not use up the share of the client's address.
  for (std::uint32_t i = 0; i < 10; ++i) pair.inject(pair.server(), unproven_peer(1), connect_as(1 + i, i));
  pair.run_for(1_ms);
  EXPECT_EQ(pair.s().stats().half_open, 10u);
  EXPECT_EQ(pair.s().stats().refused_connects, 1u);
  // After a connection has ended, its address may open another connection.
  pair.c().close(c);
  pair.s().close(s);
  pair.run_for(10_s);
  pair.c().connect(pair.server().address, {}, pair.now());
  pair.run_for(1_s);
  EXPECT_EQ(pair.s().stats().refused_connects, 1u);
  EXPECT_EQ(pair.s().stats().connections, 2u);
}

TEST(Proof, known_ids__do_not_get_an_address_beyond_its_share) {
  Pair pair({}, {}, 50_us, {}, {.max_connections = 64, .max_half_open = 16, .max_accepted_per_address = 2, .seed = 1});
  const Address host = unproven_peer(1);
  const auto cookie_for = [&](std::uint32_t source) -> std::optional<std::uint64_t> {
    for (auto packet = pair.log.rbegin(); packet != pair.log.rend(); ++packet)
      if (const wire::Frame* const retry = packet->find(FrameType::retry); retry && packet->header.connection == source)
        return retry->cookie;
    return std::nullopt;
  };
  // Half-open connections do not count towards the share of an address. A new connection with the same ID and a cookie
  // then replaces each of them. The new connection counts.
  for (std::uint32_t i = 1; i <= 10; ++i) pair.inject(pair.server(), host, connect_as(i, i));
  pair.run_for(1_ms);
  ASSERT_EQ(pair.s().stats().half_open, 10u);
  for (std::uint32_t i = 1; i <= 10; ++i) {
    pair.inject(pair.server(), host, connect_as(i, 100 + i));
    pair.run_for(1_ms);
    const auto cookie = cookie_for(i);
    ASSERT_TRUE(cookie.has_value());
    pair.inject(pair.server(), host, connect_as(i, 100 + i, cookie));
    pair.run_for(1_ms);
  }
  EXPECT_EQ(pair.s().stats().cookies_accepted, 2u);
  EXPECT_EQ(pair.s().stats().refused_connects, 8u);
  // A new connection may replace a connection with the same ID that already counts. The number of counted connections
  // stays the same.
  pair.inject(pair.server(), host, connect_as(1, 201));
  pair.run_for(1_ms);
  pair.inject(pair.server(), host, connect_as(1, 201, cookie_for(1)));
  pair.run_for(1_ms);
  EXPECT_EQ(pair.s().stats().cookies_accepted, 3u);
  pair.run_for(4_s);
  EXPECT_EQ(pair.s().stats().half_open, 0u);
  EXPECT_EQ(pair.s().stats().connections, 0u) << "none of them has answered ACCEPT";
}

// ---- Used cookies, and places for new connections ----

TEST(Proof, cookie_that_was_used__gets_no_second_connection_but_another_cookie) {
  Pair pair({}, {}, 50_us, {}, with_half_open(8));
  const auto ask = [&](const ByteVector& packet) {
    pair.inject(pair.server(), unproven_peer(1), packet);
    pair.run_for(100_us);
  };
  const auto accepted = [&] { return pair.server().count(Kind::accepted); };
  const auto end = [&] {
    pair.s().abort(pair.server().of(Kind::accepted).back().connection, pair.now());
    pair.run_for(1_s);
    ASSERT_EQ(pair.s().stats().connections, 0u);
  };
  ask(connect_as(5, 6));
  ask(connect_as(5, 7));  // the server already knows this ID, so that it requires a cookie
  const std::uint64_t first = last_cookie(pair);
  ask(connect_as(5, 7, first));
  ASSERT_EQ(accepted(), 2u);
  ask(connect_as(5, 7, first));
  EXPECT_EQ(pair.s().stats().retries_sent, 1u) << "the same again is answered by its connection";
  end();
  for (int i = 0; i < 100; ++i) ask(connect_as(5, 7, first));
  EXPECT_EQ(accepted(), 2u);
  EXPECT_EQ(pair.s().stats().retries_sent, 101u);
  // A client that has lost its connection opens another one at once, with the next cookie.
  const std::uint64_t second = last_cookie(pair);
  ASSERT_NE(second, first);
  ask(connect_as(5, 7, second));
  EXPECT_EQ(accepted(), 3u);
  end();
  for (const std::uint64_t used : {first, second}) ask(connect_as(5, 7, used));
  pair.run_for(9_s);
  for (const std::uint64_t used : {first, second}) ask(connect_as(5, 7, used));
  EXPECT_EQ(accepted(), 3u);
}

TEST(Cookies, used__are_remembered_by_the_hundred) {
  Cookies cookies(512);
  ShardRandom random(1);
  std::vector<std::uint64_t> used;
  for (std::uint64_t tag = 0; tag < 100; ++tag) {
    used.push_back(cookies.make({unproven_peer(1), 5}, tag, random, 1_s));
    EXPECT_EQ(cookies.worth(used.back(), {unproven_peer(1), 5}, tag, random, 1_s), Cookies::Worth::proof);
    cookies.use(used.back());
  }
  for (std::uint64_t tag = 0; tag < 100; ++tag)
    EXPECT_EQ(cookies.worth(used[tag], {unproven_peer(1), 5}, tag, random, 1_s), Cookies::Worth::used);
  EXPECT_EQ(cookies.worth(used[0], {unproven_peer(2), 5}, 0, random, 1_s), Cookies::Worth::nothing);
  EXPECT_EQ(cookies.worth(used[0], {unproven_peer(1), 5}, 0, random, 21_s), Cookies::Worth::nothing);
}

/// Opens a connection with a cookie, and never answers the server's ACCEPT.
void take_place(Pair& pair, const Address& from, std::uint32_t source) {
  pair.inject(pair.server(), from, connect_as(source, source));
  pair.run_for(1_us);
  pair.inject(pair.server(), from, connect_as(source, source, last_cookie(pair)));
  pair.run_for(1_us);
}

TEST(Proof, place_for_a_cookie__ends_after_three_seconds_without_an_answer) {
  Pair pair({}, {}, 50_us, {}, with_half_open(0));
  take_place(pair, unproven_peer(1), 5);
  pair.run_for(2900_ms);
  EXPECT_EQ(pair.s().stats().connections, 1u);
  pair.run_for(200_ms);
  EXPECT_EQ(pair.s().stats().connections, 0u);
  EXPECT_EQ(pair.s().stats().unproven_ended, 1u);
  EXPECT_EQ(pair.server().of(Kind::closed)[0].status, Status::unreachable);
}

TEST(Proof, places_without_an_answer__do_not_block_other_peers) {
  Pair pair({}, {}, 50_us, {}, with_half_open(0, 16));
  for (std::uint32_t i = 1; i <= 100; ++i) take_place(pair, unproven_peer(i), i);
  EXPECT_EQ(pair.s().stats().connections, 16u);
  EXPECT_EQ(pair.s().stats().refused_connects, 0u);
  const Nanos begin = pair.now();
  std::vector<std::pair<ConnectionId, ConnectionId>> opened;
  for (int i = 0; i < 16; ++i) opened.push_back(pair.connect());
  EXPECT_LT(pair.now() - begin, 1_s);
  // Connections whose peers have answered must stay open, however many other peers ask for a connection.
  for (std::uint32_t i = 1; i <= 100; ++i) pair.inject(pair.server(), unproven_peer(i), connect_as(i, i));
  pair.run_for(1_ms);
  EXPECT_EQ(pair.s().stats().refused_connects, 100u);
  for (const auto& [c, s] : opened) EXPECT_TRUE(pair.delivers(c, s));
}

TEST(Proof, places_without_an_answer__of_one_address_displace_each_other) {
  Pair pair({}, {}, 50_us, {}, with_half_open(0, 16));
  take_place(pair, unproven_peer(1), 1);  // a slow peer, at another address than the following connections
  const ConnectionId first = pair.server().of(Kind::accepted)[0].connection;
  for (std::uint32_t i = 2; i <= 100; ++i) take_place(pair, unproven_peer(2), i);
  EXPECT_TRUE(pair.s().exists(first));
  EXPECT_EQ(pair.s().stats().connections, 16u);
}

TEST(Proof, unknown_peer__without_a_cookie_takes_no_other_peer_s_place) {
  Pair pair({}, {}, 50_us, {}, with_half_open(16, 16));
  for (std::uint32_t i = 1; i <= 100; ++i) pair.inject(pair.server(), unproven_peer(i), connect_as(i, i));
  pair.run_for(1_ms);
  EXPECT_EQ(pair.server().count(Kind::accepted), 16u);
  EXPECT_EQ(pair.s().stats().retries_sent, 84u);
  pair.connect();
  EXPECT_EQ(pair.s().stats().unproven_ended, 1u) << "the oldest";
}

TEST(Proof, place_of_who_has_not_answered__is_free_at_once) {
  for (const bool has_cookie : {false, true}) {
    Pair pair({}, {}, 50_us, {}, with_half_open(has_cookie ? 0 : 1));
    if (has_cookie)
      take_place(pair, unproven_peer(1), 1);
    else
      pair.inject(pair.server(), unproven_peer(1), connect_as(1, 1));
    pair.run_for(1_us);
    pair.s().abort(pair.server().of(Kind::accepted)[0].connection, pair.now());
    pair.run_for(1_us);
    EXPECT_EQ(pair.s().stats().connections, 0u);
    EXPECT_TRUE(pair.log.back().has(FrameType::close)) << "which has been told";
  }
}

TEST(Proof, place_of_a_connection_that_has_ended__is_had_when_it_is_wanted) {
  Pair pair({}, {}, 50_us, {}, with_half_open(16, 16));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 16; ++i) pair.connect();
    for (const Completion& accepted : pair.server().of(Kind::accepted)) pair.s().abort(accepted.connection, pair.now());
    pair.run_for(200_us);
    EXPECT_EQ(pair.s().stats().connections, 16u) << "or the test shows nothing";
    for (auto* host : {&pair.client(), &pair.server()}) host->forget_completions();
  }
  EXPECT_EQ(pair.s().stats().refused_connects, 0u);
  // The program itself may also use the slots of ended connections.
  for (int i = 0; i < 16; ++i) EXPECT_NO_THROW(static_cast<void>(pair.s().connect(unproven_peer(1), {}, pair.now())));
}

TEST(AddressCounts, network_of_64_bits__counts_as_one) {
  AddressCounts counts(3, SipKey{1, 2});
  const auto v6 = [](std::string_view text) { return Address::parse(text, 9); };
  counts.add(v6("2001:db8::1"));
  counts.add(v6("2001:db8::2:0:0:1"));
  EXPECT_EQ(counts.of(v6("2001:db8::7")), 2u);
  EXPECT_EQ(counts.of(v6("2001:db8:0:1::1")), 0u);
  counts.add(Address::v4(0x0A000001, 1));
  EXPECT_EQ(counts.of(Address::v4(0x0A000001, 2)), 1u) << "whatever its port";
  EXPECT_EQ(counts.of(Address::v4(0x0A000002, 1)), 0u);
  counts.remove(v6("2001:db8::9"));
  EXPECT_EQ(counts.of(v6("2001:db8::1")), 1u);
  counts.remove(v6("2001:db8::9"));
  EXPECT_EQ(counts.of(v6("2001:db8::1")), 0u);
  counts.remove(v6("2001:db8::9"));  // the address has no entry
  EXPECT_EQ(counts.of(v6("2001:db8::1")), 0u);
  // All link-local addresses share a prefix, and so do all hosts behind an address translator. Each of these hosts must
  // count separately.
  counts.add(v6("fe80::1"));
  counts.add(v6("64:ff9b::1.2.3.4"));
  EXPECT_EQ(counts.of(v6("fe80::2")), 0u);
  EXPECT_EQ(counts.of(v6("64:ff9b::1.2.3.5")), 0u);
  EXPECT_EQ(counts.of(v6("64:ff9b::1.2.3.4")), 1u);
}

}  // namespace
}  // namespace mltcp::transport::proof_test
