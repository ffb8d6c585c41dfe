// Tests paths that drop packets because of their length (RFC 8899 section 4.3). A connection must continue with shorter
// packets, find the longest length that the path carries, and return to the agreed length when the path carries this
// length again. Other losses must not count as a black hole.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "../transport/test_network.h"
#include "lone_connection.h"
#include "mltcp/base/random.h"
#include "mltcp/cc/registry.h"
#include "mltcp/transport/internal/path_mtu.h"
#include "mltcp/transport/security/packet_key.h"

namespace mltcp::transport::black_hole_test {
namespace {

using namespace testing_network;

constexpr std::size_t kAnyLength = ~std::size_t{0};

/// A pair whose network carries UDP payloads up to a given length in each direction, and loses some packets at random.
class NarrowPair : public Pair {
 public:
  explicit NarrowPair(const ConnectionConfig& config = {}, const PacketIo::Limits& limits = {}, Nanos delay = 50_us,
                      const ConnectionConfig& server_config = {})
      : Pair(config, server_config, delay, limits) {
    logging = false;
    fate = [this](const Parsed& packet, Fate& its_fate) {
      if (packet.has(FrameType::padding)) ++probes;
      its_fate.drop = is_down || packet.size > carries.at(packet.from) || (loss > 0 && random.chance(loss));
      if (!its_fate.drop && packet.has(FrameType::data)) ++data_packets;
    };
  }
  /// Transfers a message, and stores the duration in `took`.
  bool transfer_message(ConnectionId from, ConnectionId to, const ByteVector& message, Nanos within = 20_s) {
    const Nanos begin = now();
    const bool done = delivers(from, to, message, within);
    took = now() - begin;
    return done;
  }
  [[nodiscard]] std::uint64_t black_holes() { return c().stats().black_holes + s().stats().black_holes; }

  std::array<std::size_t, 2> carries{kAnyLength, kAnyLength};  ///< longest UDP payload in bytes, by sender
  double loss = 0;
  bool is_down = false;
  Random random{1};
  std::uint64_t probes = 0;
  std::uint64_t data_packets = 0;
  Nanos took;
};

void expect_size(Shard& shard, ConnectionId id, std::size_t carries, std::uint32_t agreed = 1472) {
  const ConnectionStats stats = shard.stats(id).value();
  EXPECT_LE(stats.packet_bytes, carries);
  EXPECT_GE(stats.packet_bytes + PathMtu::kGranularity, std::min<std::size_t>(carries, agreed));
  EXPECT_EQ(stats.agreed_packet_bytes, agreed);
}

TEST(BlackHole, path_that_carries_what_was_agreed_on__is_never_tried) {
  NarrowPair pair;
  const auto [c, s] = pair.connect();
  EXPECT_TRUE(pair.transfer_message(c, s, random_bytes(3'000'000)));
  EXPECT_EQ(pair.probes, 0u);
  expect_size(pair.c(), c, 1472);
  EXPECT_EQ(pair.c().stats().size_probes_sent, 0u);
}

TEST(BlackHole, from_the_beginning__is_noticed_when_silence_has_lasted) {
  for (const std::size_t carries : {472u, 473u, 600u, 1199u, 1200u, 1201u, 1400u, 1471u}) {
    SCOPED_TRACE(carries);
    NarrowPair pair;
    pair.carries = {carries, kAnyLength};
    const auto [c, s] = pair.connect();
    EXPECT_TRUE(pair.transfer_message(c, s, random_bytes(1'000'000)));
    EXPECT_LT(pair.took, 1'200_ms);
    pair.run_for(1_s);
    expect_size(pair.c(), c, carries);
    expect_size(pair.s(), s, 1472);
    EXPECT_EQ(pair.c().stats().black_holes, 1u);
    EXPECT_EQ(pair.s().stats().black_holes, 0u);
    EXPECT_LE(pair.c().stats().size_probes_sent, 40u);
    EXPECT_EQ(pair.c().stats().size_probes_sent, pair.probes);
  }
}

TEST(BlackHole, of_jumbo_frames__is_noticed_as_well) {
  for (const std::size_t carries : {472u, 1472u, 8000u}) {
    SCOPED_TRACE(carries);
    NarrowPair pair({}, {.max_packet_bytes = 8972});
    pair.carries = {carries, kAnyLength};
    const auto [c, s] = pair.connect();
    EXPECT_TRUE(pair.transfer_message(c, s, random_bytes(1'000'000)));
    EXPECT_LT(pair.took, 1'200_ms);
    pair.run_for(1_s);
    expect_size(pair.c(), c, carries, 8972);
  }
}

TEST(BlackHole, in_the_middle_of_a_message__is_noticed_when_silence_has_lasted) {
  for (const std::size_t carries : {600u, 1400u}) {
    SCOPED_TRACE(carries);
    NarrowPair pair;
    pair.rate = Rate(100'000'000);
    const auto [c, s] = pair.connect();
    const ByteVector message = random_bytes(2'000'000);
    ByteVector buffer(message.size());
    ASSERT_EQ(pair.s().receive(s, buffer, 1), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, message, 2), PostResult::ok);
    pair.run_for(50_ms);
    ASSERT_GT(pair.data_packets, 100u);
    pair.carries = {carries, kAnyLength};
    const Nanos begin = pair.now();
    EXPECT_TRUE(pair.transfer(1, 1));
    EXPECT_LT(pair.now() - begin, 1'200_ms) << "half a second of silence, and back-off";
    EXPECT_EQ(buffer, message);
    pair.run_for(1_s);
    expect_size(pair.c(), c, carries);
  }
}

TEST(BlackHole, give_up_after_that_is_short__notices_it_sooner) {
  NarrowPair pair(config_with([](ConnectionConfig& config) { config.give_up_after = 100_ms; }));
  const auto [c, s] = pair.connect();
  ASSERT_TRUE(pair.transfer_message(c, s, random_bytes(100'000)));
  pair.carries = {1300, 1300};
  EXPECT_TRUE(pair.transfer_message(c, s, random_bytes(100'000)));
  EXPECT_LT(pair.took, 100_ms);
}

TEST(BlackHole, both_directions__each_end_notices_its_own) {
  NarrowPair pair;
  pair.carries = {1400, 700};
  const auto [c, s] = pair.connect();
  const ByteVector message = random_bytes(300'000);
  ByteVector there(message.size());
  ByteVector back(message.size());
  ASSERT_EQ(pair.s().receive(s, there, 1), PostResult::ok);
  ASSERT_EQ(pair.c().receive(c, back, 2), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, message, 3), PostResult::ok);
  ASSERT_EQ(pair.s().send(s, message, 4), PostResult::ok);
  pair.run_for(2_s);
  EXPECT_EQ(pair.server().count(Kind::received), 1u);
  EXPECT_EQ(pair.client().count(Kind::received), 1u);
  EXPECT_EQ(there, message);
  EXPECT_EQ(back, message);
  expect_size(pair.c(), c, 1400);
  expect_size(pair.s(), s, 700);
}

TEST(BlackHole, while_short_packets_arrive_all_the_time__is_noticed_by_what_is_lost) {
  // The server acknowledges the client's CREDIT packets every 100 us, so that the client has no timeout.
  NarrowPair pair(config_with([](ConnectionConfig& config) { config.credit_in_acks = false; }));
  const auto [c, s] = pair.connect();
  ASSERT_TRUE(pair.transfer_message(c, s, random_bytes(500'000)));
  pair.carries = {1300, kAnyLength};
  const ByteVector message = random_bytes(500'000);
  ByteVector buffer(message.size());
  ByteVector others(100);
  ASSERT_EQ(pair.s().receive(s, buffer, 1), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, message, 2), PostResult::ok);
  const Nanos begin = pair.now();
  while (buffer != message && pair.now() < begin + 10_s) {
    ASSERT_EQ(pair.c().receive(c, others, 3), PostResult::ok);
    ASSERT_EQ(pair.s().send(s, others, 4), PostResult::ok);
    pair.run_for(100_us);
  }
  EXPECT_EQ(buffer, message);
  EXPECT_LT(pair.now() - begin, 1'200_ms);
  EXPECT_EQ(pair.c().stats().black_holes, 1u);
}

TEST(BlackHole, path_that_heals__carries_long_packets_again_within_a_minute) {
  NarrowPair pair;
  pair.carries = {1300, kAnyLength};
  const auto [c, s] = pair.connect();
  ASSERT_TRUE(pair.transfer_message(c, s, random_bytes(200'000)));
  pair.run_for(1_s);
  expect_size(pair.c(), c, 1300);
  const std::uint64_t before = pair.probes;
  pair.run_for(70_s);
  EXPECT_EQ(pair.probes, before) << "a connection that idles sends nothing";
  ASSERT_TRUE(pair.transfer_message(c, s, random_bytes(200'000)));
  pair.run_for(1_s);
  expect_size(pair.c(), c, 1300);
  pair.carries = {kAnyLength, kAnyLength};
  pair.run_for(60_s);
  const std::uint64_t searched = pair.probes;
  ASSERT_TRUE(pair.transfer_message(c, s, random_bytes(200'000)));
  expect_size(pair.c(), c, 1472);
  EXPECT_EQ(pair.probes, searched + 1);
}

TEST(BlackHole, who_drops_packets_for_a_moment__makes_them_shorter_for_seconds) {
  for (const auto& [drops, within] : {std::pair{60, 4_s}, std::pair{75, 5_s}, std::pair{100, 9_s}}) {
    NarrowPair pair;
    pair.fate = [left = drops](const Parsed& packet, Fate& fate) mutable {
      fate.drop = packet.from == 0 && packet.size > 487 && left-- > 0;
    };
    const auto [c, s] = pair.connect();
    const Nanos begin = pair.now();
    std::uint32_t min = 1472;
    while (pair.now() < begin + within) {
      ASSERT_TRUE(pair.transfer_message(c, s, random_bytes(20'000)));
      pair.run_for(20_ms);
      min = std::min(min, pair.c().stats(c)->packet_bytes);
    }
    EXPECT_LT(min, 600u);
    EXPECT_EQ(pair.c().stats(c)->packet_bytes, 1472u) << drops;
  }
}

TEST(BlackHole, path_that_narrows_twice__is_followed) {
  NarrowPair pair({}, {.max_packet_bytes = 8972});
  const auto [c, s] = pair.connect();
  for (const std::size_t carries : {5000u, 1472u, 1300u, 500u}) {
    SCOPED_TRACE(carries);
    pair.carries = {carries, kAnyLength};
    ASSERT_TRUE(pair.transfer_message(c, s, random_bytes(300'000)));
    pair.run_for(1_s);
    expect_size(pair.c(), c, carries, 8972);
  }
}

TEST(BlackHole, narrower_than_the_smallest_packet__ends_as_unreachable) {
  NarrowPair pair(config_with([](ConnectionConfig& config) { config.give_up_after = 1_s; }));
  pair.carries = {wire::kSmallestPacket - 1, kAnyLength};
  const auto [c, s] = pair.connect();
  EXPECT_FALSE(pair.transfer_message(c, s, random_bytes(10'000), 10_s) && pair.server().count(Kind::received) == 1 &&
               pair.server().of(Kind::received)[0].status == Status::ok);
  EXPECT_EQ(pair.client().statuses(Kind::closed), Statuses{Status::unreachable});
}

TEST(BlackHole, goodput__is_that_of_the_path_afterwards) {
  NarrowPair pair;
  pair.carries = {1400, kAnyLength};
  pair.rate = Rate(1'000'000'000);
  const auto [c, s] = pair.connect();
  ASSERT_TRUE(pair.transfer_message(c, s, random_bytes(1'000'000)));
  const ByteVector message = random_bytes(10'000'000);
  ASSERT_TRUE(pair.transfer_message(c, s, message));
  const double rate = static_cast<double>(message.size()) * 8 / pair.took.seconds();
  EXPECT_GT(rate, 0.9e9);
}

TEST(BlackHole, every_algorithm__goes_on) {
  for (const auto* const algorithm : cc::algorithms()) {
    SCOPED_TRACE(std::string(algorithm->name));
    NarrowPair pair(config_with([&](ConnectionConfig& config) {
      config.congestion_control = algorithm->name;
      config.ecn = true;
      config.max_rate = Rate(1'000'000'000);
    }));
    pair.rate = Rate(1'000'000'000);
    pair.carries = {1400, kAnyLength};
    const auto [c, s] = pair.connect();
    EXPECT_TRUE(pair.transfer_message(c, s, random_bytes(3'000'000)));
    EXPECT_LT(pair.took, 1'200_ms);
    expect_size(pair.c(), c, 1400);
  }
}

TEST(BlackHole, virtual_payloads_and_payloads_read_in_place__are_cut_anew) {
  for (const bool in_place : {false, true}) {
    const ByteVector message = random_bytes(500'000);
    NarrowPair pair({}, {.virtual_payload = !in_place, .keeps_payload_from = in_place ? 512U : 0U});
    pair.carries = {900, kAnyLength};
    const auto [c, s] = pair.connect();
    if (in_place) {
      EXPECT_TRUE(pair.transfer_message(c, s, message));
    } else {
      ASSERT_EQ(pair.s().receive_virtual(s, message.size(), 1), PostResult::ok);
      ASSERT_EQ(pair.c().send_virtual(c, message.size(), 2), PostResult::ok);
      EXPECT_TRUE(pair.transfer(1, 1));
    }
    EXPECT_EQ(pair.server().of(Kind::received).at(0).bytes, message.size());
    pair.run_for(1_s);
    expect_size(pair.c(), c, 900);
  }
}

TEST(BlackHole, sealed_packets__are_as_long_as_others) {
  const std::shared_ptr<const PacketKey> key = security::packet_key(security::JobKey::generate());
  const auto keyed = config_with([&](ConnectionConfig& config) { config.keys = {key}; });
  NarrowPair pair(keyed, {}, 50_us, keyed);
  pair.carries = {1400, kAnyLength};
  const auto [c, s] = pair.connect();
  EXPECT_TRUE(pair.transfer_message(c, s, random_bytes(500'000)));
  pair.run_for(1_s);
  expect_size(pair.c(), c, 1400);
  EXPECT_EQ(pair.s().stats().forged_packets, 0u);
}

TEST(BlackHole, full_integrity__covers_probes) {
  NarrowPair pair(config_with([](ConnectionConfig& config) { config.full_integrity = true; }));
  pair.carries = {1400, kAnyLength};
  const auto [c, s] = pair.connect();
  EXPECT_TRUE(pair.transfer_message(c, s, random_bytes(500'000)));
  pair.run_for(1_s);
  expect_size(pair.c(), c, 1400);
}

// ---- Losses that are no black hole ----

TEST(NoBlackHole, random_loss__is_not_taken_for_one) {
  // With each seed, a few hundred packets are sent.
  std::uint64_t probes = 0;
  for (const double loss : {0.05, 0.2}) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      NarrowPair pair;
      pair.loss = loss;
      pair.random = Random(seed);
      const auto [c, s] = pair.connect();
      ASSERT_TRUE(pair.transfer_message(c, s, random_bytes(100'000 + seed * 777))) << seed;
      EXPECT_EQ(pair.black_holes(), 0u) << seed;
      EXPECT_EQ(pair.c().stats(c)->packet_bytes, 1472u) << seed;
      if (loss < 0.1) probes += pair.probes;
    }
  }
  EXPECT_EQ(probes, 0u) << "5% do not even rouse suspicion";
}

TEST(NoBlackHole, outage__is_not_taken_for_one_however_long) {
  for (const Nanos outage : {5_ms, 100_ms, 600_ms, 3_s, 20_s}) {
    for (const bool from_the_beginning : {false, true}) {
      SCOPED_TRACE(outage.seconds());
      NarrowPair pair;
      const auto [c, s] = pair.connect();
      if (!from_the_beginning) {
        ASSERT_TRUE(pair.transfer_message(c, s, random_bytes(100'000)));
      }
      const ByteVector message = random_bytes(100'000);
      ByteVector buffer(message.size());
      ASSERT_EQ(pair.s().receive(s, buffer, 1), PostResult::ok);
      pair.run_for(1_ms);
      pair.is_down = true;
      ASSERT_EQ(pair.c().send(c, message, 2), PostResult::ok);
      pair.run_for(outage);
      pair.is_down = false;
      EXPECT_TRUE(pair.transfer(1, 1));
      EXPECT_EQ(buffer, message);
      EXPECT_EQ(pair.black_holes(), 0u);
      EXPECT_EQ(pair.c().stats(c)->packet_bytes, 1472u);
    }
  }
}

TEST(NoBlackHole, peer_that_vanishes__is_given_up_in_time) {
  NarrowPair pair(config_with([](ConnectionConfig& config) { config.give_up_after = 2_s; }));
  const auto [c, s] = pair.connect();
  ASSERT_TRUE(pair.transfer_message(c, s, random_bytes(100'000)));
  pair.is_down = true;
  const Nanos begin = pair.now();
  const ByteVector message = random_bytes(100'000);
  ASSERT_EQ(pair.c().send(c, message, 2), PostResult::ok);
  ASSERT_TRUE(pair.run([&] { return pair.client().count(Kind::closed) == 1; }, pair.now() + 10_s));
  EXPECT_EQ(pair.client().of(Kind::closed)[0].status, Status::unreachable);
  EXPECT_LT(pair.now() - begin, 4'100_ms) << "at the next timeout, and these double up to a second";
}

TEST(NoBlackHole, lost_probes__are_no_congestion) {
  // The path carries shorter packets, and is probed every minute. The lost probes must not reduce the window.
  NarrowPair pair;
  pair.carries = {1300, kAnyLength};
  const auto [c, s] = pair.connect();
  ASSERT_TRUE(pair.transfer_message(c, s, random_bytes(500'000)));
  pair.run_for(61_s);
  const ConnectionStats before = pair.c().stats(c).value();
  const std::uint64_t lost = pair.c().stats().size_probes_lost;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(pair.transfer_message(c, s, random_bytes(100'000)));
  }
  const ConnectionStats after = pair.c().stats(c).value();
  EXPECT_GE(pair.c().stats().size_probes_lost, lost + 3);
  EXPECT_EQ(after.congestion_events, before.congestion_events);
  EXPECT_EQ(after.lost_packets, before.lost_packets);
  EXPECT_EQ(after.persistent_congestions, before.persistent_congestions);
}

// ---- One connection, seen from inside ----

/// Returns a configuration with which a connection suspects a black hole at the third timeout. This timeout comes after
/// a quarter of give_up_after.
ConnectionConfig hasty() {
  ConnectionConfig config = round_timers();
  config.give_up_after = (1'100_us + 2'200_us + 4'400_us) * 4;
  return config;
}

TEST(SizeProbe, carries_padding_alone_and_is_answered_at_once) {
  LoneConnection alone(hasty());
  alone.send(4);
  alone.run_for(1'100_us + 2'200_us + 4'400_us - 1_ns);
  const Bytes in_flight = alone.stats().in_flight;
  alone.run_for(1_ns);
  EXPECT_EQ(alone.stats().in_flight, in_flight);
  ASSERT_GE(alone.sent.size(), 3u);
  const std::array<std::size_t, 3> sizes{LoneConnection::kPacket, PathMtu::kBase, wire::kSmallestPacket};
  for (std::size_t i = 0; i < 3; ++i) {
    const Parsed& probe = alone.sent[alone.sent.size() - 3 + i];
    ASSERT_EQ(probe.frames.size(), 1u);
    EXPECT_EQ(probe.frames[0].type, FrameType::padding);
    EXPECT_NE(probe.header.flags & wire::ack_now, 0);
    EXPECT_EQ(probe.size, sizes.at(i));
  }
  EXPECT_EQ(alone.shard.size_probes_sent, 3u);
}

TEST(SizeProbe, peer__acknowledges_it) {
  LoneConnection alone;
  const std::size_t before = alone.sent.size();
  alone.take([](wire::Writer& w) { w.padding(1000); }, Ecn::not_ect, wire::ack_now);
  ASSERT_EQ(alone.sent.size(), before + 1);
  EXPECT_TRUE(alone.sent.back().has(FrameType::ack));
}

/// A connection that has lost six full packets because they were too long, and now sends shorter packets.
struct Fallen : LoneConnection {
  Fallen() : LoneConnection(hasty()) {
    send(6);
    run_for(1'100_us + 2'200_us + 4'400_us);
    for (std::uint32_t i = 0; i < PathMtu::kMaxProbes; ++i) {
      EXPECT_EQ(stats().packet_bytes, kPacket);
      const std::uint64_t of_base = connection.next_packet_number() - (i == 0 ? 2 : 1);
      now += kRoundTrip;
      ack({{of_base, of_base}});
      first = connection.next_packet_number();
      Recorder::wanted.cwnd_bytes = i + 1 < PathMtu::kMaxProbes ? kHuge : kAnew;
      run_until(connection.next_deadline());  // the longer probe is lost
    }
  }
  static constexpr double kAnew = 1e8;
  std::uint64_t first = 0;  ///< number of the first packet sent after the change to shorter packets
};

TEST(SizeProbe, fall__has_the_controller_start_anew) {
  Fallen fallen;
  EXPECT_DOUBLE_EQ(fallen.stats().cwnd_bytes, Fallen::kAnew);
}

TEST(SizeProbe, longer_packets__are_told_to_the_controller) {
  Fallen fallen;
  const auto at = std::find_if(fallen.sent.begin(), fallen.sent.end(), [&](const Parsed& one) {
    return one.header.packet_number >= fallen.first && one.has(FrameType::padding);
  });
  ASSERT_NE(at, fallen.sent.end()) << "the search has begun";
  const std::size_t size = at->size;
  Recorder::wanted.cwnd_bytes = 7e7;
  fallen.events.clear();
  const std::uint64_t number = at->header.packet_number;
  fallen.answer({{number, number}});
  EXPECT_EQ(fallen.stats().packet_bytes, size);
  EXPECT_DOUBLE_EQ(fallen.stats().cwnd_bytes, 7e7) << "it knows nothing of sizes, and so starts anew";
}

TEST(SizeProbe, that_comes_late__is_no_spurious_loss) {
  Fallen fallen;
  const auto at = std::find_if(fallen.sent.begin(), fallen.sent.end(), [&](const Parsed& one) {
    return one.size == LoneConnection::kPacket && one.has(FrameType::padding);
  });
  const std::uint64_t number = at->header.packet_number;
  fallen.ack({{number, number}});
  EXPECT_EQ(fallen.stats().spurious_losses, 0u);
  fallen.answer({{fallen.first, fallen.connection.next_packet_number() - 1}});
  EXPECT_EQ(fallen.stats().packet_bytes, LoneConnection::kPacket) << "the path carries it after all";
}

TEST(SizeProbe, repeated_accept__tells_what_this_end_takes) {
  Fallen fallen;
  fallen.take(header_for(0, fallen.next_of_peer++, 1000), [](wire::Writer& w) {
    w.connect({.max_packet = LoneConnection::kPacket, .source_connection = 99, .credit = 2, .tag = 1});
  });
  const auto at = std::find_if(fallen.sent.rbegin(), fallen.sent.rend(),
                               [](const Parsed& one) { return one.has(FrameType::accept); });
  ASSERT_NE(at, fallen.sent.rend());
  EXPECT_GE(at->header.packet_number, fallen.first);
  EXPECT_EQ(at->find(FrameType::accept)->connect.max_packet, LoneConnection::kPacket);
}

TEST(SizeProbe, fall__sends_all_that_was_lost_again_in_shorter_packets) {
  Fallen fallen;
  EXPECT_EQ(fallen.stats().packet_bytes, PathMtu::kBase);
  EXPECT_EQ(fallen.shard.black_holes, 1u);
  std::vector<Bytes> again(6);
  for (const Parsed& one : fallen.sent) {
    if (one.header.packet_number < fallen.first || !is_data(one)) continue;
    EXPECT_LE(one.size, PathMtu::kBase);
    again.at(one.find(FrameType::data)->data.message) += one.find(FrameType::data)->data.length;
  }
  for (const Bytes bytes : again) EXPECT_GE(bytes, Bytes{LoneConnection::kPayload});
}

TEST(SizeProbe, fall__is_no_congestion) {
  Fallen fallen;
  const std::uint64_t events = fallen.stats().congestion_events;
  fallen.events.clear();
  fallen.now += LoneConnection::kRoundTrip;
  LoneConnection::Ranges carried;
  for (const Parsed& one : fallen.sent)
    if (one.size <= PathMtu::kBase) {
      const std::uint64_t number = one.header.packet_number;
      if (!carried.empty() && carried.back().last + 1 == number)
        carried.back().last = number;
      else
        carried.push_back({number, number});
    }
  fallen.ack(carried);
  fallen.run_for(10_ms);
  EXPECT_EQ(fallen.completions().size(), 6u);
  EXPECT_EQ(fallen.stats().congestion_events, events);
  EXPECT_EQ(fallen.count(Event::Kind::timeout), 0u);
}

TEST(SizeProbe, acknowledged_alone__is_nothing_to_the_controller) {
  LoneConnection alone(hasty());
  alone.send(4);
  alone.run_for(1'100_us + 2'200_us + 4'400_us);
  alone.events.clear();
  alone.now += LoneConnection::kRoundTrip;
  const std::uint64_t last = alone.connection.next_packet_number() - 1;
  alone.ack({{last - 2, last - 2}});
  EXPECT_EQ(alone.count(Event::Kind::ack), 0u);
  EXPECT_EQ(alone.stats().packet_bytes, LoneConnection::kPacket);
}

}  // namespace
}  // namespace mltcp::transport::black_hole_test
