// Seeded fuzzing of a shard in virtual time: random bytes, damaged packets with corrected checksums, and hostile frames
// reach live connections. Nothing may be read or written where it should not be (sanitizers), counters add up, time
// goes on, and connections that were not ended by a valid packet still work. Frames and address resolution, below it,
// are the targets "encapsulation" and "neighbours".
#include <gtest/gtest.h>

#include <cstring>

#include "../transport/test_network.h"
#include "seal.h"

namespace mltcp {
namespace {

using namespace testing_network;
using fuzz::seal;

/// A host of the test's own: it keeps what is sent to it, as material to damage.
class Fuzzer {
 public:
  explicit Fuzzer(std::uint64_t seed) : random(seed) {}

  ByteVector random_packet() { return random_bytes(random.below(200), random.next()); }

  ByteVector mutated(ByteVector packet) {
    const std::uint64_t changes = 1 + random.below(4);
    for (std::uint64_t i = 0; i < changes && !packet.empty(); ++i) {
      const std::size_t at = random.below(std::min<std::size_t>(packet.size(), random.chance(0.5) ? 100 : 2000));
      switch (random.below(6)) {
        case 0:
          packet[at] ^= static_cast<std::byte>(1U << random.below(8));
          break;
        case 1:
          packet[at] = static_cast<std::byte>(random.next());
          break;
        case 2:
          packet[at] = random.chance(0.5) ? std::byte{0xFF} : std::byte{0};
          break;
        case 3:
          packet.resize(random.below(packet.size() + 1));
          break;
        case 4:
          packet.insert(packet.begin() + static_cast<std::ptrdiff_t>(at), random.below(20), std::byte{7});
          break;
        case 5:
          if (packet.size() >= at + 4) {
            const auto value = static_cast<std::uint32_t>(random.next());
            std::memcpy(packet.data() + at, &value, 4);
          }
          break;
      }
    }
    return packet;
  }

  /// A frame that no honest peer would send, or not now.
  void hostile_frame(wire::Writer& w, bool may_end) {
    const auto number = [this]() -> std::uint64_t {
      switch (random.below(5)) {
        case 0:
          return random.below(40);
        case 1:
          return random.below(5000);
        case 2:
          return ~std::uint64_t{0} - random.below(3);
        case 3:
          return (std::uint64_t{1} << 32) - 2 + random.below(5);
        default:
          return random.next();
      }
    };
    switch (random.below(may_end ? 10 : 9)) {
      case 0: {
        wire::AckFrame ack{};
        ack.range_count = static_cast<std::uint32_t>(1 + random.below(5));
        // What was never sent ends the connection.
        std::uint64_t last = random.chance(0.02) ? number() : random.below(60);
        for (std::uint32_t i = 0; i < ack.range_count; ++i) {
          const std::uint64_t length = std::min(last, random.below(20));
          ack.ranges[i] = {last - length, last};
          last = last - length >= 2 ? last - length - 2 : 0;
        }
        ack.delay_ns = static_cast<std::uint32_t>(random.next());
        ack.ecn = {static_cast<std::uint32_t>(number()), static_cast<std::uint32_t>(random.below(2)),
                   static_cast<std::uint32_t>(number()), static_cast<std::uint32_t>(number())};
        w.ack(ack);
        break;
      }
      case 1:
      case 2: {
        const std::uint32_t length = static_cast<std::uint32_t>(random.below(100));
        w.data({.last = random.chance(0.3),
                .message = static_cast<std::uint32_t>(number()),
                .offset = static_cast<std::uint32_t>(number()),
                .length = length});
        const auto bytes = random_bytes(length, random.next());
        w.copy(bytes.data(), bytes.size());
        break;
      }
      case 3:
        w.credit({static_cast<std::uint32_t>(number()), number() % 2 == 0});
        break;
      case 4:
        w.ping();
        break;
      case 5:
        w.accept({.version = static_cast<std::uint8_t>(random.chance(0.7) ? wire::kProtocolVersion : random.next()),
                  .max_packet = static_cast<std::uint16_t>(random.chance(0.5) ? random.below(2000) : random.next()),
                  .source_connection = static_cast<std::uint32_t>(number()),
                  .credit = static_cast<std::uint32_t>(number())});
        break;
      case 6:
        w.connect({.version = static_cast<std::uint8_t>(random.below(5)),
                   .max_packet = static_cast<std::uint16_t>(random.chance(0.5) ? random.below(2000) : random.next()),
                   .source_connection = static_cast<std::uint32_t>(number()),
                   .credit = static_cast<std::uint32_t>(number()),
                   .tag = number(),
                   .least = static_cast<std::uint8_t>(random.below(5)),
                   .highest = static_cast<std::uint8_t>(random.below(5))});
        break;
      case 7:
        random.chance(0.5) ? w.retry(number()) : w.token(number());
        break;
      case 8:
        w.reset(static_cast<std::uint32_t>(number()));
        break;
      case 9:
        w.close(static_cast<wire::CloseReason>(random.below(7)));
        break;
    }
  }

  ByteVector hostile(ConnectionId connection, bool may_end) {
    wire::Header header = header_for(random.chance(0.95) ? connection : static_cast<ConnectionId>(random.below(4)),
                                     random.chance(0.9) ? 1'000'000 + random.below(1'000'000) : random.next(),
                                     static_cast<std::uint32_t>(random.chance(0.9) ? ~0U : random.next()));
    header.flags = static_cast<std::uint8_t>(random.next() &
                                             ~std::uint64_t{random.chance(0.9) ? (wire::sealed | wire::epoch) : 0U});
    header.job.job = static_cast<std::uint32_t>(random.next());
    const std::uint64_t frames = 1 + random.below(4);
    return forge(header, [&](wire::Writer& w) {
      for (std::uint64_t i = 0; i < frames; ++i) hostile_frame(w, may_end);
    });
  }

  Random random;
};

std::uint64_t counted(const ShardStats& stats) {
  return stats.rejected_packets() + stats.unknown_connection + stats.beyond_credit + stats.beyond_holes +
         stats.forged_packets + stats.forged_resets;
}

/// A pair whose connections are kept busy, and what crossed the wire lately.
class Target {
 public:
  explicit Target(std::uint64_t seed) : fuzzer(seed), message_(random_bytes(20'000, seed)) {
    pair.logging = false;
    ids = pair.connect();
    pair.client().on_completion = [this](const Completion& completion) { on_client(completion); };
    pair.server().on_completion = [this](const Completion& completion) { on_server(completion); };
    start();
  }

  void start() {
    for (int i = 0; i < 4; ++i) {
      post_receive();
      (void)pair.c().send(ids.first, std::span(message_).first(fuzzer.random.below(message_.size())), 0);
      (void)pair.s().send(ids.second, std::span(message_).first(fuzzer.random.below(3000)), 0);
      (void)pair.c().receive_virtual(ids.first, 3000, 0);
    }
  }
  void post_receive() {
    // Buffers of their exact size, of which nothing beyond may be written.
    buffers_.push_back(std::make_unique<ByteVector>(fuzzer.random.below(20'000)));
    if (pair.s().receive(ids.second, *buffers_.back(), 0) != PostResult::ok) buffers_.pop_back();
  }
  void on_client(const Completion& completion) {
    if (completion.status != Status::ok && completion.status != Status::truncated) return;
    if (completion.kind == Completion::Kind::sent)
      (void)pair.c().send(ids.first, std::span(message_).first(fuzzer.random.below(message_.size())), 0);
    if (completion.kind == Completion::Kind::received) (void)pair.c().receive_virtual(ids.first, 3000, 0);
  }
  void on_server(const Completion& completion) {
    if (completion.status != Status::ok && completion.status != Status::truncated) return;
    if (completion.kind == Completion::Kind::received) post_receive();
    if (completion.kind == Completion::Kind::sent)
      (void)pair.s().send(ids.second, std::span(message_).first(fuzzer.random.below(3000)), 0);
  }
  /// Opens a connection again if the last one was ended.
  void revive() {
    if (pair.c().exists(ids.first) && pair.s().exists(ids.second)) return;
    if (pair.c().exists(ids.first)) pair.c().abort(ids.first, pair.now());
    if (pair.s().exists(ids.second)) pair.s().abort(ids.second, pair.now());
    pair.run_for(100_ms);
    wait_while_held_off();
    pair.client().forget_completions();
    pair.server().forget_completions();
    buffers_.clear();
    ids = pair.connect();
    start();
  }
  /// Packets with the right tag make liars of both ends, whose addresses are held off then for up to 256 s.
  void wait_while_held_off() {
    const std::uint64_t now = pair.c().stats().violations + pair.s().stats().violations;
    if (std::exchange(violations_, now) != now) pair.run_for(257_s);
  }
  /// A new connection between the two transfers a message.
  void expect_clean_transfer() {
    pair.client().on_completion = nullptr;
    pair.server().on_completion = nullptr;
    wait_while_held_off();
    const auto [c, s] = pair.connect();
    ASSERT_NE(s, 0u);
    const auto message = random_bytes(100'000, 77);
    ByteVector buffer(message.size());
    ASSERT_EQ(pair.s().receive(s, buffer, 4711), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, message, 4711), PostResult::ok);
    ASSERT_TRUE(pair.run(
        [&, server = s] {
          return !pair.server().completions.empty() && pair.server().completions.back().connection == server &&
                 pair.server().completions.back().kind == Completion::Kind::received;
        },
        pair.now() + 10_s));
    EXPECT_EQ(buffer, message);
  }

  Pair pair;
  Fuzzer fuzzer;
  std::pair<ConnectionId, ConnectionId> ids;

 private:
  ByteVector message_;
  std::vector<std::unique_ptr<ByteVector>> buffers_;
  std::uint64_t violations_ = 0;
};

TEST(Fuzz, random_bytes__are_counted_and_change_nothing) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Target target(seed);
    const ShardStats before = target.pair.s().stats();
    std::uint64_t injected = 0;
    for (int i = 0; i < 15'000; ++i) {
      auto packet = target.fuzzer.random_packet();
      if (!packet.empty() && i % 2 == 0) packet[0] = std::byte{wire::magic};
      if (i % 4 == 0 && packet.size() > 3) packet[2] = static_cast<std::byte>(packet.size());
      if (i % 4 == 0 && packet.size() > 3) packet[3] = std::byte{0};
      target.pair.inject(target.pair.server(), target.pair.client().address, std::move(packet));
      ++injected;
      if (i % 16 == 0) target.pair.run_for(20_us);
    }
    target.pair.run_for(10_ms);
    EXPECT_EQ(counted(target.pair.s().stats()) - counted(before), injected);
    EXPECT_TRUE(target.pair.c().exists(target.ids.first));
    EXPECT_TRUE(target.pair.s().exists(target.ids.second));
    target.expect_clean_transfer();
  }
}

TEST(Fuzz, damaged_packets__with_right_checksums_do_no_harm) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Target target(seed);
    // What honest packets look like, for both sides.
    std::vector<ByteVector> corpus;
    for (const ConnectionId id : {target.ids.first, target.ids.second}) {
      const auto data = random_bytes(300, seed);
      corpus.push_back(forge(header_for(id, 50, 50), [&](wire::Writer& w) {
        wire::AckFrame ack{};
        ack.range_count = 2;
        ack.ranges[0] = {5, 9};
        ack.ranges[1] = {0, 2};
        w.ack(ack);
        w.credit({.messages = 12});
        w.data({.last = true, .message = 3, .offset = 0, .length = 20});
        w.copy(data.data(), 20);
        w.data({.last = false, .message = 4, .offset = 100, .length = 280});
        w.copy(data.data(), 280);
      }));
      corpus.push_back(forge(header_for(id, 51, 51), [](wire::Writer& w) { w.ping(); }));
      corpus.push_back(forge(header_for(0), [&](wire::Writer& w) {
        w.connect({.max_packet = 1472, .source_connection = 99, .credit = 6, .tag = seed});
      }));
      corpus.push_back(forge(header_for(id, 3), [](wire::Writer& w) {
        w.accept({.max_packet = 1472, .source_connection = 5, .credit = 6});
      }));
    }
    for (int i = 0; i < 10'000; ++i) {
      auto packet = target.fuzzer.mutated(corpus[target.fuzzer.random.below(corpus.size())]);
      if (target.fuzzer.random.chance(0.95)) seal(packet);
      if (target.fuzzer.random.chance(0.5))
        target.pair.inject(target.pair.server(), target.pair.client().address, std::move(packet));
      else
        target.pair.inject(target.pair.client(), target.pair.server().address, std::move(packet));
      if (i % 16 == 0) target.pair.run_for(20_us);
      if (i % 512 == 0) target.revive();
    }
    target.pair.run_for(10_ms);
    target.expect_clean_transfer();
  }
}

TEST(Fuzz, hostile_frames__hit_only_their_connection) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Target target(seed);
    Pair& pair = target.pair;
    for (int i = 0; i < 10'000; ++i) {
      const bool to_server = target.fuzzer.random.chance(0.5);
      auto packet = target.fuzzer.hostile(to_server ? target.ids.second : target.ids.first, seed % 2 == 0);
      const auto virtual_bytes = static_cast<std::uint32_t>(target.fuzzer.random.chance(0.02) ? 1000 : 0);
      if (to_server)
        pair.inject(pair.server(), pair.client().address, std::move(packet), virtual_bytes,
                    static_cast<Ecn>(target.fuzzer.random.below(4)));
      else
        pair.inject(pair.client(), pair.server().address, std::move(packet), virtual_bytes,
                    static_cast<Ecn>(target.fuzzer.random.below(4)));
      if (i % 16 == 0) pair.run_for(20_us);
      if (i % 1024 == 0) target.revive();
    }
    pair.run_for(10_ms);
    target.expect_clean_transfer();
  }
}

TEST(Fuzz, hostile_answers__to_a_connecting_client) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Fuzzer fuzzer(seed);
    Pair pair;
    pair.logging = false;
    pair.server().dead = true;
    const auto message = random_bytes(5000);
    const ConnectionId c = pair.c().connect(pair.server().address, {}, pair.now());
    for (int i = 0; i < 30; ++i) {
      ASSERT_EQ(pair.c().send(c, std::span(message).first(fuzzer.random.below(message.size())), 0), PostResult::ok);
      ASSERT_EQ(pair.c().receive_virtual(c, 100, 0), PostResult::ok);
    }
    pair.run_for(10_us);
    for (int i = 0; i < 100; ++i) {
      wire::Header header = header_for(c, fuzzer.random.below(300), 1000);
      pair.inject(pair.client(), pair.server().address, forge(header, [&](wire::Writer& w) {
                    for (std::uint64_t k = fuzzer.random.below(4); k-- > 0;) fuzzer.hostile_frame(w, i > 50);
                  }));
      pair.run_for(Nanos(static_cast<std::int64_t>(fuzzer.random.below(3'000'000))));
    }
    pair.run_for(100_s);
    EXPECT_LE(pair.client().count(Completion::Kind::connected), 1u);
    EXPECT_LE(pair.client().count(Completion::Kind::closed), 1u);
  }
}

TEST(Fuzz, connect_flood__fills_the_table_and_no_more) {
  Fuzzer fuzzer(1);
  Pair pair({}, {}, 50_us, {}, {.max_connections = 64});
  pair.logging = false;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    pair.inject(pair.server(), Address::v4(static_cast<std::uint32_t>(fuzzer.random.below(50)), 9),
                forge(header_for(0, fuzzer.random.below(3)), [&](wire::Writer& w) {
                  w.connect({.max_packet = 1472,
                             .source_connection = static_cast<std::uint32_t>(fuzzer.random.below(10)),
                             .credit = 5,
                             .tag = fuzzer.random.below(2)});
                }));
    if (i % 64 == 0) pair.run_for(1_ms);
  }
  EXPECT_LE(pair.server().count(Completion::Kind::accepted) - pair.server().count(Completion::Kind::closed), 64u);
  // All of them are given up, as nobody answers, and then the shard is as new.
  pair.run_for(100_s);
  EXPECT_EQ(pair.server().count(Completion::Kind::accepted), pair.server().count(Completion::Kind::closed));
  EXPECT_TRUE(pair.s().poll(pair.now()).is_never());
  const auto [c, s] = pair.connect();
  EXPECT_NE(s, 0u);
}

}  // namespace
}  // namespace mltcp
