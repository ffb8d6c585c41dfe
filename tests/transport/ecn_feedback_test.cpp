// Tests how a sender evaluates the peer's ECN counts: which packets are marked, and when the counts show that the path
// rewrites the ECN field.
#include "mltcp/transport/internal/ecn_feedback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "mltcp/base/random.h"

namespace mltcp::transport {
namespace {

/// Reports ECN counts for packets of 1000 bytes to the feedback. Ten packets are always in flight.
struct Counted {
  std::uint32_t take(const wire::EcnCounts& counts, std::uint32_t packets, bool checked = false) {
    next += packets;
    sample.acked_bytes += packets * 1000;
    return feedback.on_counts(counts, {packets, packets * 1000, next - 11, next}, checked, sample);
  }
  /// Acknowledges `times` packets, one at a time. The packets have arrived with ECN and without a mark.
  void take_good(std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) {
      ++last.ect0_packets;
      take(last, 1);
    }
  }
  EcnFeedback feedback;
  cc::AckSample sample;
  wire::EcnCounts last;
  std::uint64_t next = 10;
};

TEST(EcnFeedback, on_counts__tells_what_is_new) {
  Counted counted;
  EXPECT_EQ(counted.take({.ect0_packets = 3, .ce_packets = 2, .ce_bytes = 2000}, 5), 2U);
  EXPECT_EQ(counted.take({.ect0_packets = 4, .ce_packets = 3, .ce_bytes = 3500}, 2), 1U);
  EXPECT_EQ(counted.sample.ce_packets, 3U);
  EXPECT_EQ(counted.sample.ce_bytes, 3500U);
  EXPECT_TRUE(counted.feedback.works());
}

TEST(EcnFeedback, on_counts__marks_no_more_bytes_than_were_acknowledged) {
  Counted counted;
  counted.take({.ce_packets = 1, .ce_bytes = 1'000'000}, 1);
  EXPECT_EQ(counted.sample.ce_bytes, 1000U);
}

TEST(EcnFeedback, on_counts__takes_bytes_from_packets_where_the_peer_is_checked) {
  for (const std::uint32_t reported : {0U, 3000U, 1'000'000U}) {
    Counted counted;
    counted.take({.ect0_packets = 7, .ce_packets = 3, .ce_bytes = reported}, 10, true);
    EXPECT_EQ(counted.sample.ce_bytes, 3000U);
  }
  Counted counted;
  counted.take({.ce_packets = 30}, 10, true);
  EXPECT_EQ(counted.sample.ce_bytes, 10'000U) << "of packets acknowledged before, too";
}

TEST(EcnFeedback, on_counts__wraps_with_32_bits) {
  Counted unmarked;
  Counted marked;
  for (const std::uint32_t packets : {1U << 31, ~0U, 4U}) {
    unmarked.take({.ect0_packets = packets}, 1);
    marked.take({.ce_packets = packets}, 1);
  }
  EXPECT_TRUE(unmarked.feedback.works());
  EXPECT_TRUE(marked.feedback.works());
  EXPECT_EQ(marked.sample.ce_packets, 4U) << "2^32 more";
}

TEST(EcnFeedback, on_counts__stops_where_the_path_rewrites_the_field) {
  // one of three packets arrived without ECN
  const wire::EcnCounts wrong[] = {{.ect0_packets = 2},
                                   {.ect0_packets = 3, .ect1_packets = 1},        // no sender uses ECT(1)
                                   {.ect0_packets = ~std::uint32_t{0}},           // the ECT(0) count decreased
                                   {.ect0_packets = 3, .ce_packets = 3U << 30}};  // decreased
  for (const wire::EcnCounts& counts : wrong) {
    Counted counted;
    EXPECT_EQ(counted.take(counts, 3), 0U);
    EXPECT_FALSE(counted.feedback.works());
    EXPECT_FALSE(counted.feedback.is_used());
    EXPECT_EQ(counted.take({.ect0_packets = 3, .ce_packets = 3}, 3), 0U) << "from then on";
    EXPECT_EQ(counted.sample.ce_packets, 0U);
  }
}

// ---- Retries of ECN ----

TEST(EcnRetry, one_wrong_count__turns_it_off_for_a_while_only) {
  Counted counted;
  counted.take_good(100);
  counted.take(counted.last, 1);
  ASSERT_FALSE(counted.feedback.is_used());
  counted.take_good(EcnFeedback::kFirstPause - 1);
  EXPECT_FALSE(counted.feedback.is_used());
  counted.take_good(1);
  EXPECT_TRUE(counted.feedback.is_used());
  for (int i = 0; i < 9; ++i) counted.take(counted.last, 1);  // these packets were sent while ECN was off
  counted.take_good(10);
  EXPECT_TRUE(counted.feedback.is_used());
  EXPECT_FALSE(counted.feedback.works()) << "of those that were sent capable, none has been there for a round trip";
  counted.take_good(10);
  EXPECT_TRUE(counted.feedback.works());
  ++counted.last.ce_packets;
  EXPECT_EQ(counted.take(counted.last, 1), 1U);
}

/// Returns the number of packets that are acknowledged until the sender tries ECN again. The path clears the ECN field.
std::uint32_t pause_of(Counted& counted) {
  std::uint32_t pause = 0;
  for (; !counted.feedback.is_used(); ++pause) counted.take(counted.last, 1);
  for (int i = 0; counted.feedback.is_used() && i < 100; ++i) {
    EXPECT_FALSE(counted.feedback.works());
    counted.take(counted.last, 1);
  }
  return pause;
}

TEST(EcnRetry, path_that_clears_the_field__is_tried_less_and_less) {
  Counted counted;
  counted.take(counted.last, 1);
  std::uint32_t expected = EcnFeedback::kFirstPause;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(pause_of(counted), expected);
    if (i < EcnFeedback::kMaxDoublings) expected *= 2;
  }
}

TEST(EcnRetry, packets_of_before_that_come_late__are_no_failure) {
  Counted counted;
  counted.take(counted.last, 1);
  while (!counted.feedback.is_used()) counted.take_good(1);
  for (int i = 0; i < 5; ++i) counted.take(counted.last, 1);
  counted.take_good(7);
  counted.take(counted.last, 4);  // after these, all packets in flight are ECN-capable
  counted.take_good(10);
  EXPECT_TRUE(counted.feedback.works());
  counted.take(counted.last, 1);
  EXPECT_FALSE(counted.feedback.works());
}

TEST(EcnRetry, acknowledgement_of_more_packets__shortens_the_pause) {
  Counted counted;
  counted.take(counted.last, 1);
  counted.take(counted.last, EcnFeedback::kFirstPause - 1);
  EXPECT_FALSE(counted.feedback.is_used());
  counted.take(counted.last, 1);
  EXPECT_TRUE(counted.feedback.is_used());
}

TEST(EcnRetry, failures__are_forgotten_when_it_works_for_as_long) {
  constexpr std::uint32_t pause = EcnFeedback::kFirstPause;
  for (const auto& [good, next] : {std::pair(4 * pause - 9, 4 * pause), std::pair(4 * pause + 9, 2 * pause),
                                   std::pair(6 * pause - 9, 2 * pause), std::pair(6 * pause + 9, pause)}) {
    Counted counted;
    counted.take(counted.last, 1);
    pause_of(counted);
    while (!counted.feedback.works()) counted.take_good(1);
    counted.take_good(good);
    counted.take(counted.last, 1);
    EXPECT_EQ(pause_of(counted), next) << good;
  }
}

TEST(EcnRetry, round_trips_of_another_failure__do_not_count) {
  Counted counted;
  counted.take(counted.last, 1);
  counted.feedback.average_round_trip(Nanos(80'000'000));
  EXPECT_EQ(counted.feedback.average_round_trip(Nanos(8'000'000)), Nanos(71'000'000));
  while (!counted.feedback.works()) counted.take_good(1);
  counted.take(counted.last, 1);
  EXPECT_EQ(counted.feedback.average_round_trip(Nanos(8'000'000)), Nanos(8'000'000));
}

// ---- Tests of the peer ----

/// Sends packets and acknowledges `together` packets at a time. `received` of these packets arrive with a mark. The
/// sender itself has set `tests` of these marks, to test the peer. The peer reports `tells(received, tests)` marks.
struct TestedPeer {
  using Reports = std::function<std::uint32_t(std::uint32_t received, std::uint32_t tests)>;
  void run(std::uint64_t packets, const Reports& tells, double marked_by_path = 0, std::uint32_t together = 1) {
    const std::uint64_t end = next + packets;
    while (next < end && feedback.works()) {
      std::uint32_t received = 0;
      std::uint32_t own = 0;
      for (std::uint32_t i = 0; i < together; ++i) {
        const bool is_test = feedback.is_test(next++, *this, random);
        const bool is_marked = path.chance(marked_by_path);
        own += is_test ? 1U : 0U;
        received += is_test || is_marked ? 1U : 0U;
        true_marks += is_marked && !is_test ? 1U : 0U;
      }
      tests += own;
      acked = next;
      const std::uint32_t reported_now = tells(received, own);
      counts.ce_packets += reported_now;
      counts.ect0_packets += together - reported_now;
      if (feedback.awaits_test()) feedback.on_acks(*this, next - 1);
      cc::AckSample sample;
      sample.acked_bytes = together * 1000;
      EXPECT_EQ(feedback.on_counts(counts, {together, sample.acked_bytes, next - 1, next}, true, sample),
                sample.ce_packets);
      EXPECT_EQ(sample.ce_bytes, 1000 * sample.ce_packets);
      reported += sample.ce_packets;
    }
  }
  /// Acknowledges packets until ECN works again.
  void retry() {
    while (!feedback.works()) {
      EXPECT_FALSE(feedback.is_test(next++, *this, random));
      acked = next;
      if (feedback.is_used()) ++counts.ect0_packets;
      cc::AckSample sample;
      feedback.on_counts(counts, {1, 1000, next - 1, next}, true, sample);
    }
  }
  [[nodiscard]] bool is_acked(std::uint64_t number) const { return number < acked; }
  [[nodiscard]] bool is_in_flight(std::uint64_t number) const { return number >= acked && number < next; }
  [[nodiscard]] static std::uint64_t packets_sent() { return 1000; }
  [[nodiscard]] static std::uint64_t lost_packets() { return 0; }

  EcnFeedback feedback;
  ShardRandom random{1};
  Random path{2};
  wire::EcnCounts counts;
  std::uint64_t next = 0;
  std::uint64_t acked = 0;
  std::uint32_t tests = 0;
  std::uint32_t reported = 0;
  std::uint32_t true_marks = 0;
};

/// All packets with a number below `end` are acknowledged, except those for which `is_lost` returns true.
struct Fates {
  [[nodiscard]] bool is_acked(std::uint64_t number) const { return number < end && !is_lost(number); }
  [[nodiscard]] bool is_in_flight(std::uint64_t number) const { return number >= end; }
  [[nodiscard]] static std::uint64_t packets_sent() { return 1000; }
  [[nodiscard]] std::uint64_t lost_packets() const { return lost; }
  std::uint64_t end = 0;
  std::uint64_t lost = 500;  ///< number of lost packets among the 1000 sent ones
  std::function<bool(std::uint64_t)> is_lost;
};

TEST(EcnTest, peer_that_tells_all__passes_and_its_own_marks_are_all_that_counts) {
  for (const double marked : {0.0, 0.2})
    for (const std::uint32_t together : {1U, 7U}) {
      TestedPeer peer;
      peer.run(
          140'000, [](std::uint32_t received, std::uint32_t) { return received; }, marked, together);
      EXPECT_TRUE(peer.feedback.works());
      EXPECT_GT(peer.tests, 140'000U / 640);
      EXPECT_LT(peer.tests, 140'000U / 40);
      EXPECT_EQ(peer.reported, peer.true_marks);
    }
}

TEST(EcnTest, peer_that_hides_marks__is_found_out_by_the_second_test) {
  TestedPeer peer;
  peer.run(
      140'000, [](std::uint32_t, std::uint32_t) { return 0; }, 0.2);
  EXPECT_FALSE(peer.feedback.works());
  EXPECT_LT(peer.next, 2U * (EcnFeedback::kMinBetweenTests + EcnFeedback::kBetweenTests) + 2);
  EXPECT_EQ(peer.tests, 2U);
}

TEST(EcnTest, peer_that_hides_marks_again__is_found_out_by_the_first_test) {
  const auto hides = [](std::uint32_t, std::uint32_t) { return 0U; };
  TestedPeer peer;
  for (std::uint32_t i = 0; i < 4; ++i) {
    peer.run(140'000, hides);
    EXPECT_FALSE(peer.feedback.works());
    EXPECT_EQ(peer.tests, 2 + i);
    peer.retry();
  }
  // Runs long enough for the sender to forget all failures.
  peer.run(EcnFeedback::kFirstPause * 32, [](std::uint32_t received, std::uint32_t) { return received; });
  const std::uint32_t before = peer.tests;
  peer.run(140'000, hides);
  EXPECT_EQ(peer.tests, before + 2);
}

TEST(EcnTest, wrong_counts__end_a_test) {
  EcnFeedback feedback;
  ShardRandom random(1);
  const Fates fates{.is_lost = [](std::uint64_t) { return false; }};
  std::uint64_t number = 0;
  while (!feedback.is_test(number, fates, random)) ++number;
  EXPECT_TRUE(feedback.awaits_test());
  cc::AckSample sample;
  feedback.on_counts({}, {1, 1000, 0, number + 1}, true, sample);
  EXPECT_FALSE(feedback.works());
  EXPECT_FALSE(feedback.awaits_test());
}

TEST(EcnTest, marks_that_were_counted_before_a_test_arrives__do_not_answer_it) {
  EcnFeedback feedback;
  ShardRandom random(1);
  Fates fates{.is_lost = [](std::uint64_t) { return false; }};
  std::set<std::uint64_t> tests;
  wire::EcnCounts counts;
  std::uint64_t number = 0;
  for (; number < 10'000 && feedback.works(); ++number) {
    if (feedback.is_test(number, fates, random)) tests.insert(number);
    if (number < 5) continue;
    const std::uint64_t acked = number - 5;
    fates.end = acked + 1;
    ++(acked % 2 == 0 && !tests.contains(acked) ? counts.ce_packets : counts.ect0_packets);
    if (feedback.awaits_test()) feedback.on_acks(fates, acked);
    cc::AckSample sample;
    feedback.on_counts(counts, {1, 1000, acked, number + 1}, true, sample);
  }
  EXPECT_LT(number, 2U * (EcnFeedback::kMinBetweenTests + EcnFeedback::kBetweenTests) + 10);
}

TEST(EcnTest, peer_that_hides_a_tenth__is_found_out_later) {
  TestedPeer peer;
  Random random(3);
  peer.run(
      40'000, [&](std::uint32_t received, std::uint32_t) { return random.chance(0.1) ? 0 : received; }, 0.2);
  EXPECT_FALSE(peer.feedback.works());
}

// If packets are acknowledged one at a time, each of these peers reports all marks. If many packets are acknowledged
// together, each of these peers reports too few marks.
TEST(EcnTest, peer_that_tells_some_of_those_that_come_together__is_found_out) {
  const TestedPeer::Reports false_reports[] = {
      [](std::uint32_t received, std::uint32_t) { return std::min(received, 1U); },
      [](std::uint32_t received, std::uint32_t) { return std::min(received, 16U); },
      [](std::uint32_t received, std::uint32_t) { return std::bit_floor(received); },
      [](std::uint32_t received, std::uint32_t) { return (received + 1) / 2; }};
  for (const TestedPeer::Reports& tells : false_reports)
    for (const double marked : {0.0, 0.2}) {
      TestedPeer peer;
      peer.run(1'000'000, tells, marked, 64);
      EXPECT_FALSE(peer.feedback.works());
    }
}

TEST(EcnTest, tests__are_of_one_packet_mostly_and_of_many_at_times) {
  TestedPeer peer;
  std::uint32_t run = 0;
  std::map<std::uint32_t, int> runs;
  peer.run(1'000'000, [&](std::uint32_t received, std::uint32_t tests) {
    if (tests == 0 && run > 0) ++runs[std::exchange(run, 0)];
    run += tests;
    return received;
  });
  EXPECT_GT(runs[1], 1000);
  EXPECT_GT(runs[2], 100);
  EXPECT_GT(runs[3], 20) << "not powers of two alone";
  EXPECT_GT(runs.rbegin()->first, 100U);
  EXPECT_LE(runs.rbegin()->first, 1U << EcnFeedback::kMaxTestedLog2);
}

TEST(EcnTest, packets_of_a_test_that_were_lost__need_no_mark) {
  EcnFeedback feedback;
  ShardRandom random(1);
  Random network(4);
  cc::AckSample sample;
  std::set<std::uint64_t> lost;
  Fates fates{.is_lost = [&](std::uint64_t number) { return lost.contains(number); }};
  std::uint32_t tests = 0;
  wire::EcnCounts counts;
  for (std::uint64_t number = 0; number < 100'000; ++number) {
    const bool is_test = feedback.is_test(number, fates, random);
    tests += is_test ? 1U : 0U;
    if (is_test && network.chance(0.5)) {
      lost.insert(number);
      continue;
    }
    ++(is_test ? counts.ce_packets : counts.ect0_packets);
    fates.end = number + 1;
    if (feedback.awaits_test()) feedback.on_acks(fates, number);
    EXPECT_EQ(feedback.on_counts(counts, {1, 1000, number, number + 1}, true, sample), 0U);
  }
  EXPECT_GT(tests, 100U);
  EXPECT_TRUE(feedback.works());
}

TEST(EcnTest, packets_of_tests_that_are_lost_more_often_than_others__are_marks_that_are_hidden) {
  for (const std::uint64_t others : {0U, 100U, 300U}) {
    EcnFeedback feedback;
    ShardRandom random(1);
    Random network(4);
    std::set<std::uint64_t> lost;
    Fates fates{.lost = others, .is_lost = [&](std::uint64_t number) { return lost.contains(number); }};
    cc::AckSample sample;
    wire::EcnCounts counts;
    std::uint64_t number = 0;
    for (; number < 100'000 && feedback.works(); ++number) {
      const bool is_test = feedback.is_test(number, fates, random);
      if (is_test && network.chance(0.9)) {
        lost.insert(number);
        continue;
      }
      ++(is_test ? counts.ce_packets : counts.ect0_packets);
      fates.end = number + 1;
      if (feedback.awaits_test()) feedback.on_acks(fates, number);
      feedback.on_counts(counts, {1, 1000, number, number + 1}, true, sample);
    }
    EXPECT_FALSE(feedback.works()) << others;
    EXPECT_LT(number, 10U * 640) << others;
  }
}

TEST(EcnTest, packets__are_not_tested_at_regular_distances) {
  EcnFeedback feedback;
  ShardRandom random(1);
  Fates fates{.is_lost = [](std::uint64_t) { return true; }};
  std::set<std::uint64_t> distances;
  std::uint64_t last = 0;
  for (std::uint64_t number = 1; number < 40'000; ++number) {
    fates.end = number;
    if (feedback.awaits_test()) feedback.on_acks(fates, number - 1);
    if (!feedback.is_test(number, fates, random)) continue;
    if (number > last + 1) distances.insert(number - last);
    last = number;
  }
  EXPECT_GT(distances.size(), 50U);
  EXPECT_GE(*distances.begin(), EcnFeedback::kMinBetweenTests);
}

}  // namespace
}  // namespace mltcp::transport
