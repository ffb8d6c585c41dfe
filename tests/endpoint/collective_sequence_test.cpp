// Tests iterations that are derived from the sequence of a job's collectives, in virtual time.
#include <gtest/gtest.h>

#include <vector>

#include "mltcp/endpoint/collective_sequence.h"

namespace mltcp::endpoint::collective_sequence_test {
namespace {

using Step = CollectiveSequence::Step;

constexpr Nanos kShort{1'000'000};
constexpr Nanos kLong{100'000'000};

class Job {
 public:
  CollectiveSequence sequence;

  Step call(std::uint64_t signature, Nanos pause) {
    now_ = now_ + pause;
    return sequence.on_collective(signature, now_);
  }
  /// Calls the first collective after `pause` and the others after short pauses. Returns the step of the first call, or
  /// Step::lost if any call returns it.
  Step iterate(const std::vector<std::uint64_t>& signatures, Nanos pause = kLong) {
    Step first = Step::within;
    for (std::size_t i = 0; i < signatures.size(); ++i) {
      const Step step = call(signatures[i], i == 0 ? pause : kShort);
      if (i == 0 || step == Step::lost) first = step;
    }
    return first;
  }

 private:
  Nanos now_{1'000'000'000};
};

TEST(CollectiveSequence, two_equal_segments__are_iterations) {
  Job job;
  job.iterate({1, 2, 3});  // the job's first collectives, which have no pause before them
  EXPECT_EQ(job.iterate({1, 2, 3}), Step::candidate);
  EXPECT_EQ(job.iterate({1, 2, 3}), Step::candidate);
  EXPECT_EQ(job.sequence.length(), 0U);
  EXPECT_EQ(job.iterate({1, 2, 3}), Step::begins);
  EXPECT_EQ(job.sequence.length(), 3U);
  EXPECT_EQ(job.iterate({1, 2, 3}), Step::begins);
}

TEST(CollectiveSequence, set_up__is_no_part_of_iterations) {
  Job job;
  job.iterate({90, 91, 92, 93});
  job.iterate({94}, Nanos(50'000'000));
  EXPECT_EQ(job.iterate({5, 5, 6}), Step::candidate);
  EXPECT_EQ(job.iterate({5, 5, 6}), Step::candidate);
  EXPECT_EQ(job.iterate({5, 5, 6}), Step::begins);
  EXPECT_EQ(job.sequence.length(), 3U);
}

TEST(CollectiveSequence, followed__is_counted_whatever_the_pauses) {
  Job job;
  for (int i = 0; i < 4; ++i) job.iterate({1, 2, 3});
  EXPECT_EQ(job.iterate({1, 2, 3}, kShort), Step::begins);
  EXPECT_EQ(job.iterate({1, 2, 3}, Nanos(0)), Step::begins);
  EXPECT_EQ(job.iterate({1, 2, 3}, kLong), Step::begins);
}

TEST(CollectiveSequence, that_changes__is_lost_and_learned_again) {
  Job job;
  for (int i = 0; i < 5; ++i) job.iterate({1, 2, 3});
  EXPECT_EQ(job.iterate({1, 7, 3}), Step::lost);
  EXPECT_EQ(job.sequence.length(), 0U);
  EXPECT_EQ(job.iterate({1, 7, 3}), Step::candidate);
  EXPECT_EQ(job.iterate({1, 7, 3}), Step::candidate);
  EXPECT_EQ(job.iterate({1, 7, 3}), Step::begins);
}

TEST(CollectiveSequence, one_more_collective__is_lost) {
  Job job;
  for (int i = 0; i < 5; ++i) job.iterate({1, 2, 3});
  EXPECT_EQ(job.iterate({1, 2, 3, 4}), Step::lost);
}

TEST(CollectiveSequence, equal_buckets__are_not_iterations_for_long) {
  Job job;
  const std::vector<std::uint64_t> buckets(8, 1);
  for (int i = 0; i < 12; ++i) job.iterate(buckets);
  EXPECT_EQ(job.sequence.length(), buckets.size());
  EXPECT_EQ(job.iterate(buckets), Step::begins);
}

TEST(CollectiveSequence, one_long_pause__changes_nothing) {
  Job job;
  for (int i = 0; i < 5; ++i) job.iterate({1, 2, 3});
  EXPECT_EQ(job.iterate({1, 2, 3}, Nanos(10'000'000'000)), Step::begins);
  EXPECT_EQ(job.iterate({1, 2, 3}), Step::begins);
  EXPECT_EQ(job.sequence.length(), 3U);
}

TEST(CollectiveSequence, without_end__is_no_iteration) {
  Job job;
  for (std::uint64_t i = 0; i < 100'000; ++i) EXPECT_NE(job.call(i, i == 0 ? kLong : Nanos(0)), Step::begins);
  EXPECT_EQ(job.sequence.length(), 0U);
}

}  // namespace
}  // namespace mltcp::endpoint::collective_sequence_test
