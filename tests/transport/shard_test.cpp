// Tests the shard: rejected settings, connection ids and slots, posting limits, packets without a connection, and a
// full datapath.
#include "mltcp/transport/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/cc/registry.h"
#include "mltcp/transport/requirements.h"
#include "test_network.h"

namespace mltcp::shard_test {
namespace {

using namespace testing_network;
using ShardConnected = ConnectedTest;

TEST(Shard, settings__out_of_range_are_refused_with_their_name) {
  Pair pair;
  const auto said_of = [&](const ConnectionConfig& config) -> std::string {
    try {
      pair.s().listen(config);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const auto refused = [&](const char* key, const ConnectionConfig& config) {
    EXPECT_THAT(said_of(config), testing::HasSubstr(key));
    EXPECT_THROW(pair.c().connect(pair.server().address, config, pair.now()), InputError) << key;
  };
  EXPECT_EQ(said_of({}), "");
  refused("max_sends", config_with([](ConnectionConfig& c) { c.max_sends = 0; }));
  refused("max_sends", config_with([](ConnectionConfig& c) { c.max_sends = 65'537; }));
  refused("max_receives", config_with([](ConnectionConfig& c) { c.max_receives = 0; }));
  refused("max_receives", config_with([](ConnectionConfig& c) { c.max_receives = 65'537; }));
  refused("max_packets_in_flight", config_with([](ConnectionConfig& c) { c.max_packets_in_flight = 15; }));
  refused("max_packets_in_flight", config_with([](ConnectionConfig& c) { c.max_packets_in_flight = (1U << 20) + 1; }));
  refused("ack_every", config_with([](ConnectionConfig& c) { c.ack_every = 0; }));
  refused("initial_rtt", config_with([](ConnectionConfig& c) { c.initial_rtt = 0_ns; }));
  refused("max_ack_delay", config_with([](ConnectionConfig& c) { c.max_ack_delay = 0_ns; }));
  refused("timer_granularity", config_with([](ConnectionConfig& c) { c.timer_granularity = Nanos(-1); }));
  refused("give_up_after", config_with([](ConnectionConfig& c) { c.give_up_after = 0_ns; }));
  refused("give_up_after", config_with([](ConnectionConfig& c) { c.give_up_after = Nanos::never(); }));
  refused("initial_rtt", config_with([](ConnectionConfig& c) { c.initial_rtt = Nanos::never(); }));
  refused("max_ack_delay", config_with([](ConnectionConfig& c) { c.max_ack_delay = 3'601_s; }));
  refused("timer_granularity", config_with([](ConnectionConfig& c) { c.timer_granularity = 3'601_s; }));
  refused("keep_alive", config_with([](ConnectionConfig& c) { c.keep_alive = Nanos(-1); }));
  refused("keep_alive", config_with([](ConnectionConfig& c) { c.keep_alive = Nanos::never(); }));
  refused("idle_limit", config_with([](ConnectionConfig& c) { c.idle_limit = Nanos(-1); }));
  refused("idle_limit", config_with([](ConnectionConfig& c) { c.keep_alive = c.idle_limit = 1_s; }));
  refused("vegas", config_with([](ConnectionConfig& c) { c.congestion_control = "vegas"; }));
}

TEST(Shard, settings__that_need_more_than_the_datapath_has_are_refused) {
  TestNetwork network;
  TestHost blind(network, 9, {.ecn = false, .priorities = 1});
  Shard shard(blind, {});
  const auto refused = [&](const char* why, const ConnectionConfig& config) {
    EXPECT_THAT(message_of<InputError>([&] { shard.listen(config); }), testing::HasSubstr(why));
    EXPECT_THAT(message_of<InputError>([&] { shard.connect(Address::v4(1, 1), config, 0_ns); }),
                testing::HasSubstr(why));
  };
  refused("congestion control \"dctcp\" needs ECN, and this datapath carries none",
          config_with([](ConnectionConfig& c) {
            c.congestion_control = "dctcp";
            c.ecn = true;
          }));
  refused("ecn is true, and this datapath carries none; set ecn = false",
          config_with([](ConnectionConfig& c) { c.ecn = true; }));
  refused("priority is 3, and the highest of this datapath is 0",
          config_with([](ConnectionConfig& c) { c.priority = 3; }));
  EXPECT_NO_THROW(shard.listen({}));
}

TEST(Requirements, hops__are_asked_for_by_algorithms_that_need_them) {
  cc::AlgorithmTable algorithm = cc::find_algorithm("reno");
  EXPECT_NO_THROW(check_requirements({}, algorithm, {.hops = false}));
  algorithm.capabilities.needs_hops = true;
  EXPECT_NO_THROW(check_requirements({}, algorithm, {}));
  EXPECT_THAT(message_of<InputError>([&] { check_requirements({}, algorithm, {.hops = false}); }),
              testing::HasSubstr("needs the number of hops"));
}

TEST(Shard, poll__returns_no_later_than_the_datapaths_own_deadline) {
  class Asking final : public PacketIo {
   public:
    [[nodiscard]] const Limits& limits() const override { return limits_; }
    std::size_t receive(std::span<RxPacket> /*out*/) override { return 0; }
    std::size_t send(std::span<const TxPacket> packets) override { return packets.size(); }
    [[nodiscard]] Nanos deadline() const override { return due; }
    Nanos due = Nanos::never();

   private:
    Limits limits_;
  } asking;
  Shard shard(asking, {});
  EXPECT_EQ(shard.poll(1_ms), Nanos::never());
  asking.due = 5_ms;
  EXPECT_EQ(shard.poll(2_ms), 5_ms);
  asking.due = 0_ns;
  EXPECT_EQ(shard.poll(3_ms), 3_ms) << "at once";
}

TEST(Shard, settings__of_the_shard_out_of_range_are_refused) {
  TestNetwork network;
  TestHost& host = network.add();
  EXPECT_THROW(Shard(host, {.max_connections = 0}), InputError);
  EXPECT_THROW(Shard(host, {.max_connections = 1U << 20}), InputError);
  EXPECT_THROW(Shard(host, {.max_completions = 0}), InputError);
  EXPECT_THROW(Shard(host, {.max_connections = 4, .kept_for_connect = 5}), InputError);
  EXPECT_NO_THROW(Shard(host, {.max_connections = 4, .kept_for_connect = 4}));
  EXPECT_NO_THROW(Shard(host, {.max_connections = 1, .max_jobs = 0, .max_completions = 1}));
  TestHost small(network, 9, {.max_packet_bytes = 300});
  EXPECT_THROW(Shard(small, {}), InputError);
}

TEST(Shard, idle__wants_no_poll) {
  Pair pair;
  EXPECT_TRUE(pair.c().poll(pair.now()).is_never());
  pair.connect();
  EXPECT_TRUE(pair.c().poll(pair.now()).is_never());
  EXPECT_TRUE(pair.s().poll(pair.now()).is_never());
}

TEST(Shard, status__has_a_text_each) {
  std::set<std::string> texts;
  for (int i = 0; i <= static_cast<int>(Status::violation); ++i) texts.insert(to_text(static_cast<Status>(i)));
  EXPECT_EQ(texts.size(), static_cast<std::size_t>(Status::violation) + 1);
}

TEST(Shard, unknown_connection__everything_is_refused) {
  Pair pair;
  const JobId job = pair.c().add_job({});
  std::byte byte{};
  for (const ConnectionId id : {0U, 1U, 0xFFFFFFFFU, 12345U}) {
    EXPECT_FALSE(pair.c().exists(id));
    EXPECT_EQ(pair.c().send(id, {&byte, 1}, 0), PostResult::closed);
    EXPECT_EQ(pair.c().receive(id, {&byte, 1}, 0), PostResult::closed);
    EXPECT_EQ(pair.c().receive_virtual(id, 1, 0), PostResult::closed);
    EXPECT_FALSE(pair.c().stats(id).has_value());
    EXPECT_EQ(pair.c().remote(id), nullptr);
    EXPECT_FALSE(pair.c().close(id));
    EXPECT_FALSE(pair.c().abort(id, pair.now()));
    EXPECT_FALSE(pair.c().attach(id, job));
  }
  pair.run_for(1_ms);
}

TEST_F(ShardConnected, unknown_job__is_told_by_every_call) {
  const JobId removed = pair.c().add_job({});
  EXPECT_TRUE(pair.c().attach(c, removed));
  EXPECT_TRUE(pair.c().remove_job(removed));
  for (const JobId job : {removed, JobId{77}, ~JobId{0}}) {
    EXPECT_FALSE(pair.c().attach(c, job));
    EXPECT_FALSE(pair.c().begin_iteration(job, 1));
    EXPECT_FALSE(pair.c().set_job_rate(job, Rate(1)));
    EXPECT_EQ(pair.c().set_plan(job, PhasePlan{}, pair.now()), PlanState::unknown_job);
    EXPECT_EQ(pair.c().gate_stats(job).state, PlanState::unknown_job);
    EXPECT_FALSE(pair.c().clear_plan(job, pair.now()));
    EXPECT_FALSE(pair.c().remove_job(job));
    EXPECT_EQ(pair.c().job_progress(job), nullptr);
  }
}

TEST_F(ShardConnected, ended_connection__is_told_by_every_call) {
  const JobId job = pair.c().add_job({});
  EXPECT_TRUE(pair.c().stats(c).has_value());
  EXPECT_TRUE(pair.c().abort(c, pair.now()));
  pair.run_for(10_s);
  EXPECT_FALSE(pair.c().attach(c, job));
  EXPECT_FALSE(pair.c().close(c));
  EXPECT_FALSE(pair.c().abort(c, pair.now()));
  EXPECT_FALSE(pair.c().stats(c).has_value());
}

TEST(Shard, connect__throws_when_every_slot_is_taken) {
  TestNetwork network;
  TestHost& host = network.add({.max_connections = 3});
  std::set<ConnectionId> ids;
  for (int i = 0; i < 3; ++i) ids.insert(host.shard->connect(Address::v4(1, 1), {}, network.now()));
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_FALSE(ids.contains(0));
  EXPECT_THROW(host.shard->connect(Address::v4(1, 1), {}, network.now()), RunError);
  host.shard->abort(*ids.begin(), network.now());
  network.run_for(1_ms);
  EXPECT_NO_THROW(host.shard->connect(Address::v4(1, 1), {}, network.now()));
}

TEST(Shard, slots__are_used_again_under_new_ids) {
  Pair pair({}, {}, 10_us, {}, {.max_connections = 2});
  std::set<ConnectionId> ids;
  for (int i = 0; i < 50; ++i) {
    const auto [c, s] = pair.connect();
    ASSERT_NE(s, 0u);
    EXPECT_TRUE(ids.insert(c).second) << "used again at once";
    std::byte byte{};
    EXPECT_EQ(pair.s().receive(s, {&byte, 1}, 1), PostResult::ok);
    const std::byte sent{0x77};
    EXPECT_EQ(pair.c().send(c, {&sent, 1}, 1), PostResult::ok);
    EXPECT_TRUE(pair.transfer(1, 1));
    EXPECT_EQ(byte, sent);
    pair.c().close(c);
    pair.run_for(100_ms);
    EXPECT_FALSE(pair.c().exists(c));
    EXPECT_FALSE(pair.s().exists(s));
    EXPECT_EQ(pair.c().send(c, {&sent, 1}, 1), PostResult::closed);
  }
  EXPECT_EQ(pair.client().count(Kind::closed), 50u);
  EXPECT_EQ(pair.server().count(Kind::closed), 50u);
}

std::vector<ConnectionId> open(Shard& shard, std::size_t count) {
  std::vector<ConnectionId> ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(shard.connect(Address::v4(1, 1), {}, Nanos(0)));
  return ids;
}

TEST(Shard, ids__without_a_seed_are_not_those_of_another_shard) {
  // After a restart, a shard uses other ids than before, so that it ignores packets for its earlier connections.
  TestNetwork network;
  TestHost& host = network.add();
  std::set<ConnectionId> ids;
  for (int life = 0; life < 20; ++life) {
    Shard shard(host, {.max_connections = 8});
    for (const ConnectionId id : open(shard, 8)) {
      EXPECT_NE(id, 0u);
      EXPECT_TRUE(ids.insert(id).second);
    }
  }
  // Three bits of an id are the slot number, and all other bits are random.
  ConnectionId ever_set = 0;
  ConnectionId ever_clear = 0;
  for (const ConnectionId id : ids) {
    ever_set |= id;
    ever_clear |= ~id;
  }
  EXPECT_EQ(ever_set, ~ConnectionId{0});
  EXPECT_EQ(ever_clear, ~ConnectionId{0});
}

TEST(Shard, ids__of_a_seed_are_the_same_again_and_known_ahead) {
  TestNetwork network;
  TestHost& host = network.add();
  for (const std::uint32_t count : {1U, 2U, 7U, 300U}) {
    const ShardConfig config{.max_connections = count, .seed = 42};
    Shard first(host, config);
    Shard second(host, config);
    const auto ids = open(first, count);
    EXPECT_EQ(ids, open(second, count));
    EXPECT_EQ(ids, Shard::first_connections(config));
  }
  EXPECT_THROW(Shard::first_connections({.max_connections = 3}), InputError);
  // Networks spread flows by these ids, so a seed must always give the same ids.
  EXPECT_EQ(Shard::first_connections({.max_connections = 3, .seed = 1}),
            (std::vector<ConnectionId>{0x93000000, 0x85400001, 0xB4000002}));
}

TEST(Shard, ids__used_again_are_drawn_anew) {
  // The shard has one slot. Each new id for this slot is random, not the previous id plus one.
  TestNetwork network;
  for (const bool seeded : {false, true}) {
    ShardConfig config{.max_connections = 1};
    if (seeded) config.seed = 3;
    Shard shard(network.add(), config);
    std::set<ConnectionId> seen;
    ConnectionId bits = 0;
    for (int i = 0; i < 500; ++i) {
      const ConnectionId id = shard.connect(Address::v4(1, 1), {}, Nanos(0));
      EXPECT_NE(id, 0u);
      EXPECT_TRUE(seen.insert(id).second) << "32 random bits meet again once in 30,000 times";
      bits |= id;
      shard.abort(id, Nanos(0));
      (void)shard.poll(Nanos(0));
      EXPECT_FALSE(shard.exists(id));
    }
    EXPECT_EQ(bits, ~ConnectionId{0});
  }
}

TEST(Shard, slots__are_used_again_in_the_order_in_which_they_became_free) {
  TestNetwork network;
  Shard shard(network.add(), {.max_connections = 4, .seed = 1});
  const auto slot = [](ConnectionId id) { return id & 3; };
  auto ids = open(shard, 3);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(slot(ids[i]), i);
  for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
    shard.abort(ids[i], Nanos(0));
    (void)shard.poll(Nanos(0));
  }
  EXPECT_EQ(slot(open(shard, 1)[0]), 3u);
  EXPECT_EQ(slot(open(shard, 1)[0]), 1u);
  EXPECT_EQ(slot(open(shard, 1)[0]), 0u);
}

TEST(Shard, posting__stops_at_max_sends_and_max_receives) {
  ConnectionConfig config;
  config.max_sends = 5;
  config.max_receives = 3;
  Pair pair(config, config);
  const auto [c, s] = pair.connect();
  std::byte byte{};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  EXPECT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::queue_full);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
  EXPECT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::queue_full);
  EXPECT_TRUE(pair.transfer(3, 3));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  EXPECT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::queue_full);
}

TEST(Shard, posting__waits_while_completions_are_not_taken) {
  Pair pair({}, {}, 50_us, {}, {.max_completions = 4});
  const auto [c, s] = pair.connect();
  std::byte byte{};
  for (int i = 0; i < 8; ++i) ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
  pair.client().keep_completions = true;
  for (int i = 0; i < 6; ++i) ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  pair.run_for(100_ms);
  EXPECT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::queue_full);
  EXPECT_EQ(pair.c().receive(c, {&byte, 1}, 0), PostResult::queue_full);
  std::array<Completion, 3> some;
  EXPECT_EQ(pair.c().take_completions(some), 3u);
  EXPECT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  pair.client().keep_completions = false;
  pair.run_for(100_ms);
  EXPECT_EQ(pair.client().count(Kind::sent), 4u);
}

TEST_F(ShardConnected, posting__checks_its_arguments) {
  EXPECT_EQ(pair.c().send(c, {static_cast<std::byte*>(nullptr), 1}, 0), PostResult::invalid);
  EXPECT_EQ(pair.c().send_virtual(c, 1, 0), PostResult::invalid) << "this datapath has no virtual payloads";
  EXPECT_EQ(pair.s().receive(s, {static_cast<std::byte*>(nullptr), 1}, 0), PostResult::invalid);
  // send() does not read the bytes, because the length is already invalid.
  EXPECT_EQ(pair.c().send(c, {&byte, wire::kMaxMessageBytes + 1}, 0), PostResult::too_long);
}

TEST_F(ShardConnected, take_completions__in_order_and_in_parts) {
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(pair.s().receive(s, {&byte, 1}, i), PostResult::ok);
  pair.server().keep_completions = true;
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(pair.c().send(c, {&byte, 1}, i), PostResult::ok);
  pair.run_for(10_ms);
  std::array<Completion, 3> out;
  EXPECT_EQ(pair.s().take_completions(std::span(out).first(0)), 0u);
  std::uint64_t next = 0;
  while (const std::size_t count = pair.s().take_completions(out))
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(out[i].tag, next++);
  EXPECT_EQ(next, 10u);
}

TEST_F(ShardConnected, counters__of_packets_without_a_connection) {
  const Address client = pair.client().address;
  const auto arrive = [&](ByteVector bytes, const Address& source) {
    pair.inject(pair.server(), source, std::move(bytes));
    pair.run_for(1_ms);
  };
  const ShardStats before = pair.s().stats();
  arrive(random_bytes(31), client);
  EXPECT_EQ(pair.s().stats().truncated_packets, before.truncated_packets + 1);
  arrive({}, client);
  EXPECT_EQ(pair.s().stats().truncated_packets, before.truncated_packets + 2);
  arrive(ByteVector(100, std::byte{7}), client);
  EXPECT_EQ(pair.s().stats().foreign_packets, before.foreign_packets + 1);
  auto ping = forge(header_for(s, 1000), [](wire::Writer& w) { w.ping(); });
  auto damaged = ping;
  damaged[20] ^= std::byte{1};
  arrive(damaged, client);
  EXPECT_EQ(pair.s().stats().corrupted_packets, before.corrupted_packets + 1);
  arrive(ping, Address::v4(0x0A0000FF, 4793));
  EXPECT_EQ(pair.s().stats().unknown_connection, before.unknown_connection + 1) << "right id, wrong address";
  arrive(forge(header_for(s + 1, 0), [](wire::Writer& w) { w.ping(); }), client);
  EXPECT_EQ(pair.s().stats().unknown_connection, before.unknown_connection + 2);
  arrive(forge(header_for(0, 0), [](wire::Writer& w) { w.ping(); }), client);
  EXPECT_EQ(pair.s().stats().malformed_packets, before.malformed_packets + 1) << "no connection, and no CONNECT";
  EXPECT_EQ(pair.s().stats().packets_received, before.packets_received + 7);
  // None of these packets has affected the connection.
  EXPECT_TRUE(pair.s().exists(s));
  EXPECT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
  EXPECT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  EXPECT_TRUE(pair.transfer(1, 1));
}

TEST(Shard, full_datapath__everything_goes_out_later_in_order) {
  Pair pair({}, {}, 50_us, {.burst = 4});
  const auto [c, s] = pair.connect();
  const auto message = random_bytes(200'000);
  ByteVector buffer(message.size());
  ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  pair.run_for(1_ms);
  pair.client().free_places = 0;
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  // The datapath accepts at most three packets per call, and sometimes none.
  Random random(1);
  for (int i = 0; i < 2000 && pair.server().count(Kind::received) == 0; ++i) {
    pair.client().free_places = random.below(4);
    pair.wake(pair.client());
    pair.run_for(20_us);
  }
  pair.client().free_places = ~std::size_t{0};
  pair.run_for(1_s);
  EXPECT_EQ(pair.client().count(Kind::sent), 1u);
  ASSERT_EQ(pair.server().count(Kind::received), 1u);
  EXPECT_EQ(buffer, message);
  std::uint64_t next = 0;
  for (const Parsed& packet : pair.log) {
    if (packet.from != 0 || packet.header.connection == 0) continue;
    EXPECT_GT(packet.header.packet_number, next);
    next = packet.header.packet_number;
  }
}

TEST_F(ShardConnected, full_datapath__is_not_asked_for_ever) {
  pair.client().free_places = 0;
  pair.client().send_calls = 0;
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
  pair.run_for(1_s);  // one second is long enough for timers to expire
  EXPECT_LT(pair.client().send_calls, 100u);
  pair.client().free_places = ~std::size_t{0};
  EXPECT_TRUE(pair.transfer(1, 1));
}

TEST(Shard, bursts__several_packets_per_call) {
  Pair pair({}, {}, 50_us, {.burst = 32});
  const auto [c, s] = pair.connect();
  const auto message = random_bytes(1'000'000);
  ByteVector buffer(message.size());
  ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  pair.client().send_calls = 0;
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_LT(pair.client().send_calls, pair.c().stats(c)->packets_sent);
  EXPECT_EQ(buffer, message);
}

TEST(Shard, jobs__as_many_as_configured) {
  TestNetwork network;
  TestHost& host = network.add({.max_jobs = 2});
  const JobId a = host.shard->add_job({});
  const JobId b = host.shard->add_job({});
  EXPECT_NE(a, b);
  EXPECT_THROW(host.shard->add_job({}), RunError);
  EXPECT_TRUE(host.shard->remove_job(a));
  EXPECT_FALSE(host.shard->remove_job(a));
  EXPECT_NO_THROW(host.shard->add_job({}));
}

TEST(Shard, prefetch__is_a_hint_for_any_id_and_changes_nothing) {
  // Runs the same exchange with and without prefetch. One of the connections has ended. All packets must be the same in
  // both runs.
  std::vector<std::vector<std::size_t>> sizes;
  for (const bool prefetch : {true, false}) {
    Pair pair({}, {}, TestNetwork::kDefaultDelay, {}, {.prefetch = prefetch});
    std::vector<ConnectionId> ids;
    std::byte byte{};
    for (int i = 0; i < 5; ++i) {
      const auto [c, s] = pair.connect();
      ids.push_back(c);
      ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
    }
    pair.c().abort(ids[2], pair.now());
    pair.run_for(1_s);
    const ConnectionId ended = ids[2];
    ids.push_back(0);
    ids.push_back(~ConnectionId{0});
    pair.c().prefetch(ids);
    pair.c().prefetch({});
    pair.log.clear();
    for (const ConnectionId id : ids)
      EXPECT_EQ(pair.c().send(id, {&byte, 1}, 0) == PostResult::ok, pair.c().exists(id)) << (id == ended);
    // Sends packets for connections that do not exist, in one burst with valid packets.
    for (const ConnectionId id : {ended, ~ConnectionId{0}, ConnectionId{0}})
      pair.inject(pair.server(), pair.client().address, forge(header_for(id), [](wire::Writer& w) { w.ping(); }));
    pair.run_for(100_ms);
    const auto received = pair.server().of(Kind::received);
    EXPECT_EQ(std::count_if(received.begin(), received.end(), [](const auto& c) { return c.status == Status::ok; }), 4);
    auto& of_this = sizes.emplace_back();
    for (const Parsed& packet : pair.log) of_this.push_back(packet.size);
  }
  EXPECT_EQ(sizes[0], sizes[1]);
  EXPECT_FALSE(sizes[0].empty());
}

}  // namespace
}  // namespace mltcp::shard_test
