// Tests the flow network (lab/sim/flow_network.cpp): weights, times, bytes, the fluid limit, and its rates against a
// plain implementation of progressive filling.
#include "mltcp/lab/sim/flow_network.h"

#include <cmath>
#include <map>
#include <numeric>

#include "../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/cc/fluid_model.h"

namespace mltcp::sim::flow_network_test {
namespace {

using namespace mltcp::literals;
using Hop = FlowNetwork::Hop;
using Augmentation = cc::Augmentation;

const Rate kGig = Rate::from_gbps(1);  // 125 bytes per microsecond
constexpr double kGigBytes = 125e6;    // bytes per second

/// Runs until no flow has bytes to send. Returns the time at which each send ended, by tag.
std::map<std::uint64_t, Nanos> drain(FlowNetwork& net) {
  std::map<std::uint64_t, Nanos> ends;
  while (!net.next_event().is_never()) {
    net.advance(net.next_event());
    for (const auto& done : net.finished()) ends[done.tag] = net.now();
  }
  return ends;
}

FlowNetwork::FlowId lone_flow(FlowNetwork& net, std::span<const Hop> path, const Augmentation& gain = {},
                              std::uint32_t connections = 1) {
  return net.add_flow(net.add_group(0, gain), path, connections);
}

TEST(FlowNetwork, send__takes_bytes_over_rate_and_headers) {
  FlowNetwork net;
  const auto link = net.add_link(kGig);
  const auto flow = lone_flow(net, std::array{Hop{link, 1.0}});
  const auto heavy = lone_flow(net, std::array{Hop{net.add_link(kGig), 1.25}});
  net.send(flow, 125'000, 1);
  net.send(heavy, 125'000, 2);
  EXPECT_EQ(net.next_event(), 1_ms);
  EXPECT_DOUBLE_EQ(net.bytes_per_second(heavy), kGigBytes / 1.25);
  const auto ends = drain(net);
  EXPECT_EQ(ends.at(1), 1_ms);
  EXPECT_EQ(ends.at(2), 1250_us);
  EXPECT_TRUE(net.idle(flow));
  EXPECT_EQ(net.bytes_per_second(flow), 0);
}

TEST(FlowNetwork, send__goes_in_order_and_not_before_its_time) {
  FlowNetwork net;
  const auto flow = lone_flow(net, std::array{Hop{net.add_link(kGig), 1.0}});
  net.send(flow, 125, 1, 10_us);
  net.send(flow, 250, 2);
  net.send(flow, 1, 3, 1_s);  // `not_before` = 1 s has no effect, because the flow already has bytes to send
  const auto ends = drain(net);
  EXPECT_EQ(ends.at(1), 11_us);
  EXPECT_EQ(ends.at(2), 13_us);
  EXPECT_EQ(ends.at(3), Nanos(13'008));
}

TEST(FlowNetwork, rates__are_shared_by_weight_and_connections) {
  FlowNetwork net;
  const auto link = net.add_link(kGig);
  const std::array path{Hop{link, 1.0}};
  const auto one = lone_flow(net, path);
  const auto three = lone_flow(net, path, Augmentation::constant(1.5), 2);
  net.send(one, 1'000'000, 1);
  EXPECT_DOUBLE_EQ(net.bytes_per_second(one), kGigBytes);
  net.send(three, 1'000'000, 2);
  EXPECT_DOUBLE_EQ(net.bytes_per_second(one), kGigBytes / 4);
  EXPECT_DOUBLE_EQ(net.bytes_per_second(three), kGigBytes * 3 / 4);
  // The heavier flow ends when the link has sent 4/3 MB in total. The lighter flow then has 2/3 MB left.
  const auto ends = drain(net);
  EXPECT_EQ(ends.at(2), Nanos(10'666'667));
  EXPECT_EQ(ends.at(1), 16_ms + 1_ns);
}

// The "parking lot" topology: one long flow over two links, and one short flow on each link. The second link is
// narrower than the first.
TEST(FlowNetwork, rates__are_max_min_fair) {
  FlowNetwork net;
  const auto wide = net.add_link(kGig);
  const auto narrow = net.add_link(Rate::from_gbps(0.5));
  const auto both = lone_flow(net, std::array{Hop{wide, 1.0}, Hop{narrow, 1.0}});
  const auto on_wide = lone_flow(net, std::array{Hop{wide, 1.0}});
  const auto on_narrow = lone_flow(net, std::array{Hop{narrow, 1.0}});
  for (const auto flow : {both, on_wide, on_narrow}) net.send(flow, 1 << 20, flow);
  EXPECT_DOUBLE_EQ(net.bytes_per_second(both), kGigBytes / 4);
  EXPECT_DOUBLE_EQ(net.bytes_per_second(on_narrow), kGigBytes / 4);
  EXPECT_DOUBLE_EQ(net.bytes_per_second(on_wide), kGigBytes * 3 / 4);
}

TEST(FlowNetwork, set_rate__counts_for_what_is_sent_from_then_on) {
  FlowNetwork net;
  const auto link = net.add_link(kGig);
  const auto flow = lone_flow(net, std::array{Hop{link, 1.0}});
  net.send(flow, 250'000, 1);
  net.advance(1_ms);
  net.set_rate(link, Rate::from_gbps(0.1));
  EXPECT_EQ(drain(net).at(1), 11_ms);
  net.send(flow, 12'500, 2);
  EXPECT_EQ(drain(net).at(2), 12_ms);
}

TEST(FlowNetwork, remove_group__leaves_the_link_to_the_others) {
  FlowNetwork net;
  const auto link = net.add_link(kGig);
  const std::array path{Hop{link, 1.0}};
  const auto group = net.add_group(7, {});
  net.send(net.add_flow(group, path), 1'000'000, 1);
  net.send(net.add_flow(group, path), 1'000'000, 2, 5_ms);
  const auto stays = lone_flow(net, path);
  net.send(stays, 1'000'000, 3);
  net.advance(2_ms);
  net.remove_group(group);
  EXPECT_DOUBLE_EQ(net.bytes_per_second(stays), kGigBytes);
  const auto ends = drain(net);
  EXPECT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends.at(3), 9_ms);
  EXPECT_THROW(net.remove_group(group), InputError);
}

// ---- Comparison with a plain implementation on random networks ----

struct PlainFlow {
  std::vector<Hop> path;
  double weight = 1;
  double rate = -1;
};

/// Progressive filling by its definition: all rates rise together until a link is full. Then the rates of the flows on
/// that link stay, and the rates of the remaining flows rise further.
void fill_plainly(std::vector<PlainFlow>& flows, const std::vector<double>& capacities) {
  const auto load = [&](std::size_t link, bool frozen) {
    double sum = 0;
    for (const PlainFlow& flow : flows)
      for (const Hop& hop : flow.path)
        if (hop.link == link && (flow.rate >= 0) == frozen)
          sum += hop.wire_bytes_per_byte * (frozen ? flow.rate : flow.weight);
    return sum;
  };
  for (;;) {
    double level = std::numeric_limits<double>::infinity();
    std::size_t full = 0;
    for (std::size_t link = 0; link < capacities.size(); ++link) {
      const double rising = load(link, false);
      const double at = (capacities[link] - load(link, true)) / rising;
      if (rising > 0 && at < level) {
        level = at;
        full = link;
      }
    }
    if (std::isinf(level)) return;
    for (PlainFlow& flow : flows)
      for (const Hop& hop : flow.path)
        if (hop.link == full && flow.rate < 0) flow.rate = flow.weight * level;
  }
}

struct RandomNetwork {
  explicit RandomNetwork(std::uint64_t seed) : random(seed) {
    const std::size_t links = 2 + random.below(12);
    for (std::size_t i = 0; i < links; ++i) {
      const Rate rate(1'000'000'000 * (1 + random.below(4)));
      net.add_link(rate);
      capacities.push_back(static_cast<double>(rate.bits_per_second) / 8);
    }
    const std::size_t flows = 1 + random.below(24);
    for (std::size_t i = 0; i < flows; ++i) {
      std::vector<FlowNetwork::LinkId> order(links);
      std::iota(order.begin(), order.end(), 0U);
      const std::size_t hops = 1 + random.below(std::min<std::size_t>(links, 4));
      PlainFlow flow;
      for (std::size_t k = 0; k < hops; ++k) {
        std::swap(order[k], order[k + random.below(links - k)]);
        flow.path.push_back({order[k], 1.0 + 0.25 * static_cast<double>(random.below(3))});
      }
      const auto connections = static_cast<std::uint32_t>(1 + random.below(3));
      const double gain = random.chance(0.5) ? 1.0 : 0.25 + random.uniform();
      flow.weight = gain * connections;
      ids.push_back(lone_flow(net, flow.path, Augmentation::constant(gain), connections));
      plain.push_back(flow);
    }
  }
  /// Compares the rates of all flows that are sending.
  void compare() {
    std::vector<PlainFlow> sending;
    for (std::size_t i = 0; i < plain.size(); ++i)
      if (!net.idle(ids[i])) sending.push_back(plain[i]);
    fill_plainly(sending, capacities);
    std::size_t next = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const double expected = net.idle(ids[i]) ? 0 : sending[next++].rate;
      EXPECT_NEAR(net.bytes_per_second(ids[i]), expected, expected * 1e-9) << "flow " << i;
    }
  }

  Random random;
  FlowNetwork net;
  std::vector<double> capacities;
  std::vector<FlowNetwork::FlowId> ids;
  std::vector<PlainFlow> plain;
};

TEST(FlowNetwork, rates__equal_plain_progressive_filling_while_flows_come_and_go) {
  for (std::uint64_t seed = 1; seed <= 200 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomNetwork random(seed);
    FlowNetwork& net = random.net;
    Nanos last;
    for (int step = 0; step < 40; ++step) {
      const std::size_t i = random.random.below(random.ids.size());
      if (net.idle(random.ids[i])) net.send(random.ids[i], 1 + random.random.below(1'000'000), i);
      random.compare();
      if (random.random.chance(0.5) && !net.next_event().is_never()) {
        net.advance(net.next_event());
        EXPECT_GE(net.now(), last);
        last = net.now();
        random.compare();
      }
    }
  }
}

// Checks the definition of max-min fairness: no link is overloaded, and each flow has a full link on which no other
// flow has a higher rate per weight.
TEST(FlowNetwork, rates__give_every_flow_a_bottleneck) {
  for (std::uint64_t seed = 1000; seed < 1200; ++seed) {
    RandomNetwork random(seed);
    for (std::size_t i = 0; i < random.ids.size(); ++i) random.net.send(random.ids[i], 1 << 20, i);
    std::vector<double> load(random.capacities.size());
    std::vector<double> highest(random.capacities.size());
    for (std::size_t i = 0; i < random.ids.size(); ++i) {
      const double rate = random.net.bytes_per_second(random.ids[i]);
      for (const Hop& hop : random.plain[i].path) {
        load[hop.link] += rate * hop.wire_bytes_per_byte;
        highest[hop.link] = std::max(highest[hop.link], rate / random.plain[i].weight);
      }
    }
    for (std::size_t link = 0; link < load.size(); ++link)
      EXPECT_LE(load[link], random.capacities[link] * (1 + 1e-9)) << seed;
    for (std::size_t i = 0; i < random.ids.size(); ++i) {
      const double level = random.net.bytes_per_second(random.ids[i]) / random.plain[i].weight;
      bool held = false;
      for (const Hop& hop : random.plain[i].path)
        held |= load[hop.link] > random.capacities[hop.link] * (1 - 1e-9) && level > highest[hop.link] * (1 - 1e-9);
      EXPECT_TRUE(held) << "seed " << seed << " flow " << i;
    }
  }
}

// ---- Progress and gains ----

/// Returns the length of each iteration in seconds, for each job. The jobs compute, and send over one link of 1 Gbps.
std::vector<std::vector<double>> iterations_of(std::span<const cc::FluidJob> jobs, const Augmentation& gain, int count,
                                               std::uint32_t steps) {
  FlowNetwork net(FlowNetwork::Options{steps});
  const std::array path{Hop{net.add_link(kGig), 1.0}};
  struct State {
    FlowNetwork::GroupId group;
    FlowNetwork::FlowId flow;
    Nanos begin;
  };
  std::vector<State> states;
  std::vector<std::vector<double>> lengths(jobs.size());
  const auto begin = [&](std::size_t i, Nanos at) {
    const auto bytes = static_cast<Bytes>(std::llround(jobs[i].communicate * kGigBytes));
    states[i].begin = at;
    net.begin_iteration(states[i].group, bytes);
    net.send(states[i].flow, bytes, i, at + Nanos::from_seconds(jobs[i].compute));
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto group = net.add_group(static_cast<std::uint32_t>(i), gain);
    states.push_back({group, net.add_flow(group, path), {}});
    begin(i, Nanos::from_seconds(jobs[i].start));
  }
  const auto done = [&](const auto& l) { return l.size() >= static_cast<std::size_t>(count); };
  while (!std::all_of(lengths.begin(), lengths.end(), done)) {
    net.advance(net.next_event());
    const std::vector<FlowNetwork::Finished> finished(net.finished().begin(), net.finished().end());
    for (const auto& end : finished) {
      lengths[end.tag].push_back((net.now() - states[end.tag].begin).seconds());
      begin(end.tag, net.now());
    }
  }
  for (auto& l : lengths) l.resize(static_cast<std::size_t>(count));
  return lengths;
}

TEST(FlowNetwork, weights__follow_progress_in_64_steps_by_default) {
  EXPECT_EQ(FlowNetwork::Options{}.weight_steps, 64U);
}

// Checks the table in the HotNets '24 paper: two jobs that send for half of their period, with an offset of 1% of the
// period.
TEST(FlowNetwork, gain__gives_the_table_of_the_fluid_limit) {
  const std::array jobs{cc::FluidJob{.start = 0}, cc::FluidJob{.start = 0.01}};
  const auto lengths = iterations_of(jobs, Augmentation::mltcp({}), 6, FlowNetwork::Options{}.weight_steps);
  const std::array<double, 6> first{1.430, 1.217, 1.044, 1.006, 1.001, 1.000};
  const std::array<double, 6> offsets{.0100, .0702, .2832, .4563, .4941, .4993};
  double offset = 0.01;
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_NEAR(offset, offsets[i], 0.002) << "iteration " << i;
    EXPECT_NEAR(lengths[0][i], first[i], 0.002) << "iteration " << i;
    offset += lengths[1][i] - lengths[0][i];
  }
  const auto fair = iterations_of(jobs, {}, 20, 64);
  for (const double length : fair[0]) EXPECT_NEAR(length, 1.49, 1e-6);
}

TEST(FlowNetwork, gain__agrees_with_the_fluid_model_for_more_jobs_and_every_function) {
  const std::array jobs{cc::FluidJob{.compute = 0.6, .communicate = 0.3, .start = 0},
                        cc::FluidJob{.compute = 0.6, .communicate = 0.3, .start = 0.02},
                        cc::FluidJob{.compute = 0.6, .communicate = 0.3, .start = 0.05}};
  for (const char* name : {"F1", "F2", "F3", "F4", "F5", "F6"}) {
    const auto function = cc::Aggressiveness::named(name);
    const auto expected = cc::fluid_iterations(jobs, function, 8);
    const auto coarse = iterations_of(jobs, Augmentation::mltcp(function), 8, 32);
    const auto fine = iterations_of(jobs, Augmentation::mltcp(function), 8, 512);
    for (std::size_t job = 0; job < jobs.size(); ++job)
      for (std::size_t i = 0; i < expected[job].size(); ++i) {
        EXPECT_NEAR(coarse[job][i], expected[job][i], 0.005) << name << " job " << job << " iteration " << i;
        EXPECT_NEAR(fine[job][i], expected[job][i], 0.0005) << name << " job " << job << " iteration " << i;
      }
  }
}

TEST(FlowNetwork, gain__is_1_while_the_iteration_is_not_known) {
  FlowNetwork net;
  const std::array path{Hop{net.add_link(kGig), 1.0}};
  const auto group = net.add_group(0, Augmentation::mltcp({}));
  const auto flow = net.add_flow(group, path);
  const auto other = lone_flow(net, path);
  net.send(flow, 1'000'000, 1);
  net.send(other, 1'000'000, 2);
  EXPECT_DOUBLE_EQ(net.bytes_per_second(flow), kGigBytes / 2);
  net.begin_iteration(group, 1'000'000);
  const double gain = 0.25 + 1.75 / 128;
  EXPECT_DOUBLE_EQ(net.bytes_per_second(flow), kGigBytes * gain / (1 + gain));
  EXPECT_EQ(net.bytes_ratio(group), 0);
  drain(net);
  EXPECT_DOUBLE_EQ(net.bytes_ratio(group), 1);
}

// One job has two flows on two links. The bytes of the flow without competitors increase the weight of the flow on the
// shared link.
TEST(FlowNetwork, gain__follows_the_progress_of_all_flows_of_a_group) {
  FlowNetwork net;
  const auto shared = net.add_link(kGig);
  const auto own = net.add_link(kGig);
  const auto group = net.add_group(0, Augmentation::mltcp({}));
  const auto held = net.add_flow(group, std::array{Hop{shared, 1.0}});
  const auto free = net.add_flow(group, std::array{Hop{own, 1.0}});
  const auto other = lone_flow(net, std::array{Hop{shared, 1.0}});
  net.begin_iteration(group, 2'000'000);
  net.send(held, 1'000'000, 1);
  net.send(free, 1'000'000, 2);
  net.send(other, 10'000'000, 3);
  while (net.next_event() < 8_ms) net.advance(net.next_event());
  net.advance(8_ms);
  EXPECT_TRUE(net.idle(free));
  const double ratio = net.bytes_ratio(group);
  EXPECT_GT(ratio, 0.6);
  const double share = net.bytes_per_second(held) / kGigBytes;
  EXPECT_NEAR(share / (1 - share), 0.25 + 1.75 * ratio, 1.75 / 128 + 1e-9);
}

// ---- Bytes, determinism, invalid input ----

TEST(FlowNetwork, contended__is_a_link_that_flows_of_several_groups_could_overfill) {
  // Each flow has its own first link, which limits its rate. All flows share the last link.
  struct Sender {
    int group;
    double gbps;
  };
  const auto contended = [](std::initializer_list<Sender> senders) {
    FlowNetwork net;
    const auto shared = net.add_link(kGig);
    std::map<int, FlowNetwork::GroupId> groups;
    for (const Sender& sender : senders) {
      if (!groups.contains(sender.group)) groups[sender.group] = net.add_group(0, {});
      const std::array path{Hop{net.add_link(Rate::from_gbps(sender.gbps)), 1.0}, Hop{shared, 1.0}};
      net.send(net.add_flow(groups[sender.group], path), 1'000'000'000, 0);
    }
    net.advance(1_ms);
    EXPECT_TRUE(net.use(shared).contended == 1_ms || net.use(shared).contended == Nanos(0));
    EXPECT_NEAR(net.use(shared).contended_wire_bytes,
                net.use(shared).contended == 1_ms ? net.use(shared).wire_bytes : 0, 1e-3);
    return net.use(shared).contended == 1_ms;
  };
  EXPECT_TRUE(contended({{1, 1.0}, {2, 0.1}}));
  EXPECT_FALSE(contended({{1, 0.5}, {2, 0.5}})) << "they fill it to the brim";
  EXPECT_TRUE(contended({{1, 0.5}, {2, 0.501}}));
  EXPECT_FALSE(contended({{1, 1.0}, {1, 1.0}})) << "of one group";
  EXPECT_FALSE(contended({{1, 0.2}, {2, 0.2}, {1, 0.2}}));
  // The result does not depend on the order of the calls.
  EXPECT_TRUE(contended({{1, 0.4}, {2, 0.4}, {1, 0.4}}));
  EXPECT_TRUE(contended({{1, 0.4}, {1, 0.4}, {2, 0.4}}));
  EXPECT_TRUE(contended({{2, 0.4}, {1, 0.4}, {1, 0.4}}));
}

TEST(FlowNetwork, use__counts_every_byte_and_when_jobs_met) {
  FlowNetwork net;
  const auto link = net.add_link(kGig);
  fabric::UsageMeter meter(100_us);
  net.meter(link, &meter);
  const std::array path{Hop{link, 1.25}};
  const auto group = net.add_group(5, {});
  const auto first = net.add_flow(group, path);
  const auto second = net.add_flow(group, path);
  const auto other = net.add_flow(net.add_group(6, {}), path);
  net.send(first, 100'000, 1);
  net.send(second, 100'000, 2);  // both flows belong to one group, so they do not contend
  drain(net);
  EXPECT_EQ(net.now(), 2_ms);
  EXPECT_EQ(net.use(link).contended, Nanos(0));
  net.send(first, 100'000, 3);
  net.send(other, 300'000, 4);
  net.advance(3_ms);
  const auto meanwhile = net.use(link);
  EXPECT_NEAR(meanwhile.wire_bytes, 375'000, 1e-3);
  EXPECT_EQ(meanwhile.contended, 1_ms);
  const auto ends = drain(net);
  EXPECT_EQ(ends.at(3), 4_ms);
  EXPECT_EQ(ends.at(4), 6_ms);
  const auto use = net.use(link);
  EXPECT_NEAR(use.wire_bytes, 750'000, 1e-3);
  EXPECT_EQ(use.contended, 2_ms);
  EXPECT_NEAR(use.contended_wire_bytes, 250'000, 1e-3);
  ASSERT_EQ(meter.jobs().size(), 2U);
  const auto& five = meter.jobs().at(5);
  ASSERT_EQ(five.size(), 40U);
  EXPECT_NEAR(static_cast<double>(five[3]), 12'500, 1.5);
  EXPECT_NEAR(static_cast<double>(five[30]), 6'250, 1.5);
  Bytes sum = 0;
  for (const auto& [job, bins] : meter.jobs()) sum = std::accumulate(bins.begin(), bins.end(), sum);
  EXPECT_NEAR(static_cast<double>(sum), 750'000, 4);
}

/// Runs jobs that send messages of random sizes repeatedly. Returns a digest of the end times. Stores the sums of wire
/// bytes and of requested bytes in `wire_bytes` and `asked`.
std::uint64_t digest_of(std::uint64_t seed, double* wire_bytes, double* asked) {
  Random random(seed);
  FlowNetwork net;
  constexpr std::size_t links = 6;
  for (std::size_t i = 0; i < links; ++i) net.add_link(Rate(1'000'000'000 + 333'333'333 * random.below(3)));
  std::vector<FlowNetwork::GroupId> groups;
  std::vector<FlowNetwork::FlowId> flows;
  for (std::uint32_t i = 0; i < 10; ++i) {
    groups.push_back(net.add_group(i, i % 2 == 0 ? Augmentation::mltcp({}) : Augmentation()));
    const auto a = static_cast<std::uint32_t>(random.below(links));
    const auto b = static_cast<std::uint32_t>((a + 1 + random.below(links - 1)) % links);
    flows.push_back(net.add_flow(groups.back(), std::array{Hop{a, 1.0}, Hop{b, 1.0}}));
  }
  *asked = 0;
  const auto begin = [&](std::size_t i) {
    const Bytes bytes = 1 + random.below(500'000);
    *asked += static_cast<double>(bytes);
    net.begin_iteration(groups[i], bytes);
    net.send(flows[i], bytes, i, net.now() + Nanos(static_cast<std::int64_t>(random.below(2'000'000))));
  };
  for (std::size_t i = 0; i < flows.size(); ++i) begin(i);
  std::uint64_t digest = 0;
  Nanos last;
  for (int ended = 0; !net.next_event().is_never();) {
    net.advance(net.next_event());
    EXPECT_GE(net.now(), last);
    last = net.now();
    const std::vector<FlowNetwork::Finished> finished(net.finished().begin(), net.finished().end());
    for (const auto& end : finished) {
      digest = (digest ^ static_cast<std::uint64_t>(net.now().count) ^ end.tag) * 0x100000001B3ULL;
      if (++ended < 3000) begin(end.tag);
    }
  }
  *wire_bytes = 0;
  for (std::uint32_t i = 0; i < links; ++i) *wire_bytes += net.use(i).wire_bytes;
  return digest;
}

TEST(FlowNetwork, run__conserves_bytes_and_gives_the_same_again) {
  double wire_bytes = 0;
  double asked = 0;
  const std::uint64_t digest = digest_of(3, &wire_bytes, &asked);
  EXPECT_NEAR(wire_bytes, 2 * asked, 2 * asked * 1e-6);  // each end is rounded to 1 ns, which is about 0.1 byte
  EXPECT_EQ(digest_of(3, &wire_bytes, &asked), digest);
  EXPECT_NE(digest_of(4, &wire_bytes, &asked), digest);
}

TEST(FlowNetwork, run__nothing_stalls_at_extreme_rates_and_sizes) {
  FlowNetwork net;
  const auto fast = net.add_link(Rate::from_gbps(100'000));
  const auto slow = net.add_link(Rate(1'000));
  net.send(lone_flow(net, std::array{Hop{fast, 1.0}}), 1, 1);
  net.send(lone_flow(net, std::array{Hop{fast, 1.0}}, Augmentation::constant(1e-6)), 1'000'000'000'000, 2);
  net.send(lone_flow(net, std::array{Hop{fast, 1.0}, Hop{slow, 1.0}}), 1'000, 3);
  const auto ends = drain(net);
  EXPECT_EQ(ends.at(1), Nanos(1));
  EXPECT_NEAR(ends.at(2).seconds(), 0.08, 1e-6);
  EXPECT_EQ(ends.at(3), 8_s);
}

TEST(FlowNetwork, setup__refuses_bad_input) {
  FlowNetwork net;
  const auto link = net.add_link(kGig);
  const auto group = net.add_group(0, {});
  EXPECT_THAT(message_of<InputError>([] { FlowNetwork bad(FlowNetwork::Options{0}); }), HasSubstr("1 to 65536"));
  EXPECT_THAT(message_of<InputError>([&] { net.add_link(Rate(0)); }), HasSubstr("no rate"));
  EXPECT_THAT(message_of<InputError>([&] { net.add_flow(group, {}); }), HasSubstr("no path"));
  EXPECT_THAT(message_of<InputError>([&] { net.add_flow(group, std::array{Hop{1, 1.0}}); }), HasSubstr("no link 1"));
  EXPECT_THAT(message_of<InputError>([&] {
                net.add_flow(group, std::array{Hop{link, 0.0}});
              }),
              HasSubstr("more than 0"));
  EXPECT_THAT(message_of<InputError>([&] {
                net.add_flow(group, std::array{Hop{link, 1.0}, Hop{link, 1.0}});
              }),
              HasSubstr("twice"));
  EXPECT_THAT(message_of<InputError>([&] {
                net.add_flow(group, std::array{Hop{link, 1.0}}, 0);
              }),
              HasSubstr("no connection"));
  EXPECT_THAT(message_of<InputError>([&] { net.add_flow(9, std::array{Hop{link, 1.0}}); }), HasSubstr("no group 9"));
}

}  // namespace
}  // namespace mltcp::sim::flow_network_test
