// Tests the check whether a peer's ECN counts are plausible (RFC 9000 section 13.4.2.1), and the counts that the
// congestion controller receives. The counts for the controller must never include more marked bytes than acknowledged
// bytes.
#include <gtest/gtest.h>

#include "lone_connection.h"

namespace mltcp::ecn_validation_test {
namespace {

using namespace testing_network;

constexpr std::uint32_t kPacket = LoneConnection::kPacket;

/// Ten ECN-capable packets are in flight, and the peer has counted one earlier packet.
struct EcnFlight : Flight {
  EcnFlight() : Flight(with_ecn()) {}
  /// Returns whether the connection still uses ECN.
  [[nodiscard]] bool works() {
    send();
    return sent.back().ecn == Ecn::ect0;
  }
};

class EcnValidationTest : public testing::Test {
 protected:
  EcnFlight flight;
};

TEST_F(EcnValidationTest, counts_that_add_up__are_accepted) {
  flight.arrived(0, 3, {.ect0_packets = 5});
  EXPECT_EQ(flight.sample().ce_packets, 0u);
  flight.arrived(4, 7, {.ect0_packets = 7, .ce_packets = 2, .ce_bytes = 2 * kPacket});
  EXPECT_EQ(flight.sample().ce_packets, 2u);
  EXPECT_EQ(flight.sample().ce_bytes, 2u * kPacket);
  EXPECT_EQ(flight.count(Event::Kind::congestion), 1u);
  flight.arrived(8, 8, {.ect0_packets = 9, .ce_packets = 4, .ce_bytes = 3 * kPacket});
  EXPECT_EQ(flight.sample().ce_packets, 2u) << "of packets whose acknowledgements were lost";
  EXPECT_EQ(flight.sample().ce_bytes, kPacket);
  EXPECT_EQ(flight.stats().ce_packets, 4u);
  EXPECT_TRUE(flight.works());
}

TEST(EcnValidation, counts_that_cannot_be_true__end_its_use_for_now) {
  const wire::EcnCounts before{.ect0_packets = 4, .ce_packets = 1, .ce_bytes = kPacket};
  const auto after = [&](const wire::EcnCounts& counts) {
    EcnFlight flight;
    flight.arrived(0, 3, before);
    EXPECT_EQ(flight.sample().ce_packets, 1u);
    flight.arrived(4, 5, counts);
    const bool works = flight.works();
    if (!works) {
      EXPECT_EQ(flight.sample().ce_packets, 0u);
      EXPECT_EQ(flight.stats().ce_packets, 1u);
      flight.arrived(6, 7, {.ect0_packets = 6, .ce_packets = 3, .ce_bytes = 3 * kPacket});
      EXPECT_EQ(flight.sample().ce_packets, 0u) << "until it is tried again";
    }
    return works;
  };
  EXPECT_TRUE(after({.ect0_packets = 6, .ce_packets = 1, .ce_bytes = kPacket}));
  EXPECT_TRUE(after({.ect0_packets = 4, .ce_packets = 3, .ce_bytes = 3 * kPacket}));
  EXPECT_TRUE(after({.ect0_packets = 5, .ce_packets = 2, .ce_bytes = 2 * kPacket}));
  EXPECT_FALSE(after({.ect0_packets = 5, .ce_packets = 1, .ce_bytes = kPacket})) << "one is missing";
  EXPECT_FALSE(after({.ect0_packets = 4, .ce_packets = 2, .ce_bytes = kPacket})) << "one is missing";
  EXPECT_FALSE(after({.ect0_packets = 9, .ce_packets = 0, .ce_bytes = kPacket})) << "marks taken back";
  EXPECT_FALSE(after({.ect0_packets = 3, .ce_packets = 9, .ce_bytes = 9 * kPacket})) << "ECT(0) taken back";
  EXPECT_FALSE(after({.ect0_packets = 6, .ect1_packets = 1, .ce_packets = 1, .ce_bytes = kPacket})) << "never sent";
}

TEST_F(EcnValidationTest, marked_bytes__are_at_most_those_acknowledged) {
  flight.take_ack({{flight.first, flight.first}}, {.ect0_packets = 1, .ce_packets = 1, .ce_bytes = 1'000'000});
  flight.ack({{flight.first + 1, flight.first + 1}}, {.ect0_packets = 1, .ce_packets = 2, .ce_bytes = 3'000'000'000});
  EXPECT_EQ(flight.sample().ce_packets, 2u) << "both of the burst";
  EXPECT_EQ(flight.sample().ce_bytes, 2u * kPacket);
}

TEST_F(EcnValidationTest, marked_bytes__of_a_burst_are_summed_up) {
  flight.take_ack({{flight.first, flight.first + 1}}, {.ect0_packets = 2, .ce_packets = 1, .ce_bytes = kPacket});
  flight.ack({{flight.first + 2, flight.first + 5}}, {.ect0_packets = 4, .ce_packets = 3, .ce_bytes = 3 * kPacket});
  EXPECT_EQ(flight.sample().ce_packets, 3u);
  EXPECT_EQ(flight.sample().ce_bytes, 3u * kPacket);
}

TEST_F(EcnValidationTest, marked_bytes__without_marked_packets_are_none) {
  flight.arrived(0, 3, {.ect0_packets = 5, .ce_bytes = 2 * kPacket});
  EXPECT_EQ(flight.sample().ce_bytes, 0u);
}

TEST_F(EcnValidationTest, packets_filled_in_below_the_largest__count_too) {
  flight.arrived(1, 2, {.ect0_packets = 3});
  flight.arrived(0, 2, {.ect0_packets = 3, .ce_packets = 1, .ce_bytes = kPacket});
  EXPECT_EQ(flight.sample().ce_packets, 1u);
  EXPECT_TRUE(flight.works());
}

TEST_F(EcnValidationTest, acknowledgement_older_than_one_in_the_same_burst__is_not_judged) {
  // The newer acknowledgement arrives first. The older one also acknowledges a packet that the newer one omits.
  flight.take_ack({{flight.first + 1, flight.first + 2}}, {.ect0_packets = 4});
  flight.take_ack({{flight.first, flight.first + 1}}, {.ect0_packets = 2});
  flight.end_burst();
  EXPECT_EQ(flight.sample().acked_packets, 3u);
  EXPECT_TRUE(flight.works());
}

TEST_F(EcnValidationTest, acknowledgement_older_than_one_of_an_earlier_burst__is_not_judged) {
  // By RFC 9000 section 13.4.2.1, the counts of an acknowledgement are validated only if it increases the largest
  // acknowledged packet number.
  flight.arrived(1, 2, {.ect0_packets = 4});
  flight.arrived(0, 0, {.ect0_packets = 2});
  EXPECT_EQ(flight.sample().acked_packets, 1u);
  EXPECT_TRUE(flight.works());
}

TEST_F(EcnValidationTest, mark__is_congestion_once_for_all_that_was_sent_before_the_response) {
  flight.arrived(0, 1, {.ect0_packets = 2, .ce_packets = 1, .ce_bytes = kPacket});
  ASSERT_EQ(flight.count(Event::Kind::congestion), 1u);
  EXPECT_EQ(flight.events[0].event.cause, cc::CongestionEvent::Cause::ecn);
  EXPECT_EQ(flight.events[0].event.bytes_in_flight, 8u * kPacket);
  EXPECT_TRUE(flight.sample().in_recovery);
  flight.arrived(2, 9, {.ect0_packets = 9, .ce_packets = 2, .ce_bytes = 2 * kPacket});
  EXPECT_EQ(flight.count(Event::Kind::congestion), 1u);
  flight.send();
  flight.arrived(10, 10, {.ect0_packets = 9, .ce_packets = 3, .ce_bytes = 3 * kPacket});
  EXPECT_EQ(flight.count(Event::Kind::congestion), 2u);
}

TEST_F(EcnValidationTest, mark_after_the_response_to_a_loss__is_congestion_though_more_of_that_loss_comes_to_light) {
  flight.arrived(1, 3, {.ect0_packets = 4});  // packet 0 is lost, and its data is sent again as packet 10
  ASSERT_EQ(flight.count(Event::Kind::congestion), 1u);
  // Packet 4 is lost, too. Packet 10 is marked. It was sent after the response to the first loss.
  flight.arrived(5, 10, {.ect0_packets = 9, .ce_packets = 1, .ce_bytes = kPacket});
  EXPECT_EQ(flight.stats().lost_packets, 2u);
  EXPECT_EQ(flight.count(Event::Kind::congestion), 2u);
}

TEST(EcnValidation, field__is_not_looked_at_unless_asked_for) {
  Flight flight;
  flight.arrived(0, 3, {.ect0_packets = 1, .ce_packets = 4, .ce_bytes = 4 * kPacket});
  EXPECT_EQ(flight.sample().ce_packets, 0u);
  EXPECT_EQ(flight.count(Event::Kind::congestion), 0u);
}

}  // namespace
}  // namespace mltcp::ecn_validation_test
