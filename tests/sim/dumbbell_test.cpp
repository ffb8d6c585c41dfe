// Tests the dumbbell network (lab/sim/dumbbell.cpp): paths and times, metering, conservation of packets, determinism.
#include "mltcp/lab/sim/dumbbell.h"

#include <memory>

#include "../message_of.h"
#include "chatter.h"
#include "endpoints.h"

namespace mltcp::sim::dumbbell_test {
namespace {

using namespace mltcp::literals;

/// Returns a bottleneck of 1 Gbps (8 ns per byte) with a delay of 10 us, and access links of 10 Gbps with 1 us.
fabric::DumbbellConfig gigabit(std::uint32_t pairs) {
  fabric::DumbbellConfig config;
  config.pairs = pairs;
  config.bottleneck.rate = Rate(1'000'000'000);
  config.bottleneck.delay = 10_us;
  config.reverse = config.bottleneck;
  config.access_delay = 1_us;
  return config;
}

TEST(Dumbbell, constructor__gives_hosts_their_addresses) {
  Dumbbell net(gigabit(1000));
  EXPECT_EQ(net.pairs(), 1000U);
  EXPECT_EQ(to_text(net.left(0).address()), "10.1.0.1:4793");
  EXPECT_EQ(to_text(net.left(249).address()), "10.1.0.250:4793");
  EXPECT_EQ(to_text(net.right(250).address()), "10.2.1.1:4793");
  EXPECT_EQ(to_text(net.right(999).address()), "10.2.3.250:4793");
  EXPECT_EQ(net.left(0).limits().max_packet_bytes, 1472U);
  EXPECT_EQ(net.left(0).limits().overhead_bytes, 42U);
  EXPECT_FALSE(net.left(0).limits().virtual_payload);
  EXPECT_EQ(net.uplink(net.right(3)).config().rate, Rate(10'000'000'000));
}

TEST(Dumbbell, run__two_hops_in_each_direction) {
  Dumbbell net(gigabit(2));
  Recorder left(net.left(1));
  Recorder right(net.right(0));
  net.attach(net.left(1), left);
  net.attach(net.right(0), right);
  // transmission and delay of 1250 bytes on the wire: 1 + 1 us to the bottleneck, 10 + 10 us over the bottleneck
  send_one(net.left(0), net.right(0).address(), bytes_of(1208));
  send_one(net.right(1), net.left(1).address(), bytes_of(83));  // 125 bytes on the wire take 0.1 + 1 us and 1 + 10 us
  net.run_until(1_ms);
  ASSERT_EQ(right.seen.size(), 1U);
  EXPECT_EQ(right.seen[0].at, 22_us);
  EXPECT_EQ(right.seen[0].source, net.left(0).address());
  ASSERT_EQ(left.seen.size(), 1U);
  EXPECT_EQ(left.seen[0].at, 12'100_ns);
  EXPECT_EQ(net.counters().packet_hops, 4U);
  EXPECT_EQ(net.bottleneck().counters().sent_bytes, 1250U);
  EXPECT_EQ(net.reverse().counters().sent_bytes, 125U);
}

TEST(Dumbbell, run__neighbours_reach_each_other_over_the_link_to_their_side) {
  Dumbbell net(gigabit(2));
  Recorder left(net.left(1));
  net.attach(net.left(1), left);
  send_one(net.left(0), net.left(1).address(), bytes_of(83));
  net.run_until(1_ms);
  EXPECT_EQ(left.seen.size(), 1U);
  EXPECT_EQ(net.reverse().counters().sent_packets, 1U);
  EXPECT_EQ(net.bottleneck().counters().sent_packets, 0U);
}

TEST(Dumbbell, usage__counts_wire_bytes_of_each_job_at_departure) {
  auto config = gigabit(2);
  config.bottleneck.faults.corruption = 1;  // the link corrupts all packets, but only after they are metered
  DumbbellOptions options;
  options.virtual_payload = true;
  options.usage_bin = 10_us;
  Dumbbell net(config, options);
  // Each packet has 1250 bytes on the wire. The first packet leaves the bottleneck after 1 + 1 + 10 us, and each
  // further packet 10 us later.
  for (int i = 0; i < 3; ++i) send_one(net.left(0), net.right(0).address(), tagged(7), virtual_payload(1172));
  send_one(net.left(0), net.right(0).address(), tagged(8), virtual_payload(1172));
  // this packet belongs to no job
  send_one(net.left(0), net.right(0).address(), bytes_of(32, 0), virtual_payload(1176));
  // this packet travels in the reverse direction
  send_one(net.right(0), net.left(0).address(), tagged(7));
  net.run_until(1_ms);
  EXPECT_EQ(net.usage().jobs().size(), 2U);
  EXPECT_THAT(net.usage().jobs().at(7), ElementsAre(0, 1250, 1250, 1250));
  EXPECT_THAT(net.usage().jobs().at(8), ElementsAre(0, 0, 0, 0, 1250));
}

TEST(Dumbbell, usage__leaves_out_what_the_buffer_drops) {
  auto config = gigabit(1);
  config.bottleneck.buffer_bytes = 1514;
  Dumbbell net(config);
  auto header = tagged(7);
  header.resize(1208);
  for (int i = 0; i < 5; ++i) send_one(net.left(0), net.right(0).address(), header);
  net.run_until(1_ms);
  EXPECT_EQ(net.bottleneck().counters().dropped_packets, 4U);
  EXPECT_EQ(net.packets_inside(), 0U);
  Bytes sum = 0;
  for (const Bytes bytes : net.usage().jobs().at(7)) sum += bytes;
  EXPECT_EQ(sum, 1250U);
}

/// Sends random traffic between all hosts, and checks that every packet is accounted for.
ChatterRun chatter_of(std::uint64_t link_seed, std::uint64_t seed, Nanos step) {
  auto config = gigabit(4);
  config.bottleneck.buffer_bytes = 60'000;
  config.bottleneck.ecn = {true, 10'000, 40'000, 0.5};
  config.bottleneck.faults = {
      .loss = 0.02, .duplication = 0.03, .corruption = 0.04, .reordering = 0.1, .reorder_delay = 40_us};
  config.bottleneck.seed = link_seed;
  config.reverse = config.bottleneck;
  DumbbellOptions options;
  options.virtual_payload = true;
  options.transmit_queue_packets = 32;
  Dumbbell net(config, options);
  std::vector<Host*> hosts;
  for (std::uint32_t i = 0; i < 8; ++i) hosts.push_back(i % 2 == 0 ? &net.left(i / 2) : &net.right(i / 2));
  const auto send = [&](Host& from, Random& random) {
    const Host& to = *hosts[random.below(hosts.size())];
    const auto header = bytes_of(random.below(400), static_cast<unsigned>(random.below(256)));
    const auto payload = bytes_of(random.below(1000), 1);
    return send_one(from, to.address(), header, random.chance(0.5) ? virtual_payload(payload.size()) : payload,
                    random.chance(0.5) ? Ecn::ect0 : Ecn::not_ect);
  };
  const ChatterRun result = chatter(net, hosts, {send, 150_us, 50_ms, seed, step});
  const auto& forward = net.bottleneck().counters();
  const auto& reverse = net.reverse().counters();
  const auto both = [&](auto member) { return forward.*member + reverse.*member; };
  EXPECT_GT(both(&fabric::LinkCounters::dropped_packets), 0U);
  EXPECT_GT(both(&fabric::LinkCounters::marked_packets), 0U);
  EXPECT_GT(both(&fabric::LinkCounters::reordered_packets), 0U);
  EXPECT_NE(forward.lost_packets, reverse.lost_packets);  // both links have the same seed, but independent faults
  EXPECT_EQ(both(&fabric::LinkCounters::offered_packets), result.sent);
  EXPECT_EQ(result.sent, result.received + both(&fabric::LinkCounters::dropped_packets) +
                             both(&fabric::LinkCounters::lost_packets) -
                             both(&fabric::LinkCounters::duplicated_packets));
  EXPECT_EQ(net.counters().packet_hops, result.sent + result.received);  // access links lose no packets
  return result;
}

TEST(Dumbbell, run__conserves_packets_and_repeats_itself_bit_for_bit) {
  const ChatterRun first = chatter_of(1, 1, 1_ms);
  EXPECT_GT(first.received, 20'000U);
  EXPECT_EQ(chatter_of(1, 1, 1_ms), first);
  EXPECT_EQ(chatter_of(1, 1, Nanos(777)), first);  // the result does not depend on the step length
  EXPECT_NE(chatter_of(2, 1, 1_ms).digests, first.digests);
  EXPECT_NE(chatter_of(1, 2, 1_ms).digests, first.digests);
}

TEST(Dumbbell, run__keeps_a_saturated_bottleneck_busy_with_flat_memory) {
  auto config = gigabit(2);
  config.access_rate = Rate(1'000'000'000);
  DumbbellOptions options;
  options.virtual_payload = true;
  Dumbbell net(config, options);
  std::vector<std::unique_ptr<Recorder>> all;
  const auto header = tagged(1);
  for (std::uint32_t i = 0; i < 2; ++i) {
    Host& host = net.left(i);
    const Address& to = net.right(i).address();
    const std::vector<TxPacket> burst(32, TxPacket{&to, header, virtual_payload(1436), Ecn::ect0});
    all.push_back(std::make_unique<Recorder>(host, [&host, burst](Nanos) {
      while (host.send(burst) == burst.size()) continue;
      return Nanos::never();
    }));
    net.attach(host, *all.back());
  }
  net.run_until(100_ms);
  const std::size_t memory = net.packet_memory_bytes();
  const Bytes before = net.bottleneck().counters().sent_bytes;
  net.run_until(1100_ms);
  EXPECT_EQ(net.packet_memory_bytes(), memory);
  const Bytes sent = net.bottleneck().counters().sent_bytes - before;
  EXPECT_NEAR(static_cast<double>(sent), 125e6, 2 * 1514);
  // Each of the two senders sends at the bottleneck's rate, so half of the packets are dropped.
  const auto& counters = net.bottleneck().counters();
  EXPECT_NEAR(static_cast<double>(counters.dropped_packets), static_cast<double>(counters.offered_packets) / 2, 200);
}

TEST(Dumbbell, constructor__refuses_what_is_out_of_range) {
  const auto refused = [](auto change) -> std::string {
    auto config = gigabit(1);
    change(config);
    return refusal_of([&] { Dumbbell net(config); });
  };
  EXPECT_THAT(refused([](auto& c) { c.pairs = 0; }), HasSubstr("0 pairs"));
  EXPECT_THAT(refused([](auto& c) { c.pairs = 1001; }), HasSubstr("1001 pairs"));
  EXPECT_THAT(refused([](auto& c) { c.mtu = 100; }), HasSubstr("MTU"));
  EXPECT_THAT(refused([](auto& c) { c.bottleneck.rate = Rate(); }), HasSubstr("bottleneck link: the rate"));
  EXPECT_THAT(refused([](auto& c) { c.reverse.delay = Nanos(-1); }), HasSubstr("reverse link: the delay"));
  EXPECT_THAT(refused([](auto& c) { c.access_delay = Nanos(-1); }), HasSubstr("access link: the delay"));
  EXPECT_THAT(refused([](auto& c) { c.bottleneck.buffer_bytes = 1513; }), HasSubstr("give at least 1514 B"));
  EXPECT_THAT(refused([](auto& c) { c.reverse.buffer_bytes = 100; }), HasSubstr("reverse link"));
  EXPECT_EQ(refused([](auto& c) { c.bottleneck.buffer_bytes = 0; }), "no error");
}

}  // namespace
}  // namespace mltcp::sim::dumbbell_test
