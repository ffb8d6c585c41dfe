// Tests probe timeouts (RFC 9002 section 6.2): when they occur, which packets they send, their backoff, and when the
// peer is given up. Also tests how a sender that waits for credit asks for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lone_connection.h"

namespace mltcp::probe_test {
namespace {

using namespace testing_network;

TEST(Probe, timeout__is_round_trip_and_variation_and_what_the_peer_may_wait) {
  ConnectionConfig config = round_timers();
  config.max_ack_delay = 300_us;
  LoneConnection alone(config);
  alone.send();
  EXPECT_EQ(alone.connection.next_deadline(), alone.now + 1'400_us);
}

TEST(Probe, full_window__is_exceeded_by_two_packets_that_want_an_answer_at_once) {
  LoneConnection alone({.window = 4.0 * LoneConnection::kPacket});
  for (int i = 0; i < 10; ++i) alone.post(LoneConnection::kPayload);
  alone.build();
  const Nanos begin = alone.now;
  ASSERT_EQ(alone.sent.size(), 5u);
  alone.run_until(begin + 1'100_us - 1_ns);
  EXPECT_EQ(alone.sent.size(), 5u);
  alone.run_until(begin + 1'100_us);
  ASSERT_EQ(alone.sent.size(), 7u);
  EXPECT_EQ(alone.sent[4].header.flags & wire::ack_now, 0);
  EXPECT_NE(alone.sent[5].header.flags & wire::ack_now, 0);
  EXPECT_NE(alone.sent[6].header.flags & wire::ack_now, 0);
  EXPECT_EQ(alone.sent[5].find(FrameType::data)->data.message, 4u) << "new data probes as well as any";
  EXPECT_FALSE(alone.sent[5].has(FrameType::ping));
  EXPECT_EQ(alone.stats().lost_packets, 0u) << "a timeout judges nothing";
  EXPECT_TRUE(alone.events.empty());
}

TEST(Probe, without_new_data__repeats_the_oldest_packet_in_flight) {
  LoneConnection alone;
  const std::uint64_t first = alone.send(4, 1000);
  alone.now += 10_us;
  alone.ack({{first, first + 1}});
  alone.run_for(1'200_us);
  ASSERT_EQ(alone.sent.size(), first + 5);
  EXPECT_EQ(alone.sent.back().find(FrameType::data)->data.message, 2u);
  EXPECT_TRUE(alone.sent.back().has(FrameType::ping));
  EXPECT_EQ(alone.stats().retransmitted_packets, 1u);
  EXPECT_EQ(alone.stats().in_flight, 3u * 1048 + wire::kPingFrameBytes);
}

// Bytes of a message that is so short that its loss cannot be due to its length (see black_hole_test.cpp).
constexpr Bytes kAFew = 400;

TEST(Probe, timeouts__double_and_an_acknowledgement_takes_them_back) {
  LoneConnection alone;
  const std::uint64_t first = alone.send(1, kAFew);
  const Nanos begin = alone.now;
  alone.run_for(8_ms);
  ASSERT_EQ(alone.sent.size(), first + 4);
  EXPECT_EQ(alone.sent[first + 1].at - begin, 1'100_us);
  EXPECT_EQ(alone.sent[first + 2].at - begin, 3'300_us);
  EXPECT_EQ(alone.sent[first + 3].at - begin, 7'700_us);
  alone.now = alone.sent.back().at + LoneConnection::kRoundTrip;
  alone.ack({{first + 3, first + 3}});
  alone.send();
  EXPECT_EQ(alone.connection.next_deadline(), alone.now + 1'100_us);
}

TEST(Probe, interval__is_a_second_at_most_but_never_below_the_timeout) {
  LoneConnection alone;
  alone.send(1, kAFew);
  alone.run_for(10_s);
  EXPECT_EQ(alone.sent[alone.sent.size() - 1].at - alone.sent[alone.sent.size() - 2].at, 1_s);
  ConnectionConfig config = round_timers();
  config.initial_rtt = 2_s;  // the round-trip time variation starts at half of initial_rtt
  LoneConnection far({.config = config, .start = LoneConnection::Start::accepted});
  far.run_for(20_s);
  ASSERT_EQ(far.sent.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(far.sent[i].at - far.sent[i - 1].at, 6_s);
}

TEST(Probe, an_acknowledgement_in_between__makes_it_needless) {
  // The timeout passes while the datapath is full. An acknowledgement arrives before the datapath accepts packets
  // again.
  LoneConnection alone({.window = 4.0 * LoneConnection::kPacket});
  for (int i = 0; i < 10; ++i) alone.post(LoneConnection::kPayload);
  alone.build();
  alone.now += 1'100_us;
  alone.connection.on_timer(alone.now);
  alone.ack({{1, 1}});
  ASSERT_EQ(alone.sent.size(), 6u);
  EXPECT_EQ(alone.sent[5].header.flags & wire::ack_now, 0);
}

TEST(Probe, peer__is_given_up_at_the_first_timeout_after_that_time) {
  for (const Nanos more : {0_ns, 1_ns}) {
    ConnectionConfig config = round_timers();
    config.give_up_after = 7'700_us + more;
    LoneConnection alone(config);
    const Nanos begin = alone.now + 5_ms;
    alone.now = begin;  // silence before the first packet must not count
    alone.send();
    alone.run_until(begin + 7'700_us);
    EXPECT_EQ(alone.connection.state() == Connection::State::draining, more.count == 0);
    if (more.count > 0) alone.run_until(begin + 16'500_us);
    EXPECT_EQ(alone.connection.state(), Connection::State::draining);
    ASSERT_EQ(alone.sent.back().frames.size(), 1u) << "no probe beside it";
    EXPECT_EQ(alone.sent.back().frames[0].type, FrameType::close);
    EXPECT_EQ(alone.sent.back().frames[0].close, wire::CloseReason::idle);
    const auto completions = alone.completions();
    ASSERT_EQ(completions.size(), 2u);
    EXPECT_EQ(completions[0].status, Status::unreachable);
    EXPECT_EQ(completions[1].kind, Kind::closed);
  }
}

TEST(Probe, peer__is_asked_twice_before_it_is_given_up_however_short_the_time) {
  ConnectionConfig config = round_timers();
  config.give_up_after = 1_us;
  LoneConnection alone(config);
  alone.send();
  const Nanos begin = alone.now;
  alone.run_until(begin + 7'700_us - 1_ns);
  EXPECT_EQ(alone.connection.state(), Connection::State::open);
  alone.run_until(begin + 7'700_us);
  EXPECT_EQ(alone.connection.state(), Connection::State::draining);
}

TEST(Probe, progress__begins_the_time_to_give_up_anew) {
  ConnectionConfig config = round_timers();
  config.give_up_after = 7'700_us;
  LoneConnection alone(config);
  const std::uint64_t first = alone.send(2);
  alone.now += 1_ms;
  alone.ack({{first + 1, first + 1}});
  const Nanos progress = alone.now;
  alone.run_until(progress + 7'700_us - 1_ns);
  EXPECT_EQ(alone.connection.state(), Connection::State::open);
  alone.run_until(progress + 60_ms);
  EXPECT_EQ(alone.connection.state(), Connection::State::dead);
}

// If the peer refuses a message, it may refuse the whole packet. If the same messages always shared a packet, none of
// them would ever arrive.
TEST(Probe, eight_in_vain__have_a_packet_take_a_single_lost_piece_whoever_sends_it) {
  const auto pieces = [](const Parsed& packet) {
    return std::count_if(packet.frames.begin(), packet.frames.end(),
                         [](const wire::Frame& frame) { return frame.type == FrameType::data; });
  };
  ConnectionConfig config = round_timers();
  config.pack_messages = true;
  LoneConnection alone(config);
  constexpr std::uint32_t messages = 5;
  for (std::uint32_t i = 0; i < messages; ++i) alone.post(200);
  alone.build();
  ASSERT_EQ(pieces(alone.sent.back()), messages) << "or the test shows nothing";
  // At the ninth timeout the connection suspects the size of its packets, and sends probes of several sizes. Only these
  // probes arrive.
  while (alone.shard.size_probes_sent == 0) alone.run_for(1_ms);
  const std::uint64_t last = alone.sent.back().header.packet_number;
  ASSERT_EQ(alone.shard.size_probes_sent, 3u);
  for (std::uint64_t number = last - 2; number <= last; ++number)
    ASSERT_TRUE(alone.packet_of(number).has(FrameType::padding));
  const std::size_t before = alone.sent.size();
  alone.ack({{last - 2, last}});
  // The packets in flight count as lost, and are sent again as the window allows.
  std::set<std::uint32_t> sent;
  for (std::size_t i = before; i < alone.sent.size(); ++i) {
    EXPECT_EQ(pieces(alone.sent[i]), 1);
    if (const wire::Frame* data = alone.sent[i].find(FrameType::data)) sent.insert(data->data.message);
  }
  EXPECT_EQ(sent.size(), messages);
}

TEST(Probe, connecting__repeats_connect_alone) {
  LoneConnection alone({.start = LoneConnection::Start::connecting});
  alone.post(100);
  alone.run_for(20_ms);
  ASSERT_GE(alone.sent.size(), 2u);
  for (const Parsed& packet : alone.sent) {
    ASSERT_EQ(packet.frames.size(), 1u);
    EXPECT_EQ(packet.frames[0].type, FrameType::connect);
  }
}

TEST(Probe, connects_that_were_not_received__are_forgotten_once_one_was) {
  LoneConnection alone({.start = LoneConnection::Start::connecting});
  for (int i = 0; i < 100 && alone.sent.size() < 4; ++i) alone.run_for(1_ms);
  ASSERT_EQ(alone.sent.size(), 4u);
  alone.take_ack({{3, 3}});  // this acknowledgement comes before ACCEPT, so it has no effect
  alone.arrive([](wire::Writer& w) { w.accept({.max_packet = 1472, .source_connection = 99, .credit = 0}); });
  alone.ack({{3, 3}});
  EXPECT_EQ(alone.stats().lost_packets, 3u);
  alone.run_for(10_ms);
  for (std::size_t i = 4; i < alone.sent.size(); ++i)
    EXPECT_FALSE(alone.sent[i].has(FrameType::connect) || alone.sent[i].has(FrameType::accept));
}

TEST(Probe, accepted__repeats_accept_alone) {
  LoneConnection alone({.start = LoneConnection::Start::accepted});
  alone.run_for(5_ms);
  ASSERT_GE(alone.sent.size(), 2u);
  for (const Parsed& packet : alone.sent) {
    EXPECT_TRUE(packet.has(FrameType::accept));
    EXPECT_FALSE(packet.has(FrameType::credit));
  }
}

TEST(Probe, nothing_in_flight__has_no_timeout) {
  Flight flight;
  flight.arrived(0, 9);
  EXPECT_EQ(flight.connection.next_deadline(), Nanos::never());
}

// ---- Waiting for credit ----

TEST(CreditProbe, sender_without_credit__asks_every_second) {
  LoneConnection alone({.credit = 1});
  const std::uint64_t first = alone.send(2);
  EXPECT_EQ(alone.sent.size(), first + 1) << "credit is for one";
  alone.now += 100_us;
  const Nanos begin = alone.now;
  alone.ack({{first, first}});
  alone.run_until(begin + 1_s - 1_ms);
  EXPECT_EQ(alone.sent.size(), first + 1);
  alone.run_until(begin + 1_s);
  ASSERT_EQ(alone.sent.size(), first + 2);
  EXPECT_TRUE(alone.sent.back().has(FrameType::ping));
  alone.ack({{first + 1, first + 1}});
  const Nanos asked = alone.now;
  alone.run_until(asked + 1_s);
  EXPECT_EQ(alone.sent.size(), first + 3) << "again";
  alone.ack({{first + 2, first + 2}});
  alone.take([](wire::Writer& w) { w.credit({2, false}); });
  EXPECT_TRUE(is_data(alone.sent.back()));
  alone.now += 100_us;
  alone.ack({{first + 3, alone.connection.next_packet_number() - 1}});
  alone.run_for(5_s);
  EXPECT_EQ(std::count_if(alone.sent.begin(), alone.sent.end(), [](const Parsed& p) { return p.has(FrameType::ping); }),
            2);
}

TEST(CreditProbe, credit__never_falls) {
  LoneConnection alone({.credit = 2});
  alone.take([](wire::Writer& w) { w.credit({1, false}); });
  const std::size_t before = alone.sent.size();
  alone.send(3);
  EXPECT_EQ(alone.sent.size(), before + 2);
}

TEST(CreditProbe, in_an_acknowledgement_and_in_a_repeated_connect__counts) {
  LoneConnection alone({.credit = 0});
  alone.send(3, 1000);
  alone.take([](wire::Writer& w) {
    wire::AckFrame frame;
    frame.has_credit = true;
    frame.credit = 1;
    frame.range_count = 1;
    frame.ranges[0] = {0, 0};
    w.ack(frame);
  });
  EXPECT_EQ(std::count_if(alone.sent.begin(), alone.sent.end(), is_data), 1);
  alone.take(header_for(0, alone.next_of_peer++, 1000), [](wire::Writer& w) {
    w.connect({.max_packet = LoneConnection::kPacket, .source_connection = 99, .credit = 2, .tag = 1});
  });
  EXPECT_EQ(std::count_if(alone.sent.begin(), alone.sent.end(), is_data), 2);
}

}  // namespace
}  // namespace mltcp::probe_test
