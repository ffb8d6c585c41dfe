// Tests lab/fabric/link.cpp: exact times, the limits of the buffer, the marking curve, faults and their rates.
#include "mltcp/lab/fabric/link.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../message_of.h"

namespace mltcp::fabric::link_test {
namespace {

using namespace mltcp::literals;

/// Returns a link of 1 Gbps, which sends one byte in 8 ns.
LinkConfig gigabit() {
  LinkConfig config;
  config.rate = Rate(1'000'000'000);
  config.delay = 10_us;
  return config;
}

std::vector<Link::Delivery> take_all(Link& link, Nanos until = Nanos::never()) {
  std::vector<Link::Delivery> all;
  while (const auto delivery = link.pop(until)) all.push_back(*delivery);
  return all;
}

/// Checks that `count` successes in `n` trials of probability `p` are within five standard deviations of the mean.
testing::AssertionResult plausible(std::uint64_t count, std::uint64_t n, double p) {
  const double mean = static_cast<double>(n) * p;
  const double deviation = std::sqrt(mean * (1 - p));
  if (std::abs(static_cast<double>(count) - mean) <= 5 * deviation) return testing::AssertionSuccess();
  return testing::AssertionFailure() << count << " of " << n << " with probability " << p;
}

TEST(Link, offer__departs_after_serialisation_and_arrives_after_delay) {
  Link link(gigabit());
  const auto admission = link.offer(7, 1500, false, 100_ns);
  EXPECT_TRUE(admission.admitted);
  EXPECT_EQ(admission.departure, 12'100_ns);
  EXPECT_EQ(link.next_delivery(), 22'100_ns);
  EXPECT_FALSE(link.pop(22'099_ns).has_value());
  const auto delivery = link.pop(22'100_ns);
  ASSERT_TRUE(delivery.has_value());
  EXPECT_EQ(delivery->packet, 7U);
  EXPECT_EQ(delivery->at, 22'100_ns);
  EXPECT_TRUE(link.next_delivery().is_never());
  EXPECT_FALSE(link.pop(Nanos::never()).has_value());
}

TEST(Link, trim__full_buffer_sends_the_beginning_of_a_packet_before_all_that_waits) {
  LinkConfig config = gigabit();
  config.buffer_bytes = 3000;
  config.trim_bytes = 100;
  Link link(config);
  link.offer(1, 1500, false, 0_ns);
  link.offer(2, 1500, false, 0_ns);
  const auto third = link.offer(3, 1500, false, 1_us);
  EXPECT_TRUE(third.admitted && third.trim);
  EXPECT_EQ(third.departure, 12'800_ns) << "after the packet that is being sent";
  const auto fourth = link.offer(4, 60, false, 1_us);
  EXPECT_TRUE(fourth.admitted && !fourth.trim) << "it is short already";
  EXPECT_EQ(fourth.departure, 13'280_ns);
  const auto all = take_all(link);
  std::vector<Link::Handle> order;
  for (const auto& delivery : all) order.push_back(delivery.packet);
  EXPECT_EQ(order, (std::vector<Link::Handle>{1, 3, 4, 2}));
  EXPECT_EQ(link.free_at(), 25'280_ns) << "the link has sent all bytes";
  EXPECT_EQ(link.counters().trimmed_packets, 1U);
  EXPECT_EQ(link.counters().dropped_packets, 0U);
  EXPECT_EQ(link.counters().sent_packets, 4U);
}

TEST(Link, trim__packets_trimmed_before_go_first_even_if_there_is_room) {
  LinkConfig config = gigabit();
  config.trim_bytes = 100;
  Link link(config);
  link.offer(1, 1500, false, 0_ns);
  link.offer(2, 1500, false, 0_ns);
  const auto trimmed = link.offer(3, 100, false, 0_ns, true);
  EXPECT_FALSE(trimmed.trim);
  EXPECT_EQ(trimmed.departure, 12'800_ns);
}

TEST(Link, trim__drops_when_the_queue_of_trimmed_packets_is_full_too) {
  LinkConfig config = gigabit();
  config.buffer_bytes = 1500;
  config.trim_bytes = 100;
  Link link(config);
  for (Link::Handle i = 0; i < 17; ++i) link.offer(i, 1500, false, 0_ns);
  EXPECT_EQ(link.counters().trimmed_packets, 15U);
  EXPECT_EQ(link.counters().dropped_packets, 1U);
  EXPECT_FALSE(link.offer(17, 1500, false, 0_ns).admitted);
  EXPECT_TRUE(link.offer(18, 1500, false, 40_us).admitted);
}

TEST(Link, changes__set_the_rate_of_packets_offered_later) {
  LinkConfig config = gigabit();
  config.changes = {{20_us, Rate(100'000'000)}, {1_ms, Rate()}, {2_ms, Rate(1'000'000'000)}};
  Link link(config);
  EXPECT_EQ(link.offer(1, 1500, false, 19_us).departure, 31_us);
  EXPECT_EQ(link.offer(2, 1500, false, 20_us).departure, 151_us) << "12 us more at a tenth of the rate";
  EXPECT_FALSE(link.offer(3, 1500, false, 1_ms).admitted) << "the link is down";
  EXPECT_EQ(link.counters().dropped_packets, 1U);
  EXPECT_EQ(link.offer(4, 1500, false, 2_ms).departure, 2'012_us);
}

TEST(Link, changes__out_of_order_or_range_are_refused) {
  LinkConfig config = gigabit();
  config.changes = {{20_us, Rate(1)}};
  EXPECT_THROW(Link{config}, InputError);
  config.changes = {{20_us, Rate()}, {10_us, Rate()}};
  EXPECT_THROW(Link{config}, InputError);
}

TEST(Link, offer__waits_for_predecessor) {
  Link link(gigabit());
  link.offer(1, 1000, false, 0_ns);
  EXPECT_EQ(link.offer(2, 1000, false, 1_us).departure, 16_us);   // waits for packet 1 to leave
  EXPECT_EQ(link.offer(3, 1000, false, 16_us).departure, 24_us);  // arrives at the moment when packet 2 has left
  EXPECT_EQ(link.offer(4, 1000, false, 30_us).departure, 38_us);  // the link is idle from 24 to 30 us
}

TEST(Link, offer__late_pop_reports_true_arrival) {
  Link link(gigabit());
  for (Link::Handle i = 0; i < 3; ++i) link.offer(i, 125, false, 0_ns);
  const auto all = take_all(link, 1_s);
  ASSERT_EQ(all.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(all[i].packet, i);
    EXPECT_EQ(all[i].at, Nanos(10'000 + 1000 * static_cast<std::int64_t>(i + 1)));
  }
}

TEST(Link, serialise__fractions_add_up_to_the_rate) {
  // 100 bytes at 300 Gbps take 2 2/3 ns.
  LinkConfig config = gigabit();
  config.rate = Rate::from_gbps(300);
  config.buffer_bytes = 0;
  Link link(config);
  EXPECT_EQ(link.offer(0, 100, false, 0_ns).departure, 3_ns);
  EXPECT_EQ(link.offer(0, 100, false, 0_ns).departure, 6_ns);
  EXPECT_EQ(link.offer(0, 100, false, 0_ns).departure, 8_ns);
  for (int i = 3; i < 3'000'000; ++i) link.offer(0, 100, false, 0_ns);
  EXPECT_EQ(link.offer(0, 100, false, 0_ns).departure, 8'000'003_ns);
}

TEST(Link, serialise__mixed_sizes_match_exact_arithmetic) {
  LinkConfig config = gigabit();
  config.rate = Rate(9'700'000'001);
  config.buffer_bytes = 0;
  Link link(config);
  Random random(3);
  Uint128 bits = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto bytes = static_cast<std::uint32_t>(1 + random.below(9000));
    bits += static_cast<Uint128>(bytes) * 8;
    const Uint128 exact = (bits * 1'000'000'000 + config.rate.bits_per_second - 1) / config.rate.bits_per_second;
    ASSERT_EQ(link.offer(0, bytes, false, 0_ns).departure.count, static_cast<std::int64_t>(exact)) << i;
  }
}

TEST(Link, serialise__restarts_whole_when_idle_within_the_last_nanosecond) {
  LinkConfig config = gigabit();
  config.rate = Rate::from_gbps(300);
  Link link(config);
  link.offer(0, 100, false, 0_ns);                             // leaves at 2 2/3 ns
  EXPECT_EQ(link.offer(0, 100, false, 3_ns).departure, 6_ns);  // starts at 3 ns, leaves at 5 2/3 ns
  EXPECT_EQ(link.offer(0, 100, false, 5_ns).departure, 9_ns);  // starts at 5 2/3 ns, leaves at 8 1/3 ns
  EXPECT_EQ(link.offer(0, 100, false, 100_ns).departure, 103_ns);
}

TEST(Link, serialise__largest_size_at_lowest_rate_does_not_overflow) {
  LinkConfig config = gigabit();
  config.rate = Rate(8);
  config.buffer_bytes = 0;
  Link link(config);
  constexpr std::uint32_t max = std::numeric_limits<std::uint32_t>::max();
  EXPECT_EQ(link.offer(1, max, false, 0_ns).departure.count, std::int64_t{max} * 1'000'000'000);
  EXPECT_TRUE(link.offer(2, max, false, 0_ns).admitted);
  // The packet would leave after the largest time that Nanos can represent.
  EXPECT_FALSE(link.offer(3, max, false, 0_ns).admitted);
  EXPECT_EQ(link.counters().dropped_packets, 1U);
  EXPECT_EQ(link.queue_bytes(0_ns), Bytes{2} * max);
}

TEST(Link, offer__drops_at_exactly_the_buffer) {
  LinkConfig config = gigabit();
  config.buffer_bytes = 3000;
  Link link(config);
  EXPECT_TRUE(link.offer(1, 1500, false, 0_ns).admitted);
  EXPECT_TRUE(link.offer(2, 1500, false, 0_ns).admitted);  // fills the buffer to the last byte
  const auto refused = link.offer(3, 1, false, 11'999_ns);
  EXPECT_FALSE(refused.admitted);
  EXPECT_FALSE(refused.lost);
  EXPECT_TRUE(link.offer(4, 1500, false, 12_us).admitted);  // packet 1 has just left
  EXPECT_FALSE(link.offer(5, 1, false, 12_us).admitted);
  EXPECT_EQ(link.counters().offered_packets, 5U);
  EXPECT_EQ(link.counters().dropped_packets, 2U);
  EXPECT_EQ(link.counters().sent_packets, 3U);
  EXPECT_EQ(link.counters().sent_bytes, 4500U);
  EXPECT_EQ(link.counters().max_queue_bytes, 3000U);
  EXPECT_EQ(take_all(link).size(), 3U);
}

TEST(Link, offer__a_dropped_packet_uses_no_time) {
  LinkConfig config = gigabit();
  config.buffer_bytes = 2000;
  Link link(config);
  link.offer(1, 1500, false, 0_ns);
  EXPECT_FALSE(link.offer(2, 1500, false, 0_ns).admitted);
  EXPECT_EQ(link.offer(3, 500, false, 0_ns).departure, 16_us);
}

TEST(Link, queue_bytes__counts_a_packet_until_its_last_bit_has_left) {
  Link link(gigabit());
  link.offer(1, 1000, false, 0_ns);
  link.offer(2, 500, false, 0_ns);
  EXPECT_EQ(link.queue_bytes(0_ns), 1500U);
  EXPECT_EQ(link.queue_packets(7'999_ns), 2U);
  EXPECT_EQ(link.queue_bytes(8_us), 500U);
  EXPECT_EQ(link.queue_bytes(11'999_ns), 500U);
  EXPECT_EQ(link.queue_bytes(12_us), 0U);
  EXPECT_EQ(link.packets_inside(), 2U);  // both packets are still in flight
}

TEST(Link, time_of_queue__is_the_departure_that_makes_room) {
  Link link(gigabit());
  for (Link::Handle i = 0; i < 4; ++i) link.offer(i, 125, false, 0_ns);
  EXPECT_EQ(link.time_of_queue(4, 5_ns), 5_ns);
  EXPECT_EQ(link.time_of_queue(3, 5_ns), 1_us);
  EXPECT_EQ(link.time_of_queue(0, 5_ns), 4_us);
  EXPECT_EQ(link.time_of_queue(3, 2500_ns), 2500_ns);
  EXPECT_EQ(link.time_of_queue(1, 2500_ns), 3_us);
}

TEST(Link, ecn__step_marks_above_the_threshold_only) {
  LinkConfig config = gigabit();
  config.ecn = {true, 3000, 3000, 1.0};
  Link link(config);
  EXPECT_FALSE(link.offer(1, 1500, true, 0_ns).mark);  // finds 0 bytes in the queue
  EXPECT_FALSE(link.offer(2, 1500, true, 0_ns).mark);  // finds 1500 bytes in the queue
  EXPECT_FALSE(link.offer(3, 1, true, 0_ns).mark);     // finds 3000 bytes in the queue
  EXPECT_TRUE(link.offer(4, 1500, true, 0_ns).mark);   // finds 3001 bytes in the queue
  const auto incapable = link.offer(5, 1500, false, 0_ns);
  EXPECT_FALSE(incapable.mark);
  EXPECT_TRUE(incapable.admitted);  // the link does not drop packets that it cannot mark
  EXPECT_EQ(link.counters().marked_packets, 1U);
}

TEST(Link, ecn__disabled_never_marks) {
  LinkConfig config = gigabit();
  config.ecn.enabled = false;
  Link link(config);
  for (Link::Handle i = 0; i < 100; ++i) EXPECT_FALSE(link.offer(i, 1500, true, 0_ns).mark);
}

TEST(Link, ecn__frequencies_follow_the_curve) {
  // Fills the queue once. Then offers a packet whenever the oldest one leaves, so that the backlog stays constant.
  constexpr std::uint32_t size = 1000;
  for (const Bytes backlog : {20'000U, 21'000U, 30'000U, 40'000U, 60'000U, 61'000U, 90'000U}) {
    LinkConfig config = gigabit();
    config.ecn = {true, 20'000, 60'000, 0.4};
    config.seed = backlog;
    Link link(config);
    Nanos now;
    for (Bytes filled = 0; filled < backlog + size; filled += size) link.offer(0, size, false, now);
    constexpr std::uint64_t n = 20'000;
    for (std::uint64_t i = 0; i < n; ++i) {
      now += 8_us;
      ASSERT_EQ(link.queue_bytes(now), backlog);
      link.offer(0, size, true, now);
      take_all(link, now);
    }
    const double p = backlog > 60'000 ? 1 : 0.4 * static_cast<double>(backlog - 20'000) / 40'000;
    EXPECT_TRUE(plausible(link.counters().marked_packets, n, p)) << "backlog " << backlog;
  }
}

TEST(Link, faults__frequencies_match_their_probabilities) {
  LinkConfig config = gigabit();
  config.buffer_bytes = 0;
  config.faults = {.loss = 0.1, .duplication = 0.05, .corruption = 0.02, .reordering = 0.3, .reorder_delay = 50_us};
  Link link(config);
  constexpr std::uint64_t n = 200'000;
  std::uint64_t lost = 0;
  std::uint64_t copies = 0;
  std::uint64_t corrupted = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto admission = link.offer(i, 100, true, 0_ns);
    EXPECT_NE(admission.admitted, admission.lost);
    lost += admission.lost;
    corrupted += admission.corrupt;
    copies += admission.duplicate;
    if (admission.duplicate) link.offer_copy(i);
  }
  EXPECT_TRUE(plausible(lost, n, 0.1));
  EXPECT_TRUE(plausible(copies, n - lost, 0.05));
  EXPECT_TRUE(plausible(corrupted, n - lost, 0.02));
  EXPECT_TRUE(plausible(link.counters().reordered_packets, n - lost, 0.3));
  EXPECT_EQ(link.counters().lost_packets, lost);
  EXPECT_EQ(link.counters().duplicated_packets, copies);
  EXPECT_EQ(link.counters().corrupted_packets, corrupted);
  EXPECT_EQ(link.packets_inside(), n - lost + copies);
  EXPECT_EQ(take_all(link).size(), n - lost + copies);
}

TEST(Link, faults__loss_uses_buffer_and_link) {
  LinkConfig config = gigabit();
  config.buffer_bytes = 2000;
  config.faults.loss = 1;
  Link link(config);
  const auto admission = link.offer(1, 1000, false, 0_ns);
  EXPECT_FALSE(admission.admitted);
  EXPECT_TRUE(admission.lost);
  EXPECT_EQ(admission.departure, 8_us);
  EXPECT_EQ(link.queue_bytes(0_ns), 1000U);
  EXPECT_EQ(link.offer(2, 1000, false, 0_ns).departure, 16_us);
  EXPECT_FALSE(link.offer(3, 1000, false, 0_ns).lost);  // the full buffer dropped it; `lost` is only for faults
  EXPECT_TRUE(link.next_delivery().is_never());
  EXPECT_EQ(link.packets_inside(), 0U);
  EXPECT_EQ(link.counters().sent_packets, 2U);
}

TEST(Link, faults__copy_arrives_with_and_behind_its_original) {
  LinkConfig config = gigabit();
  config.faults.duplication = 1;
  Link link(config);
  ASSERT_TRUE(link.offer(1, 1000, false, 0_ns).duplicate);
  link.offer_copy(100);
  link.offer(2, 1000, false, 0_ns);
  EXPECT_EQ(link.queue_bytes(0_ns), 2000U);
  const auto all = take_all(link);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].packet, 1U);
  EXPECT_EQ(all[1].packet, 100U);
  EXPECT_EQ(all[1].at, all[0].at);
  EXPECT_EQ(all[2].at, 26_us);
}

TEST(Link, faults__copy_of_a_held_packet_is_held_as_long) {
  LinkConfig config = gigabit();
  config.faults.duplication = 1;
  config.faults.reordering = 1;
  Link link(config);
  ASSERT_TRUE(link.offer(1, 1000, false, 0_ns).duplicate);
  link.offer_copy(100);
  const auto all = take_all(link);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].packet, 1U);
  EXPECT_EQ(all[1].packet, 100U);
  EXPECT_EQ(all[0].at, all[1].at);
  EXPECT_GT(all[0].at, 18_us);
}

TEST(Link, faults__packets_held_until_the_same_instant_keep_their_order) {
  LinkConfig config = gigabit();
  config.rate = Rate::from_gbps(1000);
  config.faults.reordering = 1;
  config.faults.reorder_delay = 1_ns;
  Link link(config);
  for (Link::Handle i = 0; i < 4; ++i) link.offer(i, 25, false, 0_ns);  // each packet takes 0.2 ns
  const auto all = take_all(link);
  ASSERT_EQ(all.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(all[i].packet, i);
    EXPECT_EQ(all[i].at, all[0].at);
  }
}

TEST(Link, faults__held_packets_are_overtaken_within_their_delay) {
  LinkConfig config = gigabit();
  config.buffer_bytes = 0;
  config.faults.reordering = 0.1;
  config.faults.reorder_delay = 40_us;
  Link link(config);
  constexpr std::uint64_t n = 20'000;
  std::vector<Nanos> in_order(n);
  for (std::uint64_t i = 0; i < n; ++i) in_order[i] = link.offer(i, 125, false, 0_ns).departure + config.delay;
  std::uint64_t late = 0;
  std::uint64_t overtaken = 0;
  Link::Handle highest = 0;
  Nanos previous;
  while (!link.next_delivery().is_never()) {
    const Nanos due = link.next_delivery();
    const auto delivery = link.pop(due);
    ASSERT_TRUE(delivery.has_value());
    EXPECT_EQ(delivery->at, due);
    EXPECT_GE(delivery->at, previous);
    previous = delivery->at;
    const Nanos held = delivery->at - in_order[delivery->packet];
    if (held > 0_ns) {
      ++late;
      EXPECT_LE(held, config.faults.reorder_delay);
      // Counts a delayed packet as overtaken if a packet that was offered after it has already been delivered.
      if (held >= 1_us && delivery->packet + 1 < n) {
        overtaken += highest > delivery->packet;
      }
    }
    highest = std::max(highest, delivery->packet);
  }
  EXPECT_EQ(late, link.counters().reordered_packets);
  // The link holds a packet for a uniform time of up to 40 us, and one packet follows per us, so that most held packets
  // are overtaken.
  EXPECT_GT(overtaken, late * 9 / 10);
  EXPECT_EQ(link.packets_inside(), 0U);
}

TEST(Link, faults__draw_from_streams_of_their_own) {
  // A link that marks packets draws more random numbers, depending on its queue. This must not change the faults.
  LinkConfig config = gigabit();
  config.buffer_bytes = 0;
  config.faults.loss = 0.3;
  Link plain(config);
  config.ecn = {true, 0, 1'000'000, 1.0};
  Link marking(config);
  for (Link::Handle i = 0; i < 1000; ++i)
    ASSERT_EQ(plain.offer(i, 500, true, 0_ns).lost, marking.offer(i, 500, true, 0_ns).lost);
  EXPECT_GT(marking.counters().marked_packets, 0U);
}

TEST(Link, offer__same_seed_same_result_other_seed_another) {
  const auto fates = [](std::uint64_t seed) {
    LinkConfig config = gigabit();
    config.seed = seed;
    config.faults = {.loss = 0.2, .duplication = 0.2, .corruption = 0.2, .reordering = 0.2, .reorder_delay = 1_us};
    Link link(config);
    std::vector<std::uint64_t> result;
    for (Link::Handle i = 0; i < 100; ++i) {
      const auto a = link.offer(i, 100, true, 0_ns);
      if (a.duplicate) link.offer_copy(i);
      result.push_back(a.corrupt_bits);
    }
    for (const auto& delivery : take_all(link)) result.push_back(static_cast<std::uint64_t>(delivery.at.count));
    return result;
  };
  EXPECT_EQ(fates(1), fates(1));
  EXPECT_NE(fates(1), fates(2));
}

TEST(Link, offer__conserves_packets_under_random_load) {
  LinkConfig config = gigabit();
  config.buffer_bytes = 20'000;
  config.ecn = {true, 5'000, 15'000, 0.8};
  config.faults = {.loss = 0.05, .duplication = 0.05, .corruption = 0.05, .reordering = 0.2, .reorder_delay = 30_us};
  Link link(config);
  Random random(9);
  Nanos now;
  std::uint64_t delivered = 0;
  Nanos previous;
  constexpr std::uint64_t n = 100'000;
  for (std::uint64_t i = 0; i < n; ++i) {
    now += Nanos(static_cast<std::int64_t>(random.below(13'000)));
    while (const auto delivery = link.pop(now)) {
      ASSERT_GE(delivery->at, previous);
      ASSERT_LE(delivery->at, now);
      previous = delivery->at;
      ++delivered;
    }
    ASSERT_GT(link.next_delivery(), now);
    const auto a = link.offer(i, static_cast<std::uint32_t>(64 + random.below(1450)), random.chance(0.5), now);
    if (a.duplicate) link.offer_copy(i);
    ASSERT_GT(link.next_delivery(), now);
    ASSERT_LE(link.queue_bytes(now), config.buffer_bytes);
  }
  const LinkCounters& c = link.counters();
  EXPECT_GT(c.dropped_packets, 0U);
  EXPECT_EQ(c.offered_packets, n);
  EXPECT_EQ(c.sent_packets, n - c.dropped_packets);
  EXPECT_EQ(delivered + link.packets_inside(), c.sent_packets - c.lost_packets + c.duplicated_packets);
  EXPECT_EQ(take_all(link).size() + delivered, c.sent_packets - c.lost_packets + c.duplicated_packets);
  EXPECT_EQ(link.queue_bytes(now + 1_s), 0U);
}

void expect_refused(const LinkConfig& config, const char* part) {
  const std::string refused = refusal_of([&] { const Link link(config); });
  EXPECT_THAT(refused, HasAll(part, "give "));
}

TEST(Link, constructor__refuses_what_is_out_of_range) {
  const auto with = [](auto change) {
    LinkConfig config = gigabit();
    config.ecn = {true, 1000, 2000, 0.5};
    config.faults.reordering = 0.1;
    change(config);
    return config;
  };
  EXPECT_NO_THROW(Link(with([](LinkConfig&) {})));
  expect_refused(with([](LinkConfig& c) { c.rate = Rate(0); }), "rate of a link is 0");
  expect_refused(with([](LinkConfig& c) { c.rate = Rate(7); }), "7 bps");
  expect_refused(with([](LinkConfig& c) { c.rate = Rate(2'000'000'000'000'000); }), "2000 Tbps");
  expect_refused(with([](LinkConfig& c) { c.delay = Nanos(-1); }), "delay");
  expect_refused(with([](LinkConfig& c) { c.delay = Nanos::never(); }), "delay");
  expect_refused(with([](LinkConfig& c) { c.ecn.kmax_bytes = 999; }), "kmax");
  expect_refused(with([](LinkConfig& c) { c.ecn.pmax = 1.1; }), "pmax");
  expect_refused(with([](LinkConfig& c) { c.ecn.pmax = std::nan(""); }), "pmax");
  expect_refused(with([](LinkConfig& c) { c.faults.loss = -0.1; }), "loss");
  expect_refused(with([](LinkConfig& c) { c.faults.duplication = 2; }), "duplication");
  expect_refused(with([](LinkConfig& c) { c.faults.corruption = std::nan(""); }), "corruption");
  expect_refused(with([](LinkConfig& c) { c.faults.reordering = 1.5; }), "reordering");
  expect_refused(with([](LinkConfig& c) { c.faults.reorder_delay = Nanos(0); }), "reorder delay");
}

}  // namespace
}  // namespace mltcp::fabric::link_test
