// Tests that a packet without the right tag has no effect. Tests RESET, with which a restarted peer reports that it
// does not know a connection. Also tests the table of peers, in which nobody can choose the bucket of an address.
#include <gtest/gtest.h>

#include <set>
#include <unordered_map>

#include "../transport/test_network.h"
#include "mltcp/transport/internal/cookies.h"

namespace mltcp::transport::tag_test {
namespace {

using namespace testing_network;
using ResetConnected = ConnectedTest;

const auto ping = [](wire::Writer& w) { w.ping(); };

wire::Header with_tag(wire::Header header, std::uint64_t tag) {
  header.tag = tag;
  return header;
}

std::vector<std::function<void(wire::Writer&)>> frames() {
  return {
      ping,
      [](wire::Writer& w) { w.close(wire::CloseReason::aborted); },
      [](wire::Writer& w) { w.credit({.messages = 60'000}); },
      [](wire::Writer& w) { w.accept({.max_packet = 1472, .source_connection = 3, .credit = 1000}); },
      [](wire::Writer& w) { w.retry(1); },
      [](wire::Writer& w) { w.data({.last = true, .message = 0, .offset = 0, .length = 0}); },
      [](wire::Writer& w) { acknowledge(w, 0, 1000); },
  };
}

TEST(Tag, wrong__changes_nothing_at_either_end) {
  Pair pair;
  const auto [c, s] = pair.connect();
  std::byte buffer{};
  ASSERT_EQ(pair.s().receive(s, {&buffer, 1}, 0), PostResult::ok);
  pair.run_for(10_ms);
  const std::uint64_t right = pair.tag_of(pair.server(), s);
  ASSERT_NE(right, 0u);
  ASSERT_NE(right, pair.tag_of(pair.client(), c)) << "each end draws its own";
  const ConnectionStats before = pair.s().stats(s).value();
  pair.log.clear();
  std::uint64_t sent = 0;
  for (int bit = 0; bit < 64; ++bit)
    for (const auto& write : frames()) {
      ++sent;
      pair.inject_as_it_is(pair.server(), pair.client().address,
                           forge(with_tag(header_for(s, 100 + sent), right ^ std::uint64_t{1} << bit), write));
    }
  for (const auto& write : frames())
    pair.inject_as_it_is(pair.client(), pair.server().address, forge(with_tag(header_for(c, 100), right), write));
  pair.run_for(1_ms);
  EXPECT_EQ(pair.s().stats().forged_packets, sent);
  EXPECT_EQ(pair.c().stats().forged_packets, frames().size()) << "the other direction's";
  EXPECT_EQ(pair.s().stats(s)->packets_received, before.packets_received);
  for (const Parsed& packet : pair.log) EXPECT_TRUE(packet.has(FrameType::reset)) << "which nobody believes, below";
  ASSERT_EQ(pair.c().send(c, {&buffer, 1}, 0), PostResult::ok);
  EXPECT_TRUE(pair.transfer(1, 1));
}

TEST(Tag, wrong__no_answer_to_a_connecting_end_is_accepted) {
  Pair pair;
  pair.server().dead = true;
  const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
  pair.run_for(1_us);
  for (const auto& write : frames())
    pair.inject_as_it_is(pair.client(), pair.server().address, forge(with_tag(header_for(c), 1), write));
  pair.run_for(1_ms);
  EXPECT_EQ(pair.c().stats().forged_packets, frames().size());
  EXPECT_TRUE(pair.client().completions.empty());
  EXPECT_EQ(pair.count([](const Parsed& p) { return p.has(FrameType::token); }), 0u);
}

TEST(Tag, of_each_connection__is_another) {
  Pair pair({}, {}, 50_us, {}, {.max_connections = 2});
  std::set<std::uint64_t> tags;
  for (int i = 0; i < 20; ++i) {
    const auto [c, s] = pair.connect();
    tags.insert(pair.tag_of(pair.client(), c));
    tags.insert(pair.tag_of(pair.server(), s));
    pair.c().abort(c, pair.now());
    pair.run_for(1_s);
  }
  EXPECT_EQ(tags.size(), 40u);
}

// ---- RESET ----

TEST_F(ResetConnected, restarted_peer__is_noticed_in_a_round_trip) {
  pair.server().shard = std::make_unique<Shard>(pair.server(), ShardConfig{});
  pair.s().listen({});
  const auto message = random_bytes(1000);
  pair.run_for(1_s);
  ASSERT_TRUE(pair.c().exists(c)) << "nobody has said anything yet";
  ASSERT_EQ(pair.c().send(c, message, 7), PostResult::ok);
  ByteVector buffer(1000);
  ASSERT_EQ(pair.c().receive(c, buffer, 8), PostResult::ok);
  const Nanos begin = pair.now();
  ASSERT_TRUE(pair.run([&] { return pair.client().count(Kind::closed) == 1; }, pair.now() + 60_s));
  EXPECT_EQ(pair.now() - begin, TestNetwork::kDefaultDelay * 2);
  for (const Completion& completion : pair.client().completions)
    if (completion.kind != Kind::connected) {
      EXPECT_EQ(completion.status, Status::unreachable);
    }
  EXPECT_EQ(pair.s().stats().resets_sent, 1u);
  EXPECT_EQ(pair.c().stats().resets_taken, 1u);
  const auto [new_c, new_s] = pair.connect();
  EXPECT_TRUE(pair.delivers(new_c, new_s));
}

TEST(Reset, peer_restarted_twice_before_anybody_noticed__is_noticed_in_a_round_trip) {
  Pair pair;
  const auto restart = [&] {
    pair.server().shard = std::make_unique<Shard>(pair.server(), ShardConfig{.seed = 1});
    pair.s().listen({});
  };
  const auto [first, first_s] = pair.connect();
  restart();
  const auto [second, second_s] = pair.connect();
  ASSERT_EQ(second_s, first_s) << "or the test shows nothing";
  ASSERT_EQ(pair.client().count(Kind::closed), 1u) << "whose peer has given its id to another";
  EXPECT_EQ(pair.client().of(Kind::closed)[0].connection, first);
  EXPECT_EQ(pair.client().of(Kind::closed)[0].status, Status::unreachable);
  EXPECT_TRUE(pair.delivers(second, second_s));
  restart();
  const auto message = random_bytes(1000);
  ByteVector buffer(1000);
  ASSERT_EQ(pair.c().send(second, message, 7), PostResult::ok);
  ASSERT_EQ(pair.c().receive(second, buffer, 8), PostResult::ok);
  const Nanos begin = pair.now();
  ASSERT_TRUE(pair.run([&] { return pair.client().count(Kind::closed) == 2; }, pair.now() + 60_s));
  EXPECT_EQ(pair.now() - begin, TestNetwork::kDefaultDelay * 2);
  EXPECT_EQ(pair.client().of(Kind::closed)[1].connection, second);
  EXPECT_EQ(pair.c().stats().forged_resets, 0u);
}

// All data of the closing side has been acknowledged. So its connection must end without an error, although the peer
// has restarted.
TEST(Reset, peer_that_begins_anew_under_its_id__has_closed_what_was_being_closed) {
  Pair pair;
  const auto [first, first_s] = pair.connect();
  pair.run_for(1_ms);
  pair.fate = [](const Parsed& packet, Fate& fate) { fate.drop = packet.has(FrameType::reset); };
  pair.server().shard = std::make_unique<Shard>(pair.server(), ShardConfig{.seed = 1});
  pair.s().listen({});
  ASSERT_TRUE(pair.c().close(first));
  pair.run_for(1_ms);
  ASSERT_EQ(pair.client().count(Kind::closed), 0u) << "or the test shows nothing";
  const auto [second, second_s] = pair.connect();
  ASSERT_EQ(second_s, first_s) << "or the test shows nothing";
  EXPECT_EQ(pair.client().statuses(Kind::closed), Statuses{Status::ok});
}

TEST(Reset, restarted_client__is_noticed_by_the_server_s_ping) {
  const ConnectionConfig watchful = config_with([](ConnectionConfig& config) { config.keep_alive = 1_s; });
  Pair pair({}, watchful);
  pair.connect();
  pair.client().shard = std::make_unique<Shard>(pair.client(), ShardConfig{});
  pair.run_for(1100_ms);
  EXPECT_EQ(pair.server().count(Kind::closed), 1u);
  EXPECT_EQ(pair.c().stats().resets_sent, 1u) << "a PING is long enough";
}

TEST_F(ResetConnected, forged__ends_nothing) {
  const std::uint64_t right = pair.tag_of(pair.server(), s);  // the tag that the client's packets contain
  const auto reset = [](ConnectionId id) { return [id](wire::Writer& w) { w.reset(id); }; };
  const auto inject = [&](const Address& from, std::uint64_t tag, ConnectionId id) {
    pair.inject_as_it_is(pair.client(), from, forge(with_tag(header_for(0), tag), reset(id)));
  };
  for (int bit = 0; bit < 64; ++bit) inject(pair.server().address, right ^ std::uint64_t{1} << bit, s);
  inject(pair.server().address, right, s ^ 1);
  inject(Address::v4(0x0A0000FF, 4793), right, s);
  pair.log.clear();
  pair.run_for(1_ms);
  EXPECT_EQ(pair.c().stats().forged_resets, 66u);
  EXPECT_TRUE(pair.log.empty()) << "nor is any answered";
  EXPECT_TRUE(pair.delivers(c, s));
  inject(pair.server().address, right, s);
  pair.run_for(1_ms);
  EXPECT_FALSE(pair.c().exists(c)) << "the right one does";
}

TEST_F(ResetConnected, restarted_peer_that_has_given_the_id_to_another__is_noticed_all_the_same) {
  const Address earlier = Address::v4(0x0A0000FE, 4793);
  pair.log.clear();
  pair.inject_as_it_is(pair.server(), earlier, forge(with_tag(header_for(s), 42), ping));
  pair.run_for(1_us);
  EXPECT_EQ(pair.s().stats().resets_sent, 1u);
  EXPECT_EQ(pair.s().stats().forged_packets, 1u) << "whoever it was";
  ASSERT_EQ(pair.log.size(), 1u);
  EXPECT_EQ(pair.log[0].header.tag, 42u);
  ASSERT_TRUE(pair.log[0].has(FrameType::reset));
  EXPECT_EQ(pair.log[0].find(FrameType::reset)->reset, s);
  EXPECT_TRUE(pair.delivers(c, s));
}

TEST(Reset, budget__bounds_the_answers) {
  Pair pair({}, {}, 50_us, {}, {.resets_per_second = 100});
  const auto flood = [&] {
    for (std::uint32_t i = 1; i <= 500; ++i)
      pair.inject_as_it_is(pair.server(), pair.client().address, forge(with_tag(header_for(i << 12), i), ping));
    pair.run_for(1_us);
  };
  flood();
  EXPECT_EQ(pair.s().stats().resets_sent, 10u) << "a tenth of a second's";
  EXPECT_EQ(pair.s().stats().resets_withheld, 490u);
  EXPECT_EQ(pair.s().stats().unknown_connection, 500u);
  for (const Parsed& packet : pair.log) {
    EXPECT_LE(packet.size, wire::kHeaderBytes + wire::kPingFrameBytes) << "no longer than what it answers";
    EXPECT_TRUE(packet.has(FrameType::reset));
  }
  pair.run_for(50_ms);
  flood();
  EXPECT_EQ(pair.s().stats().resets_sent, 15u);
  // A shard does not answer a packet that is shorter than RESET.
  pair.run_for(1_s);
  pair.inject_as_it_is(pair.server(), pair.client().address,
                       forge(header_for(7 << 12), [](wire::Writer& w) { w.close(wire::CloseReason::done); }));
  pair.run_for(1_ms);
  EXPECT_EQ(pair.s().stats().resets_sent, 15u);
}

TEST(Reset, none__where_none_is_wanted) {
  Pair pair({}, {}, 50_us, {}, {.resets_per_second = 0});
  pair.inject_as_it_is(pair.server(), pair.client().address, forge(with_tag(header_for(7 << 12), 1), ping));
  pair.run_for(1_ms);
  EXPECT_TRUE(pair.log.empty());
  EXPECT_EQ(pair.s().stats().unknown_connection, 1u);
}

TEST_F(ResetConnected, end_that_has_closed__ends_as_closed) {
  pair.server().shard = std::make_unique<Shard>(pair.server(), ShardConfig{});
  pair.run_for(1_ms);
  pair.c().close(c);
  ASSERT_TRUE(pair.run([&] { return pair.client().count(Kind::closed) == 1; }, pair.now() + 1_s));
  EXPECT_EQ(pair.client().of(Kind::closed)[0].status, Status::ok);
}

TEST(Reset, earlier_connection__its_packets_are_dropped) {
  // The new shards have the same seeds as the old ones, so that the new connection has the ID of the old connection.
  // Packets of the old connection are still in flight.
  Pair pair;
  const auto [old_c, old_s] = pair.connect();
  const std::uint64_t old_tag = pair.tag_of(pair.server(), old_s);
  pair.client().shard = std::make_unique<Shard>(pair.client(), ShardConfig{.seed = 1});
  pair.server().shard = std::make_unique<Shard>(pair.server(), ShardConfig{.seed = 1});
  pair.s().listen({});
  const auto [c, s] = pair.connect();
  ASSERT_EQ(s, old_s);
  ASSERT_NE(pair.tag_of(pair.server(), s), old_tag) << "the time is in it";
  const auto message = random_bytes(200'000, 5);
  ByteVector buffer(message.size());
  ASSERT_EQ(pair.s().receive(s, buffer, 1), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, message, 3), PostResult::ok);
  for (const std::uint64_t number : {2U, 3U, 10U, 500U, 5000U})
    for (const auto& write : frames())
      pair.inject_as_it_is(pair.server(), pair.client().address,
                           forge(with_tag(header_for(s, number), old_tag), write));
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(buffer, message);
  EXPECT_EQ(pair.s().stats().forged_packets, 5 * frames().size());
  EXPECT_EQ(pair.c().stats(c)->retransmitted_packets, 0u);
}

// ---- The table of peers ----

/// The hash that an earlier version used. Every peer can compute it.
struct OpenHash {
  std::size_t operator()(const PeerKey& key) const noexcept {
    return AddressHash{}(key.remote) ^ (key.connection * std::size_t{0x9E3779B97F4A7C15ULL});
  }
};

template <typename Hash>
std::size_t longest_chain(const std::vector<PeerKey>& keys, Hash hash) {
  std::unordered_map<PeerKey, int, Hash> table(0, hash);
  table.reserve(keys.size());
  for (const PeerKey& key : keys) table[key] = 1;
  std::size_t longest = 0;
  for (std::size_t bucket = 0; bucket < table.bucket_count(); ++bucket)
    longest = std::max(longest, table.bucket_size(bucket));
  return longest;
}

TEST(PeerTable, ids_chosen_for_one_bucket__are_spread_by_the_key) {
  constexpr std::size_t count = 2000;
  const Address attacker = Address::v4(0x0A000001, 9);
  std::unordered_map<PeerKey, int, OpenHash> sized;
  sized.reserve(count);
  std::vector<PeerKey> chosen;
  for (std::uint32_t id = 1; chosen.size() < count; ++id)
    if (OpenHash{}({attacker, id}) % sized.bucket_count() == 0) chosen.push_back({attacker, id});
  EXPECT_EQ(longest_chain(chosen, OpenHash{}), count);
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const PeerKeyHash keyed{ShardRandom(seed).key()};
    EXPECT_LT(longest_chain(chosen, keyed), 12u) << seed;
    hashes.insert(keyed(chosen[0]));
  }
  EXPECT_EQ(hashes.size(), 20u) << "each shard has its own";
}

}  // namespace
}  // namespace mltcp::transport::tag_test
