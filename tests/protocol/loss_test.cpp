// Tests acknowledgements and loss recovery (RFC 9002): packet numbers, thresholds in packets and time, probes, spurious
// losses, persistent congestion, and bounds on the number of remembered packets.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "../transport/test_network.h"
#include "transfer.h"

namespace mltcp::loss_test {
namespace {

using namespace testing_network;

TEST(PacketNumbers, every_packet__has_a_larger_one_than_all_before) {
  Transfer transfer(2'000'000);
  Random random(3);
  transfer.pair.fate = [&](const Parsed&, Fate& fate) { fate.drop = random.chance(0.1); };
  transfer.complete();
  std::array<std::uint64_t, 2> next{};
  std::uint64_t sent_again = 0;
  std::set<std::uint32_t> offsets;
  for (const Parsed& packet : transfer.pair.log) {
    ASSERT_GE(packet.header.packet_number, next[packet.from]);
    next[packet.from] = packet.header.packet_number + 1;
    for (const wire::Frame& frame : packet.frames)
      if (frame.type == FrameType::data && !offsets.insert(frame.data.offset).second) ++sent_again;
  }
  EXPECT_GT(sent_again, 0u);
  EXPECT_GT(transfer.stats().retransmitted_packets, 0u);
}

TEST(Acknowledgement, every_second_packet__and_at_once_at_the_end) {
  Transfer transfer(14'280);  // ten packets, which fit into the initial window
  transfer.complete();
  const auto acks = transfer.pair.count([](const Parsed& p) { return p.from == 1 && p.has(FrameType::ack); });
  EXPECT_GE(acks, 1u);
  EXPECT_LE(acks, 6u);
}

TEST(Acknowledgement, ack_every__is_the_receiver_s) {
  ConnectionConfig config;
  config.ack_every = 1;
  Transfer each(1'000'000, config);
  each.pair.rate = Rate(1'000'000'000);
  each.complete();
  config.ack_every = 16;
  Transfer few(1'000'000, config);
  few.pair.rate = Rate(1'000'000'000);
  few.complete();
  const auto is_ack = [](const Parsed& p) { return p.from == 1 && p.has(FrameType::ack); };
  const auto data = each.pair.count(is_data);
  EXPECT_GE(each.pair.count(is_ack), data - 5);
  EXPECT_LE(few.pair.count(is_ack), data / 5);
}

TEST(Acknowledgement, delayed__by_max_ack_delay_when_nothing_hurries_it) {
  ConnectionConfig config;
  config.ack_every = 64;
  config.max_ack_delay = 300_us;
  Pair pair(config, config);
  const auto [c, s] = pair.connect();
  pair.log.clear();
  const Nanos begin = pair.now();
  pair.client().dead = true;  // the client must not answer, because it has not sent the injected packets
  pair.inject(pair.server(), pair.client().address,
              // This packet is out of order, so it must be acknowledged at once.
              forge(header_for(s, 5), [](wire::Writer& w) { w.ping(); }));
  pair.run_for(1_ms);
  ASSERT_EQ(pair.log.size(), 1u);
  EXPECT_EQ(pair.log[0].at, begin);
  pair.log.clear();
  const Nanos second = pair.now();
  pair.inject(pair.server(), pair.client().address, forge(header_for(s, 6), [](wire::Writer& w) { w.ping(); }));
  pair.run_for(1_ms);
  ASSERT_EQ(pair.log.size(), 1u);
  EXPECT_EQ(pair.log[0].at, second + 300_us);
  EXPECT_EQ(pair.log[0].find(FrameType::ack)->ack.delay_ns, 300'000u);
  EXPECT_EQ(pair.log[0].find(FrameType::ack)->ack.ranges[0].last, 6u);
}

/// Transfers 20 MB over a link of `rate`, and measures the number and the cost of acknowledgements.
struct AckCosts {
  AckCosts(Rate rate, const ConnectionConfig& config, std::size_t message_bytes = 20'000'000,
           Nanos delay = TestNetwork::kDefaultDelay)
      : pair(config, config, delay) {
    const std::size_t messages = 20'000'000 / message_bytes;
    const ByteVector message = random_bytes(message_bytes);
    ByteVector buffer(message_bytes);
    const auto [c, s] = pair.connect();
    pair.rate = rate;
    pair.log.clear();
    for (std::size_t i = 0; i < messages; ++i) {
      EXPECT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
      EXPECT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    }
    const Nanos begin = pair.now();
    EXPECT_TRUE(pair.transfer(messages, messages));
    taken = pair.now() - begin;
    for (const Parsed& packet : pair.log) {
      if (is_data(packet)) ++data;
      if (packet.from == 1 && packet.has(FrameType::ack)) ++acks;
      largest_asked = std::max(largest_asked, wire::asked_ack_ratio(packet.header.flags));
    }
    lost = pair.c().stats(c)->lost_packets;
  }

  Pair pair;
  Nanos taken;
  std::size_t data = 0;
  std::size_t acks = 0;
  std::uint32_t largest_asked = 0;
  std::uint64_t lost = 0;
};

constexpr Rate kTenGbps{10'000'000'000};

const ConnectionConfig window_of_256 = config_with([](ConnectionConfig& c) { c.max_packets_in_flight = 256; });

TEST(AckRatio, high_rate__asks_for_fewer_and_loses_no_time) {
  const AckCosts few(kTenGbps, {});
  const AckCosts all(kTenGbps, config_with([](ConnectionConfig& c) { c.adapt_ack_ratio = false; }));
  EXPECT_EQ(few.largest_asked, 16u) << "packets in 25 us, as a power of two";
  EXPECT_LT(few.acks, few.data / 8);
  EXPECT_EQ(all.largest_asked, 1u);
  EXPECT_GT(all.acks, all.data / 3);
  EXPECT_LT(few.taken.count, all.taken.count + all.taken.count / 50);
  EXPECT_EQ(few.lost, 0u);
}

TEST(AckRatio, one_gbps__stays_at_every_second_packet) {
  EXPECT_EQ(AckCosts(Rate(1'000'000'000), {}).largest_asked, 1u);
}

TEST(AckRatio, short_round_trip__leaves_four_in_flight) {
  const auto largest = [](std::uint32_t window) {
    return AckCosts(kTenGbps, config_with([=](ConnectionConfig& c) { c.max_packets_in_flight = window; }), 20'000'000,
                    5_us)
        .largest_asked;
  };
  EXPECT_EQ(largest(64), 16u);
  EXPECT_EQ(largest(32), 8u);
  EXPECT_EQ(largest(16), 4u);
}

TEST(AckRatio, job__keeps_all) {
  Transfer transfer(20'000'000, window_of_256);
  transfer.pair.rate = kTenGbps;
  Shard& client = transfer.pair.c();
  transfer.send();
  ASSERT_FALSE(transfer.pair.transfer(1, 1, 8_ms));
  transfer.pair.log.clear();
  EXPECT_TRUE(client.attach(transfer.c, client.add_job({})));
  ASSERT_TRUE(transfer.pair.transfer(1, 1));
  EXPECT_GT(transfer.pair.count(is_data), 5000u);
  EXPECT_EQ(transfer.pair.count([](const Parsed& p) { return wire::asked_ack_ratio(p.header.flags) > 1; }), 0u);
}

TEST(AckRatio, short_messages__do_not_end_it) {
  const AckCosts few(kTenGbps, config_with([](ConnectionConfig& c) {
                       c.max_sends = c.max_receives = 20'000;
                       c.pack_messages = false;
                     }),
                     1000);
  EXPECT_GE(few.data, 20'000u);
  EXPECT_LT(few.acks, few.data / 6) << "each packet ends a message";
}

TEST(AckRatio, last_packet__is_acknowledged_at_once) {
  // The first length is a whole number of groups of 16 packets. The last group of the two other lengths is incomplete.
  for (const std::size_t bytes : {kFullPayload * 16 * 600, std::size_t{13'000'000}, std::size_t{13'007'300}}) {
    Transfer transfer(bytes, window_of_256);
    transfer.pair.rate = kTenGbps;
    transfer.complete();
    const auto last_ack = std::find_if(transfer.pair.log.rbegin(), transfer.pair.log.rend(),
                                       [](const Parsed& packet) { return packet.has(FrameType::ack); });
    ASSERT_NE(last_ack, transfer.pair.log.rend());
    EXPECT_EQ(last_ack->find(FrameType::ack)->ack.delay_ns, 0u);
  }
}

TEST(AckRatio, packets_behind_a_gap__are_acknowledged_each) {
  Transfer transfer(20'000'000, window_of_256);
  transfer.pair.rate = kTenGbps;
  std::uint64_t dropped = 0;
  transfer.pair.fate = [&, number = 0](const Parsed& packet, Fate& fate) mutable {
    if (!is_data(packet) || ++number != 10'000) return;
    EXPECT_GE(wire::asked_ack_ratio(packet.header.flags), 8u);
    fate.drop = true;
    dropped = packet.header.packet_number;
  };
  transfer.complete();
  EXPECT_EQ(transfer.stats().lost_packets, 1u);
  std::set<std::uint64_t> acknowledged;
  for (const Parsed& packet : transfer.pair.log)
    if (const wire::Frame* ack = packet.find(FrameType::ack)) acknowledged.insert(ack->ack.ranges[0].last);
  // Each of the three packets after the dropped one is acknowledged at once. After them, the dropped packet counts as
  // lost (RFC 9002), and the receiver again acknowledges only some packets.
  for (std::uint64_t behind = 1; behind <= 3; ++behind) EXPECT_EQ(acknowledged.count(dropped + behind), 1u) << behind;
  EXPECT_EQ(acknowledged.count(dropped + 4), 0u);
}

TEST(Acknowledgement, of_acknowledgements__there_is_none) {
  Transfer transfer(1'000'000);
  transfer.complete();
  transfer.pair.run_for(1_s);
  const auto before = transfer.pair.log.size();
  transfer.pair.run_for(10_s);
  EXPECT_EQ(transfer.pair.log.size(), before) << "silence after the last acknowledgement";
  EXPECT_EQ(transfer.pair.count([](const Parsed& p) { return p.from == 0 && !p.eliciting(); }), 0u);
}

TEST(Duplicates, packets__are_taken_once) {
  Transfer transfer(500'000);
  const std::uint64_t sent = transfer.stats().packets_sent;
  const ConnectionStats before = transfer.pair.s().stats(transfer.s).value();
  transfer.pair.fate = [](const Parsed&, Fate& fate) { fate.copies = 2; };
  transfer.complete();
  transfer.pair.run_for(10_ms);
  const ConnectionStats after = transfer.pair.s().stats(transfer.s).value();
  EXPECT_EQ(after.packets_received - before.packets_received, transfer.stats().packets_sent - sent);
  EXPECT_EQ(after.duplicate_packets - before.duplicate_packets, transfer.stats().packets_sent - sent);
  EXPECT_EQ(transfer.stats().retransmitted_packets, 0u);
  EXPECT_EQ(transfer.stats().lost_packets, 0u);
}

TEST(Loss, one_packet__is_found_by_the_packet_threshold_within_a_round_trip) {
  Transfer transfer(14'280);
  transfer.on_data([](int number, Fate& fate) { fate.drop = number == 2; });
  const Nanos begin = transfer.pair.now();
  transfer.complete();
  EXPECT_LT(transfer.pair.now() - begin, 250_us) << "two round trips of 100 us";
  EXPECT_EQ(transfer.stats().lost_packets, 1u);
  EXPECT_EQ(transfer.stats().retransmitted_packets, 1u);
  EXPECT_EQ(transfer.stats().congestion_events, 1u);
  EXPECT_EQ(transfer.stats().persistent_congestions, 0u);
}

TEST(Loss, packet_threshold__is_three) {
  // The packet before the last two is lost. Too few packets follow it, so that the time threshold decides.
  Transfer transfer(14'280);
  transfer.on_data([](int number, Fate& fate) { fate.drop = number == 7; });
  const Nanos begin = transfer.pair.now();
  transfer.complete();
  EXPECT_EQ(transfer.stats().lost_packets, 1u);
  const Nanos loss_delay = 200_us;  // the timer granularity, which is larger than 9/8 of the round trip
  EXPECT_GE(transfer.pair.now() - begin, loss_delay + 100_us);
  EXPECT_LT(transfer.pair.now() - begin, loss_delay + 200_us);
}

TEST(Loss, last_packet__is_made_good_by_a_probe) {
  Transfer transfer(14'280);
  transfer.on_data([](int number, Fate& fate) { fate.drop = number == 9; });
  const Nanos begin = transfer.pair.now();
  transfer.complete();
  EXPECT_LT(transfer.pair.now() - begin, 2_ms);
  EXPECT_EQ(transfer.stats().persistent_congestions, 0u);
}

TEST(Loss, whole_flight__is_made_good_by_a_probe) {
  Transfer transfer(14'280);
  transfer.on_data([](int number, Fate& fate) { fate.drop = number < 10; });
  const Nanos begin = transfer.pair.now();
  transfer.complete();
  EXPECT_LT(transfer.pair.now() - begin, 5_ms);
  EXPECT_GE(transfer.stats().lost_packets, 9u);
  EXPECT_EQ(transfer.stats().congestion_events, 1u) << "one episode";
}

TEST(Loss, probes__double_their_interval) {
  Transfer transfer(400);  // so short that a loss of the packet cannot be due to its length
  transfer.on_data([](int, Fate& fate) { fate.drop = true; });
  transfer.send();
  transfer.pair.run_for(5_s);
  std::vector<Nanos> times;
  for (const Parsed& packet : transfer.pair.log)
    if (packet.from == 0 && (times.empty() || packet.at != times.back())) times.push_back(packet.at);
  ASSERT_GE(times.size(), 8u);
  for (std::size_t i = 2; i < 8; ++i)
    EXPECT_NEAR(static_cast<double>((times[i] - times[i - 1]).count),
                2.0 * static_cast<double>((times[i - 1] - times[i - 2]).count), 1000);
  EXPECT_LE(times.back() - times[times.size() - 2], 1001_ms);
}

TEST(Loss, of_acknowledgements__costs_nothing_but_a_probe) {
  Transfer transfer(1'000'000);
  transfer.pair.fate = [next = 0](const Parsed& packet, Fate& fate) mutable {
    fate.drop = packet.from == 1 && next++ % 2 == 0;
  };
  transfer.complete();
  EXPECT_EQ(transfer.stats().lost_packets, 0u);
}

TEST(Loss, several_in_a_round__are_one_congestion_event) {
  Transfer transfer(500'000);
  transfer.pair.rate = Rate(1'000'000'000);
  transfer.on_data([](int number, Fate& fate) { fate.drop = number >= 100 && number < 110 && number % 2 == 0; });
  transfer.complete();
  EXPECT_EQ(transfer.stats().lost_packets, 5u);
  EXPECT_EQ(transfer.stats().retransmitted_packets, 5u);
  EXPECT_EQ(transfer.stats().congestion_events, 1u);
}

TEST(Loss, of_a_retransmission__is_made_good) {
  Transfer transfer(100'000);
  std::map<std::uint32_t, int> seen;
  transfer.pair.fate = [&](const Parsed& packet, Fate& fate) {
    if (const wire::Frame* data = packet.find(FrameType::data); data != nullptr && packet.from == 0)
      fate.drop = data->data.offset % 5 == 0 && ++seen[data->data.offset] <= 3;
  };
  transfer.complete();
}

TEST(Loss, small_messages_that_share_a_packet__all_come_again) {
  Pair pair;
  const auto [c, s] = pair.connect();
  std::vector<ByteVector> messages;
  std::vector<ByteVector> buffers;
  for (std::size_t i = 0; i < 100; ++i) {
    messages.push_back(random_bytes(i % 7 == 0 ? 0 : 1 + i % 120, i));
    buffers.emplace_back(messages.back().size());
  }
  for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(pair.s().receive(s, buffers[i], i), PostResult::ok);
  pair.run_for(1_ms);
  Random random(2);
  pair.fate = [&](const Parsed&, Fate& fate) { fate.drop = random.chance(0.4); };
  for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(pair.c().send(c, messages[i], i), PostResult::ok);
  ASSERT_TRUE(pair.transfer(100, 100));
  EXPECT_EQ(buffers, messages);
}

TEST(Reordering, spurious_loss__is_undone_and_raises_the_threshold) {
  Transfer transfer(1'000'000);
  transfer.pair.rate = Rate(1'000'000'000);
  // Every fiftieth packet arrives six packets late. One packet takes 12 us.
  transfer.on_data([](int number, Fate& fate) {
    if (number % 50 == 20) fate.extra_delay = 75_us;
  });
  transfer.complete();
  transfer.pair.run_for(10_ms);
  EXPECT_GE(transfer.stats().spurious_losses, 1u);
  EXPECT_LE(transfer.stats().spurious_losses, 2u) << "after the first, six places are known to be reordering";
  EXPECT_EQ(transfer.stats().spurious_losses, transfer.stats().lost_packets);
  // Slow start must continue as if there had been no loss.
  EXPECT_GT(transfer.stats().cwnd_bytes, 100'000);
}

TEST(Congestion, window__is_kept_and_grows_only_when_used) {
  Transfer transfer(10'000);
  transfer.complete();
  const double initial = transfer.stats().cwnd_bytes;
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(transfer.pair.s().receive_virtual(transfer.s, 10'000, 0), PostResult::ok);
    ASSERT_EQ(transfer.pair.c().send(transfer.c, transfer.message, 0), PostResult::ok);
    ASSERT_TRUE(transfer.pair.transfer(1, 1));
  }
  EXPECT_EQ(transfer.stats().cwnd_bytes, initial) << "seven packets never fill ten";
}

TEST(Congestion, in_flight__stays_within_the_window) {
  Transfer transfer(1'000'000);
  transfer.pair.rate = Rate(1'000'000'000);
  bool beyond = false;
  transfer.on_data([](int number, Fate& fate) { fate.drop = number == 300; });
  transfer.send();
  transfer.pair.run(
      [&] {
        // Bytes in flight may exceed the window only after a decrease of the window.
        beyond = beyond || (static_cast<double>(transfer.stats().in_flight) > transfer.stats().cwnd_bytes &&
                            transfer.stats().congestion_events == 0);
        return transfer.pair.server().count(Kind::received) == 1;
      },
      transfer.pair.now() + 10_s);
  EXPECT_FALSE(beyond);
}

TEST(Idle, restart__slow_starts_again_from_the_initial_window) {
  Transfer transfer(2'000'000);
  transfer.pair.rate = Rate(1'000'000'000);
  transfer.complete();
  const double before = transfer.stats().cwnd_bytes;
  ASSERT_GT(before, 14'720 * 2);
  transfer.pair.run_for(1_s);
  EXPECT_EQ(transfer.stats().cwnd_bytes, before);
  ASSERT_EQ(transfer.pair.s().receive_virtual(transfer.s, 2'000'000, 0), PostResult::ok);
  transfer.pair.run_for(1_s);
  transfer.send();
  transfer.pair.run_for(10_us);
  EXPECT_EQ(transfer.stats().cwnd_bytes, 14'720) << "ten packets";
}

TEST(Idle, short_pause__keeps_the_window) {
  Transfer transfer(2'000'000);
  transfer.pair.rate = Rate(1'000'000'000);
  transfer.complete();
  const double before = transfer.stats().cwnd_bytes;
  ASSERT_EQ(transfer.pair.s().receive_virtual(transfer.s, 2'000'000, 0), PostResult::ok);
  transfer.pair.run_for(100_us);
  transfer.send();
  transfer.pair.run_for(10_us);
  EXPECT_GE(transfer.stats().cwnd_bytes, before);
}

TEST(Bounds, max_packets_in_flight__holds) {
  ConnectionConfig config;
  config.max_packets_in_flight = 16;
  Transfer transfer(500'000, config);
  std::uint64_t max = 0;
  transfer.send();
  transfer.pair.run(
      [&] {
        max = std::max<std::uint64_t>(max, transfer.stats().in_flight / 1400);
        return transfer.pair.server().count(Kind::received) == 1;
      },
      transfer.pair.now() + 10_s);
  EXPECT_LE(max, 17u);
  EXPECT_EQ(transfer.buffer, transfer.message);
}

// The lost packet is the oldest one in a full record of sent packets, and no packet is in flight.
TEST(Bounds, max_packets_in_flight__does_not_stall_on_any_single_loss) {
  for (int lost = 0; lost < 60; ++lost) {
    ConnectionConfig config;
    config.max_packets_in_flight = 16;
    Transfer transfer(100'000, config);
    transfer.on_data([lost](int number, Fate& fate) { fate.drop = number == lost; });
    transfer.send();
    ASSERT_TRUE(transfer.pair.transfer(1, 1, 2_s)) << "packet " << lost;
  }
}

TEST(Bounds, many_acknowledgements_behind_a_lost_packet__do_not_stall_it) {
  // The client's only packet is lost, and its timeout is far away. Meanwhile the server's data makes the client
  // acknowledge more packets than it can remember.
  ConnectionConfig config;
  config.max_packets_in_flight = 16;
  config.give_up_after = 5_s;
  ConnectionConfig server = config;
  server.max_packets_in_flight = 4096;
  Pair pair(config, server);
  const auto [c, s] = pair.connect();
  const auto big = random_bytes(2'000'000);
  ByteVector at_client(big.size());
  std::byte byte{};
  ASSERT_EQ(pair.c().receive(c, at_client, 0), PostResult::ok);
  ASSERT_EQ(pair.s().receive(s, {&byte, 1}, 0), PostResult::ok);
  pair.run_for(5_ms);
  const Nanos end = pair.now() + 3_ms;
  pair.fate = [&](const Parsed& packet, Fate& fate) {
    fate.drop = packet.from == 0 && packet.eliciting() && packet.at < end;
  };
  ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
  ASSERT_EQ(pair.s().send(s, big, 0), PostResult::ok);
  EXPECT_TRUE(pair.run(
      [&] {
        return pair.client().count(Kind::sent) == 1 && pair.client().count(Kind::received) == 1 &&
               pair.server().count(Kind::sent) == 1;
      },
      pair.now() + 2_s));
  EXPECT_EQ(at_client, big);
}

TEST(Bounds, reassembly__of_every_second_packet_missing) {
  // Every second of 2000 packets is lost. These are more holes than the receiver remembers, but all data must arrive.
  Transfer transfer(4'000'000);
  std::set<std::uint32_t> dropped;
  transfer.pair.fate = [&](const Parsed& packet, Fate& fate) {
    const wire::Frame* data = packet.find(FrameType::data);
    if (packet.from == 0 && data != nullptr && (data->data.offset / kFullPayload) % 2 == 1)
      fate.drop = dropped.insert(data->data.offset).second;
  };
  transfer.complete(60_s);
}

}  // namespace
}  // namespace mltcp::loss_test
