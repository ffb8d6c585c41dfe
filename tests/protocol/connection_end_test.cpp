// Tests the end of a connection over time: how long a connection answers after its peer has closed, how often it
// reports an abort, and which packets it declares lost when its record of sent packets is full.
#include <gtest/gtest.h>

#include "lone_connection.h"

namespace mltcp::connection_end_test {
namespace {

using namespace testing_network;

constexpr Nanos kProbeTimeout = 1'100_us;

const auto close_done = [](wire::Writer& w) { w.close(wire::CloseReason::done); };

TEST(ConnectionEnd, close_of_the_peer__is_answered_for_eight_timeouts) {
  LoneConnection alone(config_with([](ConnectionConfig& c) {
    c = round_timers();
    c.ack_every = 64;
    c.timer_granularity = 600_us;
    c.max_ack_delay = 400_us;  // so that the probe timeout, including the round trip, is 1.1 ms as in the other tests
  }));
  alone.send(2);
  const Nanos begin = alone.now;
  alone.take(close_done);
  const auto done = alone.completions();
  ASSERT_EQ(done.size(), 3u);
  EXPECT_EQ(done[0].status, Status::closed);
  EXPECT_EQ(done[2].kind, Kind::closed);
  EXPECT_EQ(done[2].status, Status::ok);
  EXPECT_EQ(alone.stats().in_flight, 0u);
  EXPECT_TRUE(alone.sent.back().has(FrameType::ack)) << "at once";
  EXPECT_FALSE(alone.sent.back().eliciting());
  EXPECT_EQ(alone.connection.next_deadline(), begin + kProbeTimeout * 8);
  alone.now += 5_ms;
  const std::size_t before = alone.sent.size();
  alone.arrive(close_done);  // the peer repeats CLOSE, because the acknowledgement was lost
  alone.end_burst();
  ASSERT_EQ(alone.sent.size(), before + 1);
  EXPECT_FALSE(alone.sent.back().eliciting());
  EXPECT_EQ(alone.connection.next_deadline(), begin + kProbeTimeout * 8) << "which takes it no further";
  EXPECT_TRUE(alone.completions().empty());
  alone.now = begin + kProbeTimeout * 8 - 1_ns;
  alone.fire_timers();
  EXPECT_EQ(alone.connection.state(), Connection::State::draining);
  alone.now += 1_ns;
  alone.fire_timers();
  EXPECT_EQ(alone.connection.state(), Connection::State::dead);
  EXPECT_EQ(alone.sent.size(), before + 1);
}

TEST(ConnectionEnd, abort__is_told_three_times_a_timeout_apart) {
  LoneConnection alone;
  alone.send(2);
  const Nanos begin = alone.now;
  const std::size_t before = alone.sent.size();
  alone.connection.abort(alone.now);
  alone.run_for(100_ms);
  ASSERT_EQ(alone.sent.size(), before + 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const Parsed& packet = alone.sent[before + i];
    EXPECT_EQ(packet.at - begin, kProbeTimeout * static_cast<std::int64_t>(i));
    ASSERT_EQ(packet.frames.size(), 1u);
    EXPECT_EQ(packet.frames[0].close, wire::CloseReason::aborted);
  }
  EXPECT_EQ(alone.connection.state(), Connection::State::dead);
  EXPECT_EQ(alone.completions().size(), 3u);
}

TEST(ConnectionEnd, abort_after_the_peer_closed__only_forgets) {
  LoneConnection alone;
  alone.take(close_done);
  alone.completions();
  alone.connection.abort(alone.now);
  EXPECT_EQ(alone.connection.state(), Connection::State::dead);
  EXPECT_TRUE(alone.completions().empty());
}

TEST(ConnectionEnd, dead__does_nothing_more) {
  LoneConnection alone;
  alone.post(100);
  alone.arrive([](wire::Writer& w) { w.ping(); });  // a packet that the connection has to acknowledge
  alone.connection.fail(Status::unreachable);
  ASSERT_EQ(alone.completions().size(), 2u);
  EXPECT_EQ(alone.connection.next_deadline(), 0_ns) << "to be freed at once";
  const std::size_t before = alone.sent.size();
  alone.connection.fail(Status::unreachable);
  alone.connection.abort(alone.now);
  alone.now += 10_ms;
  EXPECT_EQ(alone.build(), Connection::Blocked::nothing);
  EXPECT_EQ(alone.sent.size(), before);
  EXPECT_TRUE(alone.completions().empty());
  EXPECT_EQ(alone.connection.state(), Connection::State::dead);
}

TEST(ConnectionEnd, operations_that_are_done__are_not_completed_again) {
  LoneConnection alone;
  for (int i = 0; i < 2; ++i) ASSERT_EQ(alone.connection.receive(nullptr, 10, 0, Nanos::never()), PostResult::ok);
  const std::uint64_t first = alone.send(3, 100);
  alone.arrive([](wire::Writer& w) { w.data({.last = true, .message = 1, .offset = 0, .length = 0}); });
  alone.ack({{first, first}});
  EXPECT_EQ(alone.completions().size(), 2u);
  alone.connection.abort(alone.now);
  EXPECT_EQ(alone.completions().size(), 4u) << "a receive, two sends and the end";
}

TEST(ConnectionEnd, message__leaves_the_queue_to_the_datapath_with_its_completion) {
  for (const bool aborted : {false, true}) {
    LoneConnection alone;
    const ByteVector message(1000);
    ASSERT_EQ(alone.connection.send(message.data(), message.size(), 0, Nanos::never()), PostResult::ok);
    alone.build();
    // Imitates a retransmission of the packet that waits in a full datapath.
    alone.tx.packets[0] = {.destination = &alone.connection.remote(), .header = {}, .payload = message};
    alone.tx.messages[0] = 0;
    alone.tx.end = 1;
    if (aborted)
      alone.connection.abort(alone.now);
    else
      alone.ack({{1, 1}});
    EXPECT_EQ(alone.completions().size(), aborted ? 2u : 1u);
    EXPECT_EQ(alone.tx.packets[0].destination, nullptr);
  }
}

TEST(ConnectionEnd, close__waits_for_sends_and_ends_with_its_acknowledgement) {
  LoneConnection alone;
  const std::uint64_t first = alone.send();
  alone.connection.close();
  alone.build();
  EXPECT_EQ(alone.sent.size(), first + 1);
  alone.ack({{first, first}});
  ASSERT_EQ(alone.sent.size(), first + 2);
  EXPECT_TRUE(alone.sent.back().has(FrameType::close));
  EXPECT_EQ(alone.sent.back().frames[0].close, wire::CloseReason::done);
  EXPECT_EQ(alone.connection.state(), Connection::State::closing);
  alone.run_for(kProbeTimeout + 100_us);
  ASSERT_EQ(alone.sent.size(), first + 3);
  EXPECT_TRUE(alone.sent.back().has(FrameType::close)) << "again";
  alone.completions();
  alone.ack({{first + 1, first + 1}});
  const auto done = alone.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].kind, Kind::closed);
  EXPECT_EQ(done[0].status, Status::ok);
  EXPECT_EQ(alone.connection.state(), Connection::State::dead);
}

TEST(ConnectionEnd, full_record__gives_up_its_oldest_packet) {
  ConnectionConfig config = round_timers();
  config.max_packets_in_flight = 16;
  LoneConnection alone(config);
  const std::uint64_t first = alone.send(1, 100);
  const auto answer = [&] { alone.take([](wire::Writer& w) { w.ping(); }, Ecn::not_ect, wire::ack_now); };
  // The connection records up to 64 sent packets: four for each of the 16 packets that may be in flight.
  for (int i = 1; i < 64; ++i) answer();
  EXPECT_EQ(alone.stats().lost_packets, 0u);
  EXPECT_EQ(alone.sent.back().header.span, 63u);
  answer();
  EXPECT_EQ(alone.stats().lost_packets, 1u);
  ASSERT_TRUE(is_data(alone.sent.back()));
  EXPECT_EQ(alone.sent.back().find(FrameType::data)->data.message, 0u);
  EXPECT_EQ(alone.stats().in_flight, alone.sent.back().size);
  const std::uint64_t last = alone.sent.back().header.packet_number;
  alone.answer({{first, first}, {last, last}});  // the record no longer contains packet `first`
  EXPECT_EQ(alone.sample().acked_packets, 1u);
  EXPECT_EQ(alone.sample().lost_packets, 1u);
  EXPECT_EQ(alone.sample().lost_bytes, 148u);
  EXPECT_EQ(alone.stats().in_flight, 0u);
  EXPECT_EQ(alone.stats().spurious_losses, 0u);
}

TEST(ConnectionEnd, full_record__whose_oldest_packet_is_lost_already_forgets_it) {
  ConnectionConfig config = round_timers();
  config.max_packets_in_flight = 16;
  LoneConnection alone(config);
  const std::uint64_t first = alone.send(4, 100);
  alone.ack({{first + 1, first + 3}});
  ASSERT_EQ(alone.stats().lost_packets, 1u);
  for (int i = 0; i < 60; ++i) {
    alone.take([](wire::Writer& w) { w.ping(); }, Ecn::not_ect, wire::ack_now);
  }
  EXPECT_EQ(alone.stats().lost_packets, 1u);
  EXPECT_EQ(alone.stats().in_flight, 148u) << "what was sent again";
  EXPECT_LT(alone.sent.back().header.span, 64u);
}

TEST(ConnectionEnd, span__is_how_far_back_packets_are_remembered) {
  LoneConnection alone;
  const std::uint64_t first = alone.send(3);
  EXPECT_EQ(alone.packet_of(first).header.span, 0u);
  EXPECT_EQ(alone.packet_of(first + 2).header.span, 2u);
  alone.answer({{first, first}});
  EXPECT_EQ(alone.packet_of(alone.send()).header.span, 2u);
}

}  // namespace
}  // namespace mltcp::connection_end_test
