// Tests which packets count as lost and when (RFC 9002 section 6.1), when a new loss episode begins, and which
// acknowledgements and losses the congestion controller receives.
#include <gtest/gtest.h>

#include "lone_connection.h"

namespace mltcp::loss_detection_test {
namespace {

using namespace testing_network;

TEST(LossDetection, packet_threshold__is_three) {
  Flight flight;
  flight.arrived(2, 2);
  EXPECT_EQ(flight.stats().lost_packets, 0u) << "two later";
  flight.arrived(3, 3);
  EXPECT_EQ(flight.stats().lost_packets, 1u) << "the first is lost, three later; the second is not";
  flight.arrived(4, 4);
  EXPECT_EQ(flight.stats().lost_packets, 2u);
}

TEST(LossDetection, time_threshold__is_an_eighth_above_the_round_trip) {
  ConnectionConfig config = round_timers();
  config.timer_granularity = 1_us;
  LoneConnection alone(config);
  const Nanos begin = alone.now;
  const std::uint64_t first = alone.send(1, 1000);
  alone.now += 10_us;
  alone.send(2);
  alone.answer({{first + 1, first + 2}});
  EXPECT_EQ(alone.connection.next_deadline(), begin + Nanos(112'500));
  alone.now = begin + Nanos(112'499);
  alone.fire_timers();
  EXPECT_EQ(alone.stats().lost_packets, 0u);
  alone.now = begin + Nanos(112'500);
  Recorder::wanted.pacing_rate = Rate(50'000'000'000);
  alone.fire_timers();
  EXPECT_EQ(alone.stats().pacing_rate, Rate(50'000'000'000)) << "the controller's answer holds at once";
  EXPECT_EQ(alone.stats().lost_packets, 1u);
  EXPECT_EQ(alone.stats().retransmitted_packets, 1u);
  ASSERT_EQ(alone.events.back().kind, Event::Kind::congestion);
  EXPECT_EQ(alone.events.back().now, alone.now);
  EXPECT_EQ(alone.events.back().event.bytes_in_flight, 0u);
  // The next acknowledgement sample must report the loss.
  alone.answer({{first + 3, first + 3}});
  EXPECT_EQ(alone.sample().lost_packets, 1u);
  EXPECT_EQ(alone.sample().lost_bytes, alone.packet_of(first).size);
  const std::uint64_t next = alone.send();
  alone.ack({{next, next}});
  EXPECT_EQ(alone.sample().lost_packets, 0u) << "once";
  EXPECT_EQ(alone.sample().lost_bytes, 0u);
}

TEST(LossDetection, time_threshold__has_the_timers_granularity_and_comes_before_a_probe) {
  LoneConnection alone;
  const Nanos begin = alone.now;
  const std::uint64_t first = alone.send(2);
  alone.answer({{first + 1, first + 1}});
  EXPECT_EQ(alone.connection.next_deadline(), begin + 1_ms);
  alone.run_until(begin + 1_ms);
  EXPECT_EQ(alone.stats().lost_packets, 1u);
  EXPECT_EQ(alone.stats().in_flight, alone.packet_of(first + 2).size) << "sent again";
}

TEST(LossDetection, episode__takes_in_what_was_sent_before_the_response_to_it) {
  Flight flight;
  flight.arrived(1, 3);  // packet 0 is lost, and its data is sent again as packet 10
  ASSERT_EQ(flight.events.size(), 2u);
  EXPECT_EQ(flight.events[0].event.cause, cc::CongestionEvent::Cause::loss);
  EXPECT_EQ(flight.events[0].event.bytes_in_flight, 6u * LoneConnection::kPacket);
  EXPECT_TRUE(flight.sample().in_recovery);
  flight.arrived(5, 9);  // packet 4 is lost
  EXPECT_EQ(flight.stats().lost_packets, 2u);
  EXPECT_EQ(flight.count(Event::Kind::congestion), 1u);
  EXPECT_TRUE(flight.sample().in_recovery) << "the last packet from before";
  flight.send(4);
  flight.arrived(11, 13);  // packet 10, the first one sent after the response, is lost
  EXPECT_EQ(flight.stats().lost_packets, 3u);
  EXPECT_EQ(flight.count(Event::Kind::congestion), 2u);
  EXPECT_TRUE(flight.sample().in_recovery) << "again";
  flight.arrived(16, 16);
  EXPECT_FALSE(flight.sample().in_recovery);
}

TEST(LossDetection, recovery__ends_with_the_first_packet_sent_after_the_response) {
  Flight flight;
  flight.arrived(1, 9);  // packet 0 is lost, and its data is sent again as packet 10
  EXPECT_TRUE(flight.sample().in_recovery);
  flight.arrived(10, 10);
  EXPECT_FALSE(flight.sample().in_recovery);
}

TEST(LossDetection, sample__says_what_was_acknowledged_and_lost) {
  LoneConnection alone;
  alone.now += 1_ms;
  const Nanos begin = alone.now;
  const std::uint64_t first = alone.send(6);
  alone.send(1, 300);
  alone.now += 140_us;
  alone.take_ack({{first + 3, first + 3}}, {}, 10_us);
  alone.now += 1_us;
  alone.take(header_for(7, alone.next_of_peer++, 1000), [&](wire::Writer& w) {
    wire::AckFrame frame;
    frame.hops = 3;
    frame.delay_ns = 20'000;
    frame.range_count = 2;
    frame.ranges[0] = {first + 6, first + 6};
    frame.ranges[1] = {first + 3, first + 4};
    w.ack(frame);
  });
  EXPECT_EQ(alone.count(Event::Kind::ack), 1u) << "one for the burst";
  const cc::AckSample sample = alone.sample();
  EXPECT_EQ(sample.now, begin + 141_us);
  EXPECT_EQ(sample.acked_packets, 3u);
  EXPECT_EQ(sample.acked_bytes, 2u * LoneConnection::kPacket + 348);
  EXPECT_EQ(sample.lost_packets, 3u);
  EXPECT_EQ(sample.lost_bytes, 3u * LoneConnection::kPacket);
  EXPECT_EQ(sample.bytes_in_flight_before, 6u * LoneConnection::kPacket + 348);
  EXPECT_EQ(sample.latest_rtt, 141_us);
  EXPECT_EQ(sample.endpoint_delay, 20_us);
  EXPECT_EQ(sample.hops, 3);
  EXPECT_EQ(sample.min_rtt, 100_us);
  EXPECT_EQ(sample.smoothed_rtt, alone.stats().smoothed_rtt);
  EXPECT_FALSE(sample.cwnd_limited);
  EXPECT_EQ(sample.gain, 1.0);
  EXPECT_EQ(sample.decrease_gain, 1.0);
}

TEST(LossDetection, gains__are_those_of_the_job) {
  Flight flight;
  flight.job().augmentation = cc::Augmentation::constant(3.0);
  flight.job().augmentation.scale_decrease(true);
  flight.connection.attach(0);
  flight.arrived(1, 3);
  ASSERT_EQ(flight.events.size(), 2u);
  EXPECT_EQ(flight.events[0].event.decrease_gain, 3.0);
  EXPECT_EQ(flight.sample().gain, 3.0);
  EXPECT_EQ(flight.sample().decrease_gain, 3.0);
}

TEST(LossDetection, endpoint_delay__is_at_most_the_round_trip) {
  LoneConnection alone;
  const std::uint64_t first = alone.send();
  alone.now += 100_us;
  alone.ack({{first, first}}, {}, 5_ms);
  EXPECT_EQ(alone.sample().endpoint_delay, 100_us);
}

TEST(LossDetection, round_trip__is_of_the_largest_packet_and_only_if_that_is_new) {
  LoneConnection alone;
  const std::uint64_t first = alone.send(2);
  alone.now += 100_us;
  alone.ack({{first + 1, first + 1}});
  EXPECT_EQ(alone.sample().latest_rtt, 100_us);
  alone.now += 200_us;
  alone.ack({{first, first + 1}});
  EXPECT_EQ(alone.sample().acked_packets, 1u);
  EXPECT_EQ(alone.sample().latest_rtt, 0_us);
  EXPECT_EQ(alone.stats().smoothed_rtt, 100_us);
}

TEST(LossDetection, acknowledgement_without_news__is_no_sample) {
  Flight flight;
  flight.arrived(0, 4);
  ASSERT_EQ(flight.events.size(), 1u);
  flight.arrived(0, 4);
  EXPECT_EQ(flight.events.size(), 1u);
  EXPECT_EQ(flight.stats().in_flight, 5u * LoneConnection::kPacket);
}

TEST(LossDetection, acknowledgement_of_the_next_packet__counts_as_far_as_something_was_sent) {
  Flight flight;
  flight.arrived(0, 10);
  EXPECT_EQ(flight.shard.violations, 0u) << "somebody else may have sent a packet with that number";
  EXPECT_EQ(flight.stats().in_flight, 0u);
}

TEST(LossDetection, late_acknowledgement__counts_once) {
  Flight flight;
  flight.arrived(1, 3);
  flight.arrived(0, 0);
  flight.arrived(0, 3);
  flight.arrived(0, 4);
  EXPECT_EQ(flight.stats().spurious_losses, 1u);
}

TEST(LossDetection, packets_of_acknowledgements_alone__are_neither_lost_nor_late) {
  LoneConnection alone;
  const std::uint64_t first = alone.send();
  alone.take([](wire::Writer& w) { w.ping(); }, Ecn::not_ect, wire::ack_now);
  EXPECT_EQ(alone.sent.back().header.flags & wire::ack_now, 0);
  alone.send();
  alone.answer({{first + 1, first + 2}});
  EXPECT_EQ(alone.stats().spurious_losses, 0u);
  alone.send(2);
  alone.answer({{first + 4, first + 4}});
  EXPECT_EQ(alone.stats().lost_packets, 1u) << "the first";
}

TEST(LossDetection, lost_packet__is_not_waited_for) {
  Flight flight;
  flight.arrived(1, 9);
  EXPECT_EQ(flight.stats().in_flight, flight.sent.back().size) << "what was sent again";
  flight.arrived(10, 10);
  EXPECT_EQ(flight.stats().in_flight, 0u);
  EXPECT_EQ(flight.connection.next_deadline(), Nanos::never()) << "nothing to probe for";
}

TEST(LossDetection, lost_packets__are_remembered_for_as_long_as_one_may_be_late) {
  for (const bool in_time : {true, false}) {
    Flight flight;
    flight.arrived(1, 3);
    const Nanos sent = flight.packet_of(flight.first).at;
    flight.arrived(4, 9);
    // A lost packet is remembered for a round trip plus 10 ms plus the timer granularity of 1 ms. The acknowledgement
    // arrives a round trip after the time set here.
    flight.now = sent + 11_ms - (in_time ? 1_ns : 0_ns);
    const std::uint64_t next = flight.send();
    flight.answer({{next, next}});
    flight.arrived(0, 0);
    EXPECT_EQ(flight.stats().spurious_losses, in_time ? 1u : 0u);
  }
}

TEST(LossDetection, rounds__end_with_what_was_sent_after_the_last_ended) {
  Flight flight;
  flight.arrived(0, 0);
  const std::uint64_t round = flight.sample().round_count;
  flight.arrived(1, 9);
  EXPECT_EQ(flight.sample().round_count, round);
  const std::uint64_t next = flight.send(2);
  flight.ack({{next, next}});
  EXPECT_EQ(flight.sample().round_count, round + 1);
  flight.ack({{next + 1, next + 1}});
  EXPECT_EQ(flight.sample().round_count, round + 1);
}

TEST(LossDetection, lost_packet__comes_again_as_far_as_it_is_missing) {
  ConnectionConfig config = round_timers();
  config.max_ack_delay = 1_ms;
  LoneConnection alone(config);
  const std::uint64_t first = alone.send();
  alone.run_for(2_ms);
  // The probe also has to carry an acknowledgement, so that the data of one packet does not fit. It is sent again in
  // two packets.
  alone.arrive([](wire::Writer& w) { w.ping(); });
  alone.run_for(110_us);
  ASSERT_EQ(alone.sent.size(), first + 3);
  ASSERT_TRUE(is_data(alone.sent[first + 1]) && is_data(alone.sent[first + 2]));
  const wire::DataFrame front = alone.sent[first + 1].find(FrameType::data)->data;
  const wire::DataFrame rest = alone.sent[first + 2].find(FrameType::data)->data;
  EXPECT_EQ(front.offset, 0u);
  EXPECT_EQ(rest.offset, front.length);
  EXPECT_EQ(rest.offset + rest.length, LoneConnection::kPayload);
  EXPECT_FALSE(front.last);
  EXPECT_TRUE(rest.last);
  // The first part arrives. When the original packet counts as lost, only the second part may be sent again.
  const std::uint64_t more = alone.send(2);
  alone.ack({{first + 1, first + 1}, {more, more + 1}});
  ASSERT_EQ(alone.stats().lost_packets, 1u);
  ASSERT_TRUE(is_data(alone.sent.back()));
  EXPECT_EQ(alone.sent.back().header.packet_number, more + 2);
  EXPECT_EQ(alone.sent.back().find(FrameType::data)->data.offset, rest.offset);
  EXPECT_EQ(alone.sent.back().find(FrameType::data)->data.length, rest.length);
}

// ---- The window ----

TEST(SendWindow, packets__leave_until_a_full_one_would_not_fit) {
  LoneConnection alone({.window = 5.0 * LoneConnection::kPacket});
  for (int i = 0; i < 10; ++i) alone.post(LoneConnection::kPayload);
  EXPECT_EQ(alone.build(), Connection::Blocked::window);
  EXPECT_EQ(alone.stats().in_flight, 5u * LoneConnection::kPacket);
  alone.now += LoneConnection::kRoundTrip;
  Recorder::wanted.cwnd_bytes = 6.0 * LoneConnection::kPacket - 1;
  alone.ack({{1, 1}});
  EXPECT_TRUE(alone.sample().cwnd_limited);
  EXPECT_EQ(alone.stats().in_flight, 5u * LoneConnection::kPacket) << "a byte is missing for the sixth";
}

TEST(SendWindow, packets__are_no_longer_than_the_peer_takes) {
  LoneConnection alone({.peers_max_packet = 600});
  alone.send(1, 2000);
  for (const Parsed& packet : alone.sent) EXPECT_LE(packet.size, 600u);
  EXPECT_EQ(alone.packet_of(1).size, 600u);
}

TEST(SendWindow, below_a_packet__lets_one_leave_at_a_time) {
  LoneConnection alone({.window = 100});
  for (int i = 0; i < 3; ++i) alone.post(10);
  EXPECT_EQ(alone.build(), Connection::Blocked::window);
  EXPECT_EQ(alone.sent.size(), 2u) << "ACCEPT and one";
  EXPECT_NE(alone.sent.back().header.flags & wire::ack_now, 0);
}

TEST(SendWindow, two_packets_wide__does_not_ask_for_acknowledgements_at_once) {
  for (const double window : {1.999, 2.0}) {
    LoneConnection alone({.window = window * LoneConnection::kPacket});
    alone.post(10);
    alone.post(10);
    alone.build();
    EXPECT_EQ((alone.packet_of(1).header.flags & wire::ack_now) != 0, window < 2.0);
    EXPECT_NE(alone.sent.back().header.flags & wire::ack_now, 0) << "the last always does";
  }
}

TEST(SendWindow, cwnd_limited__are_packets_sent_before_the_window_held_one_back) {
  LoneConnection alone({.window = 3.0 * LoneConnection::kPacket});
  for (int i = 0; i < 4; ++i) alone.post(LoneConnection::kPayload);
  alone.build();           // sends packets 1 to 3
  alone.answer({{1, 2}});  // sends packet 4, the last one
  EXPECT_TRUE(alone.sample().cwnd_limited);
  alone.ack({{3, 3}});
  EXPECT_TRUE(alone.sample().cwnd_limited);
  alone.ack({{4, 4}});
  EXPECT_FALSE(alone.sample().cwnd_limited);
}

TEST(SendWindow, max_packets_in_flight__is_exact_and_no_limit_of_the_window) {
  ConnectionConfig config = round_timers();
  config.max_packets_in_flight = 16;
  LoneConnection alone(config);
  for (int i = 0; i < 20; ++i) alone.post(10);
  EXPECT_EQ(alone.build(), Connection::Blocked::window);
  EXPECT_EQ(alone.sent.size(), 1u + 16);
  alone.ack({{1, 1}});
  EXPECT_EQ(alone.sent.size(), 1u + 17);
  EXPECT_FALSE(alone.sample().cwnd_limited);
}

TEST(SendWindow, pacing_rate__is_a_quarter_above_the_window_where_the_controller_wants_none) {
  LoneConnection alone({.start = LoneConnection::Start::accepted, .window = 100'000});
  Recorder::wanted.pacing_rate = Rate();
  alone.answer({{0, 0}});
  EXPECT_NEAR(alone.stats().pacing_rate.gbps(), 1.25 * 100'000 * 8 / 100e3, 1e-6);
  Recorder::wanted.pacing_rate = Rate(123'000'000);
  const std::uint64_t first = alone.send();
  alone.answer({{first, first}});
  EXPECT_EQ(alone.stats().pacing_rate, Rate(123'000'000));
}

TEST(SendWindow, pacing__lets_a_packet_and_one_more_leave_after_a_pause) {
  LoneConnection alone;
  Recorder::wanted.pacing_rate = Rate(100'000'000);
  const std::uint64_t first = alone.send();
  alone.answer({{first, first}});
  alone.now += 10_ms;
  for (int i = 0; i < 3; ++i) alone.post(LoneConnection::kPayload);
  EXPECT_EQ(alone.build(), Connection::Blocked::pacing);
  EXPECT_EQ(alone.sent.size(), first + 3);
  EXPECT_EQ(alone.connection.next_deadline(), alone.now + Nanos(1472 * 80));
}

TEST(SendWindow, max_rate__bounds_the_pacing_rate) {
  ConnectionConfig config = round_timers();
  config.max_rate = Rate(50'000'000);
  LoneConnection before({.config = config, .start = LoneConnection::Start::accepted});
  EXPECT_EQ(before.stats().pacing_rate, config.max_rate) << "without a round trip, too";
  LoneConnection alone(config);
  EXPECT_EQ(alone.stats().pacing_rate, config.max_rate);
  Recorder::wanted.pacing_rate = Rate(20'000'000);
  const std::uint64_t first = alone.send();
  alone.answer({{first, first}});
  EXPECT_EQ(alone.stats().pacing_rate, Rate(20'000'000));
}

}  // namespace
}  // namespace mltcp::loss_detection_test
