// Tests lab/fabric/ethernet_switch.h and lab/fabric/mac_table.h in virtual time. Covers learning, ageing, moving
// stations, a full table, flooding, filtering, copies, priorities, congestion marks, faults, exact rates, and
// conservation of frames.
#include "mltcp/lab/fabric/ethernet_switch.h"

#include <map>
#include <set>
#include <vector>

#include "../message_of.h"
#include "mltcp/base/random.h"

namespace mltcp::fabric::ethernet_switch_test {
namespace {

using namespace mltcp::literals;

constexpr MacNumber kBroadcast = 0xFFFFFFFFFFFF;
constexpr MacNumber mac(std::uint64_t number) { return 0x020000000000 | number; }

/// Returns a port of 1 Gbps, which sends one byte in 8 ns.
SwitchPortConfig gigabit(std::uint32_t classes = 1) {
  SwitchPortConfig port;
  port.output.rate = Rate(1'000'000'000);
  port.classes = classes;
  return port;
}

struct Arrival {
  std::uint32_t port = 0;
  Link::Handle frame = 0;  // for a copy, the handle of the original frame
  Nanos at;
  bool operator==(const Arrival&) const = default;
};

/// Represents frames as numbers, and records what happens to each frame.
struct Frames {
  struct Note {
    Link::Handle original = 0;
    bool marked = false;
    bool damaged = false;
  };

  Link::Handle make() {
    ++latest;
    notes[latest] = {latest};
    return latest;
  }
  Link::Handle copy(Link::Handle frame) {
    if (no_memory) return 0;
    const Note note = notes.at(frame);
    notes[++latest] = note;
    return latest;
  }
  void mark(Link::Handle frame) {
    notes.at(frame).marked = true;
    ++marks;
  }
  void damage(Link::Handle frame, std::uint64_t) { notes.at(frame).damaged = true; }
  void discard(Link::Handle frame) { EXPECT_EQ(notes.erase(frame), 1U) << "a frame is discarded once"; }
  void deliver(std::uint32_t port, Link::Handle frame, Nanos at) {
    const auto found = notes.find(frame);
    ASSERT_NE(found, notes.end()) << "a frame is delivered once";
    arrivals.push_back({port, found->second.original, at});
    delivered.push_back(found->second);
    notes.erase(found);
  }

  std::map<Link::Handle, Note> notes;  // notes of the frames that are inside the switch
  Link::Handle latest = 0;
  bool no_memory = false;
  std::size_t marks = 0;
  std::vector<Arrival> arrivals;
  std::vector<Note> delivered;
};

struct Network {
  explicit Network(std::vector<SwitchPortConfig> ports, const MacTableConfig& table = {}) : bridge(ports, table) {}
  explicit Network(std::size_t ports) : Network(std::vector<SwitchPortConfig>(ports, gigabit())) {}

  Link::Handle send(std::uint32_t port, MacNumber source, MacNumber destination, Nanos now, std::uint32_t bytes = 125,
                    std::uint8_t priority = 0, bool ecn_capable = false) {
    const Link::Handle frame = frames.make();
    bridge.receive(port, frame, {destination, source, bytes, priority, ecn_capable}, now, frames);
    return frame;
  }
  void run(Nanos until) {
    for (std::uint32_t port = 0; port < bridge.ports(); ++port) bridge.advance(port, until, frames);
  }
  /// Runs until all frames have arrived, and returns the ports at which frames arrived since the last call.
  std::multiset<std::uint32_t> where() {
    run(Nanos(Nanos::never().count - 1));
    std::multiset<std::uint32_t> ports;
    for (const Arrival& arrival : frames.arrivals) ports.insert(arrival.port);
    frames.arrivals.clear();
    return ports;
  }

  Frames frames;
  EthernetSwitch bridge;
};

TEST(EthernetSwitch, unknown_and_group_addresses__leave_by_every_other_port) {
  Network net(4);
  net.send(1, mac(1), mac(2), 1_us);
  EXPECT_THAT(net.where(), ElementsAre(0, 2, 3));
  net.send(1, mac(1), kBroadcast, 2_us);
  EXPECT_THAT(net.where(), ElementsAre(0, 2, 3));
  net.send(3, mac(3), 0x333300000001, 3_us);  // IPv6 multicast
  EXPECT_THAT(net.where(), ElementsAre(0, 1, 2));
  EXPECT_EQ(net.bridge.counters(1).flooded_frames, 2U);
  EXPECT_TRUE(net.frames.notes.empty());
}

TEST(EthernetSwitch, learnt_address__is_reached_by_its_port_alone) {
  Network net(4);
  net.send(2, mac(2), kBroadcast, 1_us);
  net.where();
  net.send(0, mac(1), mac(2), 2_us);
  EXPECT_THAT(net.where(), ElementsAre(2));
  net.send(2, mac(2), mac(1), 3_us);
  EXPECT_THAT(net.where(), ElementsAre(0));
  EXPECT_EQ(net.bridge.counters(2).learnt, 1U);
  EXPECT_EQ(net.bridge.counters(0).learnt, 1U);
  EXPECT_EQ(net.bridge.counters(0).flooded_frames, 0U);
}

TEST(EthernetSwitch, destination_behind_the_ingress_port__is_filtered) {
  Network net(3);
  net.send(0, mac(1), kBroadcast, 1_us);
  net.send(0, mac(2), kBroadcast, 1_us);
  net.where();
  net.send(0, mac(1), mac(2), 2_us);
  net.send(0, mac(1), mac(1), 3_us);
  EXPECT_THAT(net.where(), IsEmpty());
  EXPECT_EQ(net.bridge.counters(0).filtered_frames, 2U);
}

TEST(EthernetSwitch, reserved_addresses__stay_on_their_link) {
  Network net(3);
  for (MacNumber last = 0; last < 16; ++last) net.send(0, mac(1), 0x0180C2000000 | last, 1_us);
  EXPECT_THAT(net.where(), IsEmpty());
  EXPECT_EQ(net.bridge.counters(0).filtered_frames, 16U);
  net.send(0, mac(1), 0x0180C2000010, 2_us);
  EXPECT_THAT(net.where(), ElementsAre(1, 2));
}

TEST(EthernetSwitch, station_that_moves__is_learnt_anew_and_counted) {
  Network net(3);
  net.send(0, mac(1), kBroadcast, 1_us);
  net.send(2, mac(1), kBroadcast, 2_us);
  net.where();
  net.send(1, mac(2), mac(1), 3_us);
  EXPECT_THAT(net.where(), ElementsAre(2));
  EXPECT_EQ(net.bridge.counters(2).moved, 1U);
  EXPECT_EQ(net.bridge.counters(2).learnt, 0U);
  EXPECT_EQ(net.bridge.counters(0).moved, 0U);
}

TEST(EthernetSwitch, silent_station__is_forgotten_after_the_ageing_time) {
  MacTableConfig table;
  table.ageing = 10_s;
  Network net(std::vector<SwitchPortConfig>(3, gigabit()), table);
  net.send(0, mac(1), kBroadcast, 0_s);
  net.send(1, mac(2), mac(1), 10_s);
  EXPECT_EQ(net.bridge.counters(1).flooded_frames, 0U);
  net.send(1, mac(2), mac(1), 10_s + 1_ns);
  EXPECT_EQ(net.bridge.counters(1).flooded_frames, 1U);
  EXPECT_EQ(net.bridge.table().size(10_s + 1_ns), 1U);
  net.send(2, mac(1), kBroadcast, 11_s);
  EXPECT_EQ(net.bridge.counters(2).moved, 0U) << "what is forgotten is new";
  EXPECT_EQ(net.bridge.counters(2).learnt, 1U);
}

TEST(EthernetSwitch, flood_of_addresses__fills_the_table_and_removes_no_entry) {
  MacTableConfig table;
  table.entries = 64;
  table.ageing = 10_s;
  Network net(std::vector<SwitchPortConfig>(3, gigabit()), table);
  net.send(0, mac(1), kBroadcast, 1_us);
  for (std::uint64_t i = 0; i < 10'000; ++i) net.send(1, mac(1000 + i), mac(1), 2_us + 10_us * static_cast<int>(i));
  EXPECT_EQ(net.bridge.table().size(1_s), 64U);
  const auto& flooder = net.bridge.counters(1);
  EXPECT_EQ(flooder.learnt, 63U);
  EXPECT_EQ(flooder.table_full, 10'000U - 63);
  EXPECT_EQ(flooder.flooded_frames, 0U) << "the station in use is known still";
  // When entries have aged, the table has space for new addresses.
  net.send(2, mac(7), kBroadcast, 20_s);
  EXPECT_EQ(net.bridge.counters(2).learnt, 1U);
}

TEST(EthernetSwitch, port_that_goes_down__is_forgotten_and_left_out) {
  Network net(3);
  net.send(1, mac(1), kBroadcast, 1_us);
  net.where();
  net.bridge.set_up(1, false);
  net.send(0, mac(2), mac(1), 2_us);
  EXPECT_THAT(net.where(), ElementsAre(2));
  net.bridge.set_up(2, false);
  net.send(0, mac(2), mac(1), 3_us);
  EXPECT_THAT(net.where(), IsEmpty());
  EXPECT_TRUE(net.frames.notes.empty());
  net.bridge.set_up(1, true);
  net.send(0, mac(2), mac(1), 4_us);
  EXPECT_THAT(net.where(), ElementsAre(1));
}

TEST(EthernetSwitch, rate__is_exact_over_many_frames_however_rarely_it_is_called) {
  for (const Nanos step : {1_us, 777_us}) {
    std::vector<SwitchPortConfig> ports(2, gigabit());
    ports[1].output.rate = Rate(937'000'001);
    ports[1].output.buffer_bytes = 0;
    ports[1].output.delay = 10_us;
    Network net(ports);
    Random random(5);
    Bytes total = 0;
    for (int i = 0; i < 20'000; ++i) {
      const auto bytes = static_cast<std::uint32_t>(60 + random.below(1455));
      total += bytes;
      net.send(0, mac(1), mac(2), 0_us, bytes);
    }
    for (Nanos now = 0_us; net.frames.arrivals.size() < 20'000; now += step) net.run(now);
    EXPECT_EQ(net.frames.arrivals.back().at, Rate(937'000'001).time_for(total) + 10_us);
  }
}

TEST(EthernetSwitch, buffer__drops_what_it_can_not_hold_at_one_port_alone) {
  std::vector<SwitchPortConfig> ports(3, gigabit());
  ports[1].output.buffer_bytes = 10'000;
  Network net(ports);
  for (int i = 0; i < 20; ++i) net.send(0, mac(1), kBroadcast, 1_us, 1000);
  EXPECT_EQ(net.bridge.output(1).counters().dropped_packets, 10U);
  EXPECT_EQ(net.bridge.output(1).counters().max_queue_bytes, 10'000U);
  EXPECT_EQ(net.bridge.output(2).counters().dropped_packets, 0U);
  EXPECT_EQ(net.where().size(), 30U);
  EXPECT_TRUE(net.frames.notes.empty());
}

TEST(EthernetSwitch, priorities__leave_first) {
  Network net(std::vector<SwitchPortConfig>(2, gigabit(8)));
  const auto first = net.send(0, mac(1), mac(2), 1_us, 125, 0);
  const auto low = net.send(0, mac(1), mac(2), 1_us, 125, 1);
  const auto high = net.send(0, mac(1), mac(2), 1_us, 125, 7);
  net.run(1_s);
  EXPECT_THAT(net.frames.arrivals, ElementsAre(Arrival{1, first, 2_us}, Arrival{1, high, 3_us}, Arrival{1, low, 4_us}));
}

TEST(EthernetSwitch, marks__are_of_ecn_capable_copies_behind_the_threshold_alone) {
  std::vector<SwitchPortConfig> ports(3, gigabit());
  ports[1].output.ecn = {true, 3000, 3000, 1.0};
  Network net(ports);
  for (int i = 0; i < 10; ++i) net.send(0, mac(1), kBroadcast, 1_us, 1000, 0, i % 2 == 1);
  // The queue at port 1 grows by 1000 bytes with each frame. Frames with odd numbers are ECN-capable. The switch marks
  // an ECN-capable frame if it finds more than 3000 bytes at port 1: frames 5, 7 and 9.
  EXPECT_EQ(net.frames.marks, 3U);
  net.run(1_s);
  for (std::size_t i = 0; i < net.frames.arrivals.size(); ++i) {
    if (net.frames.delivered[i].marked) {
      EXPECT_EQ(net.frames.arrivals[i].port, 1U);
    }
  }
  EXPECT_EQ(net.bridge.output(1).counters().marked_packets, 3U);
  EXPECT_EQ(net.bridge.output(2).counters().marked_packets, 0U);
}

TEST(EthernetSwitch, faults__hit_one_port_and_every_frame_is_accounted_for) {
  std::vector<SwitchPortConfig> ports(3, gigabit());
  ports[1].output.faults = {0.1, 0.2, 0.3, 0.1, 50_us};
  ports[1].output.buffer_bytes = ports[2].output.buffer_bytes = 0;
  Network net(ports);
  constexpr std::uint64_t count = 10'000;
  for (std::uint64_t i = 0; i < count; ++i) net.send(0, mac(1), kBroadcast, 1_us * static_cast<int>(i), 100);
  net.run(10_s);
  EXPECT_TRUE(net.frames.notes.empty());
  std::map<std::uint32_t, std::uint64_t> arrived;
  std::uint64_t damaged = 0;
  for (std::size_t i = 0; i < net.frames.arrivals.size(); ++i) {
    ++arrived[net.frames.arrivals[i].port];
    damaged += net.frames.delivered[i].damaged ? 1U : 0U;
    if (net.frames.delivered[i].damaged) {
      EXPECT_EQ(net.frames.arrivals[i].port, 1U) << "another port's copy was damaged";
    }
  }
  const LinkCounters& counters = net.bridge.output(1).counters();
  EXPECT_EQ(arrived[2], count);
  EXPECT_EQ(arrived[1], count + counters.duplicated_packets - counters.lost_packets);
  EXPECT_NEAR(static_cast<double>(counters.lost_packets), 1000, 150);
  EXPECT_NEAR(static_cast<double>(counters.duplicated_packets), 1800, 200);
  EXPECT_EQ(damaged, counters.corrupted_packets);
  EXPECT_GT(counters.reordered_packets, 0U);
}

TEST(EthernetSwitch, no_memory_for_copies__is_counted_and_the_original_goes_on) {
  Network net(4);
  net.frames.no_memory = true;
  net.send(0, mac(1), kBroadcast, 1_us);
  EXPECT_EQ(net.where().size(), 1U);
  EXPECT_EQ(net.bridge.counters(1).no_copy + net.bridge.counters(2).no_copy + net.bridge.counters(3).no_copy, 2U);
}

TEST(EthernetSwitch, drain__gives_every_frame_back_undelivered) {
  std::vector<SwitchPortConfig> ports(3, gigabit(4));
  ports[1].output.delay = 1_s;
  ports[1].output.faults.duplication = 0.5;
  Network net(ports);
  for (int i = 0; i < 100; ++i) net.send(0, mac(1), kBroadcast, 1_us, 1000, static_cast<std::uint8_t>(i % 8));
  net.bridge.drain(net.frames);
  EXPECT_TRUE(net.frames.notes.empty());
  EXPECT_THAT(net.frames.arrivals, IsEmpty());
}

std::string refusal(std::span<const SwitchPortConfig> ports, const MacTableConfig& table = {}) {
  return refusal_of([&] { const EthernetSwitch bridge(ports, table); });
}

TEST(EthernetSwitch, configuration__out_of_range_is_named) {
  std::vector<SwitchPortConfig> ports(1, gigabit());
  EXPECT_EQ(refusal(ports), "a switch with 1 ports; give it 2 to 64");
  ports.resize(65, gigabit());
  EXPECT_THAT(refusal(ports), HasSubstr("65 ports"));
  ports.resize(64);
  ports[63].classes = 9;
  EXPECT_EQ(refusal(ports), "port 63: a link has 9 classes; give 1 to 8");
  ports.resize(2);
  EXPECT_EQ(refusal(ports), "no error");
  EXPECT_THAT(refusal(ports, {3, 300_s}), HasSubstr("3 MAC addresses; give 4 to"));
  EXPECT_THAT(refusal(ports, {4, 999_ms}), HasSubstr("give 1 s to 1000000 s"));
}

}  // namespace
}  // namespace mltcp::fabric::ethernet_switch_test
