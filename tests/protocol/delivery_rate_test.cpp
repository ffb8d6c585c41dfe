// Tests the sampler of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation). A sample is computed over the
// longer of two intervals: the time in which its packets were sent, and the time in which they were acknowledged. A
// sample is marked if the application limited the rate.
#include <gtest/gtest.h>

#include "lone_connection.h"

namespace mltcp::delivery_rate_test {
namespace {

using namespace testing_network;

/// Returns the rate of `packets` full packets in `time`.
Rate rate_of(double packets, Nanos time) {
  return Rate(static_cast<std::uint64_t>(packets * LoneConnection::kPacket * 8e9 / static_cast<double>(time.count)));
}

TEST(DeliveryRateSample, alone_after_a_pause__is_a_packet_in_its_round_trip) {
  LoneConnection alone;
  alone.now += 500_us;
  const std::uint64_t first = alone.send();
  alone.now += 125_us;
  alone.ack({{first, first}});
  EXPECT_EQ(alone.sample().delivery_rate, rate_of(1, 125_us));
  EXPECT_EQ(alone.stats().delivery_rate, rate_of(1, 125_us));
}

TEST(DeliveryRateSample, acknowledgements_that_come_in_a_burst__do_not_inflate_it) {
  LoneConnection alone;
  const std::uint64_t first = alone.send(10);
  const Nanos begin = alone.now;
  alone.now = begin + 900_us;
  alone.ack({{first, first}});
  // The record of this packet contains `begin`, the time at which the first packet was sent.
  const std::uint64_t last = alone.send();
  alone.ack({{first + 1, first + 9}});
  alone.now += 10_us;
  alone.ack({{last, last}});
  EXPECT_EQ(alone.sample().delivery_rate, rate_of(10, 900_us)) << "sent over 900 us, acknowledged over 10 us";
}

TEST(DeliveryRateSample, packets_that_leave_in_a_burst__do_not_inflate_it) {
  LoneConnection alone;
  const std::uint64_t first = alone.send(4);
  alone.now += 100_us;
  alone.ack({{first, first}});
  EXPECT_EQ(alone.sample().delivery_rate, rate_of(1, 100_us));
  alone.now += 100_us;
  alone.ack({{first + 1, first + 3}});
  EXPECT_EQ(alone.sample().delivery_rate, rate_of(4, 200_us)) << "all since the second was sent";
}

TEST(DeliveryRateSample, app_limited__until_all_is_delivered_that_was_under_way_when_data_ran_out) {
  LoneConnection alone({.window = 2.0 * LoneConnection::kPacket});
  for (int i = 0; i < 3; ++i) alone.post(LoneConnection::kPayload);
  alone.build();  // sends packets 1 and 2
  alone.now += 100_us;
  alone.ack({{1, 1}});  // sends packet 3, the last one with data
  EXPECT_FALSE(alone.sample().app_limited);
  alone.now += 100_us;
  alone.ack({{2, 2}});
  EXPECT_FALSE(alone.sample().app_limited);
  alone.send();  // sends packet 4 while packet 3 is in flight
  alone.now += 100_us;
  alone.ack({{3, 3}});
  EXPECT_FALSE(alone.sample().app_limited);
  EXPECT_FALSE(alone.stats().app_limited);
  alone.now += 100_us;
  alone.ack({{4, 4}});
  EXPECT_TRUE(alone.sample().app_limited);
  EXPECT_TRUE(alone.stats().app_limited);
  alone.send();  // sends packet 5 when all earlier packets have been delivered
  alone.now += 100_us;
  alone.ack({{5, 5}});
  EXPECT_FALSE(alone.sample().app_limited);
}

// ---- Since a packet was sent ----

TEST(SinceSent, in_flight_delivered_and_lost__are_those_of_the_newest_acknowledged_packet) {
  constexpr Bytes one = LoneConnection::kPacket;
  Flight flight;  // sends packets 0 to 9
  flight.arrived(0, 1);
  EXPECT_EQ(flight.sample().in_flight_when_sent, 2 * one) << "0 and 1";
  EXPECT_EQ(flight.sample().delivered_since_sent, 2 * one);
  EXPECT_EQ(flight.sample().lost_since_sent, 0U);
  const std::uint64_t later = flight.send(2);  // sends packets 10 and 11 while packets 2 to 9 are in flight
  flight.now += LoneConnection::kRoundTrip;
  flight.arrived(5, 7);  // packets 2 to 4 count as lost
  EXPECT_EQ(flight.sample().in_flight_when_sent, 8 * one);
  EXPECT_EQ(flight.sample().delivered_since_sent, 5 * one) << "0, 1, 5, 6, 7";
  EXPECT_EQ(flight.sample().lost_bytes, 3 * one);
  EXPECT_EQ(flight.sample().lost_since_sent, 3 * one);
  flight.ack({{later, later}});  // packets 8 and 9 are not yet late enough to count as lost
  EXPECT_EQ(flight.sample().in_flight_when_sent, 9 * one);
  EXPECT_EQ(flight.sample().delivered_since_sent, 4 * one) << "5, 6, 7 and itself";
  EXPECT_EQ(flight.sample().lost_since_sent, 3 * one) << "when it left nothing was lost yet";
  flight.now += LoneConnection::kRoundTrip;
  const std::uint64_t after = flight.send(1);
  flight.ack({{after, after}});
  EXPECT_EQ(flight.sample().lost_since_sent, flight.sample().lost_bytes) << "not those before";
}

// ---- Pauses ----

TEST(IdleRestart, pause__longer_than_a_timeout_is_told) {
  for (const Nanos more : {0_ns, 1_ns}) {
    LoneConnection alone;
    const std::uint64_t first = alone.send();
    const Nanos begin = alone.now;
    alone.now += 100_us;
    alone.ack({{first, first}});
    alone.now = begin + 1'100_us + more;
    Recorder::wanted.pacing_rate = Rate(10'000'000'000);
    alone.send(2);
    EXPECT_EQ(alone.count(Event::Kind::idle_restart), more.count > 0 ? 1u : 0u);
    EXPECT_EQ(alone.stats().pacing_rate, more.count > 0 ? Rate(10'000'000'000) : LoneConnection::kUnpaced);
  }
}

TEST(IdleRestart, pause__of_pacing_is_none) {
  LoneConnection alone;
  const std::uint64_t first = alone.send();
  Recorder::wanted.pacing_rate = Rate(1'000'000);  // 12 ms per packet
  alone.now += 100_us;
  alone.ack({{first, first}});
  alone.post(LoneConnection::kPayload);
  alone.post(LoneConnection::kPayload);
  alone.build();
  alone.now += 100_us;
  alone.ack({{first + 1, first + 1}});
  alone.run_for(12_ms);
  ASSERT_EQ(alone.sent.size(), first + 3);
  EXPECT_GT(alone.sent.back().at - alone.packet_of(first + 1).at, 10_ms);
  EXPECT_EQ(alone.count(Event::Kind::idle_restart), 0u);
}

TEST(IdleRestart, first_data_of_a_connection__is_none) {
  LoneConnection alone({.start = LoneConnection::Start::accepted});
  alone.now += 900_us;
  alone.send();
  EXPECT_EQ(alone.count(Event::Kind::idle_restart), 0u);
}

}  // namespace
}  // namespace mltcp::delivery_rate_test
