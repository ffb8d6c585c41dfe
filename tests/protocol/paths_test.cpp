// Connections whose packets take several paths, over a network in which the test decides about every packet.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "../transport/test_network.h"
#include "mltcp/base/error.h"
#include "mltcp/transport/balancers.h"
#include "transfer.h"

namespace mltcp {
namespace {

using namespace testing_network;

constexpr PacketIo::Limits kLimits{.paths = 16};

ConnectionConfig spread(const std::string& balance, std::uint32_t paths = 8) {
  ConnectionConfig config;
  config.balance = balance;
  config.paths = paths;
  config.ecn = true;
  return config;
}

/// A client whose packets take several paths, and a server whose packets take one.
struct Spread {
  explicit Spread(const ConnectionConfig& config, std::size_t bytes = 1'000'000)
      : pair(config, spread("one", 0), TestNetwork::kDefaultDelay, kLimits),
        message(random_bytes(bytes)),
        buffer(bytes) {
    pair.rate = Rate(1'000'000'000);
    std::tie(c, s) = pair.connect();
    pair.log.clear();
  }
  void complete(Nanos within = 10_s) {
    EXPECT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1, within));
    EXPECT_EQ(buffer, message);
  }
  /// Number of data packets of the client, by path.
  [[nodiscard]] std::map<int, int> used() const {
    std::map<int, int> counts;
    for (const Parsed& packet : pair.log)
      if (packet.from == 0 && is_data(packet)) ++counts[packet.path];
    return counts;
  }
  [[nodiscard]] ConnectionStats stats() { return pair.c().stats(c).value(); }

  Pair pair;
  ByteVector message;
  ByteVector buffer;
  ConnectionId c = 0;
  ConnectionId s = 0;
};

TEST(Paths, one__uses_the_datapath_s_own_port) {
  Spread test(spread("one", 0));
  test.complete();
  EXPECT_EQ(test.used().size(), 1U);
  EXPECT_TRUE(test.used().contains(0));
}

TEST(Paths, spray__uses_all_paths_equally) {
  Spread test(spread("spray"));
  test.complete();
  const auto used = test.used();
  ASSERT_EQ(used.size(), 8U);
  for (const auto& [path, count] : used) EXPECT_NEAR(count, 1'000'000 / 1424 / 8, 5) << path;
}

TEST(Paths, no_number_given__uses_what_the_datapath_has) {
  Spread test(spread("spray", 0));
  test.complete();
  EXPECT_EQ(test.used().size(), 16U);
}

TEST(Paths, server__spreads_its_packets_too) {
  Pair pair({}, spread("spray"), TestNetwork::kDefaultDelay, kLimits);
  const auto message = random_bytes(200'000);
  pair.serve(message);
  ByteVector buffer(message.size());
  const auto [c, s] = pair.connect();
  ASSERT_EQ(pair.c().receive(c, buffer, 1), PostResult::ok);
  ASSERT_TRUE(pair.client_receives(1_s));
  EXPECT_EQ(buffer, message);
  std::set<int> used;
  for (const Parsed& packet : pair.log)
    if (packet.from == 1) used.insert(packet.path);
  EXPECT_EQ(used.size(), 8U);
}

// A peer with several paths changes nothing for the packets of an end that has one.
TEST(Paths, one_path_beside_a_peer_with_several__waits_for_three_later_packets) {
  Pair pair(spread("spray"), spread("one", 0), TestNetwork::kDefaultDelay, kLimits);
  pair.rate = Rate(1'000'000'000);
  const auto message = random_bytes(1'000'000);
  ByteVector buffer(message.size());
  const auto [c, s] = pair.connect();
  pair.fate = [](const Parsed& packet, Fate& fate) {
    if (packet.from == 1 && packet.header.packet_number % 20 == 0) fate.extra_delay = 15_us;  // behind the next one
  };
  ASSERT_EQ(pair.c().receive(c, buffer, 1), PostResult::ok);
  ASSERT_EQ(pair.s().send(s, message, 1), PostResult::ok);
  ASSERT_TRUE(pair.client_receives(1_s));
  EXPECT_EQ(buffer, message);
  EXPECT_EQ(pair.s().stats(s).value().retransmitted_packets, 0U);
}

TEST(Paths, keys__work_with_several_source_ports) {
  for (const std::string balance : {"spray", "reps"}) {
    Spread test(spread(balance));
    test.complete();
    EXPECT_EQ(test.stats().retransmitted_packets, 0U);
  }
}

// Delays differ by up to four round trips of the fastest path.
TEST(Paths, unequal_delays__are_not_taken_for_losses) {
  Spread test(spread("spray"), 20'000'000);
  test.pair.fate = [](const Parsed& packet, Fate& fate) {
    if (packet.from == 0) fate.extra_delay = 50_us * packet.path;
  };
  test.complete();
  EXPECT_LT(static_cast<double>(test.stats().retransmitted_packets),
            0.001 * static_cast<double>(test.stats().packets_sent));
}

TEST(Paths, lost_packet__is_found_by_the_next_one_on_its_path) {
  Spread test(spread("spray"), 3'000'000);
  std::uint64_t lost = 0;
  bool loses = false;
  test.pair.fate = [&](const Parsed& packet, Fate& fate) {
    if (packet.from != 0 || !is_data(packet)) return;
    fate.extra_delay = 20_us * packet.path;
    fate.drop = loses && packet.path == 3 && packet.header.packet_number % 20 == 0;
    lost += fate.drop ? 1 : 0;
  };
  test.complete();  // learns how much the paths' delays differ
  const ConnectionStats before = test.stats();
  loses = true;
  test.complete();
  EXPECT_GT(lost, 5U);
  EXPECT_EQ(test.stats().retransmitted_packets - before.retransmitted_packets, lost);
  EXPECT_EQ(test.stats().spurious_losses, before.spurious_losses);
}

TEST(Paths, dead_path__is_left_out_soon_and_used_again_when_it_works) {
  for (const BalancerTable& balancer : balancers().subspan(1)) {
    if (balancer.name == "flowlet") continue;
    Spread test(spread(std::string(balancer.name), 4), 4'000'000);
    bool is_dead = true;
    std::array<int, 2> sent{};
    test.pair.fate = [&](const Parsed& packet, Fate& fate) {
      if (packet.from != 0 || packet.path != 2) return;
      ++sent[is_dead ? 0 : 1];
      fate.drop = is_dead;
    };
    test.complete();
    EXPECT_LT(sent[0], 60) << balancer.name << ": a quarter of the packets would be 700";
    is_dead = false;
    test.complete();
    test.complete();
    EXPECT_GT(sent[1], 100) << balancer.name;
  }
}

TEST(Paths, marked_path__is_avoided) {
  for (const std::string balance : {"reps", "bitmap", "mixed"}) {
    Spread test(spread(balance), 4'000'000);
    test.pair.fate = [&](const Parsed& packet, Fate& fate) {
      if (packet.from == 0 && packet.path == 5) fate.ecn = Ecn::ce;
    };
    test.complete();
    const auto used = test.used();
    ASSERT_TRUE(used.contains(1)) << balance;
    EXPECT_LT(used.contains(5) ? used.at(5) : 0, 4'000'000 / 1424 / 8 * 3 / 4) << balance;
  }
}

TEST(Paths, slow_path__is_avoided_without_ecn) {
  for (const std::string balance : {"reps", "bitmap", "mixed"}) {
    ConnectionConfig config = spread(balance);
    config.ecn = false;
    config.max_packets_in_flight = 32;  // a constant queue
    Spread test(config, 4'000'000);
    test.pair.fate = [&](const Parsed& packet, Fate& fate) {
      if (packet.from == 0 && packet.path == 5) fate.extra_delay = 200_us;
    };
    test.complete();
    const auto used = test.used();
    EXPECT_LT(used.contains(5) ? used.at(5) : 0, 4'000'000 / 1424 / 8 * 9 / 10) << balance;
  }
}

TEST(Paths, marks__reach_the_sender_whatever_the_ack_ratio) {
  ConnectionConfig config = spread("bitmap");
  Spread test(config, 4'000'000);
  std::set<std::uint64_t> marked;
  std::set<std::uint64_t> told;
  test.pair.fate = [&](const Parsed& packet, Fate& fate) {
    if (packet.from == 0 && is_data(packet) && packet.header.packet_number % 7 == 0) {
      fate.ecn = Ecn::ce;
      marked.insert(packet.header.packet_number);
    }
    if (const wire::Frame* frame = packet.from == 1 ? packet.find(FrameType::ack) : nullptr)
      for (std::uint64_t bit = 0; bit < 64; ++bit)
        if ((frame->ack.marks >> bit & 1) != 0) told.insert(frame->ack.ranges[0].last - bit);
  };
  test.complete();
  EXPECT_GT(marked.size(), 100U);
  EXPECT_EQ(told, marked);
}

TEST(Paths, peer_of_version_3__gets_packets_from_one_port) {
  Pair pair(spread("spray"), {}, TestNetwork::kDefaultDelay, kLimits);
  pair.server().dead = true;
  const ConnectionId c = pair.c().connect(pair.server().address, spread("spray"), pair.now());
  const auto message = random_bytes(20'000);
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  pair.run_for(1_us);
  pair.inject(
      pair.client(), pair.server().address, forge(header_for(c), [&](wire::Writer& w) {
        w.accept({.version = 3, .max_packet = 1472, .source_connection = 7, .credit = 5, .tag = 9, .highest = 3});
      }));
  pair.run_for(10_ms);
  EXPECT_EQ(pair.client().count(Kind::connected), 1U);
  EXPECT_GT(pair.count(is_data), 2U);
  for (const Parsed& packet : pair.log) EXPECT_EQ(packet.path, 0);
}

TEST(Paths, client_of_version_3__is_answered_in_version_3) {
  Pair pair({}, spread("spray"), TestNetwork::kDefaultDelay, kLimits);
  pair.inject(
      pair.server(), pair.client().address, forge(header_for(0), [&](wire::Writer& w) {
        w.connect({.version = 3, .max_packet = 1472, .source_connection = 5, .tag = 6, .lowest = 3, .highest = 3});
      }));
  pair.run_for(40_us);
  ASSERT_FALSE(pair.log.empty());
  ASSERT_TRUE(pair.log[0].has(FrameType::accept));
  EXPECT_EQ(pair.log[0].find(FrameType::accept)->connect.version, 3);
  EXPECT_EQ(pair.log[0].find(FrameType::accept)->connect.paths, 1U);
}

// A packet with the right tag from another port is believed only if the peer has said that it uses several.
TEST(Paths, other_ports__are_refused_unless_the_peer_has_several_paths) {
  for (const bool has_paths : {false, true}) {
    Spread test(has_paths ? spread("spray") : spread("one", 0));
    Address source = test.pair.client().address;
    source.port = 999;
    const auto ping = forge(header_for(test.s, 1000), [](wire::Writer& w) { w.ping(); });
    const std::uint64_t before = test.pair.s().stats().unknown_connection;
    test.pair.inject(test.pair.server(), source, ping);
    test.pair.run_for(1_ms);
    EXPECT_EQ(test.pair.s().stats().unknown_connection - before, has_paths ? 0U : 1U);
    source.ip[15] ^= 1;
    test.pair.inject(test.pair.server(), source, ping);
    test.pair.run_for(1_ms);
    EXPECT_EQ(test.pair.s().stats().unknown_connection - before, has_paths ? 1U : 2U);
  }
}

// Marks and losses that an attacker forges, on all packets, must not leave the connection without paths.
TEST(Paths, marks_and_losses_everywhere__keep_all_paths_in_use) {
  for (const BalancerTable& balancer : balancers().subspan(1)) {
    Spread test(spread(std::string(balancer.name)), 1'000'000);
    test.pair.fate = [&](const Parsed& packet, Fate& fate) {
      fate.ecn = Ecn::ce;
      fate.drop = packet.from == 0 && is_data(packet) && packet.header.packet_number % 3 == 0;
    };
    test.complete(100_s);
    if (balancer.name == "flowlet") continue;
    EXPECT_GE(test.used().size(), 4U) << balancer.name;
    test.pair.fate = {};
    test.pair.log.clear();
    test.complete();
    if (balancer.name == "reps" || balancer.name == "mixed") continue;  // any path without marks is as good
    EXPECT_EQ(test.used().size(), 8U) << balancer.name;
  }
}

TEST(Paths, requests_that_the_datapath_cannot_meet__are_refused) {
  const auto problem = [](const ConnectionConfig& config, const PacketIo::Limits& limits) {
    Pair pair({}, {}, TestNetwork::kDefaultDelay, limits);
    try {
      (void)pair.c().connect(pair.server().address, config, pair.now());
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(problem(spread("spray", 17), kLimits), "paths is 17, and this datapath has 16; set no more than that");
  EXPECT_EQ(problem(spread("spray", 0), {}),
            "balance is \"spray\", and this datapath has one path; set balance = \"one\", or choose another datapath");
  EXPECT_EQ(problem(spread("one", 2), kLimits),
            "paths is 2, and balance \"one\" uses one path; choose another balancer, such as \"reps\"");
  EXPECT_EQ(problem(spread("repz"), kLimits), "there is no balancer \"repz\"; did you mean \"reps\"?");
  EXPECT_EQ(problem(spread("magic"), kLimits),
            "there is no balancer \"magic\"; write one of one, spray, reps, bitmap, mixed, flowlet");
}

}  // namespace
}  // namespace mltcp
