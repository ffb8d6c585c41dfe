// Tests the ring dumbbell in virtual time. The tests drive the switch's steps with their own clock, so that rates,
// delays, marks and faults are exact. Packets, headers, rings and buffers are real.
#include "mltcp/lab/realtime/ring_dumbbell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "ring_fixture.h"

namespace mltcp::dpdk {
namespace {

using namespace mltcp::literals;
using encap::Reject;

class RingDumbbellTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    eal_ = shared_eal(reason);
    if (eal_ == nullptr) GTEST_SKIP() << reason;
  }
  void TearDown() override {
    if (network_ != nullptr) {
      EXPECT_EQ(network_->drain(), 0u) << "packet buffers have leaked";
    }
  }

  RingDumbbell& make(const fabric::DumbbellConfig& config, const RingOptions& options = {}) {
    network_ = std::make_unique<RingDumbbell>(*eal_, config, options);
    EXPECT_EQ(network_->buffers_in_use(), 0u);
    return *network_;
  }

  /// Steps the switch from event to event up to the time `until`.
  void advance(Nanos until) {
    for (;;) {
      const Nanos next = network_->switch_step(now_);
      if (next > until) break;
      now_ = next;
    }
    now_ = until;
    network_->switch_step(now_);
  }

  static std::vector<ByteVector> receive_all(RingHost& host, std::vector<RxPacket>* infos = nullptr) {
    std::vector<ByteVector> packets;
    std::array<RxPacket, 32> burst;
    while (const std::size_t count = host.receive(burst)) {
      for (std::size_t i = 0; i < count; ++i) {
        packets.emplace_back(burst[i].bytes.begin(), burst[i].bytes.end());
        if (infos != nullptr) infos->push_back(burst[i]);
      }
    }
    return packets;
  }

  const Eal* eal_ = nullptr;
  std::unique_ptr<RingDumbbell> network_;
  Nanos now_;
};

TEST_F(RingDumbbellTest, HostsHaveTheAddressesOfTheSimulator) {
  auto& network = make(gigabit(3));
  EXPECT_EQ(network.pairs(), 3u);
  EXPECT_EQ(network.left(0).address(), Address::v4(0x0A010001, 4793));
  EXPECT_EQ(network.left(2).address(), Address::v4(0x0A010003, 4793));
  EXPECT_EQ(network.right(1).address(), Address::v4(0x0A020002, 4793));
  EXPECT_EQ(network.left(0).limits().max_packet_bytes, 1472u);
  EXPECT_EQ(network.left(0).limits().overhead_bytes, 42u);
  EXPECT_FALSE(network.left(0).limits().virtual_payload);
  EXPECT_THROW(network.left(3), InputError);
}

TEST_F(RingDumbbellTest, RefusesBadConfigurations) {
  const auto error = [&](auto change) {
    auto config = gigabit();
    RingOptions options;
    change(config, options);
    try {
      const RingDumbbell network(*eal_, config, options);
    } catch (const InputError& refused) {
      EXPECT_EQ(std::string(refused.what()).find('\n'), std::string::npos);
      return std::string(refused.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(error([](auto& c, auto&) { c.pairs = 0; }), testing::HasSubstr("give 1 to"));
  EXPECT_THAT(error([](auto& c, auto&) { c.pairs = RingDumbbell::max_pairs() + 1; }), testing::HasSubstr("give 1 to"));
  EXPECT_THAT(error([](auto& c, auto&) { c.mtu = 100; }), testing::HasSubstr("576 to 9000"));
  EXPECT_THAT(error([](auto& c, auto&) { c.bottleneck.rate = Rate(0); }), testing::HasSubstr("bottleneck"));
  EXPECT_THAT(error([](auto& c, auto&) { c.reverse.buffer_bytes = 100; }), testing::HasSubstr("reverse"));
  EXPECT_THAT(error([](auto&, auto& o) { o.receive_slots = 100; }), testing::HasSubstr("power of two"));
  EXPECT_LE(RingDumbbell::memory_mb(gigabit()), 64u);
  EXPECT_LE(RingDumbbell::memory_mb(gigabit(RingDumbbell::max_pairs())), 256u);
}

TEST_F(RingDumbbellTest, PacketsArriveByteForByteWithRightChecksums) {
  auto& network = make(gigabit(2));
  std::size_t tapped = 0;
  network.set_tap([&](std::span<const std::byte> frame, Nanos) {
    ++tapped;
    EXPECT_TRUE(checksums_are_right(frame)) << "frame of " << frame.size();
  });
  std::size_t sent = 0;
  for (std::uint32_t pair = 0; pair < 2; ++pair) {
    for (std::size_t size = 0; size <= 1472; size += size < 80 ? 1 : 61) {
      // Headers and payloads have even and odd lengths, so that pieces also meet at odd offsets.
      const auto bytes = random_bytes(size, size);
      const std::size_t cut = std::min<std::size_t>(size, size % 37);
      const auto ecn = static_cast<Ecn>(size % 4);
      for (const bool rightwards : {true, false}) {
        RingHost& from = rightwards ? network.left(pair) : network.right(pair);
        RingHost& to = rightwards ? network.right(1 - pair) : network.left(1 - pair);
        ASSERT_TRUE(send_one(from, to.address(), std::span(bytes).first(cut), std::span(bytes).subspan(cut), ecn));
        advance(now_ + 200_us);
        std::vector<RxPacket> infos;
        const auto received = receive_all(to, &infos);
        ASSERT_EQ(received.size(), 1u) << "size " << size;
        EXPECT_EQ(received[0], bytes);
        EXPECT_EQ(infos[0].source, from.address());
        EXPECT_EQ(infos[0].ecn, ecn);
        EXPECT_EQ(infos[0].virtual_bytes, 0u);
        ++sent;
      }
    }
  }
  EXPECT_EQ(tapped, sent);
  EXPECT_EQ(network.switch_counters().delivered_packets, sent);
  EXPECT_EQ(network.bottleneck().counters().sent_packets, sent / 2);
  EXPECT_EQ(network.reverse().counters().sent_packets, sent / 2);
}

TEST_F(RingDumbbellTest, BytesStayValidUntilTheNextReceive) {
  auto& network = make(gigabit());
  const auto first = random_bytes(1000, 1);
  const auto second = random_bytes(1000, 2);
  std::array<RxPacket, 32> burst;
  ASSERT_TRUE(send_one(network.left(0), network.right(0).address(), first));
  advance(1_ms);
  ASSERT_EQ(network.right(0).receive(burst), 1u);
  ASSERT_TRUE(send_one(network.left(0), network.right(0).address(), second));
  advance(2_ms);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), burst[0].bytes.begin(), burst[0].bytes.end()));
  EXPECT_EQ(network.buffers_in_use(), 2u);
  ASSERT_EQ(network.right(0).receive(burst), 1u);
  EXPECT_TRUE(std::equal(second.begin(), second.end(), burst[0].bytes.begin(), burst[0].bytes.end()));
  EXPECT_EQ(network.right(0).receive(burst), 0u);
  EXPECT_EQ(network.buffers_in_use(), 0u);
}

TEST_F(RingDumbbellTest, APacketTakesItsTimeToTheNanosecond) {
  auto& network = make(gigabit());
  // The packet has 1000 bytes on the wire. The access link of 10 Gbps takes 800 ns for them, and its delay is 1 us. The
  // bottleneck takes 8 us, and its delay is 10 us.
  ASSERT_TRUE(send_one(network.left(0), network.right(0).address(), random_bytes(958, 1)));
  std::vector<Nanos> times;
  network.set_tap([&](std::span<const std::byte>, Nanos now) { times.push_back(now); });
  EXPECT_EQ(network.switch_step(0_ns), 1800_ns);
  EXPECT_EQ(network.switch_step(1800_ns), 19'800_ns);
  network.switch_step(19'799_ns);
  EXPECT_TRUE(times.empty());
  EXPECT_TRUE(network.switch_step(19'800_ns).is_never());
  EXPECT_THAT(times, testing::ElementsAre(19'800_ns));
}

TEST_F(RingDumbbellTest, TheBottleneckHoldsItsRateHoweverUnevenlyItIsPolled) {
  auto config = gigabit();
  config.bottleneck.buffer_bytes = 0;
  auto& network = make(config);
  const auto payload = random_bytes(1208, 1);  // 1250 bytes on the wire take 10 us on the bottleneck
  std::vector<Nanos> arrivals;
  network.set_tap([&](std::span<const std::byte>, Nanos now) { arrivals.push_back(now); });
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(send_one(network.left(0), network.right(0).address(), payload));
  Random random(5);
  Nanos time;
  while (time < 1500_us) {
    network.switch_step(time);
    time += Nanos(static_cast<std::int64_t>(random.below(70'000)));
  }
  ASSERT_EQ(arrivals.size(), 100u);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    // The access link takes 1 us per packet, and its delay is 1 us. The bottleneck takes 10 us per packet, and its
    // delay is 10 us.
    const Nanos due = 2_us + 10_us * static_cast<std::int64_t>(i + 1) + 10_us;
    EXPECT_GE(arrivals[i], due);
    EXPECT_LT(arrivals[i], due + 70_us);
  }
}

TEST_F(RingDumbbellTest, HostsOfOneSideMeetOnTheLinkToTheirSide) {
  auto& network = make(gigabit(2));
  ASSERT_TRUE(send_one(network.right(0), network.right(1).address(), random_bytes(10, 1)));
  ASSERT_TRUE(send_one(network.left(0), network.left(1).address(), random_bytes(10, 2)));
  advance(1_ms);
  EXPECT_EQ(receive_all(network.right(1)).size(), 1u);
  EXPECT_EQ(receive_all(network.left(1)).size(), 1u);
  EXPECT_EQ(network.bottleneck().counters().sent_packets, 1u);
  EXPECT_EQ(network.reverse().counters().sent_packets, 1u);
}

TEST_F(RingDumbbellTest, MarksCongestionWithARightChecksum) {
  auto config = gigabit();
  config.bottleneck.ecn = {true, 5'000, 5'000, 1.0};
  auto& network = make(config);
  network.set_tap([&](std::span<const std::byte> frame, Nanos) { EXPECT_TRUE(checksums_are_right(frame)); });
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(send_one(network.left(0), network.right(0).address(), random_bytes(1000, 1), {},
                         i % 2 == 0 ? Ecn::ect0 : Ecn::not_ect));
  }
  advance(2_ms);
  std::vector<RxPacket> infos;
  EXPECT_EQ(receive_all(network.right(0), &infos).size(), 60u);
  std::size_t marked = 0;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].ecn == Ecn::ce) ++marked;
    if (i % 2 == 1) {
      EXPECT_EQ(infos[i].ecn, Ecn::not_ect);
    }
  }
  EXPECT_GT(marked, 15u);
  EXPECT_EQ(marked, network.bottleneck().counters().marked_packets);
}

TEST_F(RingDumbbellTest, AFullBufferDropsAndLosesNoPacketBuffer) {
  auto config = gigabit();
  config.bottleneck.buffer_bytes = 10'000;
  auto& network = make(config);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(send_one(network.left(0), network.right(0).address(), random_bytes(1000, 1)));
  }
  advance(5_ms);
  const auto counters = network.bottleneck().counters();
  EXPECT_GT(counters.dropped_packets, 50u);
  EXPECT_EQ(receive_all(network.right(0)).size() + counters.dropped_packets, 100u);
  EXPECT_EQ(network.buffers_in_use(), 0u);
}

TEST_F(RingDumbbellTest, AFullWireTakesNoMoreAndAFullReceiverDrops) {
  RingOptions options;
  options.transmit_slots = 64;
  options.receive_slots = 64;
  auto config = gigabit();
  config.bottleneck.buffer_bytes = 0;
  auto& network = make(config, options);
  const auto payload = random_bytes(100, 1);
  const Address to = network.right(0).address();
  std::array<TxPacket, 32> burst;
  burst.fill({&to, payload, {}, Ecn::not_ect});
  EXPECT_EQ(network.left(0).send(burst), 32u);
  EXPECT_EQ(network.left(0).send(burst), 31u);  // a ring with 64 slots holds 63 packets
  EXPECT_EQ(network.left(0).send(burst), 0u);
  EXPECT_EQ(network.left(0).counters().ring_full, 2u);
  EXPECT_EQ(network.left(0).counters().sent_packets, 63u);
  advance(1_ms);
  EXPECT_EQ(network.left(0).send(burst), 32u);
  advance(2_ms);
  EXPECT_EQ(network.switch_counters().receiver_full, 32u);
  EXPECT_EQ(receive_all(network.right(0)).size(), 63u);
  EXPECT_EQ(network.buffers_in_use(), 0u);
}

TEST_F(RingDumbbellTest, TheAccessLinkTakesNoMoreThanANicQueue) {
  auto config = gigabit();
  config.access_rate = Rate(1'000'000);
  auto& network = make(config);
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(send_one(network.left(0), network.right(0).address(), random_bytes(100, 1)));
  }
  network.switch_step(0_ns);
  EXPECT_EQ(network.switch_counters().received_packets, 128u);
  advance(1'000_ms);
  EXPECT_EQ(receive_all(network.right(0)).size(), 300u);
}

TEST_F(RingDumbbellTest, AnEmptyPoolStopsSendersOnly) {
  RingOptions options;
  options.buffers = 100;
  auto config = gigabit();
  config.bottleneck.buffer_bytes = 0;
  config.bottleneck.faults.duplication = 1.0;
  auto& network = make(config, options);
  const auto payload = random_bytes(100, 1);
  const Address to = network.right(0).address();
  std::array<TxPacket, 32> burst;
  burst.fill({&to, payload, {}, Ecn::not_ect});
  std::size_t sent = 0;
  for (int i = 0; i < 10; ++i) sent += network.left(0).send(burst);
  EXPECT_EQ(sent, 100u);
  EXPECT_GT(network.left(0).counters().no_buffer, 0u);
  EXPECT_EQ(network.buffers_in_use(), 100u);
  advance(5_ms);
  // There was no buffer for the duplicates.
  EXPECT_EQ(network.switch_counters().no_copy, 100u);
  EXPECT_EQ(receive_all(network.right(0)).size(), 100u);
  EXPECT_EQ(network.buffers_in_use(), 0u);
  EXPECT_EQ(network.left(0).send(burst), 32u);
}

TEST_F(RingDumbbellTest, FaultsHappenToRealPacketsAndLoseNoBuffer) {
  auto config = gigabit(2);
  config.bottleneck.buffer_bytes = 60'000;
  config.bottleneck.ecn = {true, 10'000, 30'000, 0.5};
  config.bottleneck.faults = {0.05, 0.05, 0.05, 0.05, 50_us};
  config.bottleneck.seed = 7;
  config.reverse.faults = config.bottleneck.faults;
  auto& network = make(config);
  std::map<std::string, int> arrived;
  const auto note = [&](const ByteVector& packet) {
    ++arrived[std::string(reinterpret_cast<const char*>(packet.data()), packet.size())];
  };
  std::size_t received = 0;
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    for (std::uint32_t pair = 0; pair < 2; ++pair) {
      for (std::uint64_t i = 0; i < 4; ++i) {
        const auto payload = random_bytes(200, static_cast<std::uint64_t>(round) * 8 + pair * 4 + i);
        ASSERT_TRUE(send_one(network.left(pair), network.right(pair).address(), payload, {}, Ecn::ect0));
        ASSERT_TRUE(send_one(network.right(pair), network.left(pair).address(), payload, {}, Ecn::ect0));
      }
    }
    advance(now_ + 20_us);
    for (std::uint32_t pair = 0; pair < 2; ++pair) {
      for (const auto& packet : receive_all(network.right(pair))) note(packet);
      receive_all(network.left(pair));
    }
  }
  advance(now_ + 10_ms);
  for (std::uint32_t pair = 0; pair < 2; ++pair) {
    for (const auto& packet : receive_all(network.right(pair))) note(packet);
    receive_all(network.left(pair));
    received += network.right(pair).counters().received_packets;
  }
  const auto& counters = network.bottleneck().counters();
  EXPECT_GT(counters.lost_packets, 50u);
  EXPECT_GT(counters.duplicated_packets, 50u);
  EXPECT_GT(counters.corrupted_packets, 50u);
  EXPECT_GT(counters.reordered_packets, 50u);
  EXPECT_EQ(counters.offered_packets, 8u * kRounds);
  std::uint64_t bad = 0;
  for (std::uint32_t pair = 0; pair < 2; ++pair) {
    const auto& rejects = network.right(pair).counters().rejected;
    bad += all_rejected(rejects);
    EXPECT_GT(rejected(rejects, Reject::bad_udp_checksum), 0u);
  }
  // The checksums cover all bits that the switch flips, so every flipped bit is detected.
  EXPECT_EQ(bad, counters.corrupted_packets);
  EXPECT_EQ(received + bad, counters.sent_packets - counters.lost_packets + counters.duplicated_packets);
  for (const auto& [packet, times] : arrived) {
    EXPECT_LE(times, 2);
    EXPECT_EQ(packet.size(), 200u);
  }
  EXPECT_EQ(network.buffers_in_use(), 0u);
}

TEST_F(RingDumbbellTest, EqualSeedsGiveEqualFaults) {
  std::vector<std::uint64_t> lost;
  for (int i = 0; i < 2; ++i) {
    auto config = gigabit();
    config.bottleneck.buffer_bytes = 0;
    config.bottleneck.faults.loss = 0.3;
    auto& network = make(config);
    now_ = Nanos();
    std::uint64_t pattern = 0;
    for (int packet = 0; packet < 64; ++packet) {
      ASSERT_TRUE(send_one(network.left(0), network.right(0).address(), random_bytes(50, 1)));
      advance(now_ + 100_us);
      pattern = pattern << 1 | (receive_all(network.right(0)).empty() ? 0U : 1U);
    }
    lost.push_back(pattern);
    network_.reset();
  }
  EXPECT_EQ(lost[0], lost[1]);
}

using Change = std::function<ByteVector(ByteVector)>;

Change resized(std::size_t bytes) {
  return [=](ByteVector frame) {
    frame.resize(bytes);
    return frame;
  };
}

enum class Checksums {
  as_they_are,
  of_ip_right,
  of_udp_none,  ///< the IP checksum is right, and the UDP checksum, which covers addresses and ports, is absent
};

Change with(std::size_t at, unsigned value, Checksums checksums = Checksums::as_they_are) {
  return [=](ByteVector frame) {
    frame[at] = static_cast<std::byte>(value);
    if (checksums == Checksums::of_udp_none) frame[40] = frame[41] = std::byte{0};
    if (checksums != Checksums::as_they_are) reseal_ipv4(frame);
    return frame;
  };
}

struct Damage {
  const char* name;
  Reject reason;
  bool at_switch;  ///< whether the switch rejects the frame before it reaches a host
  Change change;
};

const std::vector<Damage> kDamages{
    {"empty", Reject::truncated, true, resized(1)},
    {"truncated", Reject::truncated, true, resized(40)},
    {"wrong EtherType", Reject::not_ip, true, with(12, 0x88)},
    {"TCP", Reject::not_udp, true, with(23, 6, Checksums::of_ip_right)},
    {"fragment", Reject::fragment, true, with(20, 0x20, Checksums::of_ip_right)},
    {"IP checksum", Reject::bad_ip_checksum, true, with(22, 1)},
    {"UDP checksum", Reject::bad_udp_checksum, false, with(50, 0xEE)},
    {"UDP length", Reject::bad_length, true, with(39, 7)},
    {"wrong IP address", Reject::not_for_us, true, with(33, 77, Checksums::of_udp_none)},
    {"wrong port", Reject::not_for_us, false, with(37, 77, Checksums::of_udp_none)},
    {"wrong MAC address", Reject::not_for_us, false, with(5, 0xEE)},
    {"oversized", Reject::oversized, true, resized(1515)},
};

TEST_F(RingDumbbellTest, MalformedFramesAreCountedByReasonAndDropped) {
  auto& network = make(gigabit());
  RingHost& from = network.left(0);
  RingHost& to = network.right(0);
  const ByteVector good = frame_between(from, to, random_bytes(60, 1));
  for (const Damage& damage : kDamages) {
    const ByteVector bad = damage.change(good);
    // First, the bad frame goes directly into the host's ring.
    std::uint64_t before = rejected(to.counters().rejected, damage.reason);
    ASSERT_TRUE(network.inject_to(to, bad));
    EXPECT_TRUE(receive_all(to).empty()) << damage.name;
    EXPECT_EQ(rejected(to.counters().rejected, damage.reason), before + 1) << damage.name;
    // Then the bad frame goes through the switch.
    before = rejected(network.switch_counters().rejected, damage.reason);
    const std::uint64_t host_before = rejected(to.counters().rejected, damage.reason);
    ASSERT_TRUE(network.inject_from(from, bad));
    advance(now_ + 1_ms);
    EXPECT_TRUE(receive_all(to).empty()) << damage.name;
    EXPECT_EQ(rejected(network.switch_counters().rejected, damage.reason), before + (damage.at_switch ? 1 : 0))
        << damage.name;
    EXPECT_EQ(rejected(to.counters().rejected, damage.reason), host_before + (damage.at_switch ? 0 : 1)) << damage.name;
  }
  // Bad frames before and between good frames do not prevent the good frames from arriving.
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(network.inject_to(to, kDamages[3].change(good)));
  ASSERT_TRUE(network.inject_to(to, good));
  ASSERT_TRUE(network.inject_to(to, kDamages[3].change(good)));
  ASSERT_TRUE(network.inject_to(to, good));
  EXPECT_EQ(receive_all(to).size(), 2u);
  EXPECT_FALSE(network.inject_to(to, ByteVector(4000)));
  EXPECT_EQ(network.buffers_in_use(), 0u);
}

TEST_F(RingDumbbellTest, RandomFramesHarmNothing) {
  auto& network = make(gigabit());
  Random random(9);
  const ByteVector good = frame_between(network.left(0), network.right(0), random_bytes(60, 1), Ecn::ect0);
  for (int i = 0; i < 3'000; ++i) {
    ByteVector frame = good;
    frame.resize(1 + random.below(good.size() + 40));
    for (std::uint64_t flips = random.below(4); flips > 0; --flips) {
      frame[random.below(frame.size())] = static_cast<std::byte>(random.next());
    }
    if (frame.size() > 34 && random.chance(0.5)) reseal_ipv4(frame);
    ASSERT_TRUE(network.inject_from(network.left(0), frame));
    ASSERT_TRUE(network.inject_to(network.right(0), frame));
    advance(now_ + 50_us);
    receive_all(network.right(0));
    receive_all(network.left(0));
  }
  EXPECT_EQ(network.buffers_in_use(), 0u);
}

TEST_F(RingDumbbellTest, WhatCantBeSentIsCountedAndDiscarded) {
  auto& network = make(gigabit());
  RingHost& host = network.left(0);
  const Address to = network.right(0).address();
  Address v6;
  v6.ip[0] = 0x20;
  const auto longest = random_bytes(1472, 1);
  const auto longer = random_bytes(1473, 1);
  const std::span<const std::byte> no_bytes(static_cast<const std::byte*>(nullptr), 100);
  const TxPacket packets[] = {{&to, longer, {}, Ecn::not_ect},
                              {&v6, longest, {}, Ecn::not_ect},
                              {&to, longest, {}, Ecn::not_ect},
                              {&to, {}, no_bytes, Ecn::not_ect},
                              {nullptr, longest, {}, Ecn::not_ect}};
  EXPECT_EQ(host.send(packets), 5u);
  EXPECT_EQ(host.counters().unsendable, 4u);
  EXPECT_EQ(host.counters().sent_packets, 1u);
  advance(1_ms);
  EXPECT_EQ(receive_all(network.right(0)).size(), 1u);
  // No host has these two destination addresses.
  ASSERT_TRUE(send_one(host, Address::v4(0x0A020002, 4793), longest));
  ASSERT_TRUE(send_one(host, Address::v4(0x08080808, 4793), longest));
  advance(2_ms);
  EXPECT_EQ(rejected(network.switch_counters().rejected, Reject::not_for_us), 2u);
}

TEST_F(RingDumbbellTest, MetersTheBottleneckByJob) {
  auto& network = make(gigabit());
  // A switch reads these fields of the wire header at fixed offsets: magic, the job flag, the covered length and the
  // job.
  ByteVector packet(100);
  packet[0] = std::byte{0xA3};
  packet[1] = std::byte{8};
  packet[2] = std::byte{36};
  packet[28] = std::byte{42};
  ASSERT_TRUE(send_one(network.left(0), network.right(0).address(), packet));
  ASSERT_TRUE(send_one(network.right(0), network.left(0).address(), packet));
  packet[1] = std::byte{0};
  ASSERT_TRUE(send_one(network.left(0), network.right(0).address(), packet));
  advance(1_ms);
  const auto& jobs = network.usage().jobs();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs.begin()->first, 42u);
  EXPECT_THAT(jobs.begin()->second, testing::ElementsAre(142u));
}

TEST_F(RingDumbbellTest, JumboFramesAndManyPairs) {
  auto config = gigabit(RingDumbbell::max_pairs());
  config.mtu = 9000;
  RingOptions options;
  options.transmit_slots = 128;
  options.receive_slots = 128;
  options.buffers = 2048;
  auto& network = make(config, options);
  const auto payload = random_bytes(8972, 3);
  for (std::uint32_t pair = 0; pair < network.pairs(); ++pair) {
    ASSERT_TRUE(send_one(network.left(pair), network.right(pair).address(), payload));
  }
  advance(10_ms);
  for (std::uint32_t pair = 0; pair < network.pairs(); ++pair) {
    EXPECT_THAT(receive_all(network.right(pair)), testing::ElementsAre(payload));
  }
}

TEST_F(RingDumbbellTest, NetworksComeAndGo) {
  for (int i = 0; i < 20; ++i) {
    auto& network = make(gigabit(2));
    ASSERT_TRUE(send_one(network.left(1), network.right(1).address(), random_bytes(100, 1)));
    ASSERT_TRUE(send_one(network.left(1), network.right(1).address(), random_bytes(100, 1)));
    network.switch_step(0_ns);
    network_.reset();  // packets are still in the network
  }
  RingDumbbell first(*eal_, gigabit());
  RingDumbbell second(*eal_, gigabit());
  EXPECT_THROW(first.inject_to(second.left(0), random_bytes(20, 1)), InputError);
}

}  // namespace
}  // namespace mltcp::dpdk
