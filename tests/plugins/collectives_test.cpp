// Tests how iterations are found in collectives. The tests imitate the sends that Gloo posts for a training, and check
// the iterations that CollectiveIterations finds.
#include "mltcp/plugins/gloo/internal/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace gloo::transport::mltcp::collectives_test {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::uint64_t kAllreduce = 4;
constexpr std::uint64_t kBroadcast = 6;
constexpr std::uint64_t kSegment = 1 << 20;

/// Imitates one of two ranks. An all-reduce sends its buffer once, in segments that take 1 ms each.
class Rank {
 public:
  using Advice = CollectiveIterations::Advice;

  void compute(std::int64_t milliseconds) { now_ += milliseconds * kMs; }

  void collective(std::uint64_t bytes, std::uint64_t kind = kAllreduce, std::uint32_t group = 0) {
    const std::uint64_t number = numbers_[group]++;
    send_all(group, number, kind, bytes);
  }

  /// Runs two collectives. The collective with the higher number begins first, as can happen with several threads.
  /// Their segments alternate.
  void swapped(std::uint64_t first, std::uint64_t second) {
    const std::uint64_t number = numbers_[0];
    numbers_[0] += 2;
    std::uint64_t left[2] = {second, first};
    while (left[0] + left[1] > 0)
      for (std::uint64_t side = 0; side < 2; ++side) {
        if (left[side] == 0) continue;
        const std::uint64_t bytes = std::min(left[side], kSegment);
        send(0, number + 1 - side, kAllreduce, side == 0 ? second : first, bytes);
        left[side] -= bytes;
      }
  }

  /// Runs a collective that sends only `bytes` of its `buffer` bytes to the peer.
  void partial_collective(std::uint64_t buffer, std::uint64_t bytes) {
    send(0, numbers_[0]++, kAllreduce, buffer, bytes);
  }

  void step(const std::vector<std::uint64_t>& buckets, std::int64_t milliseconds = 100) {
    compute(milliseconds);
    for (const std::uint64_t bytes : buckets) collective(bytes);
  }

  [[nodiscard]] bool sure() const { return iterations_->sure(); }

  struct Event {
    std::uint64_t at;  ///< bytes that had been sent before the iteration began
    std::uint64_t size;
  };
  std::vector<Event> begins;
  std::vector<std::uint64_t> ends;  ///< bytes that had been sent when an iteration ended
  std::uint64_t learns = 0;
  std::uint64_t sent = 0;

 private:
  void send_all(std::uint32_t group, std::uint64_t number, std::uint64_t kind, std::uint64_t bytes) {
    std::uint64_t left = bytes;
    do {
      const std::uint64_t part = std::min(left, kSegment);
      send(group, number, kind, bytes, part);
      left -= part;
    } while (left > 0);
  }
  void send(std::uint32_t group, std::uint64_t number, std::uint64_t kind, std::uint64_t buffer, std::uint64_t bytes) {
    const std::uint64_t slot = kind << 56 | number << 24 | (slots_++ & 1);
    const Advice advice = iterations_->on_send(now_, group, slot, buffer, bytes);
    if (advice.kind == Advice::Kind::begin) begins.push_back({sent, advice.bytes});
    if (advice.kind == Advice::Kind::learn) ++learns;
    sent += bytes;
    if (advice.ends) ends.push_back(sent);
    now_ += kMs;
  }

  std::unique_ptr<CollectiveIterations> iterations_ = std::make_unique<CollectiveIterations>();
  std::int64_t now_ = 0;
  std::uint64_t numbers_[4] = {};
  std::uint64_t slots_ = 0;
};

constexpr std::uint64_t kMega = 1'000'000;
const std::vector<std::uint64_t> kBuckets{1 * kMega, 25 * kMega, 25 * kMega, 25 * kMega, 13 * kMega};
constexpr std::uint64_t kStep = 89 * kMega;

/// Expects that, from iteration `first` on, each iteration has the size `size` and begins `size` bytes after the
/// previous one.
void expect_exact(const Rank& rank, std::size_t first, std::uint64_t size) {
  ASSERT_GT(rank.begins.size(), first);
  for (std::size_t i = first; i < rank.begins.size(); ++i) {
    EXPECT_EQ(rank.begins[i].size, size) << "iteration " << i;
    if (i > first) {
      EXPECT_EQ(rank.begins[i].at - rank.begins[i - 1].at, size) << "iteration " << i;
    }
  }
  ASSERT_GE(rank.ends.size(), first + 1);
}

class CollectiveIterationsTest : public testing::Test {
 protected:
  Rank rank;
};

TEST_F(CollectiveIterationsTest, ddp__with_buckets_that_are_rebuilt_after_the_first_step) {
  for (const std::uint64_t parameter : {70 * kMega, 19 * kMega}) rank.collective(parameter, kBroadcast);
  rank.step({13 * kMega, 25 * kMega, 25 * kMega, 25 * kMega, 1 * kMega});
  for (int step = 1; step < 20; ++step) rank.step(kBuckets);
  EXPECT_EQ(rank.learns, 0U);
  // CollectiveIterations detects the repetition after three steps. From then on, it detects the pause before a step
  // when the first bucket of the step begins.
  EXPECT_GE(rank.begins.size(), 15U);
  expect_exact(rank, 0, kStep);
  EXPECT_EQ((rank.begins.back().at - 89 * kMega) % kStep, 0U) << "an iteration begins with the first bucket";
  EXPECT_EQ(rank.ends.back(), rank.sent);
}

TEST_F(CollectiveIterationsTest, gradient_accumulation__sends_once_in_several_backward_passes) {
  for (int step = 0; step < 20; ++step) {
    for (int part = 0; part < 3; ++part) rank.compute(80);
    rank.step(kBuckets);
  }
  EXPECT_EQ(rank.learns, 0U);
  expect_exact(rank, 0, kStep);
}

TEST_F(CollectiveIterationsTest, buffers_barriers_and_metrics__do_not_count) {
  for (int step = 0; step < 30; ++step) {
    rank.collective(8192, kBroadcast);  // broadcast of normalization buffers
    rank.compute(60);
    rank.step(kBuckets, 40);
    if (step % 7 == 3) rank.collective(4);
    if (step % 5 == 1) rank.collective(0, 7);
  }
  EXPECT_EQ(rank.learns, 0U);
  ASSERT_GE(rank.begins.size(), 25U);
  for (const Rank::Event& begin : rank.begins) EXPECT_NEAR(static_cast<double>(begin.size), kStep, 10'000);
}

TEST_F(CollectiveIterationsTest, validation__ends_what_was_sure_and_it_is_so_again_after_two_steps) {
  for (int step = 0; step < 10; ++step) rank.step(kBuckets);
  ASSERT_TRUE(rank.sure());
  for (int batch = 0; batch < 9; ++batch) {
    rank.compute(30);
    rank.collective(5 * kMega, 2);  // gathers the predictions of all ranks
  }
  EXPECT_FALSE(rank.sure());
  EXPECT_EQ(rank.learns, 1U);
  const std::uint64_t trained = rank.sent;
  for (int step = 0; step < 10; ++step) rank.step(kBuckets);
  EXPECT_TRUE(rank.sure());
  EXPECT_EQ(rank.learns, 1U);
  const auto again =
      std::find_if(rank.begins.begin(), rank.begins.end(), [&](const auto& begin) { return begin.at >= trained; });
  ASSERT_NE(again, rank.begins.end());
  EXPECT_LE(again->at - trained, 4 * kStep);
  EXPECT_EQ((again->at - trained) % kStep, 0U);
  EXPECT_EQ(again->size, kStep);
}

TEST_F(CollectiveIterationsTest, an_error__is_noticed_within_a_collective_behind_it) {
  for (int step = 0; step < 10; ++step) rank.step(kBuckets);
  ASSERT_TRUE(rank.sure());
  rank.step({1 * kMega, 25 * kMega, 24 * kMega});  // the third bucket has a different size
  EXPECT_TRUE(rank.sure()) << "one behind";
  rank.collective(25 * kMega);
  EXPECT_FALSE(rank.sure());
  EXPECT_EQ(rank.learns, 1U);
}

TEST_F(CollectiveIterationsTest, two_models__that_alternate_are_one_iteration) {
  for (int step = 0; step < 20; ++step) {
    rank.step({3 * kMega, 25 * kMega, 8 * kMega}, 90);
    rank.step({2 * kMega, 25 * kMega, 25 * kMega}, 150);
  }
  EXPECT_EQ(rank.learns, 0U);
  expect_exact(rank, 0, 88 * kMega);
  EXPECT_EQ((rank.begins.back().at - 36 * kMega) % (88 * kMega), 0U) << "begins behind the longer silence";
}

TEST_F(CollectiveIterationsTest, neighbours_that_swap__are_what_they_would_be_in_order) {
  for (int step = 0; step < 30; ++step) {
    rank.compute(100);
    rank.collective(1 * kMega);
    rank.collective(25 * kMega);
    if (step % 3 == 2) {
      rank.swapped(25 * kMega, 13 * kMega);
    } else {
      rank.collective(25 * kMega);
      rank.collective(13 * kMega);
    }
  }
  EXPECT_EQ(rank.learns, 0U);
  expect_exact(rank, 0, 64 * kMega);
}

TEST_F(CollectiveIterationsTest, variable_sizes__are_never_sure) {
  std::uint64_t random = 7;
  for (int step = 0; step < 300; ++step) {
    rank.compute(100);
    for (int i = 0; i < 4; ++i) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      rank.collective(20 * kMega + (random >> 40));
    }
  }
  EXPECT_TRUE(rank.begins.empty());
  EXPECT_EQ(rank.learns, 0U);
}

TEST_F(CollectiveIterationsTest, one_bucket__is_an_iteration_each) {
  for (int step = 0; step < 60; ++step) rank.step({4 * kMega});
  EXPECT_EQ(rank.learns, 0U);
  ASSERT_GE(rank.begins.size(), 36U);
  expect_exact(rank, 0, 4 * kMega);
}

TEST_F(CollectiveIterationsTest, equal_buckets_between_others__do_not_mislead_for_more_than_two_steps) {
  std::vector<std::uint64_t> buckets(22, 25 * kMega);
  buckets.front() = 1 * kMega;
  buckets.back() = 7 * kMega;
  const std::uint64_t size = 20 * 25 * kMega + 8 * kMega;
  std::uint64_t wrong_until = 0;
  for (int step = 0; step < 20; ++step) rank.step(buckets, 400);
  for (const Rank::Event& begin : rank.begins)
    if (begin.size != size || begin.at % size != 0) wrong_until = begin.at + 1;
  EXPECT_LE(wrong_until, 2 * size);
  EXPECT_LE(rank.learns, 2U);
  ASSERT_GE(rank.begins.size(), 10U);
  EXPECT_EQ(rank.begins.back().size, size);
}

TEST_F(CollectiveIterationsTest, equal_buckets_alone__are_left_to_the_traffic) {
  const std::vector<std::uint64_t> buckets(14, 25 * kMega);
  for (int step = 0; step < 40; ++step) rank.step(buckets, 400);
  EXPECT_FALSE(rank.sure());
  EXPECT_EQ(rank.learns, 1U);
  if (!rank.begins.empty()) {
    EXPECT_LE(rank.begins.back().at, 6 * 14 * 25 * kMega);
  }
}

TEST_F(CollectiveIterationsTest, pauses_now_and_then__are_no_measure) {
  for (int step = 0; step < 100; ++step) {
    if (step % 20 == 19) rank.compute(20'000);  // the program writes a checkpoint
    rank.step({10 * kMega, 25 * kMega});
  }
  EXPECT_EQ(rank.learns, 0U);
  ASSERT_GE(rank.begins.size(), 85U);
  expect_exact(rank, 0, 35 * kMega);
}

TEST_F(CollectiveIterationsTest, a_period_that_was_sure__is_so_again_after_one) {
  std::vector<std::uint64_t> buckets(24);
  std::uint64_t size = 0;
  for (std::uint64_t i = 0; i < buckets.size(); ++i) size += buckets[i] = (10 + i) * kMega;
  for (int step = 0; step < 6; ++step) rank.step(buckets, 400);
  ASSERT_TRUE(rank.sure());
  for (int batch = 0; batch < 9; ++batch) rank.collective(5 * kMega, 2);
  ASSERT_FALSE(rank.sure());
  const std::uint64_t trained = rank.sent;
  for (int step = 0; step < 6; ++step) rank.step(buckets, 400);
  const auto again =
      std::find_if(rank.begins.begin(), rank.begins.end(), [&](const auto& begin) { return begin.at >= trained; });
  ASSERT_NE(again, rank.begins.end());
  EXPECT_EQ(again->at - trained, 3 * size) << "one that is like those before, one that is like it, and on";
}

TEST_F(CollectiveIterationsTest, equal_buffers_of_which_less_is_sent__are_another_iteration) {
  const auto step = [&](std::uint64_t bytes) {
    rank.compute(100);
    rank.partial_collective(8 * kMega, bytes);
    rank.partial_collective(9 * kMega, bytes);
  };
  for (int i = 0; i < 20; ++i) step(1'000'000);
  ASSERT_TRUE(rank.sure());
  for (int i = 0; i < 2; ++i) step(900'000);
  EXPECT_FALSE(rank.sure());
  EXPECT_EQ(rank.learns, 1U);
}

TEST_F(CollectiveIterationsTest, a_stall_within_the_bursts_that_were_looked_at__is_found_out) {
  for (int step = 0; step < 20; ++step) {
    rank.compute(100);
    rank.collective(1 * kMega);
    rank.collective(25 * kMega);
    if (step < 6) rank.compute(300);  // the network stalls
    rank.collective(13 * kMega);
  }
  ASSERT_FALSE(rank.begins.empty());
  EXPECT_EQ(rank.begins.back().at % (39 * kMega), 0U);
  EXPECT_EQ(rank.begins.back().size, 39 * kMega);
}

TEST_F(CollectiveIterationsTest, another_size_of_the_same_buffers__is_not_taken_for_the_same) {
  for (int step = 0; step < 30; ++step) rank.step({4 * kMega, 6 * kMega});
  ASSERT_TRUE(rank.sure());
  // Group 1 sends buckets of the same sizes as group 0, but its collectives are counted separately.
  for (int step = 0; step < 3; ++step) {
    rank.compute(100);
    rank.collective(4 * kMega, kAllreduce, 1);
    rank.collective(6 * kMega, kAllreduce, 1);
  }
  EXPECT_FALSE(rank.sure());
}

TEST_F(CollectiveIterationsTest, longer_periods_than_it_remembers__are_never_sure) {
  for (int step = 0; step < 12; ++step) {
    rank.compute(100);
    for (std::uint64_t i = 0; i < CollectiveIterations::kMemory / 2; ++i) rank.collective(1 * kMega + i);
  }
  EXPECT_TRUE(rank.begins.empty());
}

}  // namespace
}  // namespace gloo::transport::mltcp::collectives_test
