// Tests the switched network (lab/sim/switched_network.cpp): paths and times, spreading of flows, hosts with several
// ports, and conservation of packets.
#include "mltcp/lab/sim/switched_network.h"

#include <memory>
#include <set>

#include "../message_of.h"
#include "chatter.h"
#include "endpoints.h"
#include "mltcp/base/error.h"

namespace mltcp::sim::switched_network_test {
namespace {

using namespace mltcp::literals;

struct LeafSpineConfig : fabric::SwitchedNetworkConfig {
  std::uint32_t leaves = 2;
  std::uint32_t spines = 2;
  std::uint32_t hosts_per_leaf = 4;
  Rate host_rate;
  Rate uplink_rate;

  [[nodiscard]] std::uint32_t hosts() const { return leaves * hosts_per_leaf; }
  [[nodiscard]] fabric::SwitchedNetworkConfig built() const {
    fabric::SwitchedNetworkConfig config = *this;  // NOLINT(cppcoreguidelines-slicing): the rest goes into the topology
    config.topology = std::make_shared<const Topology>(
        Topology::leaf_spine({leaves, spines, hosts_per_leaf, host_rate, uplink_rate, 1_us}));
    return config;
  }
};

struct LeafSpine : SwitchedNetwork {
  explicit LeafSpine(const LeafSpineConfig& config, const SwitchedNetworkOptions& options = {})
      : SwitchedNetwork(config.built(), options), shape(config) {}

  [[nodiscard]] static LinkId host_uplink(std::uint32_t host) { return host; }
  [[nodiscard]] LinkId uplink(std::uint32_t leaf, std::uint32_t spine) const {
    return shape.hosts() + leaf * shape.spines + spine;
  }
  [[nodiscard]] LinkId host_downlink(std::uint32_t host) const { return uplink(shape.leaves, 0) + host; }
  [[nodiscard]] LinkId downlink(std::uint32_t spine, std::uint32_t leaf) const {
    return host_downlink(shape.hosts()) + spine * shape.leaves + leaf;
  }
  [[nodiscard]] Switch leaf(std::uint32_t number) const { return switch_at(shape.hosts() + number); }

  LeafSpineConfig shape;
};

/// Returns a network of 4 spines and 3 leaves, with 2 hosts at each leaf. Each link has a rate of 10 Gbps (0.8 ns per
/// byte) and a delay of 1 us.
LeafSpineConfig small() {
  LeafSpineConfig config;
  config.leaves = 3;
  config.spines = 4;
  config.hosts_per_leaf = 2;
  config.host_rate = Rate::from_gbps(10);
  return config;
}

/// Returns a header with destination connection `connection`, in the format of transport/wire.h.
std::vector<std::byte> header_of(std::uint32_t connection) {
  auto header = bytes_of(83, 0);
  header[0] = std::byte{0xA3};
  for (unsigned i = 0; i < 4; ++i) header[16 + i] = static_cast<std::byte>(connection >> (8 * i));
  return header;
}

TEST(SwitchedNetwork, run__takes_two_hops_within_a_leaf_and_four_between_leaves) {
  LeafSpine net(small());
  Host& from = net.add_port(0, 9);
  Host& near = net.add_port(1, 9);
  Host& far = net.add_port(5, 9);
  EXPECT_EQ(to_text(from.address()), "10.0.0.1:9");
  EXPECT_EQ(to_text(far.address()), "10.0.0.6:9");
  std::vector<int> hops;
  std::vector<Nanos> at;
  const auto watch = [&](Host& host) { return Recorder(host, [&](Nanos) { return Nanos::never(); }); };
  Recorder at_near = watch(near);
  Recorder at_far = watch(far);
  net.attach(near, at_near);
  net.attach(far, at_far);
  const auto header = bytes_of(1208);  // 1250 bytes on the wire take 1 us per link
  ASSERT_TRUE(send_one(from, near.address(), header));
  ASSERT_TRUE(send_one(from, far.address(), header));
  net.run_until(1_ms);
  ASSERT_EQ(at_near.seen.size(), 1U);
  EXPECT_EQ(at_near.seen[0].at, 4_us);
  EXPECT_EQ(at_near.seen[0].hops, 1U);
  ASSERT_EQ(at_far.seen.size(), 1U);
  EXPECT_EQ(at_far.seen[0].at, 9_us);  // arrives 1 us after the first packet, over four links of 2 us each
  EXPECT_EQ(at_far.seen[0].hops, 3U);
  EXPECT_EQ(net.counters().packet_hops, 6U);
}

TEST(SwitchedNetwork, uplink__of_a_flow_stays_and_flows_spread) {
  LeafSpine net(small());
  Host& from = net.add_port(0, 9);
  Host& to = net.add_port(2, 9);
  Recorder receiver(to);
  net.attach(to, receiver);
  const auto sent = [&](std::uint32_t spine) { return net.link(net.uplink(0, spine)).counters().sent_packets; };
  std::array<std::uint32_t, 4> flows{};
  constexpr std::uint32_t all = 400;
  for (std::uint32_t flow = 0; flow < all; ++flow) {
    std::array<std::uint64_t, 4> before{};
    for (std::uint32_t spine = 0; spine < 4; ++spine) before[spine] = sent(spine);
    const auto header = header_of(flow << 20 | 1);
    for (int i = 0; i < 5; ++i) send_one(from, to.address(), header);
    net.run_until(net.now() + 1_ms);
    std::uint32_t used = 0;
    for (std::uint32_t spine = 0; spine < 4; ++spine) {
      const std::uint64_t packets = sent(spine) - before[spine];
      EXPECT_TRUE(packets == 0 || packets == 5) << packets;
      flows[spine] += packets > 0 ? 1 : 0;
      used += packets > 0 ? 1 : 0;
    }
    EXPECT_EQ(used, 1U);
  }
  // the tolerance is 4.6 standard deviations
  for (const std::uint32_t count : flows) EXPECT_NEAR(count, all / 4.0, 40);
  EXPECT_EQ(receiver.seen.size(), all * 5);
}

TEST(SwitchedNetwork, uplink__depends_on_the_seed_and_the_leaf) {
  const auto paths = [](std::uint64_t seed, std::uint32_t from_host) {
    auto config = small();
    config.seed = seed;
    LeafSpine net(config);
    Host& from = net.add_port(from_host, 9);
    Host& to = net.add_port(4, 9);
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t flow = 1; flow < 40; ++flow) {
      send_one(from, to.address(), header_of(flow));
      net.run_until(net.now() + 1_ms);
      for (std::uint32_t spine = 0; spine < 4; ++spine)
        if (net.link(net.uplink(from_host / 2, spine)).queue_bytes(net.now()) == 0 &&
            net.link(net.uplink(from_host / 2, spine)).counters().sent_packets >
                static_cast<std::uint64_t>(std::count(chosen.begin(), chosen.end(), spine))) {
          chosen.push_back(spine);
        }
    }
    return chosen;
  };
  const auto first = paths(1, 0);
  EXPECT_EQ(first.size(), 39U);
  EXPECT_EQ(paths(1, 0), first);
  EXPECT_NE(paths(2, 0), first);
  EXPECT_NE(paths(1, 2), first);
}

TEST(SwitchedNetwork, add_port__shares_the_links_of_a_machine_fairly) {
  SwitchedNetworkOptions options;
  options.virtual_payload = true;
  options.transmit_queue_packets = 64;
  LeafSpine net(small(), options);
  std::vector<std::unique_ptr<Recorder>> all;
  std::vector<std::uint64_t> sent(3);
  Host& to = net.add_port(1, 9);
  const auto header = bytes_of(32);
  for (std::uint16_t i = 0; i < 3; ++i) {
    Host& host = net.add_port(0, static_cast<std::uint16_t>(10 + i));
    const std::vector<TxPacket> burst(32, TxPacket{&to.address(), header, virtual_payload(1176), Ecn::not_ect});
    all.push_back(std::make_unique<Recorder>(host, [&host, &sent, burst, i](Nanos) {
      for (std::size_t n = burst.size(); n == burst.size();) {
        n = host.send(burst);
        sent[i] += n;
      }
      return Nanos::never();
    }));
    net.attach(host, *all.back());
  }
  Recorder receiver(to);
  net.attach(to, receiver);
  net.run_until(10_ms);
  const auto& link = net.link(LeafSpine::host_uplink(0)).counters();
  // one packet per microsecond for 10 ms, and the packets that wait in the queues
  EXPECT_NEAR(static_cast<double>(link.sent_packets), 10'000 + 3 * 64, 64);
  for (const std::uint64_t one : sent) EXPECT_NEAR(static_cast<double>(one), 10'000 / 3.0, 100);
}

/// Returns one topology of each kind, and an irregular topology. The irregular topology has racks with one switch and
/// racks with two switches in a row. Its links have different rates and delays, two switches have parallel links, and
/// one link has only one direction.
std::vector<std::pair<std::string, Topology>> kinds() {
  const Rate slow(1'000'000'000);
  const Rate fast(10'000'000'000);
  Graph graph;
  for (const char* host : {"a", "b", "c", "d", "e"}) graph.nodes.push_back({host, true});
  for (const char* name : {"s", "t", "u", "v", "w"}) graph.nodes.push_back({name});
  const auto cable = [&](const char* from, const char* to, Rate rate, Nanos delay) {
    graph.links.push_back({from, to, rate, {}, delay});
    graph.links.push_back({to, from, rate, {}, delay});
  };
  cable("s", "a", fast, 1_us);
  cable("b", "s", slow, 3_us);
  cable("c", "t", fast, 1_us);
  cable("d", "v", fast, 2_us);
  cable("w", "e", slow, 1_us);
  cable("s", "t", fast, 5_us);
  cable("s", "u", slow, 2_us);
  cable("u", "v", slow, 2_us);
  cable("t", "v", fast, 1_us);
  cable("v", "w", fast, 10_us);
  graph.links.push_back({"s", "t", slow, "a second cable", 4_us});
  graph.links.push_back({"w", "s", slow, "a way back", 1_us});
  std::vector<std::pair<std::string, Topology>> result;
  result.emplace_back("single switch", Topology::single_switch(5, fast, 1_us));
  result.emplace_back("leaf-spine", Topology::leaf_spine({3, 4, 2, fast, slow, 1_us}));
  result.emplace_back("leaf-spine of one spine", Topology::leaf_spine({3, 1, 2, fast, slow, 1_us}));
  result.emplace_back("fat tree", Topology::fat_tree(4, fast, 1_us));
  result.emplace_back("graph", Topology(graph));
  result.emplace_back(
      "cable", Topology(Graph{{{"a", true}, {"b", true}}, {{"a", "b", fast, {}, 1_us}, {"b", "a", slow, {}, 2_us}}}));
  return result;
}

TEST(SwitchedNetwork, path__is_the_one_that_packets_take) {
  for (const auto& [kind, topology] : kinds()) {
    SCOPED_TRACE(kind);
    fabric::SwitchedNetworkConfig config;
    config.topology = std::make_shared<const Topology>(topology);
    config.seed = 7;
    SwitchedNetwork net(config);
    const SwitchedNetworkMap& map = net.map();
    ASSERT_EQ(net.links().size(), topology.links());
    for (Topology::Link link = 0; link < topology.links(); ++link) {
      EXPECT_EQ(net.links()[link].name, topology.link_name(link));
      EXPECT_EQ(net.links()[link].id, link);
      EXPECT_EQ(net.link_config(link).rate, topology.capacity(link));
      EXPECT_EQ(net.link_config(link).delay, topology.delay(link));
    }
    std::vector<std::unique_ptr<Recorder>> receivers;
    std::vector<Host*> ports;
    for (std::uint32_t host = 0; host < topology.hosts(); ++host) {
      ports.push_back(&net.add_port(host, 9));
      EXPECT_EQ(map.address(host, 9), ports.back()->address());
      receivers.push_back(std::make_unique<Recorder>(*ports.back()));
      net.attach(*ports.back(), *receivers.back());
    }
    Random random(5);
    std::set<std::vector<SwitchedNetworkMap::LinkId>> seen;
    for (std::uint32_t from = 0; from < topology.hosts(); ++from)
      for (std::uint32_t to = 0; to < topology.hosts(); ++to)
        for (int flow = 0; flow < 6 && from != to; ++flow) {
          const auto connection = static_cast<std::uint32_t>(random.next());
          std::vector<std::uint64_t> before;
          for (const auto& link : net.links()) before.push_back(net.link_counters(link.id).sent_packets);
          const std::size_t received = receivers[to]->seen.size();
          const Nanos start = net.now();
          ASSERT_TRUE(send_one(*ports[from], ports[to]->address(), header_of(connection)));
          net.run_until(net.now() + 1_ms);
          std::vector<SwitchedNetworkMap::LinkId> used;
          for (const auto& link : net.links())
            if (net.link_counters(link.id).sent_packets > before[link.id]) used.push_back(link.id);
          auto path = map.path(from, 9, to, 9, connection);
          topology.check_path(from, to, path);
          EXPECT_LE(path.size(), topology.path(from, to, random.next()).size());
          seen.insert(path);
          // Each packet has 125 bytes on the wire.
          Nanos takes;
          for (const auto link : path) takes += topology.delay(link) + topology.capacity(link).time_for(125);
          ASSERT_EQ(receivers[to]->seen.size(), received + 1);
          EXPECT_EQ(receivers[to]->seen.back().at - start, takes);
          std::sort(path.begin(), path.end());
          EXPECT_EQ(path, used);
        }
    // If there are several paths, flows use all of them.
    const std::size_t pairs = topology.hosts() * (topology.hosts() - std::size_t{1});
    EXPECT_EQ(seen.size() > pairs, topology.has_choices());
  }
}

TEST(SwitchedNetwork, path__spreads_over_all_of_a_fat_tree) {
  fabric::SwitchedNetworkConfig config;
  config.topology = std::make_shared<const Topology>(Topology::fat_tree(4, Rate::from_gbps(10)));
  const SwitchedNetworkMap map(config);
  std::map<std::vector<SwitchedNetworkMap::LinkId>, int> flows;
  for (std::uint32_t connection = 0; connection < 4000; ++connection) ++flows[map.path(0, 1, 12, 1, connection << 8U)];
  EXPECT_EQ(flows.size(), 4U);
  for (const auto& [path, count] : flows) EXPECT_NEAR(count, 1000, 120);  // the tolerance is 4.4 standard deviations
  config.seed = 2;
  const SwitchedNetworkMap other(config);
  int same = 0;
  for (std::uint32_t connection = 0; connection < 400; ++connection)
    same += map.path(0, 1, 12, 1, connection) == other.path(0, 1, 12, 1, connection) ? 1 : 0;
  EXPECT_NEAR(same, 100, 40);
}

struct MeteredRun : ChatterRun {
  std::uint64_t dropped = 0;
  std::uint64_t marked = 0;
  bool operator==(const MeteredRun&) const = default;
};

/// Sends random traffic between two ports of every host, and checks that every packet is accounted for.
MeteredRun chatter_of(const fabric::SwitchedNetworkConfig& config, std::uint64_t seed, Nanos step) {
  SwitchedNetworkOptions options;
  options.virtual_payload = true;
  SwitchedNetwork net(config, options);
  std::vector<Host*> ports;
  for (std::uint32_t i = 0; i < 2 * config.hosts(); ++i)
    ports.push_back(&net.add_port(i % config.hosts(), static_cast<std::uint16_t>(1 + i / config.hosts())));
  const auto send = [&](Host& from, Random& random) {
    // Half of the packets go to one port, so that its link is the bottleneck.
    const Host& to = *ports[random.chance(0.5) ? 0 : random.below(ports.size())];
    const auto header = header_of(static_cast<std::uint32_t>(random.next()));
    TxPacket packet{&to.address(), header, virtual_payload(random.below(8000)),
                    random.chance(0.5) ? Ecn::ect0 : Ecn::not_ect};
    packet.priority = static_cast<std::uint8_t>(random.below(8));
    return from.send({&packet, 1}) == 1;
  };
  MeteredRun result{chatter(net, ports, {send, 60_us, 5_ms, seed, step})};
  for (const auto& link : net.links()) {
    const fabric::LinkCounters& counters = net.link_counters(link.id);
    EXPECT_EQ(counters.offered_packets, counters.dropped_packets + counters.sent_packets) << link.name;
    result.dropped += counters.dropped_packets;
    result.marked += counters.marked_packets;
  }
  EXPECT_EQ(result.sent, result.received + result.dropped);
  return result;
}

MeteredRun chatter_of(const LeafSpineConfig& config, std::uint64_t seed, Nanos step) {
  return chatter_of(config.built(), seed, step);
}

LeafSpineConfig chatty() {
  auto config = small();
  config.mtu = 9000;
  config.buffer_bytes = 100'000;
  config.ecn = {true, 20'000, 60'000, 0.5};
  return config;
}

TEST(SwitchedNetwork, run__conserves_packets_and_repeats_itself_bit_for_bit) {
  const MeteredRun first = chatter_of(chatty(), 1, 1_ms);
  EXPECT_GT(first.received, 10'000U);
  EXPECT_GT(first.dropped, 0U);
  EXPECT_GT(first.marked, 0U);
  EXPECT_EQ(chatter_of(chatty(), 1, 1_ms), first);
  EXPECT_EQ(chatter_of(chatty(), 1, Nanos(777)), first);  // the result does not depend on the step length
  auto other = chatty();
  other.seed = 2;
  EXPECT_NE(chatter_of(other, 1, 1_ms).digests, first.digests);
  EXPECT_NE(chatter_of(chatty(), 2, 1_ms).digests, first.digests);
}

TEST(SwitchedNetwork, run__conserves_packets_in_every_mode) {
  std::vector<LeafSpineConfig> modes(4, chatty());
  modes[0].classes = 8;
  modes[1].memory = {.bytes = 300'000, .alpha = 1, .pfc = {}};
  modes[2].memory = modes[1].memory;
  modes[2].classes = 8;
  modes[3].memory = {.bytes = 2'000'000, .alpha = 1, .pfc = {true, 40'000, 20'000}};
  modes[3].classes = 4;
  for (const LeafSpineConfig& mode : modes) {
    const bool lossless = mode.memory.pfc.enabled;
    const MeteredRun first = chatter_of(mode, 1, 1_ms);
    EXPECT_GT(first.received, 10'000U);
    EXPECT_EQ(first.dropped == 0, lossless) << first.dropped;
    EXPECT_GT(first.marked, 0U);
    EXPECT_EQ(chatter_of(mode, 1, Nanos(777)), first);
  }
}

/// Hosts 0 to 3, on two leaves, send to host 4 on the third leaf as fast as they can, with the given packet priorities.
struct Incast {
  explicit Incast(const LeafSpineConfig& config, Nanos until,
                  const std::vector<std::uint8_t>& priorities = {0, 0, 0, 0})
      : net(config, virtual_payloads()), arrived(priorities.size()) {
    Host& to = net.add_port(4, 9);
    const auto header = bytes_of(32);
    for (std::uint32_t i = 0; i < priorities.size(); ++i) {
      TxPacket packet{&to.address(), header, virtual_payload(8000), Ecn::not_ect};
      packet.priority = priorities[i];
      flood(net.add_port(i, 9), packet);
    }
    receiver = std::make_unique<Recorder>(to);
    net.attach(to, *receiver);
    // Host 0 also sends to host 5, the bystander, to which no other host sends.
    Host& beside = net.add_port(5, 8);
    flood(net.add_port(0, 8), TxPacket{&beside.address(), header, virtual_payload(8000), Ecn::not_ect});
    bystander = std::make_unique<Recorder>(beside);
    net.attach(beside, *bystander);
    net.run_until(until);
    for (const Seen& seen : receiver->seen) ++arrived.at(seen.source.v4_ip() - 0x0A000001);
    for (const auto& link : net.links()) {
      const fabric::LinkCounters& counters = net.link_counters(link.id);
      dropped += counters.dropped_packets;
      EXPECT_EQ(counters.offered_packets, counters.dropped_packets + counters.sent_packets) << link.name;
    }
  }
  static SwitchedNetworkOptions virtual_payloads() {
    SwitchedNetworkOptions options;
    options.virtual_payload = true;
    options.transmit_queue_packets = 64;
    return options;
  }
  void flood(Host& host, const TxPacket& packet) {
    const std::vector<TxPacket> burst(32, packet);
    senders.push_back(std::make_unique<Recorder>(host, [&host, burst](Nanos) {
      while (host.send(burst) == burst.size()) continue;
      return Nanos::never();
    }));
    net.attach(host, *senders.back());
  }
  [[nodiscard]] std::uint64_t pauses(Network::LinkId link) const { return net.link_counters(link).pauses; }

  LeafSpine net;
  std::vector<std::uint64_t> arrived;  ///< number of packets that the receiver got, by sender
  std::uint64_t dropped = 0;
  std::unique_ptr<Recorder> receiver;
  std::unique_ptr<Recorder> bystander;
  std::vector<std::unique_ptr<Recorder>> senders;
};

/// Returns a network whose uplinks are fast enough for all hosts, so that the link to host 4 is the bottleneck.
LeafSpineConfig jumbo() {
  auto config = small();
  config.mtu = 9000;
  config.spines = 1;
  config.uplink_rate = Rate::from_gbps(40);
  return config;
}

TEST(SwitchedNetwork, pfc__loses_nothing_under_incast_and_spreads_upstream) {
  auto config = jumbo();
  config.memory = {.bytes = 2'000'000, .alpha = 1, .pfc = {}};
  const Incast lossy(config, 20_ms);
  EXPECT_GT(lossy.dropped, 1000U);
  config.memory.pfc = {true, 60'000, 30'000};
  const Incast lossless(config, 20_ms);
  EXPECT_EQ(lossless.dropped, 0U);
  // The receiver gets packets of 8074 bytes at 10 Gbps all the time.
  EXPECT_NEAR(static_cast<double>(lossless.receiver->seen.size()), 20e-3 * 10e9 / 8 / 8074, 10);
  // Pauses spread upstream: the last leaf pauses the spine, the spine pauses the leaves, and the leaves pause their
  // hosts.
  EXPECT_GT(lossless.pauses(lossless.net.downlink(0, 2)), 10U);
  EXPECT_GT(lossless.pauses(lossless.net.uplink(0, 0)), 10U);
  EXPECT_GT(lossless.pauses(lossless.net.uplink(1, 0)), 10U);
  for (std::uint32_t host = 0; host < 4; ++host) EXPECT_GT(lossless.pauses(lossless.net.host_uplink(host)), 10U);
  EXPECT_EQ(lossless.pauses(lossless.net.host_downlink(4)), 0U);
  // Head-of-line blocking: the link to the bystander is idle, but the bystander gets less than half of the packets that
  // it gets in the lossy network.
  EXPECT_LT(lossless.bystander->seen.size(), lossy.bystander->seen.size() / 2);
  for (std::uint32_t at = 0; at < 3; ++at) EXPECT_LE(lossless.net.memory(lossless.net.leaf(at)).max_used(), 2'000'000U);
}

TEST(SwitchedNetwork, pfc__keeps_classes_apart) {
  auto config = jumbo();
  config.classes = 2;
  config.memory = {.bytes = 2'000'000, .alpha = 1, .pfc = {true, 60'000, 30'000}};
  // The bystander's traffic is in class 0 and the incast is in class 1, so only the incast is paused.
  const Incast apart(config, 20_ms, {1, 1, 1, 1});
  EXPECT_EQ(apart.dropped, 0U);
  EXPECT_GT(apart.pauses(apart.net.host_uplink(2)), 10U);
  const Incast together(config, 20_ms);
  EXPECT_GT(apart.bystander->seen.size(), 2 * together.bystander->seen.size());
}

TEST(SwitchedNetwork, pfc__headroom_is_what_it_takes) {
  auto config = jumbo();
  config.memory = {.bytes = 2'000'000, .alpha = 1, .pfc = {true, 60'000, 30'000}};
  // The headroom covers the bytes that arrive at 1.25 bytes per ns during two delays of 1 us and a pause frame of 52 ns
  // (51.2 ns, rounded up). It also covers two frames, and one byte for rounding.
  fabric::LinkConfig link;
  link.rate = config.host_rate;
  link.delay = 1_us;
  EXPECT_EQ(fabric::pfc_headroom(link, 9014), 2565U + 2 * 9014 + 1);
  const Incast enough(config, 5_ms);
  EXPECT_EQ(enough.dropped, 0U);
  config.pfc_headroom_bytes = 12'000;
  const Incast too_little(config, 5_ms);
  EXPECT_GT(too_little.dropped, 0U);
}

TEST(SwitchedNetwork, classes__higher_ones_go_first) {
  auto config = jumbo();
  config.classes = 8;
  config.buffer_bytes = 100'000;
  const Incast incast(config, 10_ms, {0, 3, 5, 2});
  // Host 2 has the highest priority, and sends enough to fill the receiver's link.
  const auto all = static_cast<double>(incast.receiver->seen.size());
  EXPECT_GT(static_cast<double>(incast.arrived[2]), 0.98 * all);
  EXPECT_GT(incast.arrived[2], 100 * incast.arrived[0]);
}

TEST(SwitchedNetwork, memory__gives_a_port_more_than_its_share) {
  auto own = jumbo();
  own.buffer_bytes = 100'000;
  auto shared = jumbo();
  shared.memory = {.bytes = 300'000, .alpha = 1, .pfc = {}};  // equals 100 kB for each of the three ports of a switch
  const Incast with_own(own, 5_ms);
  const Incast with_shared(shared, 5_ms);
  EXPECT_EQ(with_own.net.link_counters(with_own.net.host_downlink(4)).max_queue_bytes, 100'000 / 8074 * 8074U);
  // With alpha = 1, a single full queue gets half of the memory: Q = T = B - Q.
  EXPECT_NEAR(static_cast<double>(with_shared.net.link_counters(with_shared.net.host_downlink(4)).max_queue_bytes),
              150'000, 8074);
}

TEST(SwitchedNetwork, meters__count_what_a_job_sends_over_each_link) {
  SwitchedNetworkOptions options;
  options.meters = true;
  LeafSpine net(small(), options);
  Host& from = net.add_port(0, 9);
  Host& to = net.add_port(1, 9);
  send_one(from, to.address(), tagged(7));
  net.run_until(1_ms);
  std::set<std::string> used;
  for (const auto& link : net.links())
    if (!link.usage->jobs().empty()) {
      EXPECT_THAT(link.usage->jobs().at(7), ElementsAre(78));
      used.insert(link.name);
    }
  EXPECT_THAT(used, ElementsAre("host 0 -> leaf 0", "leaf 0 -> host 1"));
}

TEST(SwitchedNetwork, constructor__refuses_what_is_out_of_range) {
  const auto refused = [](auto change) -> std::string {
    auto config = small();
    change(config);
    return refusal_of([&] { LeafSpine net(config); });
  };
  EXPECT_EQ(refused([](auto&) {}), "no error");
  EXPECT_THAT(refused([](auto& c) { c.leaves = 0; }), HasSubstr("0 leaves"));
  EXPECT_THAT(refused([](auto& c) { c.spines = 1025; }), HasSubstr("1025 spines"));
  EXPECT_THAT(refused([](auto& c) { c.hosts_per_leaf = 0; }), HasSubstr("0 hosts per leaf"));
  EXPECT_THAT(refused([](auto& c) { c.leaves = c.hosts_per_leaf = 1024; }), HasSubstr("hosts"));
  EXPECT_THAT(refused([](auto& c) { c.mtu = 9001; }), HasSubstr("MTU"));
  EXPECT_THAT(refused([](auto& c) { c.buffer_bytes = 1513; }), HasSubstr("give at least 1514 B"));
  EXPECT_THAT(refused([](auto& c) { c.host_rate = Rate(); }),
              HasSubstr("link \"host 0 -> leaf 0\" has a capacity of 0 bps"));
  EXPECT_THAT(refused([](auto& c) { c.classes = 9; }), HasSubstr("9 classes"));
  EXPECT_THAT(refused([](auto& c) { c.memory.pfc.enabled = true; }), HasSubstr("switches of 0 B"));
  EXPECT_THAT(refused([](auto& c) {
                c.memory = {.bytes = 100'000, .alpha = 1, .pfc = {true, 60'000, 30'000}};
              }),
              HasSubstr("can't keep xoff and headroom"));
  EXPECT_THAT(refused([](auto& c) { c.memory = {.bytes = 100'000, .alpha = 0, .pfc = {}}; }), HasSubstr("alpha"));
  EXPECT_THAT(refused([](auto& c) { c.uplink_rate = Rate(1); }), HasSubstr("leaf 0 -> spine 0: the rate"));
}

TEST(SwitchedNetwork, add_port__refuses_hosts_and_ports_that_do_not_fit) {
  LeafSpine net(small());
  net.add_port(5, 9);
  EXPECT_THROW(net.add_port(6, 9), InputError);
  EXPECT_THROW(net.add_port(5, 9), InputError);
  EXPECT_NO_THROW(net.add_port(5, 10));
}

TEST(SwitchedNetwork, constructor__refuses_topologies_that_it_has_no_hosts_for) {
  const Rate rate = Rate::from_gbps(10);
  const auto refused = [](const Graph* graph) -> std::string {
    fabric::SwitchedNetworkConfig config;
    if (graph != nullptr) config.topology = std::make_shared<const Topology>(*graph);
    return refusal_of([&] { SwitchedNetwork net(config); });
  };
  EXPECT_EQ(refused(nullptr), "the network has no topology; give it one");
  Graph graph{{{"a", true}, {"b", true}, {"s"}, {"t"}},
              {{"a", "s", rate}, {"s", "a", rate}, {"b", "s", rate}, {"s", "b", rate}, {"s", "t", rate}}};
  EXPECT_EQ(refused(&graph), "no error");
  graph.links.push_back({"t", "a", rate});
  EXPECT_THAT(refused(&graph), HasSubstr("2 links lead to \"a\"; a host has one in each direction"));
  graph.links.back() = {"a", "t", rate};
  EXPECT_THAT(refused(&graph), HasSubstr("2 links lead from \"a\""));
  graph.links = {{"a", "s", rate}, {"s", "a", rate}, {"b", "t", rate}, {"t", "b", rate}, {"s", "t", rate}};
  EXPECT_THAT(refused(&graph), HasSubstr("no path leads from \"b\" to \"a\""));
}

TEST(SwitchedNetwork, run__of_a_fat_tree_conserves_packets_with_pfc) {
  fabric::SwitchedNetworkConfig config;
  config.topology = std::make_shared<const Topology>(Topology::fat_tree(4, Rate::from_gbps(10), 1_us));
  config.mtu = 9000;
  config.classes = 2;
  config.ecn = {true, 20'000, 60'000, 0.5};
  config.memory = {.bytes = 2'000'000, .alpha = 1, .pfc = {true, 40'000, 20'000}};
  const MeteredRun first = chatter_of(config, 1, 1_ms);
  EXPECT_GT(first.received, 10'000U);
  EXPECT_EQ(first.dropped, 0U);
  EXPECT_GT(first.marked, 0U);
  EXPECT_EQ(chatter_of(config, 1, Nanos(777)), first);
  config.memory = {};
  EXPECT_GT(chatter_of(config, 1, 1_ms).dropped, 0U);
}

}  // namespace
}  // namespace mltcp::sim::switched_network_test
