// ECN counts of the peer: what is marked, and when they show that the path rewrites the field.
#include "mltcp/transport/internal/ecn_feedback.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>

#include "mltcp/base/random.h"

namespace mltcp {
namespace {

TEST(EcnFeedback, on_counts__tells_what_is_new) {
  EcnFeedback feedback;
  cc::AckSample sample;
  sample.acked_bytes = 10'000;
  EXPECT_EQ(feedback.on_counts({.ect0_packets = 3, .ce_packets = 2, .ce_bytes = 2000}, 5, sample), 2U);
  EXPECT_EQ(feedback.on_counts({.ect0_packets = 4, .ce_packets = 3, .ce_bytes = 3500}, 2, sample), 1U);
  EXPECT_EQ(sample.ce_packets, 3U);
  EXPECT_EQ(sample.ce_bytes, 3500U);
  EXPECT_TRUE(feedback.works());
}

TEST(EcnFeedback, on_counts__marks_no_more_bytes_than_were_acknowledged) {
  EcnFeedback feedback;
  cc::AckSample sample;
  sample.acked_bytes = 1000;
  feedback.on_counts({.ce_packets = 1, .ce_bytes = 1'000'000}, 1, sample);
  EXPECT_EQ(sample.ce_bytes, 1000U);
}

TEST(EcnFeedback, on_counts__wraps_with_32_bits) {
  EcnFeedback unmarked;
  EcnFeedback marked;
  cc::AckSample sample;
  for (const std::uint32_t packets : {1U << 31, ~0U, 4U}) {
    unmarked.on_counts({.ect0_packets = packets}, 1, sample);
    marked.on_counts({.ce_packets = packets}, 1, sample);
  }
  EXPECT_TRUE(unmarked.works());
  EXPECT_TRUE(marked.works());
  EXPECT_EQ(sample.ce_packets, 4U) << "2^32 more";
}

TEST(EcnFeedback, on_counts__stops_where_the_path_rewrites_the_field) {
  const wire::EcnCounts wrong[] = {{.ect0_packets = 2},                           // one of three came without
                                   {.ect0_packets = 3, .ect1_packets = 1},        // nobody sends that
                                   {.ect0_packets = ~std::uint32_t{0}},           // fell
                                   {.ect0_packets = 3, .ce_packets = 3U << 30}};  // likewise
  for (const wire::EcnCounts& counts : wrong) {
    EcnFeedback feedback;
    cc::AckSample sample;
    EXPECT_EQ(feedback.on_counts(counts, 3, sample), 0U);
    EXPECT_FALSE(feedback.works());
    EXPECT_EQ(feedback.on_counts({.ect0_packets = 3, .ce_packets = 3}, 3, sample), 0U) << "from then on";
    EXPECT_EQ(sample.ce_packets, 0U);
  }
}

/// Sends `packets`, and acknowledges each by itself. The peer counts the marks of which `tells` is true.
struct TestedPeer {
  void run(int packets, const std::function<bool(bool is_test)>& tells, double marked_by_path = 0) {
    for (int i = 0; i < packets && feedback.works(); ++i, ++number) {
      const bool is_test = feedback.begins_test(number, 1000, random);
      tests += is_test ? 1 : 0;
      const bool is_marked = path.chance(marked_by_path);
      if ((is_test || is_marked) && tells(is_test)) {
        ++counts.ce_packets;
        counts.ce_bytes += 1000;
      } else {
        ++counts.ect0_packets;
      }
      true_marks += is_marked && !is_test ? 1U : 0U;
      if (feedback.awaits_test() && feedback.tested() == number) feedback.on_test_acked();
      cc::AckSample sample;
      sample.acked_bytes = 1000;
      EXPECT_EQ(feedback.on_counts(counts, 1, sample), sample.ce_packets);
      EXPECT_EQ(sample.ce_bytes, 1000 * sample.ce_packets);
      told += sample.ce_packets;
    }
  }
  EcnFeedback feedback;
  ShardRandom random{1};
  Random path{2};
  wire::EcnCounts counts;
  std::uint64_t number = 0;
  int tests = 0;
  std::uint32_t told = 0;
  std::uint32_t true_marks = 0;
};

TEST(EcnTest, peer_that_tells_all__passes_and_its_own_marks_are_all_that_counts) {
  for (const double marked : {0.0, 0.2}) {
    TestedPeer peer;
    peer.run(
        40'000, [](bool) { return true; }, marked);
    EXPECT_TRUE(peer.feedback.works());
    EXPECT_GT(peer.tests, 40'000 / 640);
    EXPECT_LT(peer.tests, 40'000 / 128);
    EXPECT_EQ(peer.told, peer.true_marks);
  }
}

TEST(EcnTest, peer_that_hides_marks__is_found_out_by_the_second) {
  TestedPeer peer;
  peer.run(
      40'000, [](bool) { return false; }, 0.2);
  EXPECT_FALSE(peer.feedback.works());
  EXPECT_EQ(peer.tests, 2);
}

TEST(EcnTest, peer_that_hides_a_tenth__is_found_out_later) {
  TestedPeer peer;
  Random random(3);
  peer.run(
      40'000, [&](bool) { return !random.chance(0.1); }, 0.2);
  EXPECT_FALSE(peer.feedback.works());
}

TEST(EcnTest, test_that_was_lost__shows_nothing) {
  EcnFeedback feedback;
  ShardRandom random(1);
  cc::AckSample sample;
  std::uint32_t tests = 0;
  for (std::uint32_t number = 0; number < 10'000; ++number) {
    tests += feedback.begins_test(number, 1000, random) ? 1U : 0U;
    if (feedback.awaits_test()) feedback.drop_test();
    feedback.on_counts({.ect0_packets = number + 1}, 1, sample);
  }
  EXPECT_GT(tests, 10U);
  EXPECT_TRUE(feedback.works());
}

TEST(EcnTest, packets__are_not_tested_at_regular_distances) {
  EcnFeedback feedback;
  ShardRandom random(1);
  std::set<std::uint64_t> distances;
  std::uint64_t last = 0;
  for (std::uint64_t number = 1; number < 40'000; ++number) {
    if (!feedback.begins_test(number, 1000, random)) continue;
    feedback.drop_test();
    distances.insert(number - last);
    last = number;
  }
  EXPECT_GT(distances.size(), 50U);
  EXPECT_GE(*distances.begin(), EcnFeedback::least_between_tests);
}

}  // namespace
}  // namespace mltcp
