// Seeded fuzzing of a shard in virtual time: open connections receive random bytes, damaged packets with corrected
// checksums, and hostile frames. The tests require that no invalid read or write happens (with sanitizers), that
// counters add up, that time advances, and that a connection works until a valid packet ends it. Also fuzzes code below
// the shard: the readers of headers, and address resolution.
#include <gtest/gtest.h>

#include <cstring>

#include "../transport/test_network.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/ethernet/neighbours.h"
#include "seal.h"
#include "seal_discovery.h"

namespace mltcp {
namespace {

using namespace testing_network;
using fuzz::seal;
using fuzz::seal_discovery;

/// Produces random packets, damaged packets and hostile frames.
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

  /// Writes a frame that no honest peer would send, at least not at this time.
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
        // An acknowledgement of a packet that was never sent ends the connection.
        std::uint64_t last = random.chance(0.02) ? number() : random.below(60);
        for (std::uint32_t i = 0; i < ack.range_count; ++i) {
          const std::uint64_t length = std::min(last, random.below(20));
          ack.ranges[i] = {last - length, last};
          last = last - length >= 2 ? last - length - 2 : 0;
        }
        ack.delay_ns = static_cast<std::uint32_t>(random.next());
        ack.ecn = {static_cast<std::uint32_t>(number()), static_cast<std::uint32_t>(random.below(2)),
                   static_cast<std::uint32_t>(number()), static_cast<std::uint32_t>(number())};
        ack.marks = random.chance(0.5) ? random.next() : 0;
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
                   .lowest = static_cast<std::uint8_t>(random.below(5)),
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

/// Two connected hosts whose connections always have data to send.
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
    // The buffer has no spare bytes, so that a sanitizer detects a write beyond its end.
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
  /// If fuzzing has ended the connection, opens a new one.
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
  /// Fuzzed packets with the right tag count as protocol violations. After a violation, a host opens no connection to
  /// or from the address of the other host for up to 256 s.
  void wait_while_held_off() {
    const std::uint64_t now = pair.c().stats().violations + pair.s().stats().violations;
    if (std::exchange(violations_, now) != now) pair.run_for(257_s);
  }
  /// Expects that a new connection between the two hosts transfers a message.
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
    // Packets as honest peers would send them to either side.
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
  // Nobody answers on the accepted connections, so the shard gives them up. After that, the shard has no timer pending.
  pair.run_for(100_s);
  EXPECT_EQ(pair.server().count(Completion::Kind::accepted), pair.server().count(Completion::Kind::closed));
  EXPECT_TRUE(pair.s().poll(pair.now()).is_never());
  const auto [c, s] = pair.connect();
  EXPECT_NE(s, 0u);
}

/// Returns the configuration of host `number` on an Ethernet segment.
NeighbourConfig end_config(bool ipv4, std::uint8_t number, std::uint16_t vlan) {
  Address own = Address::v4(0x0A000000U + number, 0);
  if (!ipv4) own.ip = {0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number};
  return {
      .mac = {2, 0, 0, 0, 0, number}, .own = own, .prefix_bits = 24, .gateway = {}, .vlan = vlan, .max_entries = 64};
}

std::vector<ByteVector> honest_frames(bool ipv4, std::uint16_t vlan) {
  std::vector<ByteVector> frames;
  Neighbours a(end_config(ipv4, 1, vlan));
  Neighbours b(end_config(ipv4, 2, vlan));
  const auto exchange = [&frames](Neighbours& from, Neighbours& to) {
    ByteVector out(Neighbours::kLongestFrame);
    const std::size_t size = from.frame(out, 0_s);
    out.resize(size);
    (void)to.receive(out, 0_s);
    frames.push_back(out);
  };
  (void)b.find(end_config(ipv4, 1, vlan).own, 0_s);
  exchange(b, a);
  exchange(a, b);
  (void)a.find(end_config(ipv4, 2, vlan).own, 0_s);
  exchange(a, b);
  exchange(b, a);
  b.announce();
  exchange(b, a);
  encap::Headers headers;
  headers.source = end_config(ipv4, 2, vlan).own;
  headers.destination = end_config(ipv4, 1, vlan).own;
  headers.vlan = vlan;
  ByteVector data(encap::header_bytes(headers.destination, vlan) + 40, std::byte{3});
  const std::size_t before = data.size() - 40;
  encap::write_headers(headers, 40, encap::sum(data.data() + before, 40), data.data());
  frames.push_back(data);
  return frames;
}

TEST(Fuzz, frames__reach_address_resolution_and_the_parser_of_headers) {
  std::uint64_t accepted = 0;
  std::uint64_t taken = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Fuzzer fuzzer(seed);
    const bool ipv4 = seed % 2 == 0;
    const auto vlan = static_cast<std::uint16_t>(seed % 4 < 2 ? 5 : 0);
    std::vector<ByteVector> corpus = honest_frames(ipv4, vlan);
    for (auto& frame : honest_frames(!ipv4, vlan)) corpus.push_back(frame);
    Neighbours end(end_config(ipv4, 1, vlan));
    Nanos now{};
    std::uint64_t asked = 0;
    for (int i = 0; i < 20'000; ++i) {
      now += Nanos(static_cast<std::int64_t>(fuzzer.random.below(200'000'000)));
      if (fuzzer.random.chance(0.3)) {
        Address address = end_config(ipv4, static_cast<std::uint8_t>(fuzzer.random.below(256)), vlan).own;
        if (fuzzer.random.chance(0.1)) address.ip[fuzzer.random.below(16)] ^= 1;
        asked += static_cast<std::uint64_t>(end.find(address, now).state == Neighbours::State::asked);
      }
      auto frame = fuzzer.random.chance(0.1) ? fuzzer.random_packet()
                                             : fuzzer.mutated(corpus[fuzzer.random.below(corpus.size())]);
      if (fuzzer.random.chance(0.5)) seal_discovery(frame);
      const ByteVector exact(frame);  // no spare bytes, so that a sanitizer detects reads beyond the frame
      taken += static_cast<std::uint64_t>(end.receive(exact, now));
      encap::Frame parsed;
      const auto verify = fuzzer.random.chance(0.5) ? encap::VerifyUdp::yes : encap::VerifyUdp::no;
      const auto verify_ip = fuzzer.random.chance(0.5) ? encap::VerifyIp::yes : encap::VerifyIp::no;
      const encap::Reject whole = encap::parse(exact, verify, parsed, verify_ip);
      if (whole == encap::Reject::none) {
        ++accepted;
        ASSERT_GE(parsed.payload.data(), exact.data() + encap::kIpv4OverheadBytes);
        ASSERT_LE(parsed.payload.data() + parsed.payload.size(), exact.data() + exact.size());
        (void)encap::mark_congestion(frame);
      }
      // If only a first piece of the frame is available, its headers must read as in the whole frame.
      const ByteVector first(exact.begin(),
                             exact.begin() + static_cast<std::ptrdiff_t>(fuzzer.random.below(exact.size() + 1)));
      encap::Layout layout;
      if (encap::parse_headers(first, exact.size(), layout, verify_ip) == encap::Reject::none) {
        ASSERT_LE(layout.payload_offset, first.size());
        ASSERT_LE(layout.payload_offset + layout.payload_bytes, exact.size());
        const bool holds = encap::udp_checksum_holds(
            first, layout, encap::sum(exact.data() + layout.payload_offset, layout.payload_bytes));
        ASSERT_EQ(whole == encap::Reject::none, verify == encap::VerifyUdp::no || holds);
      }
      // The host under test must send well-formed frames. A second Neighbours object checks this: it must accept them.
      ByteVector out(Neighbours::kLongestFrame);
      for (int frames = 0;; ++frames) {
        const std::size_t size = end.frame(out, now);
        if (size == 0) break;
        ASSERT_LE(size, out.size());
        ASSERT_LT(frames, 200);
        Neighbours other(end_config(ipv4, 9, vlan));
        ASSERT_TRUE(other.receive(std::span(out).first(size), now));
        ASSERT_EQ(other.counters().malformed, 0u);
      }
      ASSERT_GT(end.deadline(), now);
    }
    const NeighbourCounters& counters = end.counters();
    EXPECT_GT(counters.malformed, 0u);
    EXPECT_GT(counters.answers, 0u);
    EXPECT_GT(counters.learnt, 0u);
    EXPECT_LE(counters.learnt, asked);
    // After all this input, the host under test must still find an honest neighbour.
    Neighbours neighbour(end_config(ipv4, 200, vlan));
    const Address address = end_config(ipv4, 200, vlan).own;
    now += 100_s;
    ByteVector out(Neighbours::kLongestFrame);
    while (end.frame(out, now) != 0) {
    }
    (void)end.find(address, now);
    for (int round = 0; round < 4; ++round) {
      for (auto [from, to] : {std::pair{&end, &neighbour}, std::pair{&neighbour, &end}}) {
        const std::size_t size = from->frame(out, now);
        if (size != 0) (void)to->receive(std::span(out).first(size), now);
      }
    }
    EXPECT_EQ(end.find(address, now).mac, end_config(ipv4, 200, vlan).mac);
  }
  EXPECT_GT(accepted, 1000u);
  EXPECT_GT(taken, 10'000u);
}

}  // namespace
}  // namespace mltcp
