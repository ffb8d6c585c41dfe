// Tests two or three neighbours that exchange frames over a lossy wire, and configurations that are refused.
#include "neighbour_frames.h"

namespace mltcp {
namespace {

using namespace neighbour_frames;

struct Wire {
  struct End {
    Neighbours& protocol;
    MacAddress mac;
  };
  std::vector<End> ends;
  double loss = 0;
  Random random{1};

  /// Exchanges frames until no host has a frame to send.
  void exchange(Nanos now) {
    bool again = true;
    while (again) {
      again = false;
      for (auto& from : ends) {
        for (const auto& frame : say(from.protocol, now)) {
          again = true;
          for (auto& to : ends) {
            if (&to != &from && !random.chance(loss)) {
              EXPECT_TRUE(hear(to.protocol, frame, now));
            }
          }
        }
      }
    }
  }
};

class NeighboursOnAWire : public testing::TestWithParam<bool> {
 protected:
  static NeighbourConfig config(const MacAddress& mac, std::uint8_t last) {
    auto result = GetParam() ? config_v4() : config_v6();
    result.mac = mac;
    result.own = address(last);
    return result;
  }
  static Address address(std::uint8_t last) {
    Address result = GetParam() ? v4(last) : a6;
    result.ip[15] = last;
    return result;
  }
};
INSTANTIATE_TEST_SUITE_P(Ip, NeighboursOnAWire, testing::Values(true, false),
                         [](const auto& version) { return version.param ? "v4" : "v6"; });

TEST_P(NeighboursOnAWire, two_ends__find_each_other_whatever_is_lost) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Neighbours a(config(kMacA, 1));
    Neighbours b(config(kMacB, 2));
    Wire wire{{{a, kMacA}, {b, kMacB}}, 0.4, Random(seed)};
    bool found_by_a = false;
    bool found_by_b = false;
    Nanos now{};
    for (int step = 0; step < 2000 && !(found_by_a && found_by_b); ++step) {
      const auto to_b = a.find(address(2), now);
      const auto to_a = b.find(address(1), now);
      found_by_a = to_b.state == State::known && to_b.mac == kMacB;
      found_by_b = to_a.state == State::known && to_a.mac == kMacA;
      wire.exchange(now);
      const Nanos next = std::min(a.deadline(), b.deadline());
      ASSERT_GT(next, now);
      // Until both hosts have an answer, a timer is pending, so no host waits forever.
      ASSERT_TRUE(!next.is_never() || (found_by_a && found_by_b));
      now = next.is_never() ? now : next;
    }
    EXPECT_TRUE(found_by_a && found_by_b) << "seed " << seed;
    EXPECT_EQ(a.counters().malformed + b.counters().malformed, 0u);
    EXPECT_EQ(a.counters().conflicts + b.counters().conflicts, 0u);
    EXPECT_EQ(a.counters().changed + b.counters().changed, 0u);
  }
}

TEST_P(NeighboursOnAWire, two_ends__stay_known_over_hours_of_use) {
  Neighbours a(config(kMacA, 1));
  Neighbours b(config(kMacB, 2));
  Wire wire{{{a, kMacA}, {b, kMacB}}, 0, Random(1)};
  (void)a.find(address(2), 0_s);
  wire.exchange(0_s);
  for (int second = 0; second < 7200; ++second) {
    expect_known(a, address(2), kMacB, 1_s * second);
    wire.exchange(1_s * second);
  }
  // There is one question in 30 s.
  EXPECT_EQ(a.counters().questions, 240u);
  EXPECT_EQ(b.counters().answers, 240u);
}

TEST_P(NeighboursOnAWire, a_third_party__redirects_no_host_that_did_not_ask) {
  Neighbours a(config(kMacA, 1));
  Neighbours b(config(kMacB, 2));
  // The third party sends unsolicited claims to the addresses of other hosts. It sends them at any time, and with every
  // flag that the protocol permits.
  const auto spoof = [&](std::uint8_t last) -> std::vector<ByteVector> {
    if (GetParam()) {
      return {frame_of(Arp{.operation = 1,
                           .sender_mac = kMacC,
                           .sender = v4(last),
                           .target = v4(last),
                           .to = kBroadcast,
                           .from = kMacC}),
              frame_of(Arp{.operation = 2, .sender_mac = kMacC, .sender = v4(last), .to = kBroadcast, .from = kMacC})};
    }
    return {frame_of(Discovery{.flags = kOverrideKnown,
                               .source = c6,
                               .destination = all_nodes,
                               .target = address(last),
                               .option = "0201 020000000003",
                               .to = {0x33, 0x33, 0, 0, 0, 1},
                               .from = kMacC}),
            frame_of(solicitation(address(last), "0101 020000000003"))};
  };
  for (std::uint8_t last = 2; last < 200; ++last) {
    for (const auto& frame : spoof(last)) EXPECT_TRUE(hear(a, frame, 0_s));
  }
  (void)say(a, 0_s);
  EXPECT_EQ(a.counters().learnt, 0u);
  Wire wire{{{a, kMacA}, {b, kMacB}}, 0, Random(1)};
  EXPECT_EQ(a.find(address(2), 0_s).state, State::asked);
  wire.exchange(0_s);
  expect_known(a, address(2), kMacB, 0_s);
  // Without the override flag, a known entry does not change. ARP has no such flag, and RFC 826 lets any host change an
  // entry.
  if (!GetParam()) {
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(hear(
          a,
          frame_of(Discovery{.flags = kSolicited, .target = address(2), .option = "0201 020000000003", .from = kMacC}),
          1_s));
      expect_known(a, address(2), kMacB, 1_s);
    }
  }
  // If the third party claims a host's own address, the host keeps this address. The host's announcement corrects the
  // neighbour's entry.
  for (const auto& frame : spoof(1)) EXPECT_TRUE(hear(a, frame, 1_s));
  EXPECT_GE(a.counters().conflicts, 1u);
  EXPECT_EQ(a.counters().changed, 0u);
  wire.exchange(1_s);
  EXPECT_EQ(a.counters().announcements, 1u);
}

// ---- Configuration ----

void expect_refused(const std::function<void(NeighbourConfig&)>& change, const std::string& word, bool ipv4 = true) {
  auto config = ipv4 ? config_v4() : config_v6();
  change(config);
  try {
    const Neighbours end(config);
    ADD_FAILURE() << "accepted: " << word;
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST(Neighbours, configurations_out_of_range__are_refused_by_name) {
  expect_refused([](auto& c) { c.mac = {}; }, "MAC");
  expect_refused([](auto& c) { c.mac = kBroadcast; }, "MAC");
  expect_refused([](auto& c) { c.own = {}; }, "address of a host");
  expect_refused([](auto& c) { c.own = v4(255); }, "10.0.0.255/24 is not");
  expect_refused([](auto& c) { c.own = v4(0); }, "10.0.0.0/24 is not");
  expect_refused([](auto& c) { c.own = all_nodes; }, "address of a host", false);
  expect_refused([](auto& c) { c.prefix_bits = 0; }, "give 1 to 32");
  expect_refused([](auto& c) { c.prefix_bits = 33; }, "give 1 to 32");
  expect_refused([](auto& c) { c.prefix_bits = 129; }, "give 1 to 128", false);
  expect_refused([](auto& c) { c.gateway = v4(1, 1); }, "the gateway 10.0.1.1");
  expect_refused([](auto& c) { c.gateway = v4(1); }, "the gateway");
  expect_refused([](auto& c) { c.gateway = v4(255); }, "the gateway");
  expect_refused([](auto& c) { c.gateway = b6; }, "the gateway");
  expect_refused([](auto& c) { c.vlan = 4095; }, "VLAN 4095");
  expect_refused([](auto& c) { c.max_entries = 0; }, "table of 0");
  expect_refused([](auto& c) { c.max_entries = 2'000'000; }, "table of 2000000");
  expect_refused([](auto& c) { c.max_questions = 0; }, "0 requests");
  expect_refused([](auto& c) { c.max_questions = 256; }, "256 requests");
  expect_refused([](auto& c) { c.retry = 0_ns; }, "times");
  expect_refused([](auto& c) { c.fresh_for = Nanos::never(); }, "times");
  auto config = config_v4();
  config.gateway = Address::v4(0, 0);  // this IPv4 address means that there is no gateway
  EXPECT_NO_THROW(Neighbours{config});
}

}  // namespace
}  // namespace mltcp
