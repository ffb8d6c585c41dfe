// Packets whose end a switch has removed because its buffer was full: they are reported and sent again at once.
#include <gtest/gtest.h>

#include "../transport/test_network.h"
#include "mltcp/transport/security/packet_key.h"
#include "transfer.h"

namespace mltcp {
namespace {

using namespace testing_network;

struct Trimming {
  explicit Trimming(const ConnectionConfig& config = {}, const PacketIo::Limits& limits = {})
      : pair(config, config, TestNetwork::kDefaultDelay, limits), message(random_bytes(400'000)) {
    pair.rate = Rate(1'000'000'000);
    std::tie(c, s) = pair.connect();
    pair.log.clear();
  }
  void complete() {
    ByteVector buffer(message.size());
    ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1, 10_s));
    EXPECT_EQ(buffer, message);
  }
  /// Trims the data packets of the client with these positions in the order of sending, from 0.
  void trim(std::uint32_t first, std::uint32_t end) {
    pair.fate = [=, sent = 0U](const Parsed& packet, Fate& fate) mutable {
      if (packet.from != 0 || !is_data(packet)) return;
      fate.trim = sent >= first && sent < end;
      ++sent;
    };
  }
  [[nodiscard]] ConnectionStats stats() { return pair.c().stats(c).value(); }
  [[nodiscard]] std::uint64_t reports() const {
    return pair.count([](const Parsed& packet) { return packet.from == 1 && packet.has(FrameType::trimmed); });
  }

  Pair pair;
  ByteVector message;
  ConnectionId c = 0;
  ConnectionId s = 0;
};

TEST(Trimming, trimmed_packet__is_sent_again_when_its_report_arrives) {
  Trimming test;
  test.trim(40, 41);
  test.complete();
  const auto is_sent_again = [&](const Parsed& packet) {
    return packet.from == 0 && is_data(packet) && std::ranges::any_of(test.pair.log, [&](const Parsed& earlier) {
             return earlier.at < packet.at && earlier.from == 0 && is_data(earlier) &&
                    earlier.find(FrameType::data)->data.offset == packet.find(FrameType::data)->data.offset;
           });
  };
  const auto again = std::ranges::find_if(test.pair.log, is_sent_again);
  ASSERT_NE(again, test.pair.log.end());
  const auto report = std::ranges::find_if(
      test.pair.log, [](const Parsed& packet) { return packet.from == 1 && packet.has(FrameType::trimmed); });
  ASSERT_NE(report, test.pair.log.end());
  EXPECT_LE(again->at - report->at, TestNetwork::kDefaultDelay + 30_us);
  EXPECT_EQ(test.stats().lost_packets, 1U);
  EXPECT_EQ(test.stats().spurious_losses, 0U);
  EXPECT_EQ(test.stats().congestion_events, 1U);
  EXPECT_EQ(test.reports(), 1U);
  EXPECT_EQ(test.pair.s().stats().trimmed_packets, 1U);
}

// Without the report, only a timeout would show these losses: no later packet arrives.
TEST(Trimming, the_last_packets_of_a_message__need_no_timeout) {
  Trimming test;
  constexpr std::uint32_t packets = 400'000 / 1424 + 1;
  test.trim(packets - 3, packets);
  const Nanos began = test.pair.now();
  test.complete();
  EXPECT_EQ(test.stats().lost_packets, 3U);
  EXPECT_LT(test.pair.now() - began, Rate(1'000'000'000).time_for(400'000) * 2 + 5_ms);
}

TEST(Trimming, whole_flights__do_not_make_the_path_a_black_hole) {
  Trimming test;
  test.trim(20, 120);
  test.complete();
  EXPECT_GE(test.stats().lost_packets, 90U);
  EXPECT_EQ(test.pair.c().stats().black_holes, 0U);
  EXPECT_EQ(test.stats().persistent_congestions, 0U);
}

// A trim shows that the path works, so the value stays in use.
TEST(Trimming, trimmed_path__is_used_again) {
  ConnectionConfig config;
  config.balance = "spray";
  config.paths = 64;
  Trimming test(config, {.paths = 64});
  test.message = random_bytes(4'000'000);
  std::uint32_t of_path = 0;
  test.pair.fate = [&](const Parsed& packet, Fate& fate) {
    if (packet.from == 0 && is_data(packet) && packet.path == 3) fate.trim = of_path++ < 3;
  };
  test.complete();
  EXPECT_GT(of_path, 4'000'000U / 1424 / 64 / 2);
}

TEST(Trimming, sealed_packet__is_not_believed) {
  Trimming test(keyed({security::packet_key(security::JobKey::generate())}));
  test.pair.fate = [sent = 0](const Parsed& packet, Fate& fate) mutable {
    fate.trim = packet.from == 0 && sent++ == 40;
  };
  test.complete();
  EXPECT_EQ(test.pair.s().stats().trimmed_packets, 1U);
  EXPECT_EQ(test.reports(), 0U);
}

// An attacker who knows the connection's id, but not its tag, sends beginnings of packets.
TEST(Trimming, forged_beginning__is_not_reported) {
  Trimming test;
  test.trim(0, 0);
  wire::Header header;
  header.connection = test.s;
  header.packet_number = 30;
  header.tag = 0x1234;
  ByteVector forged = forge(header, [](wire::Writer& writer) { writer.data({.length = 0}); });
  TestHost::Arrived packet;
  packet.source = test.pair.client().address;
  packet.bytes = forged;
  packet.is_trimmed = true;
  test.pair.server().arrived.push_back(packet);
  test.pair.wake(test.pair.server());
  test.complete();
  EXPECT_EQ(test.pair.s().stats().forged_packets, 1U);
  EXPECT_EQ(test.reports(), 0U);
  EXPECT_EQ(test.stats().lost_packets, 0U);
}

}  // namespace
}  // namespace mltcp
