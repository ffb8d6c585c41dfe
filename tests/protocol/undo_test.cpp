// Spurious losses: when the response to them is undone, what is learned about reordering, and which data is not sent
// again (RFC 9002 section 6.1.1 lets a sender adapt; undo works as in Eifel, RFC 4015, for a whole episode).
#include <gtest/gtest.h>

#include "lone_connection.h"

namespace mltcp {
namespace {

using namespace testing_network;

class UndoTest : public testing::Test {
 protected:
  Flight flight;
};

TEST_F(UndoTest, every_loss_of_the_episode__has_to_be_none) {
  flight.arrived(2, 4);  // the first two are lost, together
  ASSERT_EQ(flight.stats().lost_packets, 2u);
  ASSERT_EQ(flight.count(Told::Kind::congestion), 1u);
  flight.arrived(0, 0);
  EXPECT_EQ(flight.undone(), 0u) << "one of two";
  flight.arrived(1, 1);
  EXPECT_EQ(flight.undone(), 0u) << "an acknowledgement without anything new ends no batch";
  flight.arrived(5, 5);
  EXPECT_EQ(flight.undone(), 1u);
  EXPECT_EQ(flight.stats().spurious_losses, 2u);
  flight.arrived(6, 6);
  EXPECT_EQ(flight.undone(), 1u) << "once";
}

TEST_F(UndoTest, losses_found_later__are_of_the_episode_too) {
  flight.arrived(3, 3);  // the first is lost
  flight.arrived(4, 4);  // the second, too
  ASSERT_EQ(flight.stats().lost_packets, 2u);
  ASSERT_EQ(flight.count(Told::Kind::congestion), 1u);
  flight.ack({{flight.first, flight.first}, {flight.first + 5, flight.first + 5}});
  EXPECT_EQ(flight.undone(), 0u) << "the second and third loss stand";
  flight.ack({{flight.first + 1, flight.first + 2}, {flight.first + 6, flight.first + 6}});
  EXPECT_EQ(flight.undone(), 1u);
}

TEST_F(UndoTest, comes_before__what_the_same_acknowledgements_say_of_new_losses) {
  flight.arrived(1, 3);  // the first is lost
  flight.send(4);        // 10 to 13, after the response
  flight.told.clear();
  // The loss of the first was spurious, and sets the threshold to four; one of the packets sent after it is missing.
  flight.ack({{flight.first, flight.first}, {flight.first + 4, flight.first + 9}});
  ASSERT_EQ(flight.told.size(), 2u);
  EXPECT_EQ(flight.told[0].kind, Told::Kind::undone);
  EXPECT_FALSE(flight.sample().in_recovery) << "recovery is over with what began it";
}

TEST_F(UndoTest, late_packet_of_an_earlier_episode__proves_nothing_of_this_one) {
  flight.arrived(2, 4);   // the first two are lost
  flight.arrived(5, 11);  // and the retransmissions arrive
  const std::uint64_t next = flight.send(8);
  flight.ack({{next + 1, next + 6}});  // another loss in a later round
  ASSERT_EQ(flight.count(Told::Kind::congestion), 2u);
  ASSERT_EQ(flight.stats().lost_packets, 3u);
  flight.ack({{flight.first, flight.first}, {next + 7, next + 7}});
  EXPECT_EQ(flight.stats().spurious_losses, 1u);
  EXPECT_EQ(flight.undone(), 0u);
  flight.ack({{next, next}, {next + 8, next + 8}});
  EXPECT_EQ(flight.undone(), 1u) << "its own does";
}

TEST_F(UndoTest, first_packet_sent_after_a_response__is_of_the_next_episode) {
  flight.arrived(1, 9);  // the first is lost; its data is sent again as packet 10
  flight.send(4);
  flight.arrived(11, 13);  // packet 10 is lost
  ASSERT_EQ(flight.count(Told::Kind::congestion), 2u);
  flight.ack({{flight.first + 10, flight.first + 10}, {flight.first + 14, flight.first + 14}});
  EXPECT_EQ(flight.undone(), 1u);
}

TEST_F(UndoTest, spurious_losses_of_an_episode__do_not_count_for_the_next) {
  flight.arrived(2, 4);  // the first two are lost, the second for real
  flight.ack({{flight.first, flight.first}, {flight.first + 5, flight.first + 11}});
  const std::uint64_t next = flight.send(20);
  flight.ack({{next + 1, next + 16}});
  ASSERT_EQ(flight.count(Told::Kind::congestion), 2u);
  flight.ack({{next + 17, next + 17}});
  EXPECT_EQ(flight.undone(), 0u);
}

TEST(Undo, mark_in_a_later_round__stays) {
  Flight flight(with_ecn());
  wire::EcnCounts ecn{.ect0_packets = 4};
  flight.arrived(1, 3, ecn);  // the first is lost
  ecn.ect0_packets = 11;
  flight.arrived(4, 10, ecn);
  const std::uint64_t next = flight.send(2);
  ecn.ce_packets = 1;
  ecn.ce_bytes = 1472;
  flight.ack({{next, next}}, ecn);
  ASSERT_EQ(flight.count(Told::Kind::congestion), 2u);
  ecn.ect0_packets = 13;
  flight.ack({{flight.first, flight.first}, {next + 1, next + 1}}, ecn);
  EXPECT_EQ(flight.stats().spurious_losses, 1u);
  EXPECT_EQ(flight.undone(), 0u) << "what it would give back is no longer the window of the loss";
}

TEST(Undo, mark_in_the_round_of_the_loss__is_undone_with_it_only_once) {
  // A loss in the round of a mark does not begin an episode of its own.
  Flight flight(with_ecn());
  wire::EcnCounts ecn{.ect0_packets = 2, .ce_packets = 1, .ce_bytes = 1472};
  flight.ack({{flight.first + 1, flight.first + 2}}, ecn);
  ASSERT_EQ(flight.count(Told::Kind::congestion), 1u);
  ASSERT_EQ(flight.told[0].event.cause, cc::CongestionEvent::Cause::ecn);
  ecn.ect0_packets = 11;
  flight.arrived(3, 4, ecn);
  ASSERT_EQ(flight.stats().lost_packets, 1u);
  flight.ack({{flight.first, flight.first}, {flight.first + 5, flight.first + 5}}, ecn);
  EXPECT_EQ(flight.stats().spurious_losses, 1u);
  EXPECT_EQ(flight.undone(), 0u);
}

TEST_F(UndoTest, reordering__is_tolerated_from_then_on_as_far_as_it_was_seen) {
  flight.send(30);
  flight.arrived(1, 5);
  ASSERT_EQ(flight.stats().lost_packets, 1u);
  flight.arrived(0, 0);  // five packets late
  flight.arrived(7, 11);
  EXPECT_EQ(flight.stats().lost_packets, 1u) << "the seventh is no later than that";
  flight.arrived(12, 12);
  EXPECT_EQ(flight.stats().lost_packets, 2u) << "it is later than that";
  flight.arrived(13, 13);
  flight.arrived(6, 6);    // seven
  flight.arrived(15, 21);  // seven again
  EXPECT_EQ(flight.stats().lost_packets, 2u);
  // Less reordering than is known does not lower the threshold.
  flight.arrived(22, 22);
  ASSERT_EQ(flight.stats().lost_packets, 3u);
  flight.arrived(14, 14);
  flight.arrived(24, 31);
  EXPECT_EQ(flight.stats().lost_packets, 3u);
}

TEST_F(UndoTest, reordering__beyond_63_packets_is_a_matter_of_time) {
  flight.send(300);
  flight.arrived(1, 100);
  ASSERT_EQ(flight.stats().lost_packets, 1u);
  flight.arrived(0, 0);
  flight.arrived(102, 290);
  EXPECT_EQ(flight.stats().lost_packets, 1u);
  flight.run_for(1_ms);
  EXPECT_EQ(flight.stats().lost_packets, 2u);
}

TEST_F(UndoTest, reordering__is_waited_for_as_long_as_it_has_taken) {
  flight.arrived(1, 9);
  ASSERT_EQ(flight.stats().lost_packets, 1u);
  flight.arrived(10, 10);  // the retransmission
  flight.now += 4_ms;      // 40 round trips
  const std::uint64_t later = flight.send();
  flight.answer({{flight.first, flight.first}, {later, later}});
  EXPECT_EQ(flight.stats().spurious_losses, 1u);
  EXPECT_EQ(flight.undone(), 1u) << "late as it is";
  const std::uint64_t next = flight.send(100);
  const Nanos begin = flight.now;
  flight.answer({{next + 1, next + 9}});
  flight.run_until(begin + 4_ms);
  EXPECT_EQ(flight.stats().lost_packets, 1u) << "nine later, and 4 ms";
  flight.ack({{next, next}});
  EXPECT_EQ(flight.stats().spurious_losses, 1u);
  // A packet that never arrives is detected in the end: the round trip is 4 ms now, and the sender waits as long again.
  flight.ack({{next + 11, next + 20}});
  flight.run_until(begin + 8_ms);
  EXPECT_EQ(flight.stats().lost_packets, 1u);
  flight.run_until(begin + 10_ms);
  EXPECT_EQ(flight.stats().lost_packets, 2u);
}

TEST_F(UndoTest, what_has_arrived_after_all__is_not_sent_again) {
  Recorder::wanted.cwnd_bytes = 5.0 * LoneConnection::kPacket;
  flight.arrived(2, 4);  // the first two are lost, and the window has no room to send both again
  ASSERT_EQ(flight.stats().lost_packets, 2u);
  ASSERT_EQ(flight.stats().retransmitted_packets, 1u) << "one packet is sent at once";
  Recorder::wanted.cwnd_bytes = LoneConnection::kHuge;
  flight.ack({{flight.first, flight.first + 1}, {flight.first + 5, flight.first + 5}});
  EXPECT_EQ(flight.send(1), flight.first + 11);
  EXPECT_EQ(flight.stats().retransmitted_packets, 1u);
  EXPECT_EQ(flight.completions().size(), 6u);
}

}  // namespace
}  // namespace mltcp
