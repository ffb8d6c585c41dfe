// Tests the simulated network (lab/sim/network.cpp): the times of polls, the transport of packets, and rejected input.
#include "mltcp/lab/sim/network.h"

#include <optional>

#include "../message_of.h"
#include "endpoints.h"
#include "mltcp/base/error.h"

namespace mltcp::sim::network_test {
namespace {

using namespace mltcp::literals;

/// Hosts around one switch. Each host has one link to the switch and one link from the switch. Each link has a rate of
/// 1 Gbps (8 ns per byte) and a delay of 1 us.
struct Star {
  explicit Star(std::uint32_t hosts, const NetworkOptions& options = {}, const fabric::FaultConfig& faults = {})
      : network(options) {
    fabric::LinkConfig config;
    config.rate = Rate(1'000'000'000);
    config.delay = 1_us;
    config.buffer_bytes = 0;
    middle = network.add_switch();
    for (std::uint32_t i = 0; i < hosts; ++i) {
      Host& host = network.add_host(Address::v4(0x0A000001 + i, 9));
      network.connect(host, middle, config);
      const Network::Switch end = network.add_switch();
      fabric::LinkConfig down = config;
      down.faults = faults;
      down.seed = i;
      downlinks.push_back(network.add_link(end, down));
      network.route(middle, host, downlinks.back());
      network.route_to_host(end, host);
      host_list.push_back(&host);
    }
  }
  Host& host(std::uint32_t i) { return *host_list[i]; }

  Network network;
  Network::Switch middle = 0;
  std::vector<Host*> host_list;
  std::vector<Network::LinkId> downlinks;
};

TEST(Network, run__carries_a_packet_over_each_hop_in_its_time) {
  Star star(2);
  Recorder receiver(star.host(1));
  star.network.attach(star.host(1), receiver);
  const auto header = bytes_of(58, 1);
  const auto payload = bytes_of(900, 2);
  ASSERT_TRUE(send_one(star.host(0), star.host(1).address(), header, payload, Ecn::ect0));
  star.network.run_until(17'999_ns);
  EXPECT_THAT(receiver.polls, ElementsAre(0_ns));
  EXPECT_EQ(star.network.now(), 17'999_ns);
  EXPECT_EQ(star.network.packets_inside(), 1U);
  star.network.run_until(1_ms);
  // 1000 bytes on the wire take 8 + 1 us on each of two links.
  EXPECT_THAT(receiver.polls, ElementsAre(0_ns, 18_us));
  ASSERT_EQ(receiver.seen.size(), 1U);
  auto bytes = header;
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  EXPECT_EQ(receiver.seen[0], (Seen{18_us, star.host(0).address(), bytes, 0, Ecn::ect0, 1}));
  EXPECT_EQ(star.network.counters().packet_hops, 2U);
  EXPECT_EQ(star.network.counters().received_packets, 1U);
  EXPECT_EQ(star.network.packets_inside(), 1U);  // the receiver still holds the packet until its next receive()
  star.network.detach(star.host(1));
  EXPECT_EQ(star.network.packets_inside(), 0U);
  EXPECT_EQ(star.network.now(), 1_ms);
}

TEST(Network, run__includes_events_at_its_end) {
  Star star(2);
  Recorder receiver(star.host(1), [](Nanos now) { return now < 30_us ? now + 10_us : Nanos::never(); });
  star.network.attach(star.host(1), receiver);
  star.network.run_until(20_us);
  EXPECT_THAT(receiver.polls, ElementsAre(0_ns, 10_us, 20_us));
  EXPECT_EQ(star.network.next_event(), 30_us);
  star.network.run(Nanos::never(), nullptr);
  EXPECT_EQ(star.network.now(), 30_us);
  EXPECT_TRUE(star.network.next_event().is_never());
  star.network.run_until(5_us);  // the time is in the past, so nothing happens
  EXPECT_EQ(star.network.now(), 30_us);
}

TEST(Network, run__stops_after_the_poll_that_makes_it) {
  Star star(2);
  Recorder endless(star.host(0), [](Nanos now) { return now + 1_us; });
  star.network.attach(star.host(0), endless);
  EXPECT_TRUE(star.network.run(1_s, [&] { return endless.polls.size() == 5; }));
  EXPECT_EQ(star.network.now(), 4_us);
  EXPECT_FALSE(star.network.run(10_us, [] { return false; }));
  EXPECT_EQ(endless.polls.size(), 11U);
}

TEST(Network, poll__once_for_all_that_arrives_at_one_instant) {
  // Hosts 1 to 3 send to host 0 at the same time, each over its own link. The switch delivers to host 0 without another
  // link, so that all packets arrive together.
  Network network({});
  const auto end = network.add_switch();
  fabric::LinkConfig config;
  config.rate = Rate(1'000'000'000);
  std::vector<Host*> hosts;
  for (std::uint32_t i = 0; i < 4; ++i) {
    hosts.push_back(&network.add_host(Address::v4(i + 1, 9)));
    network.connect(*hosts[i], end, config);
    network.route_to_host(end, *hosts[i]);
  }
  Recorder receiver(*hosts[0]);
  network.attach(*hosts[0], receiver);
  const auto header = bytes_of(83);
  for (std::uint32_t i = 3; i > 0; --i) send_one(*hosts[i], hosts[0]->address(), header);
  network.run_until(1_ms);
  EXPECT_THAT(receiver.polls, ElementsAre(0_ns, 1_us));
  ASSERT_EQ(receiver.seen.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(receiver.seen[i].source, hosts[i + 1]->address());
}

TEST(Network, poll__hosts_due_at_once_in_their_order) {
  Star star(3);
  std::vector<int> order;
  Recorder first(star.host(0), [&](Nanos) { return order.push_back(0), 5_us; });
  Recorder second(star.host(1), [&](Nanos) { return order.push_back(1), 5_us; });
  star.network.attach(star.host(1), second);
  star.network.attach(star.host(0), first);
  star.network.run(1_us, nullptr);
  EXPECT_THAT(order, ElementsAre(0, 1));
}

TEST(Network, poll__a_deadline_of_now_lets_others_run_and_is_bounded) {
  Star star(2);
  int left = 3;
  Recorder eager(star.host(0), [&](Nanos now) { return left-- > 0 ? now : Nanos::never(); });
  Recorder late(star.host(1), [](Nanos) { return Nanos(-5); });  // a time in the past means now
  star.network.attach(star.host(0), eager);
  star.network.run_until(1_us);
  EXPECT_THAT(eager.polls, ElementsAre(0_ns, 0_ns, 0_ns, 0_ns));
  star.network.attach(star.host(1), late);
  const std::string refused = message_of<RunError>([&] { star.network.run_until(2_us); });
  EXPECT_THAT(refused, HasAll("10.0.0.2:9", "1000 ns", "deadline"));
  EXPECT_EQ(star.network.now(), 1_us);
  EXPECT_LE(late.polls.size(), Network::kMaxIdlePolls + 1);
}

TEST(Network, poll__a_host_that_leaves_packets_lying_is_named) {
  struct Deaf : Pollable {
    Nanos poll(Nanos) override { return Nanos::never(); }
  } deaf;
  Star star(2);
  star.network.attach(star.host(1), deaf);
  send_one(star.host(0), star.host(1).address(), bytes_of(100));
  EXPECT_THAT(message_of<RunError>([&] { star.network.run_until(1_s); }), HasSubstr("it must take the packets"));
}

TEST(Network, poll__again_at_once_while_packets_are_left) {
  struct Slow : Pollable {
    explicit Slow(Host& h) : host(h) {}
    Nanos poll(Nanos now) override {
      std::array<RxPacket, 1> in;
      taken.emplace_back(now, host.receive(in));
      return Nanos::never();
    }
    Host& host;
    std::vector<std::pair<Nanos, std::size_t>> taken;
  };
  fabric::FaultConfig faults;
  faults.duplication = 1;
  Star star(2, {}, faults);
  Slow slow(star.host(1));
  star.network.attach(star.host(1), slow);
  send_one(star.host(0), star.host(1).address(), bytes_of(83));
  star.network.run_until(1_ms);
  EXPECT_THAT(slow.taken, ElementsAre(std::pair(0_ns, 0U), std::pair(4_us, 1U), std::pair(4_us, 1U)));
}

TEST(Network, poll__an_exception_passes_and_leaves_the_network_usable) {
  Star star(2);
  bool thrown = false;
  Recorder bad(star.host(0), [&](Nanos) -> Nanos {
    if (!std::exchange(thrown, true)) throw RunError("mine");
    return Nanos::never();
  });
  star.network.attach(star.host(0), bad);
  EXPECT_THROW(star.network.run_until(1_us), RunError);
  star.network.run_until(2_us);
  EXPECT_EQ(bad.polls.size(), 1U);
  star.network.wake(star.host(0));
  star.network.run_until(3_us);
  EXPECT_THAT(bad.polls, ElementsAre(0_ns, 2_us));
}

TEST(Network, wake__polls_now_from_outside_and_from_within_polls) {
  Star star(3);
  Recorder sleeper(star.host(0));
  int rounds = 3;
  Recorder waker(star.host(1), [&](Nanos) {
    star.network.wake(star.host(0));
    if (--rounds > 0) star.network.wake(star.host(1));
    return Nanos::never();
  });
  star.network.attach(star.host(0), sleeper);
  star.network.run_until(7_us);
  star.network.wake(star.host(0));
  star.network.wake(star.host(2));  // nothing is attached to host 2
  star.network.run_until(8_us);
  EXPECT_THAT(sleeper.polls, ElementsAre(0_ns, 7_us));
  star.network.attach(star.host(1), waker);
  star.network.run_until(9_us);
  EXPECT_THAT(waker.polls, ElementsAre(8_us, 8_us, 8_us));
  EXPECT_THAT(sleeper.polls, ElementsAre(0_ns, 7_us, 8_us, 8_us, 8_us));
}

TEST(Network, wake__keeps_a_later_deadline) {
  Star star(1);
  Recorder host(star.host(0), [](Nanos now) { return now < 50_us ? 50_us : Nanos::never(); });
  star.network.attach(star.host(0), host);
  star.network.run_until(10_us);
  star.network.wake(star.host(0));
  star.network.run_until(1_ms);
  EXPECT_THAT(host.polls, ElementsAre(0_ns, 10_us, 50_us));
}

TEST(Network, send__takes_what_fits_and_polls_when_a_burst_fits_again) {
  NetworkOptions options;
  options.transmit_queue_packets = 40;
  Star star(2, options);
  const Address to = star.host(1).address();
  const auto header = bytes_of(83);  // each packet takes 1 us
  std::vector<TxPacket> burst(32, TxPacket{&to, header, {}, Ecn::not_ect});
  std::vector<std::size_t> taken;
  Recorder sender(star.host(0), [&](Nanos) {
    for (;;) {
      taken.push_back(star.host(0).send(burst));
      if (taken.back() < burst.size()) return Nanos::never();
    }
  });
  Recorder receiver(star.host(1));
  star.network.attach(star.host(0), sender);
  star.network.attach(star.host(1), receiver);
  star.network.run(100_us, [&] { return taken.size() >= 6; });
  // The queue has room for 40 packets. When only 8 packets are left in the queue, the host can send 32 more.
  EXPECT_THAT(sender.polls, ElementsAre(0_ns, 32_us, 64_us));
  EXPECT_THAT(taken, ElementsAre(32, 8, 32, 0, 32, 0));
  EXPECT_EQ(star.network.uplink(star.host(0)).queue_packets(star.network.now()), 40U);
  // The receiver has as many packets as one link can carry in this time, so the link was never idle.
  star.network.run(73_us, nullptr);
  EXPECT_EQ(receiver.seen.size(), 70U);
}

TEST(Network, send__takes_at_most_a_burst) {
  Star star(2);
  const Address to = star.host(1).address();
  const auto header = bytes_of(83);
  const std::vector<TxPacket> many(100, TxPacket{&to, header, {}, Ecn::not_ect});
  EXPECT_EQ(star.host(0).limits().burst, 32U);
  EXPECT_EQ(star.host(0).send(many), 32U);
}

TEST(Network, send__drops_and_counts_what_it_cannot_deliver) {
  Star star(3);
  const auto header = bytes_of(100);
  EXPECT_TRUE(send_one(star.host(0), Address::v4(99, 9), header));
  EXPECT_TRUE(send_one(star.host(0), Address::v4(0x0A000002, 10), header));  // the destination has another port number
  EXPECT_EQ(star.network.counters().unknown_destination, 2U);
  EXPECT_TRUE(send_one(star.host(0), star.host(1).address(), bytes_of(1473)));
  // virtual payloads are not allowed in this network
  EXPECT_TRUE(send_one(star.host(0), star.host(1).address(), header, virtual_payload(10)));
  EXPECT_EQ(star.network.counters().invalid_packets, 2U);
  EXPECT_EQ(star.network.packets_inside(), 0U);
  EXPECT_TRUE(send_one(star.host(0), star.host(1).address(), bytes_of(1472)));
  star.network.run_until(1_ms);
  EXPECT_EQ(star.network.counters().unattached_host, 1U);
  EXPECT_EQ(star.network.counters().sent_packets, 5U);
  EXPECT_EQ(star.network.packets_inside(), 0U);
  Host& lonely = star.network.add_host(Address::v4(77, 9));  // this host has no link, and no route leads to it
  EXPECT_TRUE(send_one(lonely, star.host(1).address(), header));
  EXPECT_EQ(star.network.counters().unknown_destination, 3U);
  EXPECT_TRUE(send_one(star.host(0), lonely.address(), header));
  star.network.run_until(2_ms);
  EXPECT_EQ(star.network.counters().unknown_destination, 4U);
}

TEST(Network, send__copies_what_it_takes) {
  Star star(2);
  Recorder receiver(star.host(1));
  star.network.attach(star.host(1), receiver);
  auto header = bytes_of(100, 1);
  auto payload = bytes_of(1000, 2);
  send_one(star.host(0), star.host(1).address(), header, payload);
  header.assign(100, std::byte{9});
  payload.assign(1000, std::byte{9});
  star.network.run_until(1_ms);
  ASSERT_EQ(receiver.seen.size(), 1U);
  EXPECT_EQ(receiver.seen[0].bytes[99], std::byte{1});
  EXPECT_EQ(receiver.seen[0].bytes[100], std::byte{2});
  EXPECT_EQ(receiver.seen[0].bytes[1099], std::byte{2});
}

TEST(Network, send__an_empty_packet_is_carried) {
  fabric::FaultConfig faults;
  faults.corruption = 1;  // corruption has no effect, because the packet has no bytes
  Star star(2, {}, faults);
  Recorder receiver(star.host(1));
  star.network.attach(star.host(1), receiver);
  send_one(star.host(0), star.host(1).address(), {});
  star.network.run_until(1_ms);
  ASSERT_EQ(receiver.seen.size(), 1U);
  EXPECT_THAT(receiver.seen[0].bytes, IsEmpty());
}

TEST(Network, send__to_itself) {
  Star star(1);
  Recorder host(star.host(0));
  star.network.attach(star.host(0), host);
  send_one(star.host(0), star.host(0).address(), bytes_of(83));
  star.network.run_until(1_ms);
  ASSERT_EQ(host.seen.size(), 1U);
  EXPECT_EQ(host.seen[0].at, 4_us);
}

TEST(Network, virtual_payload__counts_on_the_wire_without_bytes) {
  NetworkOptions options;
  options.virtual_payload = true;
  Star star(2, options);
  EXPECT_TRUE(star.host(0).limits().virtual_payload);
  Recorder receiver(star.host(1));
  star.network.attach(star.host(1), receiver);
  send_one(star.host(0), star.host(1).address(), bytes_of(58), virtual_payload(900));
  // this packet is one byte too long
  send_one(star.host(0), star.host(1).address(), bytes_of(58), virtual_payload(1415));
  send_one(star.host(0), star.host(1).address(), bytes_of(58), bytes_of(900));
  star.network.run_until(1_ms);
  ASSERT_EQ(receiver.seen.size(), 2U);
  EXPECT_EQ(receiver.seen[0].at, 18_us);
  EXPECT_EQ(receiver.seen[0].bytes.size(), 58U);
  EXPECT_EQ(receiver.seen[0].virtual_bytes, 900U);
  EXPECT_EQ(receiver.seen[1].at, 26_us);
  EXPECT_EQ(receiver.seen[1].bytes.size(), 958U);
  EXPECT_EQ(receiver.seen[1].virtual_bytes, 0U);
  EXPECT_EQ(star.network.counters().invalid_packets, 1U);
}

TEST(Network, receive__bytes_stay_until_the_next_call) {
  struct Keeper : Pollable {
    explicit Keeper(Host& h) : host(h) {}
    Nanos poll(Nanos) override {
      std::array<RxPacket, 1> in;
      if (kept.data() != nullptr) intact = kept[0] == std::byte{7} && kept[kept.size() - 1] == std::byte{7};
      if (host.receive(in) == 1) kept = in[0].bytes;
      return Nanos::never();
    }
    Host& host;
    std::span<const std::byte> kept;
    std::optional<bool> intact;
  };
  Star star(2);
  Keeper keeper(star.host(1));
  star.network.attach(star.host(1), keeper);
  send_one(star.host(0), star.host(1).address(), bytes_of(1000, 7));
  star.network.run_until(1_ms);
  EXPECT_EQ(star.network.packets_inside(), 1U);  // the receiver holds the packet
  // Other packets arrive and leave while the receiver holds its packet.
  for (unsigned i = 0; i < 20; ++i) send_one(star.host(1), star.host(0).address(), bytes_of(1000, 8));
  star.network.run_until(2_ms);
  star.network.wake(star.host(1));
  star.network.run_until(3_ms);
  EXPECT_EQ(keeper.intact, true);
  EXPECT_EQ(star.network.packets_inside(), 0U);
}

TEST(Network, faults__corruption_flips_one_bit_and_duplicates_are_clean_copies) {
  fabric::FaultConfig faults;
  faults.corruption = 1;
  faults.duplication = 1;
  Star star(2, {}, faults);
  Recorder receiver(star.host(1));
  star.network.attach(star.host(1), receiver);
  const auto header = bytes_of(64, 0);
  std::vector<int> hits(512);
  constexpr int n = 5'000;
  for (int i = 0; i < n; ++i) {
    ASSERT_TRUE(send_one(star.host(0), star.host(1).address(), header));
    star.network.run_until(star.network.now() + 10_us);
  }
  ASSERT_EQ(receiver.seen.size(), 2U * n);
  for (std::size_t i = 0; i < receiver.seen.size(); i += 2) {
    int flipped = 0;
    for (std::size_t byte = 0; byte < 64; ++byte)
      for (unsigned bit = 0; bit < 8; ++bit)
        if ((receiver.seen[i].bytes[byte] >> bit & std::byte{1}) != std::byte{0}) ++flipped, ++hits[byte * 8 + bit];
    ASSERT_EQ(flipped, 1);
    ASSERT_EQ(receiver.seen[i + 1].bytes, header);
  }
  // Each of the 512 bits is hit 9.8 times on average.
  EXPECT_EQ(std::count(hits.begin(), hits.end(), 0), 0);
  EXPECT_LT(*std::max_element(hits.begin(), hits.end()), 35);
}

TEST(Network, receive__more_than_a_burst_at_once) {
  // At 1000 Tbps, a link sends 125 000 bytes per nanosecond, so all 100 packets arrive at the same time.
  Network network({});
  const auto end = network.add_switch();
  fabric::LinkConfig config;
  config.rate = Rate(1'000'000'000'000'000);
  config.buffer_bytes = 0;
  Host& from = network.add_host(Address::v4(1, 9));
  Host& to = network.add_host(Address::v4(2, 9));
  network.connect(from, end, config);
  network.route_to_host(end, to);
  Recorder receiver(to);
  network.attach(to, receiver);
  for (unsigned i = 0; i < 100; ++i) send_one(from, to.address(), bytes_of(58, i));
  network.run_until(1_us);
  ASSERT_EQ(receiver.seen.size(), 100U);
  for (unsigned i = 0; i < 100; ++i) EXPECT_EQ(receiver.seen[i].bytes, bytes_of(58, i));
  EXPECT_THAT(receiver.polls, ElementsAre(0_ns, 1_ns));
}

TEST(Network, meter__ignores_damaged_packets) {
  // The first link damages half of the packets. The meter is on the second link.
  Network network({});
  const auto middle = network.add_switch();
  const auto end = network.add_switch();
  fabric::LinkConfig config;
  config.rate = Rate(1'000'000'000);
  Host& to = network.add_host(Address::v4(2, 9));
  Host& from = network.add_host(Address::v4(1, 9));
  const auto last = network.add_link(end, config);
  config.faults.corruption = 0.5;
  const auto first = network.connect(from, middle, config);
  network.route(middle, to, last);
  network.route_to_host(end, to);
  fabric::UsageMeter meter;
  network.meter(last, &meter);
  const auto header = tagged(5);
  for (int i = 0; i < 1000; ++i) send_one(from, to.address(), header);
  network.run_until(1_s);
  const std::uint64_t damaged = network.link(first).counters().corrupted_packets;
  EXPECT_GT(damaged, 400U);
  ASSERT_EQ(meter.jobs().size(), 1U);
  EXPECT_EQ(meter.jobs().at(5), std::vector<Bytes>{(1000 - damaged) * 78});
}

TEST(Network, ecn__marks_capable_packets_only) {
  Network network({});
  const auto end = network.add_switch();
  fabric::LinkConfig config;
  config.rate = Rate(1'000'000'000);
  config.ecn = {true, 200, 200, 1.0};
  Host& from = network.add_host(Address::v4(1, 9));
  Host& to = network.add_host(Address::v4(2, 9));
  network.connect(from, end, config);
  network.route_to_host(end, to);
  Recorder receiver(to);
  network.attach(to, receiver);
  for (const Ecn ecn : {Ecn::ect0, Ecn::ect0, Ecn::ect0, Ecn::ect1, Ecn::not_ect, Ecn::ce})
    send_one(from, to.address(), bytes_of(83), {}, ecn);
  network.run_until(1_ms);
  std::vector<Ecn> codepoints;
  for (const Seen& seen : receiver.seen) codepoints.push_back(seen.ecn);
  EXPECT_THAT(codepoints, ElementsAre(Ecn::ect0, Ecn::ect0, Ecn::ce, Ecn::ce, Ecn::not_ect, Ecn::ce));
}

TEST(Network, detach__drops_what_arrives_and_attach_replaces) {
  Star star(2);
  Recorder first(star.host(1), [](Nanos now) { return now + 1_us; });
  Recorder second(star.host(1));
  star.network.attach(star.host(1), first);
  star.network.run_until(2_us);
  star.network.detach(star.host(1));
  send_one(star.host(0), star.host(1).address(), bytes_of(83));
  star.network.run_until(50_us);
  EXPECT_EQ(first.polls.size(), 3U);
  EXPECT_EQ(star.network.counters().unattached_host, 1U);
  star.network.attach(star.host(1), second);
  send_one(star.host(0), star.host(1).address(), bytes_of(83));
  star.network.run_until(100_us);
  EXPECT_EQ(second.seen.size(), 1U);
  EXPECT_THAT(second.polls, ElementsAre(50_us, 54_us));
}

TEST(Network, detach__drops_and_counts_what_waits_to_be_taken) {
  struct Deaf : Pollable {
    Nanos poll(Nanos) override { return Nanos::never(); }
  };
  Star star(2);
  Deaf deaf;
  star.network.attach(star.host(1), deaf);
  send_one(star.host(0), star.host(1).address(), bytes_of(83));
  send_one(star.host(0), star.host(1).address(), bytes_of(83));
  EXPECT_THROW(star.network.run_until(1_ms), RunError);  // the endpoint never receives its packets
  star.network.detach(star.host(1));
  EXPECT_EQ(star.network.counters().unattached_host, 1U);
  star.network.run_until(2_ms);
  EXPECT_EQ(star.network.counters().unattached_host, 2U) << "what arrives later, too";
  EXPECT_EQ(star.network.packets_inside(), 0U);
}

TEST(Network, set_up__refuses_what_cannot_be) {
  NetworkOptions options;
  options.mtu = 575;
  EXPECT_THROW(Network{options}, InputError);
  options.mtu = 9001;
  EXPECT_THROW(Network{options}, InputError);
  options.mtu = 9000;
  options.transmit_queue_packets = 31;
  EXPECT_THROW(Network{options}, InputError);
  Star star(1);
  fabric::LinkConfig config;
  config.rate = Rate(1'000'000'000);
  EXPECT_THROW(star.network.add_host(star.host(0).address()), InputError);
  EXPECT_THROW(star.network.connect(star.host(0), star.middle, config), InputError);
  EXPECT_THROW(star.network.add_link(99, config), InputError);
  EXPECT_THROW(star.network.route(star.middle, star.host(0), 99), InputError);
  EXPECT_THROW(star.network.route_to_host(99, star.host(0)), InputError);
  EXPECT_THROW(star.network.meter(99, nullptr), InputError);
}

}  // namespace
}  // namespace mltcp::sim::network_test
