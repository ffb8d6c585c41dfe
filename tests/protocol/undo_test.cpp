// Tests spurious losses: when the sender undoes its response to losses, what it learns about reordering, and which data
// it does not send again. RFC 9002, section 6.1.1, allows a sender to adapt to reordering. An undo covers a whole
// recovery episode, as in Eifel (RFC 4015).
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
  flight.arrived(2, 4);  // the first two packets are lost together
  ASSERT_EQ(flight.stats().lost_packets, 2u);
  ASSERT_EQ(flight.count(Event::Kind::congestion), 1u);
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
  flight.arrived(3, 3);  // the first packet is lost
  flight.arrived(4, 4);  // the second packet is lost
  ASSERT_EQ(flight.stats().lost_packets, 2u);
  ASSERT_EQ(flight.count(Event::Kind::congestion), 1u);
  flight.ack({{flight.first, flight.first}, {flight.first + 5, flight.first + 5}});
  EXPECT_EQ(flight.undone(), 0u) << "the second and third loss stand";
  flight.ack({{flight.first + 1, flight.first + 2}, {flight.first + 6, flight.first + 6}});
  EXPECT_EQ(flight.undone(), 1u);
}

TEST_F(UndoTest, comes_before__what_the_same_acknowledgements_say_of_new_losses) {
  flight.arrived(1, 3);  // the first packet is lost
  flight.send(4);        // four packets are sent after the congestion response
  flight.events.clear();
  // This acknowledgement proves that the loss was spurious. The sender must report the undo before the acknowledgement.
  flight.ack({{flight.first, flight.first}, {flight.first + 4, flight.first + 9}});
  ASSERT_EQ(flight.events.size(), 2u);
  EXPECT_EQ(flight.events[0].kind, Event::Kind::undone);
  EXPECT_FALSE(flight.sample().in_recovery) << "recovery is over with what began it";
}

TEST_F(UndoTest, late_packet_of_an_earlier_episode__proves_nothing_of_this_one) {
  flight.arrived(2, 4);   // the first two packets are lost
  flight.arrived(5, 11);  // the retransmissions arrive
  const std::uint64_t next = flight.send(8);
  flight.ack({{next + 1, next + 6}});  // packet `next` is lost in a later round
  ASSERT_EQ(flight.count(Event::Kind::congestion), 2u);
  ASSERT_EQ(flight.stats().lost_packets, 3u);
  flight.ack({{flight.first, flight.first}, {next + 7, next + 7}});
  EXPECT_EQ(flight.stats().spurious_losses, 1u);
  EXPECT_EQ(flight.undone(), 0u);
  flight.ack({{next, next}, {next + 8, next + 8}});
  EXPECT_EQ(flight.undone(), 1u) << "its own does";
}

TEST_F(UndoTest, first_packet_sent_after_a_response__is_of_the_next_episode) {
  flight.arrived(1, 9);  // the first packet is lost, and packet 10 carries its data again
  flight.send(4);
  flight.arrived(11, 13);  // packet 10 is lost
  ASSERT_EQ(flight.count(Event::Kind::congestion), 2u);
  flight.ack({{flight.first + 10, flight.first + 10}, {flight.first + 14, flight.first + 14}});
  EXPECT_EQ(flight.undone(), 1u);
}

TEST_F(UndoTest, spurious_losses_of_an_episode__do_not_count_for_the_next) {
  flight.arrived(2, 4);  // the first two packets are declared lost, but the first one arrives later
  flight.ack({{flight.first, flight.first}, {flight.first + 5, flight.first + 11}});
  const std::uint64_t next = flight.send(20);
  flight.ack({{next + 1, next + 16}});
  ASSERT_EQ(flight.count(Event::Kind::congestion), 2u);
  flight.ack({{next + 17, next + 17}});
  EXPECT_EQ(flight.undone(), 0u);
}

TEST(Undo, mark_in_a_later_round__stays) {
  Flight flight(with_ecn());
  wire::EcnCounts ecn{.ect0_packets = 4};
  flight.arrived(1, 3, ecn);  // the first packet is lost
  ecn.ect0_packets = 11;
  flight.arrived(4, 10, ecn);
  const std::uint64_t next = flight.send(2);
  ecn.ce_packets = 1;
  ecn.ce_bytes = 1472;
  flight.ack({{next, next}}, ecn);
  ASSERT_EQ(flight.count(Event::Kind::congestion), 2u);
  ecn.ect0_packets = 13;
  flight.ack({{flight.first, flight.first}, {next + 1, next + 1}}, ecn);
  EXPECT_EQ(flight.stats().spurious_losses, 1u);
  EXPECT_EQ(flight.undone(), 0u) << "what it would give back is no longer the window of the loss";
}

TEST(Undo, mark_in_the_round_of_the_loss__is_undone_with_it_only_once) {
  // A loss in the same round as a congestion mark does not begin a second episode.
  Flight flight(with_ecn());
  wire::EcnCounts ecn{.ect0_packets = 2, .ce_packets = 1, .ce_bytes = 1472};
  flight.ack({{flight.first + 1, flight.first + 2}}, ecn);
  ASSERT_EQ(flight.count(Event::Kind::congestion), 1u);
  ASSERT_EQ(flight.events[0].event.cause, cc::CongestionEvent::Cause::ecn);
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
  flight.arrived(0, 0);  // packet 0 arrives five packets late
  flight.arrived(7, 11);
  EXPECT_EQ(flight.stats().lost_packets, 1u) << "the seventh is no later than that";
  flight.arrived(12, 12);
  EXPECT_EQ(flight.stats().lost_packets, 2u) << "it is later than that";
  flight.arrived(13, 13);
  flight.arrived(6, 6);    // seven
  flight.arrived(15, 21);  // packet 14 is missing, but only seven later packets have arrived
  EXPECT_EQ(flight.stats().lost_packets, 2u);
  // Eight packets after packet 14 have arrived, so it is declared lost. When it arrives after all, the sender tolerates
  // eight packets from then on.
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
  flight.arrived(10, 10);  // the retransmission of packet 0 arrives
  flight.now += 4_ms;      // 4 ms are 40 round trips
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
  // A packet that never arrives is declared lost in the end. The round trip is 4 ms now, and the sender allows another
  // 4 ms for reordering.
  flight.ack({{next + 11, next + 20}});
  flight.run_until(begin + 8_ms);
  EXPECT_EQ(flight.stats().lost_packets, 1u);
  flight.run_until(begin + 10_ms);
  EXPECT_EQ(flight.stats().lost_packets, 2u);
}

TEST_F(UndoTest, what_has_arrived_after_all__is_not_sent_again) {
  Recorder::wanted.cwnd_bytes = 5.0 * LoneConnection::kPacket;
  flight.arrived(2, 4);  // the first two packets are lost, and the window has room for only one retransmission
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
