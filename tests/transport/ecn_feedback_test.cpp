// ECN counts of the peer: what is marked, and when they show that the path rewrites the field.
#include "mltcp/transport/internal/ecn_feedback.h"

#include <gtest/gtest.h>

#include <cstdint>

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

}  // namespace
}  // namespace mltcp
