// Tests packets that arrive at a connection: which packets are duplicates, when packets are acknowledged, which packets
// are counted, and frames that no honest peer sends.
#include <gtest/gtest.h>

#include "lone_connection.h"

namespace mltcp::reception_test {
namespace {

using namespace testing_network;

const auto ping = [](wire::Writer& w) { w.ping(); };

/// Returns round_timers(), changed so that the receiver delays acknowledgements.
ConnectionConfig patient(std::uint32_t ack_every = 2) {
  ConnectionConfig config = round_timers();
  config.max_ack_delay = 300_us;
  config.ack_every = ack_every;
  return config;
}

/// A receiver that sends only acknowledgements.
struct Receiver : LoneConnection {
  explicit Receiver(const ConnectionConfig& config = patient()) : LoneConnection(config), before(sent.size()) {}
  /// Returns the number of packets sent since the last call.
  std::size_t answers() { return sent.size() - std::exchange(before, sent.size()); }
  std::size_t before;
};

/// Returns a function that writes a DATA frame with `bytes` zeros.
auto data(std::uint32_t offset, std::uint32_t bytes, bool last = false, std::uint32_t message = 0) {
  return [=](wire::Writer& w) {
    w.data({.last = last, .message = message, .offset = offset, .length = bytes});
    const ByteVector zeros(bytes);
    w.copy(zeros.data(), zeros.size());
  };
}

// ---- New packets and duplicates ----

class ReceptionTest : public testing::Test {
 protected:
  Receiver receiver;
};

TEST_F(ReceptionTest, forgotten_packets__are_taken_again) {
  // Packet 10 and 31 further packets, with gaps between them, are 32 ranges. The receiver remembers no more than 32.
  for (std::uint64_t i = 1; i <= 31; ++i) receiver.arrive(header_for(7, 10 + 2 * i, 1000), ping);
  const std::uint64_t taken = receiver.stats().packets_received;
  receiver.arrive(header_for(7, 9, 1000), ping);
  EXPECT_EQ(receiver.stats().packets_received, taken + 1) << "nothing is forgotten yet";
  receiver.arrive(header_for(7, 140, 1000), ping);  // the receiver forgets the lowest range, which is 9 and 10
  EXPECT_EQ(receiver.stats().packets_received, taken + 2);
  EXPECT_EQ(receiver.stats().duplicate_packets, 0u);
  for (const std::uint64_t number : {8U, 9U, 10U}) receiver.arrive(header_for(7, number, 1000), ping);
  EXPECT_EQ(receiver.stats().packets_received, taken + 5) << "whether they came before nobody knows";
  EXPECT_EQ(receiver.stats().duplicate_packets, 0u);
  receiver.arrive(header_for(7, 11, 1000), ping);
  EXPECT_EQ(receiver.stats().packets_received, taken + 6) << "above what is forgotten";
}

TEST_F(ReceptionTest, packet_below_all_that_is_remembered__is_told) {
  for (std::uint64_t i = 0; i < 100; ++i) receiver.arrive(header_for(7, 1000 + 2 * i, 100'000), ping);
  receiver.end_burst();
  EXPECT_EQ(receiver.sent.back().find(FrameType::ack)->ack.range_count, wire::kMaxAckRanges);
  for (const std::uint64_t number : {12U, 13U, 11U, 15U, 17U}) {
    // The acknowledgement must include all remembered ranges.
    for (int i = 0; i < 2; ++i) receiver.arrive(header_for(7, number, 1000), ping);
    receiver.end_burst();
    EXPECT_EQ(receiver.sent.back().find(FrameType::ack)->ack.range_count, wire::kMaxAckRanges);
    EXPECT_EQ(receiver.sent.back().find(FrameType::ack)->ack.ranges[0].last, 1198u) << "the highest, too";
  }
  EXPECT_EQ(receiver.stats().duplicate_packets, 5u);
}

TEST(Reception, packet_that_overtakes_as_many_as_make_others_void__is_the_peers) {
  // The last overtaken packet joins the two ranges. If the receiver had forgotten the first range, it would accept no
  // packet, because the numbers are so high.
  for (const std::uint64_t begin : {std::uint64_t{1000}, std::uint64_t{1} << 22}) {
    constexpr std::uint32_t overtaken = 1024;
    Receiver receiver;
    receiver.arrive(header_for(7, begin - 1), ping);
    receiver.arrive(header_for(7, begin + overtaken, overtaken), ping);
    for (std::uint64_t i = 0; i < overtaken; ++i) receiver.arrive(header_for(7, begin + i, overtaken), ping);
    const std::uint64_t taken = receiver.stats().packets_received;
    for (std::uint64_t i = 1; i <= 100; ++i) receiver.arrive(header_for(7, begin + overtaken + i, overtaken), ping);
    receiver.end_burst();
    EXPECT_EQ(receiver.stats().packets_received, taken + 100);
    EXPECT_EQ(receiver.shard.malformed_packets, 0u);
    ASSERT_TRUE(receiver.sent.back().has(FrameType::ack));
    EXPECT_EQ(receiver.sent.back().find(FrameType::ack)->ack.range_count, 1u);
    receiver.arrive(header_for(7, begin + overtaken, overtaken), ping);
    EXPECT_EQ(receiver.stats().duplicate_packets, 1u) << "remembered";
  }
}

TEST_F(ReceptionTest, what_the_sender_has_forgotten__is_taken_again) {
  receiver.arrive(header_for(7, 30, 5), ping);
  const std::uint64_t taken = receiver.stats().packets_received;
  receiver.arrive(header_for(7, 24, 1000), ping);
  receiver.arrive(header_for(7, 25, 0), ping);
  EXPECT_EQ(receiver.stats().packets_received, taken + 2);
  receiver.arrive(header_for(7, 31, 31), ping);
  receiver.arrive(header_for(7, 32, 500), ping);  // a span of more packets than exist
  receiver.arrive(header_for(7, 26, 1000), ping);
  EXPECT_EQ(receiver.stats().packets_received, taken + 5);
  receiver.arrive(header_for(7, 24, 1000), ping);
  EXPECT_EQ(receiver.stats().packets_received, taken + 6) << "the floor does not fall";
  EXPECT_EQ(receiver.stats().duplicate_packets, 0u);
}

// ---- Acknowledgements ----

TEST_F(ReceptionTest, acknowledgement__of_every_second_packet_or_after_the_delay) {
  const Nanos begin = receiver.now;
  receiver.take(ping);
  EXPECT_EQ(receiver.answers(), 0u);
  EXPECT_EQ(receiver.connection.next_deadline(), begin + 300_us);
  receiver.now += 100_us;
  receiver.take(ping);
  EXPECT_EQ(receiver.answers(), 1u);
  EXPECT_EQ(receiver.connection.next_deadline(), Nanos::never());
  receiver.take(ping);
  receiver.now += 299_us;
  receiver.build();
  EXPECT_EQ(receiver.answers(), 0u);
  receiver.now += 1_us;
  receiver.build();
  ASSERT_EQ(receiver.answers(), 1u);
  EXPECT_EQ(receiver.sent.back().find(FrameType::ack)->ack.delay_ns, 300'000u);
}

TEST(Reception, delay__counts_from_the_first_packet_that_waits) {
  Receiver receiver(patient(64));
  const Nanos begin = receiver.now;
  receiver.take(ping);
  receiver.now += 200_us;
  receiver.take(ping);
  EXPECT_EQ(receiver.connection.next_deadline(), begin + 300_us);
  receiver.run_for(100_us);
  ASSERT_EQ(receiver.answers(), 1u);
  EXPECT_EQ(receiver.sent.back().find(FrameType::ack)->ack.delay_ns, 100'000u) << "of the latest packet";
  receiver.run_for(1_ms);
  EXPECT_EQ(receiver.answers(), 0u) << "once";
}

TEST_F(ReceptionTest, packet_that_asks__is_acknowledged_at_once) {
  receiver.take(ping, Ecn::not_ect, wire::ack_now);
  EXPECT_EQ(receiver.answers(), 1u);
}

TEST(Reception, gap_and_what_fills_it__are_acknowledged_at_once) {
  Receiver receiver(patient(64));
  const std::uint64_t next = receiver.next_of_peer;
  receiver.take(header_for(7, next, 1000), ping);
  EXPECT_EQ(receiver.answers(), 0u);
  receiver.take(header_for(7, next + 2, 1000), ping);
  ASSERT_EQ(receiver.answers(), 1u);
  EXPECT_EQ(receiver.sent.back().find(FrameType::ack)->ack.range_count, 2u);
  receiver.take(header_for(7, next + 1, 1000), ping);
  ASSERT_EQ(receiver.answers(), 1u);
  EXPECT_EQ(receiver.sent.back().find(FrameType::ack)->ack.range_count, 1u);
  receiver.take(header_for(7, next + 3, 1000), ping);
  EXPECT_EQ(receiver.answers(), 0u) << "in order again";
}

TEST_F(ReceptionTest, acknowledgements__are_not_acknowledged) {
  for (int i = 0; i < 5; ++i) receiver.ack({{0, 0}});
  receiver.run_for(10_ms);
  EXPECT_EQ(receiver.answers(), 0u);
}

TEST_F(ReceptionTest, asked_ratio__puts_acknowledgements_off_but_three_behind_a_gap) {
  const std::uint8_t eight = wire::ask_ack_ratio(8);
  receiver.connection.receive(nullptr, 10'000, 0, Nanos::never());
  receiver.build();
  receiver.answers();
  for (int i = 0; i < 7; ++i) receiver.take(ping, Ecn::not_ect, eight);
  EXPECT_EQ(receiver.answers(), 0u);
  receiver.take(data(0, 10, true), Ecn::not_ect, eight);
  EXPECT_EQ(receiver.answers(), 1u) << "the eighth";
  ++receiver.next_of_peer;  // skips a packet number
  for (int i = 0; i < 3; ++i) {
    receiver.take(ping, Ecn::not_ect, eight);
    EXPECT_EQ(receiver.answers(), 1u) << i << " behind the gap";
  }
  receiver.take(ping, Ecn::not_ect, eight);
  EXPECT_EQ(receiver.answers(), 0u);
}

TEST(Reception, end_of_a_message__is_acknowledged_at_once_unless_few_are_asked_for) {
  for (const std::uint32_t ratio : {1U, 8U}) {
    Receiver receiver(patient(64));
    receiver.connection.receive(nullptr, 10'000, 0, Nanos::never());
    receiver.build();
    receiver.answers();
    receiver.take(data(0, 10), Ecn::not_ect, wire::ask_ack_ratio(ratio));
    EXPECT_EQ(receiver.answers(), 0u);
    receiver.take(data(10, 10, true), Ecn::not_ect, wire::ask_ack_ratio(ratio));
    EXPECT_EQ(receiver.answers(), ratio == 1 ? 1u : 0u);
  }
}

TEST_F(ReceptionTest, hops__are_of_the_packet_with_the_largest_number) {
  receiver.arrive(forge(header_for(7, 20, 1000), ping), Ecn::not_ect, 3);
  receiver.now += 10_us;
  receiver.arrive(forge(header_for(7, 19, 1000), ping), Ecn::not_ect, 5);
  receiver.now += 10_us;
  receiver.end_burst();
  ASSERT_EQ(receiver.answers(), 1u);
  EXPECT_EQ(receiver.sent.back().find(FrameType::ack)->ack.delay_ns, 20'000u);
  EXPECT_EQ(receiver.sent.back().find(FrameType::ack)->ack.hops, 3);
}

// ---- ECN ----

TEST(Reception, codepoints__are_counted_and_a_change_of_marking_told_at_once) {
  Receiver receiver(patient(64));
  receiver.take(ping, Ecn::ect0);
  receiver.take(ping, Ecn::ect0);
  receiver.take(ping, Ecn::ect1);
  EXPECT_EQ(receiver.answers(), 0u);
  receiver.take(ping, Ecn::ce);
  EXPECT_EQ(receiver.answers(), 1u) << "congestion begins";
  receiver.take(ping, Ecn::ce);
  EXPECT_EQ(receiver.answers(), 0u);
  receiver.take(ping, Ecn::not_ect);
  EXPECT_EQ(receiver.answers(), 0u) << "says nothing";
  receiver.take(ping, Ecn::ect0);
  ASSERT_EQ(receiver.answers(), 1u) << "congestion ends";
  const wire::EcnCounts counts = receiver.sent.back().find(FrameType::ack)->ack.ecn;
  EXPECT_EQ(counts.ect0_packets, 3u);
  EXPECT_EQ(counts.ect1_packets, 0u) << "whole messages are told in its place";
  EXPECT_EQ(counts.ce_packets, 2u);
  EXPECT_EQ(counts.ce_bytes, 2u * (wire::kHeaderBytes + wire::kPingFrameBytes));
}

TEST_F(ReceptionTest, marked_bytes__are_those_of_the_whole_packet_wherever_its_payload_lies) {
  receiver.connection.receive(nullptr, 1000, 0, Nanos::never());
  const auto piece = [&](std::uint32_t offset, std::uint32_t length, bool last) {
    return forge(header_for(7, receiver.next_of_peer++, 1000),
                 [=](wire::Writer& w) { w.data({.last = last, .message = 0, .offset = offset, .length = length}); });
  };
  const ByteVector front = piece(0, 100, false);
  const ByteVector rest = piece(100, 50, true);
  const ByteVector tail(50);
  receiver.arrive({.source = {}, .bytes = front, .virtual_bytes = 100, .ecn = Ecn::ce});
  receiver.arrive({.source = {}, .bytes = rest, .ecn = Ecn::ce, .tail = tail});
  receiver.end_burst();
  EXPECT_EQ(receiver.completions().size(), 1u);
  EXPECT_EQ(receiver.sent.back().find(FrameType::ack)->ack.ecn.ce_bytes, 2 * front.size() + 150);
}

// ---- Before the connection is open ----

TEST(Reception, connecting__takes_nothing_but_a_valid_accept_or_a_refusal) {
  LoneConnection alone({.start = LoneConnection::Start::connecting});
  const auto state_after = [&](const std::function<void(wire::Writer&)>& write) {
    alone.take(write);
    return alone.connection.state();
  };
  EXPECT_EQ(state_after(ping), Connection::State::connecting);
  EXPECT_EQ(state_after([](wire::Writer& w) { w.close(wire::CloseReason::done); }), Connection::State::connecting);
  EXPECT_EQ(alone.shard.malformed_packets, 0u) << "early, but not wrong";
  const wire::ConnectFrame good{.max_packet = wire::kSmallestPacket, .source_connection = 99, .credit = 1};
  wire::ConnectFrame bad = good;
  bad.source_connection = 0;
  EXPECT_EQ(state_after([=](wire::Writer& w) { w.accept(bad); }), Connection::State::connecting);
  bad = good;
  --bad.max_packet;
  EXPECT_EQ(state_after([=](wire::Writer& w) { w.accept(bad); }), Connection::State::connecting);
  EXPECT_EQ(alone.shard.malformed_packets, 2u);
  EXPECT_EQ(alone.stats().packets_received, 0u);
  EXPECT_EQ(state_after([=](wire::Writer& w) { w.accept(good); }), Connection::State::open);
  EXPECT_EQ(alone.stats().packets_received, 1u);
  EXPECT_EQ(alone.connection.peer_connection(), 99u);
  ASSERT_EQ(alone.completions().size(), 1u);
  const wire::ConnectFrame again{.max_packet = 600, .source_connection = 5, .credit = 2};
  EXPECT_EQ(state_after([=](wire::Writer& w) { w.accept(again); }), Connection::State::open);
  EXPECT_EQ(alone.connection.peer_connection(), 99u) << "the first one stands";
  EXPECT_TRUE(alone.completions().empty());
  alone.send(3, 10);
  EXPECT_EQ(std::count_if(alone.sent.begin(), alone.sent.end(), is_data), 2) << "but for its credit";
}

TEST_F(ReceptionTest, repeated_connect__is_acknowledged) {
  receiver.take(header_for(0, receiver.next_of_peer++, 1000), [](wire::Writer& w) {
    w.connect({.max_packet = LoneConnection::kPacket, .source_connection = 99, .credit = 2, .tag = 1});
  });
  receiver.run_for(300_us);
  EXPECT_EQ(receiver.answers(), 1u);
}

TEST_F(ReceptionTest, credit__is_acknowledged) {
  receiver.take([](wire::Writer& w) { w.credit({2, false}); });
  receiver.run_for(300_us);
  EXPECT_EQ(receiver.answers(), 1u);
}

// ---- Forged frames ----

/// A receiver with buffers for two messages that has sent all acknowledgements.
struct Buffers : Receiver {
  Buffers() {
    for (auto& buffer : buffers) {
      buffer.resize(1000, std::byte{0xEE});
      EXPECT_EQ(connection.receive(buffer.data(), buffer.size(), 0, Nanos::never()), PostResult::ok);
    }
    build();
    answers();
  }
  /// Lets a packet arrive, and expects that the receiver refuses it: the receiver counts the packet, does not
  /// acknowledge it, and would still accept a valid packet with the same number.
  void refuse(const std::function<void(wire::Writer&)>& write, std::uint64_t malformed = 1) {
    run_for(10_ms);
    answers();  // does not count answers to earlier packets
    const std::uint64_t counted = shard.malformed_packets;
    const std::uint64_t taken = stats().packets_received;
    arrive(header_for(7, next_of_peer, 1000), write);
    end_burst();
    run_for(10_ms);
    EXPECT_EQ(shard.malformed_packets, counted + malformed);
    EXPECT_EQ(stats().packets_received, taken);
    EXPECT_TRUE(std::none_of(sent.begin() + static_cast<std::ptrdiff_t>(before), sent.end(),
                             [](const Parsed& answer) { return answer.has(FrameType::ack); }));
    answers();
  }
  std::array<ByteVector, 2> buffers;
};

class ForgedFramesTest : public testing::Test {
 protected:
  Buffers receiver;
};

TEST_F(ForgedFramesTest, frame_that_is_cut_off__leaves_what_came_before_it_delivered_and_the_packet_unacknowledged) {
  const auto whole = data(0, 10, true);
  receiver.refuse([&](wire::Writer& w) {
    whole(w);
    const std::byte cut{static_cast<std::uint8_t>(FrameType::credit)};
    w.copy(&cut, 1);
  });
  ASSERT_EQ(receiver.completions().size(), 1u);
  receiver.take(whole);  // has the number of the refused packet
  EXPECT_TRUE(receiver.completions().empty()) << "once";
  receiver.run_for(300_us);
  EXPECT_TRUE(receiver.sent.back().has(FrameType::ack));
  EXPECT_EQ(receiver.stats().duplicate_packets, 0u);
}

TEST_F(ForgedFramesTest, frame_of_no_type__refuses_its_packet) {
  receiver.refuse([](wire::Writer& w) {
    w.ping();
    const std::array<std::byte, 4> unknown{std::byte{99}};
    w.copy(unknown.data(), unknown.size());
  });
}

TEST_F(ForgedFramesTest, data_after_a_frame_that_is_refused__is_not_taken) {
  receiver.refuse(
      [](wire::Writer& w) {
        data(0, 10, true, 5)(w);  // the receiver gave no credit for this message
        data(0, 10, true, 0)(w);
      },
      0);
  EXPECT_EQ(receiver.shard.beyond_credit, 1u);
  EXPECT_TRUE(receiver.completions().empty());
}

TEST_F(ForgedFramesTest, buffer__is_promised_up_to_the_last) {
  receiver.refuse(data(0, 10, true, 2), 0);
  EXPECT_EQ(receiver.shard.beyond_credit, 1u);
  receiver.take(data(0, 10, true, 1));
  EXPECT_EQ(receiver.completions().size(), 1u);
}

TEST_F(ForgedFramesTest, message_that_comes_again_before_those_before_it__completes_once) {
  receiver.take(data(0, 10, true, 1));
  receiver.take(data(0, 10, true, 1));
  receiver.take(data(0, 20, false, 1));
  EXPECT_EQ(receiver.completions().size(), 1u);
  EXPECT_EQ(receiver.shard.malformed_packets, 0u) << "nobody looks at it any more";
  receiver.take(data(0, 10, true, 0));
  EXPECT_EQ(receiver.completions().size(), 1u);
}

TEST_F(ForgedFramesTest, end_before_data_that_has_come__takes_neither) {
  receiver.take(data(0, 100));
  receiver.refuse(data(50, 49, true));
  EXPECT_TRUE(receiver.completions().empty());
  receiver.take(data(50, 50, true));
  EXPECT_TRUE(receiver.completions().empty()) << "the first fifty count no more";
  receiver.take(data(0, 50));
  const auto done = receiver.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].bytes, 100u);
}

TEST(ForgedFrames, data_that_contradicts_the_end__takes_neither) {
  for (const auto& frame : {
           data(150, 100),        // extends beyond the end of the message
           data(150, 50),         // reaches the end of the message without `last`
           data(0, 199, true),    // states a shorter message
           data(100, 101, true),  // states a longer message
       }) {
    Buffers receiver;
    receiver.take(data(0, 50));
    receiver.take(data(100, 100, true));
    receiver.refuse(frame);
    receiver.take(data(50, 149));
    receiver.take(data(0, 50));
    EXPECT_TRUE(receiver.completions().empty()) << "the end has to come again";
    receiver.take(data(199, 1, true));
    const auto done = receiver.completions();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].bytes, 200u);
    EXPECT_EQ(done[0].status, Status::ok);
  }
}

TEST_F(ForgedFramesTest, empty_data__is_only_the_whole_of_an_empty_message) {
  receiver.refuse(data(0, 0));
  receiver.refuse(data(10, 0, true));
  receiver.take(data(0, 0, true));
  const auto done = receiver.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].bytes, 0u);
}

TEST_F(ForgedFramesTest, data_beyond_four_gibibytes__is_a_violation) {
  receiver.refuse(data(~std::uint32_t{0}, 2));
  receiver.take(data(~std::uint32_t{0}, 1));
  EXPECT_EQ(receiver.shard.malformed_packets, 1u);
}

TEST_F(ForgedFramesTest, data_beyond_the_buffer__is_counted_and_not_written) {
  receiver.take(data(990, 100));
  receiver.take(data(2000, 100, true));
  EXPECT_EQ(receiver.buffers[0][989], std::byte{0xEE});
  EXPECT_EQ(receiver.buffers[0][990], std::byte{0});
  EXPECT_EQ(receiver.buffers[0][999], std::byte{0});
  EXPECT_EQ(receiver.buffers[1][0], std::byte{0xEE});
}

TEST_F(ForgedFramesTest, holes__are_remembered_up_to_a_bound_and_then_only_filled) {
  for (std::uint32_t i = 0; i < 1024; ++i) receiver.take(data(10 + 20 * i, 10));
  const std::uint64_t taken = receiver.stats().packets_received;
  receiver.refuse(data(0, 5), 0);  // would exceed the bound by one hole
  receiver.take(data(0, 10));
  receiver.take(data(10 + 20 * 1023 + 10, 10, true));
  EXPECT_EQ(receiver.stats().packets_received, taken + 2);
}

}  // namespace
}  // namespace mltcp::reception_test
