// Tests attackers who have no key and use sealed packets of a key holder: they replay, delay or reorder these packets,
// or send them to another member of the job.
#include <gtest/gtest.h>

#include <vector>

#include "../transport/test_network.h"
#include "mltcp/transport/internal/received_packets.h"
#include "mltcp/transport/security/packet_key.h"

namespace mltcp::transport::seal_window_test {
namespace {

using namespace testing_network;
using security::JobKey;
using security::packet_key;
using Key = std::shared_ptr<const PacketKey>;

// ---- Numbers that were received ----

TEST(SealWindow, reordering__is_taken_for_no_replay) {
  const ConnectionConfig config = keyed({packet_key(JobKey::generate())});
  Pair pair(config, config, 5_ms);
  pair.rate = Rate(1'000'000'000);
  pair.logging = false;
  const auto [c, s] = pair.connect();
  // One packet in five is up to 5 ms late, and up to 400 other packets overtake it. None of them is a duplicate.
  std::uint64_t seed = 1;
  const auto draw = [&] {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>(seed >> 33);
  };
  pair.fate = [&](const Parsed&, Fate& fate) {
    if (draw() % 5 == 0) fate.extra_delay = Nanos(draw() % (5_ms).count);
  };
  const ByteVector message = random_bytes(1'000'000, 7);
  std::vector<ByteVector> buffers(20, ByteVector(message.size()));
  for (ByteVector& buffer : buffers) ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  for (std::size_t i = 0; i < buffers.size(); ++i) ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  EXPECT_TRUE(pair.transfer(buffers.size(), buffers.size()));
  for (const ByteVector& buffer : buffers) EXPECT_TRUE(buffer == message);
  EXPECT_EQ(pair.s().stats().replayed_packets, 0u);
  EXPECT_EQ(pair.c().stats().replayed_packets, 0u);
}

TEST(SealWindow, highest_number__is_known_though_more_than_a_thousand_late_packets_followed_it) {
  const ConnectionConfig config = keyed({packet_key(JobKey::generate())});
  Pair pair(config, config);
  pair.logging = false;
  enum class Phase { all_pass, held_back, one_passes, none_pass } phase = Phase::all_pass;
  constexpr std::size_t late = ReceivedPackets::kMaxBehindTop + 200;
  std::vector<ByteVector> held;
  ByteVector top;
  pair.raw = [&](std::size_t from, const ByteVector& bytes) {
    if (from != 0) return;
    if (phase == Phase::held_back) held.push_back(bytes);
    if (phase == Phase::one_passes) top = bytes;
  };
  pair.fate = [&](const Parsed& packet, Fate& fate) {
    if (packet.from != 0) return;
    fate.drop = phase == Phase::held_back || phase == Phase::none_pass;
    if (phase == Phase::held_back && held.size() == late)
      phase = Phase::one_passes;
    else if (phase == Phase::one_passes)
      phase = Phase::none_pass;
  };
  const auto [c, s] = pair.connect();
  const ByteVector message(8'000'000);
  ByteVector first(message.size());
  ByteVector second(message.size());
  ASSERT_EQ(pair.s().receive(s, first, 0), PostResult::ok);
  ASSERT_EQ(pair.s().receive(s, second, 0), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));  // this transfer increases the congestion window
  phase = Phase::held_back;
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  ASSERT_TRUE(pair.run([&] { return phase == Phase::none_pass && !top.empty(); }, pair.now() + 1_s));
  pair.run_for(100_us);  // until the packet with the highest number has arrived
  const std::uint64_t before = pair.s().stats(s)->packets_received;
  for (const ByteVector& bytes : held) pair.inject_as_it_is(pair.server(), pair.client().address, bytes);
  pair.run_for(1_us);
  EXPECT_EQ(pair.s().stats(s)->packets_received, before + held.size());
  EXPECT_EQ(pair.s().stats().replayed_packets, 0u);
  pair.inject_as_it_is(pair.server(), pair.client().address, top);
  pair.run_for(1_us);
  EXPECT_EQ(pair.s().stats(s)->packets_received, before + held.size());
  EXPECT_EQ(pair.s().stats().replayed_packets, 1u);
}

TEST(SealWindow, recorded_connect__keeps_no_connection_alive_and_draws_nothing) {
  const Key key = packet_key(JobKey::generate());
  Pair pair(keyed({key}), config_with([&](ConnectionConfig& config) {
              config.keys = {key};
              config.idle_limit = 1_s;
            }));
  ByteVector connect;
  std::uint64_t answers = 0;
  pair.raw = [&](std::size_t from, const ByteVector& bytes) {
    if (from == 0 && connect.empty()) connect = bytes;
    if (from == 1) ++answers;
  };
  pair.connect();
  pair.client().dead = true;
  answers = 0;
  for (int i = 0; i < 3; ++i) {
    pair.inject_as_it_is(pair.server(), pair.client().address, connect);
    pair.run_for(200_ms);
  }
  EXPECT_EQ(answers, 0u);
  EXPECT_EQ(pair.s().stats().replayed_packets, 3u);
  EXPECT_EQ(pair.server().count(Kind::closed), 0u);
  pair.inject_as_it_is(pair.server(), pair.client().address, connect);
  pair.run_for(500_ms);
  EXPECT_EQ(pair.server().count(Kind::closed), 1u);
}

TEST(SealWindow, connect_that_comes_again_for_want_of_an_answer__is_answered) {
  const Key key = packet_key(JobKey::generate());
  Pair pair(keyed({key}), keyed({key}));
  int lost = 0;
  pair.fate = [&](const Parsed& packet, Fate& fate) { fate.drop = packet.from == 1 && ++lost < 4; };
  pair.connect();
  EXPECT_EQ(pair.server().count(Kind::accepted), 1u);
  EXPECT_EQ(pair.s().stats().replayed_packets, 0u);
}

// ---- Keys ----

TEST(SealWindow, end_that_only_acknowledges__changes_its_keys_again_and_again) {
  const Key key = packet_key(JobKey::generate(), security::Protection::encrypt, 16);
  Pair pair(config_with([&](ConnectionConfig& config) {
              config.keys = {key};
              config.max_packets_in_flight = 16;  // so that only a few acknowledgements are sent per round trip
            }),
            keyed({key}));
  pair.logging = false;
  std::uint64_t sent = 0;
  std::uint64_t changes = 0;
  bool before = false;
  const auto [c, s] = pair.connect();
  pair.raw = [&](std::size_t from, const ByteVector& bytes) {
    if (from != 1) return;
    const bool epoch = (bytes[1] & std::byte{wire::epoch}) != std::byte{};
    changes += epoch != before ? 1 : 0;
    before = epoch;
    ++sent;
  };
  const ByteVector message(1'000'000);
  ByteVector buffer(message.size());
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1));
  }
  // An epoch may last a round trip too long, because the change of keys waits until PING is acknowledged.
  EXPECT_GT(sent, 1000u);
  EXPECT_GT(changes, sent / 48);
  EXPECT_EQ(pair.s().stats().forged_packets + pair.c().stats().forged_packets, 0u);
}

// ---- Peers that do not know the connection ----

/// Hosts A and B are connected. Host C has the same key, and answers any packet that the test relays to it.
class Job : public TestNetwork {
 public:
  Job() {
    b.shard->listen(keyed({key}));
    c.shard->listen(keyed({key}));
    raw = [this](std::size_t from, const ByteVector& bytes) { (from == 0 ? latest : answer) = bytes; };
    id = a.shard->connect(b.address, keyed({key}), now());
    EXPECT_TRUE(run([&] { return b.count(Kind::accepted) > 0 && a.count(Kind::connected) > 0; }, now() + 1_s));
    run_for(10_ms);
  }
  /// Sends A's latest packet to C, and C's answer to A.
  void relay() {
    answer.clear();
    inject_as_it_is(c, Address::v4(0x0B000001, 1), latest);
    poll(c);
    ASSERT_TRUE(wire::is_sealed(answer)) << "no answer";
    inject_as_it_is(a, b.address, answer);
  }
  void restart_b() {
    b.shard = std::make_unique<Shard>(b, ShardConfig{.seed = 99});
    b.shard->listen(keyed({key}));
  }
  bool exchange() {
    const ConnectionId peer = b.of(Kind::accepted).front().connection;
    const std::byte sent{7};
    std::byte received{};
    const std::size_t before = b.count(Kind::received);
    EXPECT_EQ(b.shard->receive(peer, {&received, 1}, 0), PostResult::ok);
    EXPECT_EQ(a.shard->send(id, {&sent, 1}, 0), PostResult::ok);
    return run([&] { return b.count(Kind::received) > before; }, now() + 2_s) && received == sent;
  }

  Key key = packet_key(JobKey::generate());
  TestHost& a = add({.seed = 1});
  TestHost& b = add({.seed = 2});
  TestHost& c = add({.seed = 3});
  ByteVector latest;  ///< latest packet of A
  ByteVector answer;  ///< latest packet of B or C
  ConnectionId id = 0;
};

TEST(SealWindow, reset_of_another_member__ends_nothing_while_the_peer_answers) {
  Job job;
  for (int i = 0; i < 200; ++i) {
    job.relay();
    job.run_for(10_ms);
  }
  EXPECT_EQ(job.a.count(Kind::closed), 0u);
  EXPECT_EQ(job.a.shard->stats().resets_taken, 0u);
  EXPECT_EQ(job.a.shard->stats().forged_resets, 200u);
  EXPECT_TRUE(job.exchange());
}

TEST(SealWindow, reset_of_another_member__survives_the_loss_of_a_question_and_of_an_answer) {
  for (const bool after_an_outage : {false, true}) {
    Job job;
    const ConnectionId peer = job.b.of(Kind::accepted).front().connection;
    ByteVector message(100);
    ASSERT_EQ(job.b.shard->receive(peer, message, 0), PostResult::ok);
    job.run_for(10_ms);
    bool cut = after_an_outage;
    int of_a = 0;
    int of_b = 0;
    job.fate = [&](const Parsed& packet, Fate& fate) {
      fate.drop = (packet.from == 0 && (cut || ++of_a == 1)) || (packet.from == 1 && ++of_b == 1);
    };
    if (cut) {  // after this, probe timeouts are so long that none occurs during the test
      ASSERT_EQ(job.a.shard->send(job.id, message, 0), PostResult::ok);
      job.run_for(1500_ms);
      cut = false;
    }
    job.relay();
    job.run_for(5_s);
    EXPECT_EQ(job.a.count(Kind::closed), 0u) << after_an_outage;
    EXPECT_EQ(job.a.shard->stats().forged_resets, 1u);
    EXPECT_EQ(job.a.count(Kind::sent), after_an_outage ? 1u : 0u);
  }
}

TEST(SealWindow, reset__is_accepted_when_the_peer_sends_nothing) {
  Job job;
  job.b.dead = true;
  job.relay();
  job.run_for(250_ms);
  EXPECT_EQ(job.a.count(Kind::closed), 0u);
  job.run_for(100_ms);
  EXPECT_EQ(job.a.statuses(Kind::closed), Statuses{Status::unreachable});
  EXPECT_EQ(job.a.shard->stats().resets_taken, 1u);
}

TEST(SealWindow, reset_of_a_restarted_peer__is_accepted_soon) {
  Job job;
  job.restart_b();
  const ByteVector message(100);
  const Nanos began = job.now();
  ASSERT_EQ(job.a.shard->send(job.id, message, 0), PostResult::ok);
  ASSERT_TRUE(job.run([&] { return job.a.count(Kind::closed) > 0; }, job.now() + 10_s));
  EXPECT_EQ(job.a.of(Kind::closed).front().status, Status::unreachable);
  EXPECT_EQ(job.a.shard->stats().resets_taken, 1u);
  // A has no credit, and asks for it after at most a second.
  EXPECT_LT((job.now() - began).count, (1400_ms).count);
}

TEST(SealWindow, resets_without_the_key__hide_that_of_a_restarted_peer_for_a_moment_only) {
  Job job;
  job.restart_b();
  const ByteVector message(100);
  ASSERT_EQ(job.a.shard->send(job.id, message, 0), PostResult::ok);
  job.relay();
  ByteVector forged = job.answer;  // a valid answer to an older packet; the next line makes its seal wrong
  forged[wire::kSealOffset] ^= std::byte{1};
  for (int burst = 0; burst < 30; ++burst) {
    for (int i = 0; i < 500; ++i) job.inject_as_it_is(job.a, job.b.address, forged);
    job.run_for(100_ms);
  }
  EXPECT_GE(job.a.shard->stats().forged_resets, 10'000u);
  EXPECT_TRUE(job.run([&] { return job.a.count(Kind::closed) > 0; }, job.now() + 3_s));
  EXPECT_EQ(job.a.of(Kind::closed).front().status, Status::unreachable);
}

TEST(SealWindow, recorded_connect_with_its_cookie__opens_nothing_a_second_time) {
  const Key key = packet_key(JobKey::generate());
  Pair pair(keyed({key}), keyed({key}), TestNetwork::kDefaultDelay, {}, {.max_half_open = 0, .seed = 1});
  std::vector<ByteVector> connects;
  pair.raw = [&](std::size_t from, const ByteVector& bytes) {
    if (from == 0 && wire::peek_connection(bytes) == 0) connects.push_back(bytes);
  };
  const auto replay = [&] {
    for (const ByteVector& connect : connects) pair.inject_as_it_is(pair.server(), pair.client().address, connect);
    pair.run_for(1_ms);
    EXPECT_EQ(pair.server().count(Kind::accepted), 1u);
  };
  const auto [c, s] = pair.connect();
  ASSERT_EQ(connects.size(), 2u) << "without and with the cookie";
  replay();
  EXPECT_TRUE(pair.c().abort(c, pair.now()));
  pair.run_for(1_s);
  ASSERT_EQ(pair.s().stats().connections, 0u);
  replay();
  EXPECT_EQ(pair.s().stats().connections, 0u);
  pair.run_for(9_s);
  replay();
}

TEST(SealWindow, restarted_peer__leaves_a_close_that_is_orderly) {
  Job job;
  job.restart_b();
  EXPECT_TRUE(job.a.shard->close(job.id));
  ASSERT_TRUE(job.run([&] { return job.a.count(Kind::closed) > 0; }, job.now() + 1_s));
  EXPECT_EQ(job.a.of(Kind::closed).front().status, Status::ok);
}

TEST(SealWindow, reset_after_abort__does_not_keep_the_peer_from_being_told) {
  Job job;
  job.relay();
  EXPECT_TRUE(job.a.shard->abort(job.id, job.now()));
  job.run_for(1_s);  // the host reads RESET before it sends CLOSE
  EXPECT_EQ(job.b.statuses(Kind::closed), Statuses{Status::aborted});
}

}  // namespace
}  // namespace mltcp::transport::seal_window_test
