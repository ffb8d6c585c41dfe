// Tests the record of received packets: how it classifies packet numbers, when acknowledgements are due, what they
// contain, and which numbers it rejects.
#include "mltcp/transport/internal/received_packets.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace mltcp::transport::received_packets_test {
namespace {

using namespace mltcp::literals;
using Place = ReceivedPackets::Place;

// span of packet numbers that the sender remembers, larger than the span in any test
constexpr std::uint32_t kEverything = 1'000'000;
constexpr Nanos kStart{1'000'000};

/// Returns the ranges of an acknowledgement, highest first.
std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges(const ReceivedPackets& packets) {
  wire::AckFrame frame;
  packets.fill(frame, kStart);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> result;
  for (std::uint32_t i = 0; i < frame.range_count; ++i)
    result.emplace_back(frame.ranges[i].first, frame.ranges[i].last);
  return result;
}
using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

/// Receives packets and requests acknowledgements, as a connection does.
struct Receiver {
  ConnectionConfig config;
  ReceivedPackets packets;
  void take(std::uint64_t number, std::uint8_t flags = 0, bool finished = false, Nanos now = kStart) {
    const Place place = packets.add(number, kEverything, 0, now);
    packets.owe_ack(number, flags, place != Place::next, finished, config, now);
  }
};

TEST(ReceivedPackets, add__tells_where_a_packet_stands) {
  ReceivedPackets packets;
  EXPECT_EQ(packets.add(5, kEverything, 0, kStart), Place::next) << "the first of all";
  EXPECT_EQ(packets.add(6, kEverything, 0, kStart), Place::next);
  EXPECT_EQ(packets.add(9, kEverything, 0, kStart), Place::ahead);
  EXPECT_EQ(packets.add(7, kEverything, 0, kStart), Place::behind);
  EXPECT_EQ(packets.add(10, kEverything, 0, kStart), Place::next);
  EXPECT_TRUE(packets.contains(7));
  EXPECT_FALSE(packets.contains(8));
  EXPECT_EQ(ranges(packets), (Ranges{{9, 10}, {5, 7}}));
}

TEST(ReceivedPackets, believable__no_number_far_ahead) {
  ReceivedPackets packets;
  packets.add(0, kEverything, 0, kStart);
  EXPECT_TRUE(packets.believable(1 + ReceivedPackets::kMaxJump));
  EXPECT_FALSE(packets.believable(2 + ReceivedPackets::kMaxJump));
  EXPECT_TRUE(packets.believable(0)) << "nor is any too old";
}

TEST(ReceivedPackets, ack_due__every_second_packet_or_after_the_delay) {
  Receiver receiver;
  EXPECT_FALSE(receiver.packets.owes_ack());
  receiver.take(0);
  EXPECT_TRUE(receiver.packets.owes_ack());
  EXPECT_EQ(receiver.packets.ack_deadline(), kStart + receiver.config.max_ack_delay);
  EXPECT_FALSE(receiver.packets.ack_due(kStart + receiver.config.max_ack_delay - Nanos(1)));
  EXPECT_TRUE(receiver.packets.ack_due(kStart + receiver.config.max_ack_delay));
  receiver.take(1);
  EXPECT_TRUE(receiver.packets.ack_due(kStart));
  receiver.packets.on_ack_sent();
  EXPECT_FALSE(receiver.packets.owes_ack());
  EXPECT_FALSE(receiver.packets.ack_due(kStart + 1_s));
  EXPECT_TRUE(receiver.packets.ack_deadline().is_never());
}

TEST(ReceivedPackets, ack_due__at_once_for_a_message_s_end_and_out_of_order) {
  Receiver ended;
  ended.take(0, 0, true);
  EXPECT_TRUE(ended.packets.ack_due(kStart));
  Receiver gap;
  gap.take(0);
  gap.packets.on_ack_sent();
  gap.take(2);
  EXPECT_TRUE(gap.packets.ack_due(kStart));
  Receiver again;
  again.packets.owe_ack_now();
  EXPECT_TRUE(again.packets.ack_due(kStart));
}

TEST(ReceivedPackets, ack_due__as_seldom_as_the_sender_asks_for) {
  Receiver receiver;
  const std::uint8_t flags = wire::ask_ack_ratio(8);
  for (std::uint64_t number = 0; number < 7; ++number) receiver.take(number, flags, true);
  EXPECT_FALSE(receiver.packets.ack_due(kStart)) << "the end of a message is no reason";
  receiver.take(7, flags);
  EXPECT_TRUE(receiver.packets.ack_due(kStart));
}

TEST(ReceivedPackets, ack_due__three_packets_behind_a_gap_whatever_the_sender_asks_for) {
  Receiver receiver;
  const std::uint8_t flags = wire::ask_ack_ratio(32);
  receiver.take(0, flags);
  receiver.take(2, flags);
  for (std::uint64_t number = 3; number < 6; ++number) {
    receiver.packets.on_ack_sent();
    receiver.take(number, flags);
    EXPECT_EQ(receiver.packets.ack_due(kStart), number < 5) << number;
  }
}

TEST(ReceivedPackets, fill__says_delay_hops_and_ecn_counts) {
  ReceivedPackets packets;
  packets.add(3, kEverything, 4, kStart);
  packets.add(1, kEverything, 7, kStart + 10_us);  // not the highest number, so its time and hops do not count
  EXPECT_FALSE(packets.count_ecn(Ecn::ect0, 100));
  EXPECT_TRUE(packets.count_ecn(Ecn::ce, 200)) << "marks begin";
  EXPECT_FALSE(packets.count_ecn(Ecn::ce, 300));
  EXPECT_TRUE(packets.count_ecn(Ecn::ect0, 400)) << "and end";
  wire::AckFrame frame;
  packets.fill(frame, kStart + 30_us);
  EXPECT_EQ(packets.highest_time(), kStart);
  EXPECT_EQ(frame.delay_ns, 30'000U);
  EXPECT_EQ(frame.hops, 4);
  EXPECT_EQ(frame.ecn.ect0_packets, 2U);
  EXPECT_EQ(frame.ecn.ect1_packets, 0U);
  EXPECT_EQ(frame.ecn.ce_packets, 2U);
  EXPECT_EQ(frame.ecn.ce_bytes, 500U);
  wire::AckFrame late;
  packets.fill(late, kStart + 3600_s);
  EXPECT_EQ(late.delay_ns, 4'000'000'000U) << "as long as fits";
}

TEST(ReceivedPackets, add__forgets_what_the_sender_has_forgotten) {
  ReceivedPackets packets;
  for (const std::uint64_t number : {0U, 2U, 4U, 6U}) packets.add(number, kEverything, 0, kStart);
  packets.add(8, 4, 0, kStart);
  EXPECT_EQ(ranges(packets), (Ranges{{8, 8}, {6, 6}, {4, 4}}));
  EXPECT_FALSE(packets.contains(2));
  EXPECT_EQ(packets.add(2, 0, 0, kStart), Place::behind) << "late, it is taken as any";
  EXPECT_TRUE(packets.contains(2));
}

TEST(ReceivedPackets, add__remembers_as_many_ranges_as_an_ack_names_and_that_of_the_latest_packet) {
  ReceivedPackets packets;
  const std::uint64_t max = ReceivedPackets::kMaxRanges;
  for (std::uint64_t i = 1; i <= max; ++i) packets.add(10 * i, kEverything, 0, kStart);
  EXPECT_EQ(ranges(packets).size(), max);
  packets.add(10 * (max + 1), kEverything, 0, kStart);
  EXPECT_EQ(ranges(packets).size(), max);
  EXPECT_FALSE(packets.contains(10)) << "the lowest goes";
  packets.add(5, kEverything, 0, kStart);
  EXPECT_TRUE(packets.contains(5)) << "but that of the latest packet stays";
  EXPECT_FALSE(packets.contains(20));
}

TEST(ReceivedPackets, add__forgets_the_highest_numbers_when_the_peer_goes_on_below) {
  ReceivedPackets packets;
  packets.add(0, kEverything, 0, kStart);
  packets.add(900'000, kEverything, 0, kStart);  // forged
  for (std::uint64_t i = 1; i < ReceivedPackets::kMaxBehindTop; ++i) packets.add(i, kEverything, 0, kStart);
  EXPECT_TRUE(packets.contains(900'000));
  packets.add(ReceivedPackets::kMaxBehindTop, kEverything, 0, kStart);
  EXPECT_FALSE(packets.contains(900'000));
  EXPECT_EQ(ranges(packets), (Ranges{{0, ReceivedPackets::kMaxBehindTop}}));
}

TEST(ReceivedPackets, add__keeps_the_highest_numbers_that_go_on) {
  ReceivedPackets packets;
  packets.add(0, kEverything, 0, kStart);
  packets.add(900'000, kEverything, 0, kStart);
  for (std::uint64_t i = 1; i < 2 * ReceivedPackets::kMaxBehindTop; ++i) {
    packets.add(i, kEverything, 0, kStart);
    if (i % 1000 == 0) packets.add(900'000 + i / 1000, kEverything, 0, kStart);
  }
  EXPECT_TRUE(packets.contains(900'000));
}

}  // namespace
}  // namespace mltcp::transport::received_packets_test
