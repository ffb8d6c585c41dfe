// Tests the record of sent packets: acknowledgements, round trips, the delivery rate, losses and spurious losses,
// probes, and skipped packet numbers.
#include "mltcp/transport/internal/sent_packets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace mltcp::transport::sent_packets_test {
namespace {

using namespace mltcp::literals;

constexpr Nanos kRoundTrip{100'000};
constexpr std::uint32_t kSize = 1000;

/// Returns a configuration for a round trip of 100 us. A packet is late after 1 ms, and a probe is due after 1.1 ms.
ConnectionConfig round_timers() {
  ConnectionConfig config;
  config.timer_granularity = 1_ms;
  config.max_ack_delay = Nanos(0);
  config.initial_rtt = kRoundTrip;
  config.max_packets_in_flight = 64;
  return config;
}

/// In these tests, packet n carries a chunk of message n.
struct Sent : SentPackets {
  explicit Sent(bool skips = false) : SentPackets(kRoundTrip, Nanos(0), skips, false) {}

  void send(std::uint64_t count = 1) {
    for (; count > 0; --count) {
      add_chunk({.message = next_number(), .length = 1});
      on_sent(kSize, 1, 0, now);
    }
  }
  /// Acknowledges `ranges`, which are given in falling order.
  bool ack(std::initializer_list<wire::PacketRange> ranges, Nanos delay = {}) {
    batch = {};
    acked.clear();
    wire::AckFrame frame;
    frame.delay_ns = static_cast<std::uint32_t>(delay.count);
    for (const wire::PacketRange& range : ranges) frame.ranges[frame.range_count++] = range;
    const bool honest = on_ack(
        frame, batch, news, nullptr, now, [&](const Chunk& chunk) { acked.push_back(chunk.message); },
        [] { return false; });
    batch.has_acks = batch.sample.acked_packets > 0;
    if (batch.has_acks) on_progress(now);
    return honest;
  }
  /// Detects losses. `congestion` is true if the congestion controller considers losses a sign of congestion.
  Verdict detect(bool congestion = true) {
    lost.clear();
    const Losses losses =
        detect_losses(config, nullptr, now, [&](const Chunk& chunk) { lost.push_back(chunk.message); });
    return losses.packets == 0 ? Verdict{} : judge(losses, congestion, config);
  }
  cc::AckSample sample() {
    cc::AckSample sample = batch.sample;
    complete(sample, batch.largest_acked);
    return sample;
  }

  ConnectionConfig config = round_timers();
  Nanos now{1'000'000'000};
  AckBatch batch;
  std::vector<RangeSet::Range> news;
  std::vector<std::uint64_t> acked;  ///< messages that the latest ack() acknowledged
  std::vector<std::uint64_t> lost;   ///< messages that the latest detect() declared lost
};
using Messages = std::vector<std::uint64_t>;

class SentPacketsTest : public testing::Test {
 protected:
  Sent sent;
};

TEST_F(SentPacketsTest, on_ack__hands_back_what_each_packet_carried_once) {
  sent.send(5);
  EXPECT_EQ(sent.in_flight(), 5U * kSize);
  sent.now += kRoundTrip;
  sent.ack({{3, 4}, {0, 1}});
  EXPECT_EQ(sent.acked, (Messages{4, 3, 1, 0}));
  EXPECT_EQ(sent.in_flight_packets(), 1U);
  EXPECT_EQ(sent.batch.sample.bytes_in_flight_before, 5U * kSize);
  EXPECT_EQ(sent.batch.sample.acked_bytes, 4U * kSize);
  EXPECT_EQ(sent.batch.largest_acked, 4U);
  EXPECT_EQ(sent.largest_acked(), 4U);
  sent.ack({{0, 4}});
  EXPECT_EQ(sent.acked, (Messages{2}));
  EXPECT_EQ(sent.in_flight(), 0U);
  sent.ack({{0, 4}});
  EXPECT_TRUE(sent.acked.empty());
}

TEST_F(SentPacketsTest, on_ack__stops_when_it_is_told_to) {
  sent.send(3);
  wire::AckFrame frame;
  frame.ranges[frame.range_count++] = {0, 2};
  std::size_t seen = 0;
  sent.on_ack(
      frame, sent.batch, sent.news, nullptr, sent.now, [&](const Chunk&) { ++seen; }, [&] { return seen == 2; });
  EXPECT_EQ(seen, 2U);
}

TEST_F(SentPacketsTest, on_ack__samples_the_round_trip_of_the_largest) {
  sent.send();
  sent.now += 10_us;
  sent.send(2);
  sent.now += kRoundTrip;
  sent.ack({{0, 1}}, 20_us);
  EXPECT_EQ(sent.batch.sample.latest_rtt, kRoundTrip);
  EXPECT_EQ(sent.batch.sample.endpoint_delay, 20_us);
  EXPECT_EQ(sent.rtt().minimum(), kRoundTrip);
  sent.now += 50_us;
  sent.ack({{0, 0}});
  EXPECT_EQ(sent.batch.sample.latest_rtt, Nanos()) << "an old packet";
}

TEST_F(SentPacketsTest, on_ack__measures_the_delivery_rate) {
  sent.send(10);
  sent.now += kRoundTrip;
  sent.ack({{0, 9}});
  EXPECT_EQ(sent.batch.sample.delivery_rate.bits_per_second, 10ULL * kSize * 8 * 10'000);
  EXPECT_FALSE(sent.batch.sample.app_limited);
  sent.send(2);
  sent.on_app_limited();
  sent.send();
  sent.now += kRoundTrip;
  sent.ack({{12, 12}});
  EXPECT_TRUE(sent.batch.sample.app_limited) << "there had been nothing to send behind the two";
}

TEST_F(SentPacketsTest, on_window_limited__is_told_with_the_packets_before) {
  sent.send(2);
  sent.on_window_limited();
  sent.send();
  sent.now += kRoundTrip;
  sent.ack({{1, 1}});
  EXPECT_TRUE(sent.batch.sample.cwnd_limited);
  sent.ack({{2, 2}});
  EXPECT_FALSE(sent.batch.sample.cwnd_limited);
}

TEST_F(SentPacketsTest, complete__counts_round_trips) {
  sent.send(2);
  sent.ack({{0, 0}});
  EXPECT_EQ(sent.sample().round_count, 1U);
  sent.ack({{1, 1}});
  EXPECT_EQ(sent.sample().round_count, 1U) << "sent before the round began";
  sent.send();
  sent.ack({{2, 2}});
  EXPECT_EQ(sent.sample().round_count, 2U);
}

TEST_F(SentPacketsTest, detect_losses__by_packets_sent_later) {
  sent.send(4);
  sent.now += kRoundTrip;
  sent.ack({{2, 2}});
  EXPECT_FALSE(sent.detect().congestion);
  EXPECT_TRUE(sent.lost.empty());
  EXPECT_EQ(sent.loss_time(), sent.now - kRoundTrip + 1_ms);
  sent.ack({{3, 3}});
  EXPECT_TRUE(sent.detect().congestion);
  EXPECT_EQ(sent.lost, (Messages{0})) << "three behind; packet 1 is two behind";
  EXPECT_EQ(sent.in_flight_packets(), 1U);
  const cc::AckSample sample = sent.sample();
  EXPECT_EQ(sample.lost_packets, 1U);
  EXPECT_EQ(sample.lost_bytes, Bytes{kSize});
  EXPECT_TRUE(sample.in_recovery);
  EXPECT_EQ(sent.sample().lost_packets, 0U) << "told once";
}

TEST_F(SentPacketsTest, detect_losses__by_time) {
  sent.send(2);
  sent.now += kRoundTrip;
  sent.ack({{1, 1}});
  sent.detect();
  sent.now = sent.loss_time();
  EXPECT_TRUE(sent.detect().congestion);
  EXPECT_EQ(sent.lost, (Messages{0}));
  EXPECT_TRUE(sent.loss_time().is_never());
  EXPECT_EQ(sent.lost_packets(), 1U);
}

TEST_F(SentPacketsTest, detect_losses__responds_once_a_round_trip) {
  sent.send(10);
  sent.now += kRoundTrip;
  sent.ack({{5, 5}});
  EXPECT_TRUE(sent.detect().congestion);
  sent.ack({{9, 9}});
  EXPECT_FALSE(sent.detect().congestion) << "sent before the response";
  EXPECT_FALSE(sent.lost.empty());
  EXPECT_FALSE(sent.responds_to(9));
  sent.send(4);
  sent.ack({{13, 13}});
  EXPECT_TRUE(sent.detect().congestion);
}

TEST_F(SentPacketsTest, detect_losses__persistent_when_nothing_gets_through) {
  sent.send();
  sent.now += kRoundTrip;
  sent.ack({{0, 0}});
  for (int i = 0; i < 5; ++i) {
    sent.send();
    sent.now += 1_ms;
  }
  sent.send();
  sent.now += kRoundTrip;
  sent.ack({{6, 6}});
  const SentPackets::Verdict verdict = sent.detect(false);
  EXPECT_TRUE(verdict.congestion) << "whatever the congestion controller takes it for";
  EXPECT_TRUE(verdict.persistent) << "4 ms, and three probe timeouts are about 3.6 ms";
  EXPECT_FALSE(sent.undo_losses());
}

TEST_F(SentPacketsTest, undo_losses__when_all_were_none) {
  sent.send(6);
  sent.now += kRoundTrip;
  sent.ack({{4, 5}});
  EXPECT_TRUE(sent.detect().congestion);
  EXPECT_EQ(sent.lost, (Messages{0, 1, 2}));
  sent.ack({{0, 1}});
  EXPECT_EQ(sent.acked, (Messages{1, 0})) << "late, they count all the same";
  EXPECT_FALSE(sent.undo_losses());
  sent.ack({{2, 3}});
  EXPECT_TRUE(sent.undo_losses());
  EXPECT_FALSE(sent.undo_losses()) << "once";
  EXPECT_EQ(sent.spurious_losses(), 3U);
  EXPECT_TRUE(sent.responds_to(0));
  // If packets are reordered by as many packets as before, they no longer count as lost.
  sent.send(6);
  sent.now += kRoundTrip;
  sent.ack({{11, 11}});
  sent.detect();
  EXPECT_TRUE(sent.lost.empty());
}

TEST_F(SentPacketsTest, undo_losses__not_after_another_response) {
  sent.send(4);
  sent.now += kRoundTrip;
  sent.ack({{3, 3}});
  EXPECT_TRUE(sent.detect().congestion);
  sent.begin_recovery();  // for example, as a response to congestion marks
  sent.ack({{0, 0}});
  EXPECT_FALSE(sent.undo_losses());
}

TEST_F(SentPacketsTest, probe_deadline__doubles_up_to_a_second) {
  EXPECT_TRUE(sent.probe_deadline(sent.config).is_never()) << "nothing in flight";
  sent.send();
  const Nanos timeout = sent.probe_timeout(sent.config);
  EXPECT_EQ(sent.probe_deadline(sent.config), sent.now + timeout);
  for (std::int64_t doubled = 2; doubled <= 1024; doubled *= 2) {
    sent.now = sent.probe_deadline(sent.config);
    ASSERT_TRUE(sent.on_probe_timeout(sent.config, sent.now));
    EXPECT_EQ(sent.probe_deadline(sent.config) - sent.now, std::min(timeout * doubled, SentPackets::kMaxProbeInterval));
  }
  EXPECT_TRUE(sent.probing());
  sent.on_probe_sent();
  sent.on_probe_sent();
  EXPECT_FALSE(sent.probing());
}

TEST_F(SentPacketsTest, probe_deadline__begins_anew_with_progress) {
  sent.send(2);
  ASSERT_TRUE(sent.on_probe_timeout(sent.config, sent.now));
  sent.ack({{0, 0}});
  EXPECT_FALSE(sent.probing());
  EXPECT_EQ(sent.probe_deadline(sent.config), sent.now + sent.probe_timeout(sent.config));
}

TEST_F(SentPacketsTest, on_probe_timeout__gives_up_when_nothing_has_come_back) {
  sent.config.give_up_after = 10_s;
  sent.send();
  const Nanos begin = sent.now;
  while (sent.on_probe_timeout(sent.config, sent.now)) sent.now = sent.probe_deadline(sent.config);
  EXPECT_GE(sent.now - begin, 10_s);
  EXPECT_LE(sent.now - begin, 10_s + SentPackets::kMaxProbeInterval);
}

TEST_F(SentPacketsTest, for_oldest_in_flight__visits_what_it_carried) {
  sent.send(3);
  sent.ack({{0, 0}});
  Messages visited;
  sent.for_oldest_in_flight([&](const Chunk& chunk) { visited.push_back(chunk.message); });
  EXPECT_EQ(visited, (Messages{1}));
}

TEST_F(SentPacketsTest, end_idle__only_after_a_pause) {
  EXPECT_FALSE(sent.end_idle(sent.config, sent.now)) << "the first packet of all";
  sent.send();
  sent.on_app_limited();
  sent.now += kRoundTrip;
  EXPECT_FALSE(sent.end_idle(sent.config, sent.now)) << "something is in flight";
  sent.ack({{0, 0}});
  sent.now += 10_ms;
  EXPECT_TRUE(sent.end_idle(sent.config, sent.now));
  EXPECT_FALSE(sent.end_idle(sent.config, sent.now)) << "once";
}

TEST_F(SentPacketsTest, on_sent_bare__keeps_only_the_number) {
  sent.on_sent_bare(sent.config, sent.now);
  EXPECT_EQ(sent.next_number(), 1U);
  EXPECT_EQ(sent.span(), 0U);
  sent.send();
  sent.on_sent_bare(sent.config, sent.now);
  EXPECT_EQ(sent.span(), 1U) << "packet 1 is kept";
  EXPECT_EQ(sent.packets_sent(), 3U);
  EXPECT_EQ(sent.in_flight(), Bytes{kSize});
}

TEST_F(SentPacketsTest, forget_finished__keeps_lost_packets_for_a_late_acknowledgement) {
  sent.send(4);
  sent.now += kRoundTrip;
  sent.ack({{1, 3}});
  sent.detect();
  ASSERT_EQ(sent.lost, (Messages{0}));
  sent.forget_finished(sent.config, sent.now);
  EXPECT_EQ(sent.span(), 3U);
  sent.now += kRoundTrip * 2 + 1_ms;
  sent.forget_finished(sent.config, sent.now);
  sent.send();
  EXPECT_EQ(sent.span(), 0U) << "the peer need not repeat what it has received long ago";
  sent.ack({{0, 0}});
  EXPECT_EQ(sent.acked, (Messages{0})) << "but a packet that comes as late is still known";
  EXPECT_EQ(sent.spurious_losses(), 1U);
}

TEST_F(SentPacketsTest, forget_finished__forgets_lost_packets_in_the_end) {
  sent.send(4);
  sent.now += kRoundTrip;
  sent.ack({{1, 3}});
  sent.detect();
  sent.send();
  const Nanos longest = kRoundTrip + Reordering(false).longest(kRoundTrip) + sent.config.timer_granularity;
  sent.now += longest - kRoundTrip - 1_ns;
  sent.forget_finished(sent.config, sent.now);
  sent.on_sent_bare(sent.config, sent.now);
  EXPECT_EQ(sent.span(), 1U) << "the packet in flight";
  ++sent.now.count;
  sent.forget_finished(sent.config, sent.now);
  sent.ack({{0, 0}});
  EXPECT_EQ(sent.spurious_losses(), 0U);
}

TEST_F(SentPacketsTest, judge__begins_no_recovery_for_losses_that_are_no_congestion) {
  sent.send(12);
  sent.now += kRoundTrip;
  sent.ack({{3, 3}});
  EXPECT_FALSE(sent.detect(false).congestion);
  EXPECT_EQ(sent.lost, (Messages{0}));
  EXPECT_EQ(sent.lost_packets(), 1U);
  EXPECT_FALSE(sent.sample().in_recovery);
  EXPECT_TRUE(sent.responds_to(4)) << "a mark in the same round trip is the first sign of congestion";
  EXPECT_FALSE(sent.reduction_allows(kSize, 1e9));
  sent.ack({{0, 0}});
  EXPECT_FALSE(sent.undo_losses()) << "there is no response to be undone";
  // The next losses in the same round trip are congestion. The late arrival of packet 0 proves nothing about these
  // losses.
  sent.ack({{11, 11}});
  EXPECT_TRUE(sent.detect(true).congestion);
  EXPECT_EQ(sent.lost, (Messages{1, 2, 4, 5, 6, 7})) << "four behind, as the first was three";
  EXPECT_FALSE(sent.undo_losses());
}

TEST_F(SentPacketsTest, reduction_allows__one_packet_at_once_and_then_in_proportion) {
  sent.send(20);
  sent.now += kRoundTrip;
  EXPECT_FALSE(sent.reduction_allows(kSize, 1e9)) << "nothing is lost";
  sent.ack({{1, 3}});
  ASSERT_TRUE(sent.detect().congestion);
  // When the loss was detected, 17 packets were in flight. The new window is half as many packets.
  const double window = 8.5 * kSize;
  EXPECT_TRUE(sent.reduction_allows(kSize, window)) << "what was lost";
  sent.send();
  EXPECT_FALSE(sent.reduction_allows(kSize, window)) << "nothing has been delivered since";
  sent.ack({{4, 6}});
  EXPECT_FALSE(sent.reduction_allows(kSize, window));
  sent.ack({{7, 7}});
  EXPECT_TRUE(sent.reduction_allows(kSize, window)) << "four delivered, two sent";
  sent.send();
  EXPECT_FALSE(sent.reduction_allows(kSize, window));
  sent.ack({{8, 11}});
  EXPECT_TRUE(sent.reduction_allows(2 * kSize, window)) << "eight delivered, four sent";
  EXPECT_FALSE(sent.reduction_allows(2 * kSize, window * 0.98)) << "in proportion to the window as it is then";
  sent.ack({{12, 20}});
  EXPECT_FALSE(sent.reduction_allows(kSize, 1e9)) << "it is over with what was in flight then";
}

TEST_F(SentPacketsTest, reduction_allows__nothing_after_marks) {
  sent.send(10);
  sent.now += kRoundTrip;
  sent.ack({{1, 3}});
  ASSERT_TRUE(sent.detect().congestion);
  sent.begin_recovery();
  EXPECT_FALSE(sent.reduction_allows(kSize, 1e9));
}

TEST_F(SentPacketsTest, make_room__gives_the_oldest_up) {
  const std::size_t max = SentPackets::kRecordsPerPacketInFlight * sent.config.max_packets_in_flight;
  sent.send(max);
  ASSERT_TRUE(sent.full(sent.config));
  Messages lost;
  sent.make_room([&](const Chunk& chunk) { lost.push_back(chunk.message); });
  EXPECT_EQ(lost, (Messages{0}));
  EXPECT_FALSE(sent.full(sent.config));
  EXPECT_EQ(sent.lost_packets(), 1U);
  EXPECT_EQ(sent.in_flight_packets(), max - 1);
}

/// A sender that skips packet numbers at random intervals.
struct Skipping : Sent {
  explicit Skipping(bool are_own = true) : Sent(true) {
    if (are_own) trust_numbers();
  }
  bool is_false_ack(const wire::AckFrame& frame) {
    return SentPackets::is_false_ack(frame, acks_ahead, [](const Chunk&) {});
  }
  /// Sends until a number has been skipped. Returns that number.
  std::uint64_t send_until_skip() {
    for (;;) {
      const std::uint64_t number = next_number();
      const bool is_first = number == 0;
      if (skip_is_due()) skip_number(random);
      const bool skipped = !is_first && next_number() > number;
      send();
      if (skipped) return number;
    }
  }
  ShardRandom random{1};
  std::uint16_t acks_ahead = 0;
};

TEST(SentPackets, skip_number__one_in_some_hundreds_at_random) {
  Skipping sent;
  sent.config.max_packets_in_flight = 1U << 20;
  std::uint64_t before = 0;
  std::uint64_t min = 1000;
  std::uint64_t max = 0;
  for (std::uint64_t i = 1; i <= 500; ++i) {
    const std::uint64_t skipped = sent.send_until_skip();
    min = std::min(min, skipped - before);
    max = std::max(max, skipped - before);
    before = skipped;
    EXPECT_EQ(sent.packets_sent(), sent.next_number() - i);
  }
  EXPECT_GE(min, SentPackets::kMinBetweenSkips);
  EXPECT_LT(min, SentPackets::kMinBetweenSkips + 10);
  EXPECT_LE(max, SentPackets::kMinBetweenSkips + SentPackets::kBetweenSkips);
  EXPECT_GT(max, SentPackets::kMinBetweenSkips + SentPackets::kBetweenSkips - 10);
}

wire::AckFrame ack_of(std::initializer_list<wire::PacketRange> ranges) {
  wire::AckFrame frame;
  for (const wire::PacketRange& range : ranges) frame.ranges[frame.range_count++] = range;
  return frame;
}

TEST(SentPackets, on_ack__tells_who_acknowledges_what_was_never_sent) {
  const std::uint64_t skipped = Skipping().send_until_skip();
  const std::uint64_t last = skipped + 1;
  const auto is_found = [&](std::initializer_list<wire::PacketRange> ranges) {
    Skipping sent;
    EXPECT_EQ(sent.send_until_skip(), skipped);
    EXPECT_EQ(sent.next_number() - 1, last);
    return sent.is_false_ack(ack_of(ranges)) || !sent.ack(ranges);
  };
  EXPECT_FALSE(is_found({{0, skipped - 1}}));
  EXPECT_FALSE(is_found({{last, last}, {0, skipped - 1}}));
  EXPECT_FALSE(is_found({{last, last}, {3, 10}}));
  EXPECT_TRUE(is_found({{0, skipped}}));
  EXPECT_TRUE(is_found({{skipped, last}}));
  EXPECT_TRUE(is_found({{last, last}, {skipped, skipped}})) << "whatever it stands beside";
  EXPECT_TRUE(is_found({{0, last + 1}})) << "still to come";
  EXPECT_TRUE(is_found({{last + 1, last + 1}}));
}

TEST(SentPackets, on_ack__finds_numbers_skipped_earlier_as_long_as_they_have_records) {
  Skipping sent;
  const std::uint64_t first = sent.send_until_skip();
  const std::uint64_t second = sent.send_until_skip();
  ASSERT_LT(first + 1, second);
  EXPECT_TRUE(sent.ack({{first + 1, second - 1}}));
  EXPECT_TRUE(sent.ack({{0, first - 1}}));
  Skipping false_acks;
  false_acks.send_until_skip();
  false_acks.send_until_skip();
  EXPECT_FALSE(false_acks.ack({{0, first + 1}}));
}

TEST(SentPackets, on_ack__without_a_key_passes_over_what_is_to_come_and_forgives_one_skipped_number) {
  const auto last_of = [](Skipping& sent) { return sent.next_number() - 1; };
  Skipping to_come(false);
  to_come.send(5);
  EXPECT_FALSE(to_come.is_false_ack(ack_of({{900, 900}, {0, 2}})));
  EXPECT_TRUE(to_come.ack({{900, 900}, {0, 2}}));
  EXPECT_EQ(to_come.in_flight_packets(), 2U);
  EXPECT_FALSE(to_come.rtt().has_sample()) << "nobody knows when that was acknowledged";
  EXPECT_TRUE(to_come.ack({{0, 900}}));
  EXPECT_EQ(to_come.in_flight_packets(), 0U);
  EXPECT_FALSE(to_come.is_false_ack(ack_of({{0, 5 + (1U << 22)}})));
  EXPECT_TRUE(to_come.is_false_ack(ack_of({{0, 6 + (1U << 22)}}))) << "which no receiver believes";
  Skipping often(false);
  often.send(5);
  int acks = 0;
  while (acks < 10'000 && !often.is_false_ack(ack_of({{900, 900}, {0, 2}}))) ++acks;
  EXPECT_EQ(acks, Skipping::kMaxAcksAhead) << "who goes on has no round trip measured";
  // The peer acknowledges the first skipped number, before or after the sender has removed its record of this number.
  // The sender then soon skips a second number.
  for (const bool has_record : {true, false}) {
    Skipping sent(false);
    sent.config.max_packets_in_flight = 1U << 20;
    const std::uint64_t first = sent.send_until_skip();
    if (!has_record) {
      EXPECT_TRUE(sent.ack({{0, first - 1}}));
      sent.forget_finished(sent.config, sent.now);
    }
    for (int i = 0; i < 3; ++i) {  // the acknowledgement arrives several times
      EXPECT_FALSE(sent.is_false_ack(ack_of({{first, first}}))) << has_record;
      EXPECT_TRUE(sent.ack({{0, last_of(sent)}})) << has_record;
    }
    const std::uint64_t second = sent.send_until_skip();
    EXPECT_LE(second, first + 40);
    EXPECT_FALSE(sent.ack({{0, last_of(sent)}})) << has_record;
  }
}

// So many packets are in flight that the sender skips further numbers before the first skipped number is acknowledged.
TEST(SentPackets, is_false_ack__about_a_number_whose_record_went_with_all_before_it) {
  std::uint64_t first = 0;
  std::uint64_t third = 0;
  const auto is_false_ack = [&](std::initializer_list<wire::PacketRange> ranges) {
    Skipping sent;
    sent.config.max_packets_in_flight = 1U << 20;
    first = sent.send_until_skip();
    sent.send_until_skip();
    third = sent.send_until_skip();
    EXPECT_TRUE(sent.ack({{0, first - 1}}));
    sent.forget_finished(sent.config, sent.now);
    return sent.is_false_ack(ack_of(ranges));
  };
  EXPECT_FALSE(is_false_ack({{0, 0}}));
  EXPECT_FALSE(is_false_ack({{first + 1, first + 1}, {0, first - 1}}));
  EXPECT_FALSE(is_false_ack({{first + 1, first + 2}}));
  EXPECT_TRUE(is_false_ack({{0, first + 1}}));
  EXPECT_TRUE(is_false_ack({{first + 3, first + 3}, {first, first + 1}, {0, first - 2}}));
  EXPECT_TRUE(is_false_ack({{first, first}}));
  EXPECT_TRUE(is_false_ack({{0, third}}));
}

TEST(SentPackets, skipped_number__is_neither_lost_nor_in_flight) {
  Skipping sent;
  const std::uint64_t skipped = sent.send_until_skip();
  sent.send(5);
  sent.now += kRoundTrip;
  EXPECT_TRUE(sent.ack({{skipped + 1, skipped + 6}, {0, skipped - 1}}));
  EXPECT_FALSE(sent.detect().congestion);
  EXPECT_EQ(sent.lost_packets(), 0U);
  EXPECT_EQ(sent.in_flight(), 0U);
  sent.forget_finished(sent.config, sent.now);
  sent.send();
  EXPECT_EQ(sent.span(), 0U) << "the receiver forgets the gap";
}

TEST(SentPackets, skip_number__with_nothing_in_flight_leaves_no_record) {
  Skipping sent;
  std::uint64_t skipped = 0;
  while (skipped == 0) {
    const std::uint64_t number = sent.next_number();
    if (sent.skip_is_due()) sent.skip_number(sent.random);
    if (number > 0 && sent.next_number() > number) skipped = number;
    sent.send();
    EXPECT_EQ(sent.span(), 0U);
    sent.ack({{sent.next_number() - 1, sent.next_number() - 1}});
    sent.forget_finished(sent.config, sent.now);
  }
  EXPECT_TRUE(sent.is_false_ack(ack_of({{0, skipped}})));
}

TEST_F(SentPacketsTest, give_up__leaves_nothing_in_flight) {
  sent.send(3);
  sent.give_up(sent.config, sent.now);
  EXPECT_EQ(sent.in_flight(), 0U);
  EXPECT_TRUE(sent.probe_deadline(sent.config).is_never());
  sent.ack({{0, 2}});
  EXPECT_TRUE(sent.acked.empty());
}

}  // namespace
}  // namespace mltcp::transport::sent_packets_test
