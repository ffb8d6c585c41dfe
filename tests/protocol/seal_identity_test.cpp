// Tests identities in sealed connections: which CONNECT a host accepts, which connections a CONNECT may end, which
// hosts share a key, and the cost of attempts without the key.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "../transport/test_network.h"
#include "mltcp/base/error.h"
#include "mltcp/base/system_random.h"
#include "mltcp/transport/security/packet_key.h"

namespace mltcp::seal_identity_test {
namespace {

using namespace testing_network;
using security::JobKey;
using security::packet_key;
using security::Protection;
using Key = std::shared_ptr<const PacketKey>;

/// State of a MannerKey, which wraps another key, counts CONNECTs and lets seals fail.
struct Manner {
  int throws = 0;           ///< number of seals that fail next
  int greetings_tried = 0;  ///< number of CONNECTs that were checked with the key
};

class MannerEngine final : public SealEngine {
 public:
  MannerEngine(const PacketKey& key, Manner& manner) : key_(key), inner_(key.make_engine()), manner_(manner) {}
  [[nodiscard]] bool was_copied(Nanos now) override { return inner_->was_copied(now); }
  [[nodiscard]] PacketSeal::Tag answer_of_restarted(const PacketKey& /*key*/, const PacketSeal::Tag& answered,
                                                    std::uint32_t connection) const override {
    return inner_->answer_of_restarted(key_, answered, connection);
  }
  [[nodiscard]] std::unique_ptr<PacketSeal> connect(const PacketKey& /*key*/, const EndRandom& client) override {
    fail_if_wanted();
    return inner_->connect(key_, client);
  }
  [[nodiscard]] std::unique_ptr<PacketSeal> accept(const PacketKey& /*key*/, const EndRandom& client,
                                                   const EndRandom& server) override {
    fail_if_wanted();
    return inner_->accept(key_, client, server);
  }
  [[nodiscard]] bool opens_greeting(const PacketKey& /*key*/, const EndRandom& client, const SealedPacket& packet,
                                    const PacketSeal::Tag& tag) override {
    ++manner_.greetings_tried;
    return inner_->opens_greeting(key_, client, packet, tag);
  }

 private:
  void fail_if_wanted() const {
    if (manner_.throws == 0) return;
    --manner_.throws;
    throw RunError("no seal can be made");
  }
  const PacketKey& key_;
  std::unique_ptr<SealEngine> inner_;
  Manner& manner_;
};

class MannerKey final : public PacketKey {
 public:
  MannerKey(Key inner, Manner& manner) : inner_(std::move(inner)), manner_(manner) {}
  [[nodiscard]] std::uint64_t id() const override { return inner_->id(); }
  [[nodiscard]] bool encrypts() const override { return inner_->encrypts(); }
  [[nodiscard]] std::unique_ptr<SealEngine> make_engine() const override {
    return std::make_unique<MannerEngine>(*inner_, manner_);
  }

 private:
  Key inner_;
  Manner& manner_;
};

/// The CONNECT or ACCEPT frame of a sealed packet, and the key frame after it. `connect.source_connection` is 0 if the
/// packet contains neither CONNECT nor ACCEPT.
struct Greeting {
  wire::ConnectFrame connect;
  wire::KeyFrame key;
};
Greeting greeting_in(std::span<const std::byte> bytes) {
  wire::Reader reader;
  reader.begin_opened(bytes.subspan(wire::kHeaderBytes), {}, 0);
  wire::Frame frame;
  Greeting found;
  if (!wire::is_sealed(bytes) || !reader.next(frame)) return found;
  if (frame.type != FrameType::connect && frame.type != FrameType::accept) return found;
  found.connect = frame.connect;
  if (reader.next(frame) && frame.type == FrameType::key) found.key = frame.key;
  return found;
}

/// Returns a CONNECT packet that a holder of `key` has sealed.
ByteVector sealed_connect(const Key& key, const wire::ConnectFrame& connect, unsigned random, std::uint64_t number) {
  const auto engine = key->make_engine();
  EndRandom client{};
  client[0] = static_cast<std::byte>(random);
  const auto seal = engine->connect(*key, client);
  ByteVector buffer(400);
  wire::Writer writer(buffer);
  writer.connect(connect);
  writer.key({seal->key_id(), seal->own()});
  wire::Header header = header_for(0, number);
  header.flags = wire::sealed | wire::clear;
  const std::span<std::byte> bytes = writer.finish_unsealed(header);
  const SealedPacket packet{
      number, false, true, wire::sealed_parts(bytes), {std::span<const std::byte>(bytes).subspan(wire::kHeaderBytes)}};
  const PacketSeal::Tag tag = seal->seal_greeting(packet);
  std::memcpy(bytes.data() + wire::kSealOffset, tag.data(), tag.size());
  return {bytes.begin(), bytes.end()};
}

TEST(SealIdentity, own_connect_that_comes_back__connects_no_end_with_itself) {
  const Key key = packet_key(JobKey::generate());
  TestNetwork network;
  TestHost& a = network.add();
  TestHost& b = network.add(ShardConfig{.seed = 2});
  b.dead = true;
  a.shard->listen(keyed({key}));
  // An attacker on the path sends the CONNECT back to its sender, with the peer's address as its source.
  network.raw = [&](std::size_t from, const ByteVector& bytes) {
    if (from == 0) network.inject_as_it_is(a, b.address, bytes);
  };
  a.shard->connect(b.address, keyed({key}), network.now());
  network.run_for(1_s);
  EXPECT_EQ(a.count(Kind::connected), 0u);
  EXPECT_EQ(a.count(Kind::accepted), 0u);
  EXPECT_GT(a.shard->stats().forged_packets, 0u);
  // The host answers none of the packets.
  EXPECT_EQ(a.shard->stats().retries_sent + a.shard->stats().refused_connects, 0u);
}

TEST(SealIdentity, shard_that_means_itself__is_connected_with_itself) {
  const Key key = packet_key(JobKey::generate());
  TestNetwork network;
  TestHost& a = network.add(ShardConfig{.own_address = Address::v4(0x0A000001, 4793)});
  ASSERT_EQ(a.address, Address::v4(0x0A000001, 4793));
  a.shard->listen(keyed({key}));
  const ConnectionId c = a.shard->connect(a.address, keyed({key}), network.now());
  network.run_for(100_ms);
  ASSERT_EQ(a.count(Kind::connected), 1u);
  ASSERT_EQ(a.count(Kind::accepted), 1u);
  const std::byte message{0x42};
  std::byte got{};
  EXPECT_EQ(a.shard->receive(a.of(Kind::accepted)[0].connection, {&got, 1}, 0), PostResult::ok);
  EXPECT_EQ(a.shard->send(c, {&message, 1}, 0), PostResult::ok);
  network.run_for(100_ms);
  EXPECT_EQ(got, message);
}

TEST(SealIdentity, connect_to_an_open_connection__counts_if_its_own_client_has_sealed_it) {
  const Key one = packet_key(JobKey::generate());
  const Key two = packet_key(JobKey::generate());
  Pair pair(keyed({one}), keyed({one, two}));
  wire::ConnectFrame connect;
  pair.raw = [&](std::size_t from, const ByteVector& bytes) {
    if (from == 0 && connect.source_connection == 0) connect = greeting_in(bytes).connect;
  };
  const auto [c, s] = pair.connect();
  ASSERT_NE(connect.source_connection, 0u);
  const std::uint64_t before = pair.s().stats(s)->packets_received;
  // If the server accepted the high packet number of this CONNECT, it would treat all following packets of the client
  // as old.
  for (const Key& key : {two, one})
    pair.inject_as_it_is(pair.server(), pair.client().address, sealed_connect(key, connect, 7, 1U << 20));
  pair.run_for(10_ms);
  EXPECT_EQ(pair.s().stats().forged_packets, 2u);
  EXPECT_EQ(pair.s().stats(s)->packets_received, before);
  EXPECT_TRUE(pair.delivers(c, s, ByteVector(700, std::byte{0x5A})));
  EXPECT_EQ(pair.c().stats().forged_packets + pair.s().stats().replayed_packets, 0u);
}

TEST(SealIdentity, connect_that_was_lost_twice__is_repeated_by_its_client_and_answered) {
  const Key key = packet_key(JobKey::generate());
  Pair pair(keyed({key}), keyed({key}));
  int accepts = 0;
  pair.fate = [&](const Parsed& packet, Fate& fate) { fate.drop = packet.from == 1 && ++accepts <= 2; };
  const auto [c, s] = pair.connect();
  EXPECT_GT(accepts, 2);
  EXPECT_TRUE(pair.delivers(c, s, ByteVector(700, std::byte{0x5A})));
  EXPECT_EQ(pair.s().stats().forged_packets, 0u);
}

class Replacement : public ::testing::Test {
 protected:
  /// Sends an unsealed CONNECT with the address of `b`, in order to get a cookie or to use one.
  void ask_a(const std::optional<std::uint64_t>& cookie) {
    sent.clear();
    network.inject_as_it_is(a, b.address, forge(header_for(0), [&](wire::Writer& writer) {
                              writer.connect({.max_packet = 1472, .source_connection = s, .credit = 1, .tag = 99});
                              if (cookie) writer.token(*cookie);
                            }));
    network.run_for(1_ms);
  }
  [[nodiscard]] std::optional<std::uint64_t> cookie() const {
    for (const ByteVector& bytes : sent)
      if (!wire::is_sealed(bytes))
        if (const Parsed parsed = TestNetwork::parse(bytes, 0); parsed.has(FrameType::retry))
          return parsed.find(FrameType::retry)->cookie;
    return std::nullopt;
  }
  void open(const ConnectionConfig& config) {
    b.shard->listen(config);
    a.shard->listen({});
    c = a.shard->connect(b.address, config, network.now());
    network.run_for(100_ms);
    ASSERT_EQ(b.count(Kind::accepted), 1u);
    s = b.of(Kind::accepted)[0].connection;
    network.raw = [this](std::size_t from, const ByteVector& bytes) {
      if (from == 0) sent.push_back(bytes);
    };
  }
  TestNetwork network;
  TestHost& a = network.add();
  TestHost& b = network.add(ShardConfig{.seed = 2});
  ConnectionId c = 0;
  ConnectionId s = 0;
  std::vector<ByteVector> sent;
};

TEST_F(Replacement, sealed_connection__does_not_end_by_a_cookie_of_somebody_without_the_key) {
  open(keyed({packet_key(JobKey::generate())}));
  ask_a(std::nullopt);
  ASSERT_TRUE(cookie().has_value());
  ask_a(cookie());
  EXPECT_EQ(a.count(Kind::closed), 0u);
  EXPECT_EQ(a.count(Kind::accepted), 0u);
  EXPECT_EQ(a.shard->stats().forged_packets, 1u);
  const std::byte message{0x42};
  std::byte got{};
  EXPECT_EQ(b.shard->receive(s, {&got, 1}, 0), PostResult::ok);
  EXPECT_EQ(a.shard->send(c, {&message, 1}, 0), PostResult::ok);
  network.run_for(100_ms);
  EXPECT_EQ(got, message);
}

TEST_F(Replacement, connection_without_a_key__ends_by_a_cookie) {
  open({});
  ask_a(std::nullopt);
  ASSERT_TRUE(cookie().has_value());
  ask_a(cookie());
  EXPECT_EQ(a.count(Kind::accepted), 1u);
  ASSERT_EQ(a.count(Kind::closed), 2u);
  EXPECT_EQ(a.of(Kind::closed)[0].connection, c);
  EXPECT_NE(a.of(Kind::closed)[1].connection, c) << "the new one, too, of which the host at that address knows nothing";
}

TEST(SealIdentity, accept_under_the_id_of_another_connection__ends_that_if_it_has_its_key) {
  const Key key = packet_key(JobKey::generate());
  for (const bool has_key : {false, true}) {
    Pair pair(keyed({key}), keyed({key}));
    const auto [c, s] = pair.connect();
    pair.server().shard = std::make_unique<Shard>(pair.server(), ShardConfig{.seed = 1});
    pair.s().listen(has_key ? keyed({key}) : ConnectionConfig{});
    pair.c().connect(pair.server().address, has_key ? keyed({key}) : ConnectionConfig{}, pair.now());
    pair.run_for(10_ms);
    ASSERT_EQ(pair.client().count(Kind::connected), 2u);
    ASSERT_EQ(pair.server().of(Kind::accepted).back().connection, s) << "or the test shows nothing";
    EXPECT_EQ(pair.c().exists(c), !has_key);
  }
}

TEST(SealIdentity, ends_of_which_one_encrypts__have_no_key_in_common) {
  const JobKey job = JobKey::generate();
  for (const Protection clients : {Protection::authenticate, Protection::encrypt}) {
    const Protection servers = clients == Protection::encrypt ? Protection::authenticate : Protection::encrypt;
    const ConnectionConfig client = keyed({packet_key(job, clients)});
    Pair pair(client, keyed({packet_key(job, servers)}));
    static_cast<void>(pair.c().connect(pair.server().address, client, pair.now()));
    ASSERT_TRUE(pair.run([&] { return pair.client().count(Kind::closed) > 0; }, pair.now() + 10_s));
    EXPECT_EQ(pair.client().of(Kind::closed).front().status, Status::no_key);
    EXPECT_EQ(pair.server().count(Kind::accepted), 0u);
  }
}

TEST(SealIdentity, end_that_encrypts__takes_nothing_in_the_clear_but_greetings) {
  const JobKey job = JobKey::generate();
  for (const Protection protection : {Protection::encrypt, Protection::authenticate}) {
    const Key key = packet_key(job, protection);
    Pair pair(keyed({key}), keyed({key}));
    std::array<Greeting, 2> greetings;
    pair.raw = [&](std::size_t from, const ByteVector& bytes) {
      if (greetings[from].connect.source_connection == 0) greetings[from] = greeting_in(bytes);
    };
    const auto [c, s] = pair.connect();
    ASSERT_EQ(greetings[1].connect.source_connection, s);
    // Another holder of the key, who can derive the keys of the connection, sends a CLOSE.
    const auto engine = key->make_engine();
    const auto seal = engine->connect(*key, greetings[0].key.random);
    seal->meet(greetings[1].key.random);
    ByteVector buffer(200);
    wire::Writer writer(buffer);
    writer.close(wire::CloseReason::aborted);
    wire::Header header = header_for(s, 50);
    header.flags = wire::sealed | wire::clear;
    const std::span<std::byte> bytes = writer.finish_unsealed(header);
    const SealedPacket packet{
        50, false, true, wire::sealed_parts(bytes), {std::span<const std::byte>(bytes).subspan(wire::kHeaderBytes)}};
    const PacketSeal::Tag tag = seal->seal(packet, nullptr);
    std::memcpy(bytes.data() + wire::kSealOffset, tag.data(), tag.size());
    pair.inject_as_it_is(pair.server(), pair.client().address, {bytes.begin(), bytes.end()});
    pair.run_for(10_ms);
    const bool is_taken = protection == Protection::authenticate;
    EXPECT_EQ(pair.server().count(Kind::closed), is_taken ? 1u : 0u);
    EXPECT_EQ(pair.s().stats().forged_packets, is_taken ? 0u : 1u);
  }
}

TEST(SealIdentity, many_connects_that_no_key_opens__make_the_honest_bring_a_cookie_and_cost_little) {
  const Key key = packet_key(JobKey::generate());
  Manner manner;
  Pair pair(keyed({key}), keyed({std::make_shared<MannerKey>(key, manner)}));
  pair.logging = false;
  ByteVector forged = sealed_connect(key, {.max_packet = 1472, .source_connection = 5, .credit = 1, .tag = 6}, 7, 0);
  forged.back() ^= std::byte{1};
  constexpr int count = 2000;
  for (int i = 0; i < count; ++i) {
    pair.inject_as_it_is(pair.server(), Address::v4(0x0B000000 + static_cast<std::uint32_t>(i), 9), forged);
    if (i % 20 == 19) pair.run_for(1_ms);
  }
  // The server checks at most 2000 CONNECTs per second, and at most 200 at once.
  EXPECT_GT(manner.greetings_tried, 200);
  EXPECT_LT(manner.greetings_tried, 450);
  EXPECT_EQ(pair.s().stats().retries_sent, static_cast<std::uint64_t>(count - manner.greetings_tried));
  // The flood continues while an honest client connects.
  pair.raw = [&](std::size_t from, const ByteVector&) {
    for (int i = 0; from == 0 && i < 3; ++i)
      pair.inject_as_it_is(pair.server(), Address::v4(0x0B000000 + static_cast<std::uint32_t>(i), 9), forged);
  };
  const auto [c, s] = pair.connect();
  EXPECT_EQ(pair.s().stats().cookies_accepted, 1u);
  EXPECT_TRUE(pair.delivers(c, s, ByteVector(700, std::byte{0x5A})));
  pair.raw = nullptr;
  pair.run_for(200_ms);
  pair.connect();
  EXPECT_EQ(pair.s().stats().cookies_accepted, 1u) << "long after the attack, still";
}

TEST(SealIdentity, seal_that_can_not_be_made__takes_no_place) {
  const Key key = packet_key(JobKey::generate());
  Manner manner;
  const ConnectionConfig config = keyed({std::make_shared<MannerKey>(key, manner)});
  TestNetwork network;
  TestHost& a = network.add(ShardConfig{.max_connections = 1});
  TestHost& b = network.add(ShardConfig{.max_connections = 1, .seed = 2});
  b.shard->listen(config);
  manner.throws = 3;
  for (int i = 0; i < 3; ++i) EXPECT_THROW(a.shard->connect(b.address, config, network.now()), RunError);
  a.shard->connect(b.address, config, network.now());
  manner.throws = 1;
  EXPECT_THROW(network.run_for(10_ms), RunError);  // the seal of the accepting host fails
  network.run_for(5_s);
  EXPECT_EQ(a.count(Kind::connected), 1u);
  EXPECT_EQ(b.count(Kind::accepted), 1u);
}

TEST(SealIdentity, process_that_was_forked__says_random_bytes_of_its_own) {
  const Key key = packet_key(JobKey::generate());
  Pair pair(keyed({key}), keyed({key}));
  pair.connect();  // so that the shard has drawn random numbers before the fork
  ByteVector sent;
  pair.raw = [&](std::size_t from, const ByteVector& bytes) {
    if (from == 0 && greeting_in(bytes).connect.source_connection != 0) sent = bytes;
  };
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  static_cast<void>(pair.c().connect(pair.server().address, keyed({key}), pair.now()));
  pair.run_for(1_us);
  constexpr std::size_t size = wire::kHeaderBytes + wire::kConnectFrameBytes + wire::kKeyFrameBytes;
  constexpr std::size_t random_at = size - sizeof(EndRandom);  // position of the last field
  const bool is_whole = sent.size() == size;
  if (child == 0) {
    const bool wrote = is_whole && ::write(pipe[1], sent.data(), sent.size()) == static_cast<ssize_t>(sent.size());
    ::_exit(wrote ? 0 : 1);
  }
  ::close(pipe[1]);
  ByteVector of_child(sent.size());
  const ssize_t got = ::read(pipe[0], of_child.data(), of_child.size());
  ::close(pipe[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(is_whole);
  ASSERT_EQ(got, static_cast<ssize_t>(sent.size()));
  EXPECT_FALSE(std::equal(sent.begin() + random_at, sent.end(), of_child.begin() + random_at));
}

}  // namespace
}  // namespace mltcp::seal_identity_test
