// Tests peers with false acknowledgements. If a peer acknowledges a packet number that was never used or was skipped on
// purpose, the connection ends. With an honest peer this never happens, whatever the network does. Also tests peers
// that leave holes in all messages that they send.
#include <gtest/gtest.h>

#include <memory>

#include "../transport/test_network.h"
#include "mltcp/transport/security/packet_key.h"

namespace mltcp::false_ack_test {
namespace {

using namespace testing_network;
using HeldOffConnected = ConnectedTest;

/// A server that the test plays. It accepts every packet, and acknowledges the numbers that the test chooses.
class FalseAckPeer {
 public:
  FalseAckPeer() {
    pair.server().dead = true;
    pair.fate = [this](const Parsed& packet, Fate&) {
      if (packet.from != 0) return;
      ++packets;
      highest = std::max(highest, packet.header.packet_number);
      reported = reported ||
                 (packet.has(FrameType::close) && packet.find(FrameType::close)->close == wire::CloseReason::violation);
    };
    c = pair.c().connect(pair.server().address, config_with([](ConnectionConfig& config) { config.max_sends = 4; }),
                         pair.now());
    EXPECT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    pair.run_for(1_us);
    answer([](wire::Writer& w) { w.accept({.max_packet = 1472, .source_connection = 7, .credit = 1, .tag = 5}); });
  }
  void answer(const std::function<void(wire::Writer&)>& write) {
    pair.inject(pair.client(), pair.server().address, forge(header_for(c, number++, 0), write));
    pair.run_for(100_us);
  }
  void acknowledge(std::uint64_t first, std::uint64_t last) {
    answer([&](wire::Writer& w) {
      wire::AckFrame ack;
      ack.range_count = 1;
      ack.ranges[0] = {first, last};
      ack.has_whole = true;
      w.ack(ack);
    });
  }
  [[nodiscard]] bool is_caught() const { return !const_cast<Pair&>(pair).c().exists(c); }
  void expect_caught() {
    EXPECT_TRUE(is_caught());
    EXPECT_EQ(pair.c().stats().violations, 1u);
    EXPECT_EQ(pair.client().statuses(Kind::closed), Statuses{Status::violation});
    EXPECT_EQ(pair.client().of(Kind::sent)[0].status, Status::violation);
    EXPECT_TRUE(reported) << "the peer is told why";
  }

  Pair pair;
  ByteVector message = random_bytes(20'000'000);
  ConnectionId c = 0;
  std::uint64_t number = 0;
  std::uint64_t packets = 0;
  std::uint64_t highest = 0;
  bool reported = false;
};

TEST(FalseAck, acknowledges_what_is_still_to_come__is_caught_by_the_numbers_that_are_skipped) {
  FalseAckPeer attacker;
  for (int i = 0; i < 1000 && !attacker.is_caught(); ++i) attacker.acknowledge(0, attacker.highest + 1000);
  attacker.expect_caught();
  EXPECT_LT(attacker.highest, 1400u);
}

TEST(FalseAck, acknowledges_all_up_to_the_highest__is_caught_by_the_numbers_that_are_skipped) {
  // The peer conceals lost packets, so that the sender does not slow down.
  FalseAckPeer attacker;
  for (int i = 0; i < 1000 && !attacker.is_caught(); ++i) attacker.acknowledge(0, attacker.highest);
  attacker.expect_caught();
  // The sender skips one number in 128 to 640. The first false acknowledgement does not end the connection, because an
  // attacker may have forged it. The next one, a round trip later, ends it.
  EXPECT_LT(attacker.highest, 1400u);
}

TEST(FalseAck, acknowledges_piece_by_piece__is_caught_all_the_same) {
  FalseAckPeer attacker;
  std::uint64_t next = 0;
  for (int i = 0; i < 20'000 && !attacker.is_caught(); ++i) {
    const std::uint64_t last = std::min(attacker.highest, next + 1);
    attacker.acknowledge(next, last);
    next = last + 1 <= attacker.highest ? last + 1 : last;
  }
  attacker.expect_caught();
  EXPECT_LT(next, 1400u);
}

TEST(FalseAck, acknowledges_the_same_again_and_again_in_a_packet__is_not_listened_to) {
  FalseAckPeer attacker;
  attacker.acknowledge(0, 0);
  wire::AckFrame ack;
  ack.range_count = 1;
  ack.ranges[0] = {0, 0};
  attacker.answer([&](wire::Writer& w) {
    w.ack(ack);
    w.ack(ack);
  });
  EXPECT_EQ(attacker.pair.c().stats().malformed_packets, 1u);
  EXPECT_FALSE(attacker.is_caught());
}

TEST(FalseAck, honest_peer__is_told_by_close_who_has_acknowledged_in_its_name) {
  Pair pair;
  const auto [c, s] = pair.connect();
  pair.inject(pair.client(), pair.server().address,
              forge(header_for(c, 50), [](wire::Writer& w) { acknowledge(w, 10'000'000, 10'000'000); }));
  pair.run_for(1_ms);
  pair.expect_both_closed(Status::violation);
}

// ---- A peer that has sent a false ACK is held off ----

/// Ends the server's connection: a packet of its client acknowledges packets that were not sent.
void send_false_ack(Pair& pair, ConnectionId s, bool has_tag = true) {
  const ByteVector packet = forge(header_for(s, 50), [](wire::Writer& w) { acknowledge(w, 10'000'000, 10'000'000); });
  if (has_tag)
    pair.inject(pair.server(), pair.client().address, packet);
  else
    pair.inject_as_it_is(pair.server(), pair.client().address, packet);
  pair.run_for(1_ms);
}
Nanos time_to_connect(Pair& pair) {
  const Nanos begin = pair.now();
  const std::size_t connected = pair.client().count(Kind::connected);
  pair.c().connect(pair.server().address, {}, pair.now());
  EXPECT_TRUE(pair.run([&] { return pair.client().count(Kind::connected) > connected; }, begin + 1000_s));
  return pair.now() - begin;
}

TEST_F(HeldOffConnected, who_connects_again__is_answered_late_and_later_each_time) {
  const double usual = pair.s().stats(s)->cwnd_bytes;
  send_false_ack(pair, s);
  for (const Nanos time : {1_s, 2_s, 4_s, 8_s}) {
    const Nanos took = time_to_connect(pair);
    EXPECT_GT(took, time - 10_ms);
    EXPECT_LT(took, time + 1'100_ms) << "CONNECT goes once a second";
    EXPECT_GT(pair.s().stats().held_off, 0u);
    const ConnectionId again = pair.server().of(Kind::accepted).back().connection;
    EXPECT_LT(pair.s().stats(again)->cwnd_bytes, usual / 4);
    send_false_ack(pair, again);
  }
}

TEST_F(HeldOffConnected, who_states_another_packet_size__begins_with_the_least_window_all_the_same) {
  const double usual = pair.s().stats(s)->cwnd_bytes;
  send_false_ack(pair, s);
  pair.run_for(1_s);
  pair.inject(pair.server(), pair.client().address, forge(header_for(0), [](wire::Writer& w) {
                w.connect({.max_packet = 1400, .source_connection = 5, .credit = 1, .tag = 6});
              }));
  pair.run_for(10_us);
  ASSERT_EQ(pair.server().count(Kind::accepted), 2u);
  const ConnectionStats stats = pair.s().stats(pair.server().of(Kind::accepted)[1].connection).value();
  EXPECT_EQ(stats.agreed_packet_bytes, 1400u);
  EXPECT_LT(stats.cwnd_bytes, usual / 4);
}

TEST(HeldOff, what_is_open_already_and_other_addresses__go_on) {
  Pair pair;
  TestHost& other = pair.add();
  const auto [c1, s1] = pair.connect();
  const auto [c2, s2] = pair.connect();
  send_false_ack(pair, s1);
  EXPECT_TRUE(pair.s().exists(s2));
  EXPECT_TRUE(pair.delivers(c2, s2, random_bytes(100'000), 100_ms));
  other.shard->connect(pair.server().address, {}, pair.now());
  EXPECT_TRUE(pair.run([&] { return other.count(Kind::connected) == 1; }, pair.now() + 10_ms));
}

TEST_F(HeldOffConnected, packet_without_the_tag__does_not_hold_off_its_address) {
  send_false_ack(pair, s, false);
  EXPECT_EQ(pair.s().stats().forged_packets, 1u);
  EXPECT_LT(time_to_connect(pair), 1_ms);
  EXPECT_EQ(pair.s().stats().held_off, 0u);
}

TEST(HeldOff, connecting_to_a_violator__waits_until_that_is_over) {
  FalseAckPeer attacker;
  attacker.acknowledge(0, attacker.highest + 10'000'000);
  attacker.expect_caught();
  attacker.pair.run_for(100_ms);
  attacker.pair.log.clear();
  const Nanos begin = attacker.pair.now();
  attacker.pair.c().connect(attacker.pair.server().address, {}, begin);
  EXPECT_EQ(attacker.pair.c().stats().held_off, 1u);
  attacker.pair.run_for(800_ms);
  const auto asked = [&] {
    return attacker.pair.count([](const Parsed& packet) { return packet.has(FrameType::connect); });
  };
  EXPECT_EQ(asked(), 0u);
  attacker.pair.run_for(200_ms);
  EXPECT_GT(asked(), 0u);
}

TEST(HeldOff, connecting_to_a_violator__is_given_up_like_an_unreachable_peer) {
  FalseAckPeer attacker;
  attacker.acknowledge(0, attacker.highest + 10'000'000);
  attacker.expect_caught();
  const Nanos begin = attacker.pair.now();
  attacker.pair.c().connect(attacker.pair.server().address,
                            config_with([](ConnectionConfig& config) { config.give_up_after = 300_ms; }), begin);
  EXPECT_TRUE(attacker.pair.run([&] { return attacker.pair.client().count(Kind::closed) == 2; }, begin + 10_s));
  EXPECT_EQ(attacker.pair.client().of(Kind::closed)[1].status, Status::violation);
  EXPECT_NEAR((attacker.pair.now() - begin).seconds(), 0.3, 0.01);
}

/// A transfer of a message. To check its peer, the sender withholds some packets. Records the numbers of these packets.
struct Withheld {
  explicit Withheld(std::size_t bytes, bool check = true)
      : pair(checked(check), checked(check)), message(random_bytes(bytes)), buffer(bytes) {
    std::tie(c, s) = pair.connect();
    pair.logging = false;
    pair.fate = [this](const Parsed& packet, Fate&) {
      if (packet.from != 0 || !is_data(packet)) return;
      const wire::DataFrame data = packet.find(FrameType::data)->data;
      if (data.offset > end) {
        EXPECT_EQ(packet.header.packet_number, next + 1);
        EXPECT_EQ(data.offset - end, longest) << "as of any other packet";
        EXPECT_GT(message.size() - data.offset, 3 * longest) << "what comes later shows the loss at once";
        numbers.push_back(next);
        if (on_gap) on_gap(next);
      }
      next = packet.header.packet_number + 1;
      end = std::max<std::size_t>(end, data.offset + data.length);
      longest = std::max<std::size_t>(longest, data.length);
    };
    EXPECT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
    EXPECT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  }
  /// Imitates an attacker on the path who acknowledges packet `number`.
  void acknowledge(std::uint64_t number) {
    pair.inject(pair.client(), pair.server().address, forge(header_for(c, 1'000'000 + number), [&](wire::Writer& w) {
                  testing_network::acknowledge(w, number, number);
                }));
  }
  static ConnectionConfig checked(bool check = true) {
    return config_with([&](ConnectionConfig& config) { config.check_peer = check; });
  }

  Pair pair;
  ByteVector message;
  ByteVector buffer;
  ConnectionId c = 0;
  ConnectionId s = 0;
  std::uint64_t next = 0;
  std::size_t end = 0;
  std::size_t longest = 0;
  std::vector<std::uint64_t> numbers;
  std::function<void(std::uint64_t)> on_gap;
};

TEST(Withheld, packets__look_lost_to_the_peer_and_not_to_congestion_control) {
  Withheld transfer(20'000'000);
  ASSERT_TRUE(transfer.pair.transfer(1, 1));
  EXPECT_EQ(transfer.buffer, transfer.message);
  EXPECT_GT(transfer.numbers.size(), 3U);
  EXPECT_LT(transfer.numbers.size(), 20U) << "one in 512 to 2560, on average";
  const ConnectionStats stats = transfer.pair.c().stats(transfer.c).value();
  EXPECT_EQ(stats.lost_packets, 0U);
  EXPECT_EQ(stats.congestion_events, 0U);
  EXPECT_EQ(stats.retransmitted_packets, transfer.numbers.size());
}

TEST(Withheld, packets__are_so_only_where_peers_are_checked) {
  Withheld transfer(5'000'000, false);
  ASSERT_TRUE(transfer.pair.transfer(1, 1));
  EXPECT_TRUE(transfer.numbers.empty());
}

// A withheld packet near the end of a message would count as lost only at a timeout, because no later packet follows.
TEST(Withheld, packets_near_the_end_of_a_message__are_sent) {
  auto config = Withheld::checked();
  config.pack_messages = false;
  Pair pair(config, config);
  pair.logging = false;
  const auto [c, s] = pair.connect();
  constexpr std::size_t count = 1000;
  const auto message = random_bytes(6 * kFullPayload);
  std::vector<ByteVector> buffers(count, ByteVector(message.size()));
  int gaps = 0;
  pair.fate = [&, number = std::uint32_t{0}, end = std::size_t{0}](const Parsed& packet, Fate&) mutable {
    if (packet.from != 0 || !is_data(packet)) return;
    const wire::DataFrame data = packet.find(FrameType::data)->data;
    if (data.message < number) return;
    if (data.message > number) {
      EXPECT_EQ(end, message.size());
      end = 0;
    }
    number = data.message;
    if (data.offset > end) {
      ++gaps;
      EXPECT_GT(message.size() - data.offset, 3 * kFullPayload);
    }
    end = std::max<std::size_t>(end, data.offset + data.length);
  };
  for (int round = 0; round < 3; ++round) {
    for (ByteVector& buffer : buffers) {
      ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
      ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    }
    ASSERT_TRUE(pair.transfer(count, count));
  }
  EXPECT_GT(gaps, 1);
}

TEST(Withheld, acknowledgement_in_one__goes_with_the_next) {
  Withheld transfer(20'000'000);
  ByteVector back(transfer.message.size());
  ASSERT_EQ(transfer.pair.c().receive(transfer.c, back, 0), PostResult::ok);
  ASSERT_EQ(transfer.pair.s().send(transfer.s, transfer.message, 0), PostResult::ok);
  int gaps = 0;
  int acks = 0;
  transfer.pair.fate = [&, next = std::uint64_t{0}, end = std::size_t{0}](const Parsed& packet, Fate& fate) mutable {
    // Losses keep the window small, so that few packets are sent at a time.
    fate.drop = packet.header.packet_number % 50 == 1;
    if (packet.from != 0) return;
    if (is_data(packet)) {
      const wire::DataFrame data = packet.find(FrameType::data)->data;
      if (data.offset > end && packet.header.packet_number == next + 1) {
        ++gaps;
        acks += packet.has(FrameType::ack) ? 1 : 0;
      }
      end = std::max<std::size_t>(end, data.offset + data.length);
    }
    next = packet.header.packet_number + 1;
  };
  ASSERT_TRUE(transfer.pair.transfer(1, 1));
  EXPECT_GT(gaps, 3);
  EXPECT_GT(acks, 0);
}

TEST(Withheld, acknowledgement_of_one__is_forgiven_once_and_what_it_held_is_sent) {
  for (const bool late : {false, true}) {
    Withheld transfer(20'000'000);
    std::uint64_t false_ack = 0;
    transfer.on_gap = [&](std::uint64_t number) {
      if (false_ack == 0 && !late) transfer.acknowledge(false_ack = number);
      // At this point the withheld number already counts as lost.
      if (false_ack == 0 && late && transfer.numbers.size() == 2) transfer.acknowledge(false_ack = number);
    };
    ASSERT_TRUE(transfer.pair.transfer(1, 1));
    EXPECT_EQ(transfer.buffer, transfer.message);
    EXPECT_GT(false_ack, 0U);
    EXPECT_EQ(transfer.pair.c().stats().violations, 0U);
    EXPECT_EQ(transfer.pair.c().stats(transfer.c)->repaired_messages, 0U);
    transfer.pair.run_for(100_ms);
    const std::uint64_t sent = transfer.pair.c().stats().packets_sent;
    transfer.pair.run_for(2_s);
    EXPECT_EQ(transfer.pair.c().stats().packets_sent, sent) << "nothing is waited for";
  }
}

TEST(Withheld, acknowledgement_of_an_earlier_one__is_noticed_while_it_is_remembered) {
  Withheld transfer(20'000'000);
  transfer.on_gap = [&](std::uint64_t number) {
    if (transfer.numbers.size() == 2) transfer.acknowledge(transfer.numbers.front());
    if (transfer.numbers.size() == 3) transfer.acknowledge(number);
  };
  transfer.pair.run_for(1_s);
  EXPECT_EQ(transfer.pair.c().stats().violations, 1U);
}

TEST(Withheld, acknowledgement_of_two__ends_the_connection) {
  Withheld transfer(20'000'000);
  transfer.on_gap = [&](std::uint64_t number) { transfer.acknowledge(number); };
  transfer.pair.run_for(1_s);
  EXPECT_EQ(transfer.pair.c().stats().violations, 1U);
  EXPECT_FALSE(transfer.pair.c().exists(transfer.c));
  EXPECT_EQ(transfer.numbers.size(), 2U);
}

TEST(FalseAck, honest_peer__is_never_taken_for_a_violator) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const auto tested = config_with([](ConnectionConfig& config) { config.ecn = config.check_peer = true; });
    Pair pair(tested, tested);
    pair.logging = false;
    Random random(seed);
    const auto [c, s] = pair.connect();
    int tests = 0;
    pair.fate = [&](const Parsed& packet, Fate& fate) {
      fate.drop = random.chance(0.02);
      fate.copies = random.chance(0.02) ? 2 : 1;
      if (random.chance(0.05)) fate.extra_delay = Nanos(static_cast<std::int64_t>(random.below(400'000)));
      if (packet.ecn == Ecn::ect0 && random.chance(seed % 2 == 0 ? 0.1 : 0.001)) fate.ecn = Ecn::ce;
      tests += packet.ecn == Ecn::ce ? 1 : 0;
    };
    const auto message = random_bytes(8'000'000, seed);
    ByteVector to_server(message.size());
    ByteVector to_client(message.size());
    ASSERT_EQ(pair.s().receive(s, to_server, 0), PostResult::ok);
    ASSERT_EQ(pair.c().receive(c, to_client, 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    ASSERT_EQ(pair.s().send(s, message, 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1)) << seed;
    ASSERT_TRUE(pair.run([&] { return pair.client().count(Kind::received) == 1; }, pair.now() + 60_s));
    EXPECT_EQ(to_server, message);
    EXPECT_EQ(to_client, message);
    EXPECT_EQ(pair.c().stats().violations + pair.s().stats().violations, 0u);
    EXPECT_GT(tests, 20);
  }
}

TEST(FalseAck, path_that_clears_marks__is_used_without_ecn_and_ends_nothing) {
  const std::shared_ptr<const PacketKey> key = security::packet_key(security::JobKey::generate());
  for (const bool has_key : {false, true}) {
    const auto tested = config_with([&](ConnectionConfig& config) {
      config.ecn = config.check_peer = true;
      if (has_key) config.keys = {key};
    });
    Pair pair(tested, tested);
    pair.logging = false;
    const auto [c, s] = pair.connect();
    int marked = 0;
    pair.fate = [&](const Parsed& packet, Fate& fate) {
      if (packet.ecn == Ecn::ce) ++marked;
      fate.ecn = Ecn::ect0;  // imitates an attacker on the path who clears the marks
    };
    EXPECT_TRUE(pair.delivers(c, s, random_bytes(4'000'000), 5_s));
    EXPECT_EQ(marked > 0, !has_key) << "somebody may clear marks to slow a connection down";
    EXPECT_EQ(pair.c().stats().violations, 0u);
  }
}

// ---- Holes ----

TEST(Holes, peer_that_leaves_them_everywhere__gets_no_more_than_the_budget) {
  constexpr Bytes budget = 64 * 1024;
  Pair pair({}, {}, 50_us, {}, {.reassembly_bytes = budget});
  const auto [honest_c, honest_s] = pair.connect();
  const Address attacker = Address::v4(0x0A000055, 9);
  pair.inject(pair.server(), attacker, forge(header_for(0), [](wire::Writer& w) {
                w.connect({.max_packet = 1472, .source_connection = 5, .credit = 1, .tag = 6});
              }));
  pair.run_for(1_ms);
  const ConnectionId s = pair.server().of(Kind::accepted).back().connection;
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(pair.s().receive_virtual(s, 1'000'000, 0), PostResult::ok);
  const std::byte byte{0x11};
  std::uint64_t number = 1;
  for (std::uint32_t message = 0; message < 200; ++message) {
    for (std::uint32_t packet = 0; packet < 10; ++packet)
      pair.inject(pair.server(), attacker, forge(header_for(s, number++), [&](wire::Writer& w) {
                    for (std::uint32_t i = 0; i < 100; ++i) {
                      w.data({.last = false, .message = message, .offset = 2 * (packet * 100 + i) + 1, .length = 1});
                      w.copy(&byte, 1);
                    }
                  }));
    pair.run_for(1_us);
    ASSERT_LE(pair.s().stats().hole_bytes, budget);
  }
  EXPECT_GT(pair.s().stats().hole_bytes, budget / 4);
  EXPECT_LE(pair.s().stats().hole_bytes, budget / 2) << "half of what others have left";
  EXPECT_GT(pair.s().stats().beyond_holes, 1000u);
  // Other connections must continue even if packets are lost, because each message may have a few holes that do not
  // count towards the budget.
  int left = 3;
  pair.fate = [&](const Parsed& packet, Fate& fate) {
    fate.drop = packet.from == 0 && is_data(packet) && packet.header.packet_number % 7 == 0 && left-- > 0;
  };
  const auto data = random_bytes(300'000);
  ByteVector buffer(data.size());
  ASSERT_EQ(pair.s().receive(honest_s, buffer, 0), PostResult::ok);
  ASSERT_EQ(pair.c().send(honest_c, data, 0), PostResult::ok);
  EXPECT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(buffer, data);
  pair.s().abort(s, pair.now());
  pair.run_for(1_s);
  EXPECT_EQ(pair.s().stats().hole_bytes, 0u) << "all is given back";
}

}  // namespace
}  // namespace mltcp::false_ack_test
