// Tests how iterations are learned from traffic: jobs that the learner must recognise, disturbances that it must
// survive, and traffic without iterations.
#include "mltcp/cc/iteration_learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "mltcp/base/random.h"

namespace mltcp::cc {
namespace {

using namespace literals;

constexpr Bytes kMB = 1'000'000;

// An application that sends bursts over a link of 1 Gbps. It calls the learner as the transport does.
struct Traffic {
  IterationLearner learner;
  Nanos now{1'000'000};
  Random random{7};
  double stretch = 1;       // largest factor by which the network lengthens the duration of a burst
  double jitter = 0;        // relative standard deviation of silences
  std::uint64_t wrong = 0;  // number of deliveries at which the learned size is not `truth`
  Bytes truth = 0;          // true size of an iteration in bytes; 0 if the learner must not know any size

  void burst(Bytes bytes) {
    learner.on_send(now);
    const double slower = 1 + (stretch - 1) * random.uniform();
    constexpr int acks = 20;
    for (int i = 1; i <= acks; ++i) {
      now += Nanos(static_cast<std::int64_t>(static_cast<double>(bytes) * 8 * slower / acks) + 1);
      learner.on_delivered(now, bytes * static_cast<Bytes>(i) / acks - bytes * static_cast<Bytes>(i - 1) / acks);
      if (learner.known() && std::abs(static_cast<double>(learner.bytes_per_iteration()) - static_cast<double>(truth)) >
                                 0.05 * static_cast<double>(truth))
        ++wrong;
    }
  }
  void silence(Nanos length) {
    now += Nanos(
        static_cast<std::int64_t>(static_cast<double>(length.count) * std::max(0.05, 1 + jitter * random.normal())));
  }
};

double share(const IterationLearner& learner, Bytes truth) {
  return static_cast<double>(learner.bytes_per_iteration()) / static_cast<double>(truth);
}

TEST(IterationLearner, one_burst__is_known_after_three_iterations) {
  Traffic job;
  job.truth = 13'500'000;
  for (int i = 0; i < 3; ++i) {
    job.burst(job.truth);
    EXPECT_FALSE(job.learner.known()) << i;
    EXPECT_EQ(job.learner.bytes_ratio(), 0);
    job.silence(150_ms);
  }
  job.burst(job.truth);
  ASSERT_TRUE(job.learner.known());
  EXPECT_EQ(job.learner.bytes_per_iteration(), job.truth);
  EXPECT_EQ(job.learner.bytes_ratio(), 1.0);
  EXPECT_EQ(job.learner.compute_gap(), 150_ms);
  EXPECT_EQ(job.learner.iteration(), 1u);
  job.silence(150_ms);
  EXPECT_TRUE(job.learner.on_send(job.now));
  EXPECT_EQ(job.learner.iteration(), 2u);
  EXPECT_EQ(job.learner.bytes_sent(), 0u);
  job.learner.on_delivered(job.now, job.truth / 4);
  EXPECT_DOUBLE_EQ(job.learner.bytes_ratio(), 0.25) << "the acknowledgement that opens the iteration counts in it";
}

// Checks only deliveries below the iteration's size. Above that size, the learner no longer trusts the ratio.
TEST(IterationLearner, bytes__are_counted_in_64_bits) {
  Traffic job;
  job.truth = Bytes{40} << 30;
  for (int i = 0; i < 4; ++i) {
    job.burst(job.truth);
    job.silence(150'000_ms);
  }
  job.learner.on_send(job.now);
  for (int i = 0; i < 40; ++i) {
    EXPECT_DOUBLE_EQ(job.learner.bytes_ratio(), i / 40.0);
    job.learner.on_delivered(job.now, Bytes{1} << 30);
  }
}

struct Shape {
  const char* name;
  // The bytes of each burst, and the silence after the burst. The last silence is the compute gap.
  std::vector<std::pair<Bytes, Nanos>> bursts;
};

Bytes bytes_of(const Shape& shape) {
  Bytes sum = 0;
  for (const auto& burst : shape.bursts) sum += burst.first;
  return sum;
}

void iterate(Traffic& job, const Shape& shape) {
  job.truth = bytes_of(shape);
  for (const auto& [bytes, silence] : shape.bursts) {
    job.burst(bytes);
    job.silence(silence);
  }
}

std::vector<Shape> shapes() {
  std::vector<Shape> all{
      {"one burst", {{13 * kMB, 150_ms}}},
      {"equal buckets, equal small gaps", {{5 * kMB, 3_ms}, {5 * kMB, 3_ms}, {5 * kMB, 3_ms}, {5 * kMB, 150_ms}}},
      {"buckets of different size",
       {{2 * kMB, 8_ms}, {8 * kMB, 4_ms}, {6 * kMB, 23_ms}, {7 * kMB, 30_ms}, {3 * kMB, 120_ms}}},
      {"forward and backward, comparable gaps", {{4 * kMB, 60_ms}, {9 * kMB, 70_ms}}},
      {"pipeline, six comparable gaps",
       {{2 * kMB, 20_ms}, {2 * kMB, 22_ms}, {3 * kMB, 20_ms}, {2 * kMB, 25_ms}, {5 * kMB, 20_ms}, {1 * kMB, 24_ms}}},
  };
  Shape many{"hundred equal messages", {}};
  for (int i = 0; i < 100; ++i) many.bursts.emplace_back(kMB / 4, i == 99 ? 100_ms : 100_us);
  all.push_back(many);
  Shape steps{"thousand messages that wait for each other", {}};
  for (int i = 0; i < 1000; ++i)
    steps.bursts.emplace_back(20'000 + static_cast<Bytes>(i % 7) * 1000, i == 999 ? 100_ms : 30_us);
  all.push_back(steps);
  return all;
}

TEST(IterationLearner, shapes__are_known_within_ten_iterations_whatever_the_network_does) {
  for (const Shape& shape : shapes()) {
    for (const double stretch : {1.0, 2.0, 6.0}) {
      for (const double jitter : {0.0, 0.01, 0.05, 0.2}) {
        SCOPED_TRACE(testing::Message() << shape.name << ", bursts up to " << stretch << " times as long, jitter "
                                        << jitter);
        Traffic job;
        job.stretch = stretch;
        job.jitter = jitter;
        for (int i = 0; i < 10; ++i) iterate(job, shape);
        job.wrong = 0;
        std::uint64_t known = 0;
        const std::uint64_t first = job.learner.iteration();
        for (int i = 0; i < 50; ++i) {
          iterate(job, shape);
          known += job.learner.known() ? 1U : 0U;
        }
        EXPECT_GE(known, 48u);
        EXPECT_EQ(job.wrong, 0u);
        EXPECT_NEAR(static_cast<double>(job.learner.iteration() - first), 50, 2);
        EXPECT_NEAR(share(job.learner, job.truth), 1, 0.001);
        EXPECT_NEAR(job.learner.compute_gap().millis() / shape.bursts.back().second.millis(), 1, 0.15 + 3 * jitter);
      }
    }
  }
}

// Sends `count` iterations. Returns the number of iterations at whose end the learner knows the size.
int known_in(Traffic& job, const Shape& shape, int count) {
  int known = 0;
  for (int i = 0; i < count; ++i) {
    iterate(job, shape);
    known += job.learner.known() ? 1 : 0;
  }
  return known;
}

const Shape one{"one burst", {{10 * kMB, 100_ms}}};
const Shape buckets{"buckets", {{2 * kMB, 8_ms}, {8 * kMB, 4_ms}, {6 * kMB, 20_ms}, {7 * kMB, 100_ms}}};
const Shape halves{"forward and backward", {{4 * kMB, 60_ms}, {9 * kMB, 70_ms}}};

// Equal buckets look like iterations until the compute gap has occurred a few times.
TEST(IterationLearner, equal_buckets__are_one_iteration_once_the_compute_gap_has_recurred) {
  Shape layers{"layers", {}};
  for (int i = 0; i < 24; ++i) layers.bursts.emplace_back(kMB, i == 23 ? 80_ms : 2_ms);
  Traffic job;
  known_in(job, layers, 3);
  job.wrong = 0;
  EXPECT_EQ(known_in(job, layers, 20), 20);
  EXPECT_EQ(job.wrong, 0u);
  EXPECT_EQ(job.learner.bytes_per_iteration(), 24 * kMB);
}

// If the gaps before and after a bucket differ, the learner does not take the bucket for an iteration.
TEST(IterationLearner, equal_buckets__that_are_few_are_never_taken_for_iterations) {
  Traffic job;
  const Shape three{"three", {{5 * kMB, 3_ms}, {5 * kMB, 3_ms}, {5 * kMB, 150_ms}}};
  EXPECT_EQ(known_in(job, three, 20), 17);
  EXPECT_EQ(job.wrong, 0u);
}

// The transport sees the job from the middle of an iteration on. The longer of two recurring gaps is the compute gap.
TEST(IterationLearner, boundary__is_the_longest_silence) {
  Traffic job;
  const Shape rotated{"backward first", {{9 * kMB, 100_ms}, {4 * kMB, 30_ms}}};
  EXPECT_GE(known_in(job, rotated, 12), 8);
  EXPECT_EQ(job.learner.compute_gap(), 100_ms);
  EXPECT_EQ(job.learner.bytes_sent(), 4 * kMB);
}

// Stragglers produce longer periods by chance. In one iteration of twenty, all gaps are ten times as long as usual.
TEST(IterationLearner, stragglers__do_not_look_like_a_longer_period) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Traffic job;
    job.random = Random(seed);
    job.stretch = 3;
    job.jitter = 0.05;
    int known = 0;
    job.truth = bytes_of(buckets);
    for (int i = 0; i < 400; ++i) {
      const bool straggler = i > 10 && job.random.chance(0.05);
      for (const auto& [bytes, silence] : buckets.bursts) {
        job.burst(bytes);
        job.silence(straggler ? silence * 10 : silence);
      }
      known += job.learner.known() ? 1 : 0;
    }
    EXPECT_GE(known, 340) << "seed " << seed;
    EXPECT_LT(job.wrong, 400u * 80 / 100) << "seed " << seed;
  }
}

/// Sends 60 iterations whose buckets the network joins without changing their bytes. Returns the number of iterations
/// at whose end the learner knows the size.
int known_in_merged(Traffic& job) {
  job.truth = bytes_of(buckets);
  job.wrong = 0;
  int known = 0;
  for (int i = 0; i < 60; ++i) {
    Bytes together = 0;
    for (const auto& [bytes, silence] : buckets.bursts) {
      together += bytes;
      if (silence < 100_ms && job.random.chance(0.5)) continue;
      job.burst(together);
      job.silence(silence);
      together = 0;
    }
    known += job.learner.known() ? 1 : 0;
  }
  EXPECT_EQ(job.wrong, 0u);
  return known;
}

TEST(IterationLearner, merging__of_buckets_does_not_matter) {
  Traffic job;
  known_in(job, buckets, 6);
  EXPECT_EQ(known_in_merged(job), 60);
  EXPECT_EQ(job.learner.bytes_per_iteration(), job.truth);
}

TEST(IterationLearner, merging__from_the_start_does_not_matter_either) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Traffic job;
    job.random = Random(seed);
    EXPECT_GE(known_in_merged(job), 56) << "seed " << seed;
  }
}

TEST(IterationLearner, bytes__that_vary_by_a_percent_are_followed) {
  Traffic job;
  job.truth = 10 * kMB;
  int known = 0;
  for (int i = 0; i < 100; ++i) {
    job.burst(static_cast<Bytes>(1e7 * (1 + 0.01 * (job.random.uniform() - 0.5) * 2)));
    job.silence(100_ms);
    known += job.learner.known() ? 1 : 0;
  }
  EXPECT_GE(known, 92);
  EXPECT_EQ(job.wrong, 0u);
  EXPECT_NEAR(share(job.learner, job.truth), 1, 0.01);
}

TEST(IterationLearner, size__moves_by_a_quarter_of_what_an_iteration_differs) {
  Traffic job;
  known_in(job, one, 12);
  const auto size_after = [&](Bytes bytes) {
    job.burst(bytes);
    job.silence(100_ms);
    job.learner.on_send(job.now);
    EXPECT_EQ(job.learner.bytes_sent(), 0u) << "an iteration has begun";
    return job.learner.bytes_per_iteration();
  };
  EXPECT_EQ(size_after(10 * kMB + 80'000), 10 * kMB + 20'000);
  EXPECT_EQ(size_after(10 * kMB - 60'000), 10 * kMB);
  EXPECT_EQ(size_after(10 * kMB - 312'500), 10 * kMB - 78'125) << "a thirty-second less is an iteration still";
}

TEST(IterationLearner, compute_gap__moves_by_a_quarter_and_a_straggler_counts_twice_the_usual) {
  for (const auto& [silence, gap] : {std::pair{140_ms, 110_ms}, std::pair{60_ms, 90_ms}, std::pair{900_ms, 125_ms}}) {
    Traffic job;
    known_in(job, one, 12);
    ASSERT_EQ(job.learner.compute_gap(), 100_ms);
    job.silence(silence - 100_ms);
    job.burst(10 * kMB);
    EXPECT_EQ(job.learner.compute_gap(), gap);
  }
}

TEST(IterationLearner, compute_gap__begins_as_the_last_silence_but_at_most_twice_the_shortest) {
  for (const auto& [last, gap] : {std::pair{150_ms, 150_ms}, std::pair{250_ms, 200_ms}}) {
    Traffic job;
    for (const Nanos silence : {100_ms, 100_ms, last}) {
      job.burst(10 * kMB);
      job.silence(silence);
    }
    job.burst(10 * kMB);
    ASSERT_TRUE(job.learner.known());
    EXPECT_EQ(job.learner.compute_gap(), gap);
  }
}

// ---- After a failure ----

// Interrupts an iteration of `size` after 4 MB with a checkpoint of 20 s, so that the learner loses the size.
void fail_once(Traffic& job, Bytes size) {
  job.burst(4 * kMB);
  job.silence(20'000_ms);
  job.burst(size - 4 * kMB);
  job.silence(100_ms);
  EXPECT_FALSE(job.learner.known());
}

// Returns whether the learner resumes a proven size after an iteration that consists of `parts`.
bool resumed(Traffic job, std::initializer_list<std::pair<Bytes, Nanos>> parts) {
  for (const auto& [bytes, silence] : parts) {
    job.burst(bytes);
    job.silence(silence);
  }
  job.learner.on_send(job.now);
  return job.learner.known();
}

TEST(IterationLearner, resumption__takes_one_iteration_with_nothing_new_in_it) {
  Traffic job;
  known_in(job, one, 14);
  fail_once(job, 10 * kMB);
  EXPECT_TRUE(resumed(job, {{10 * kMB, 100_ms}}));
  EXPECT_TRUE(resumed(job, {{10 * kMB, 25_ms}}));
  EXPECT_FALSE(resumed(job, {{10 * kMB, 24_ms}})) << "less than a quarter of the gap is none";
  EXPECT_FALSE(resumed(job, {{7 * kMB, 60_ms}, {3 * kMB, 100_ms}})) << "a large gap where none was";
  EXPECT_TRUE(resumed(job, {{7 * kMB, 40_ms}, {3 * kMB, 100_ms}})) << "no large one";
  EXPECT_TRUE(resumed(job, {{4 * kMB, 60_ms}, {6 * kMB, 100_ms}})) << "where there was one before";
  EXPECT_FALSE(resumed(job, {{9 * kMB, 100_ms}}));
}

// Sends at most 100 iterations of `size` until the learner knows the size. Returns the number of iterations. After this
// call, iterations of another size make the learner fail early.
int iterations_until_known(Traffic& job, Bytes size) {
  int count = 0;
  do {
    job.burst(size);
    job.silence(100_ms);
    ++count;
  } while (count < 100 && job.learner.bytes_per_iteration() != size);
  return count;
}

TEST(IterationLearner, resumption__is_of_a_size_that_held_for_eight_iterations) {
  for (const int held : {7, 8}) {
    // The learner has failed early with several sizes, so that it requires more evidence. It therefore finds no new
    // size soon after a failure.
    Traffic job;
    for (const Bytes size : {10 * kMB, 13 * kMB, 17 * kMB, 23 * kMB}) iterations_until_known(job, size);
    const Shape last{"last", {{31 * kMB, 100_ms}}};
    ASSERT_EQ(iterations_until_known(job, 31 * kMB), 18);
    known_in(job, last, held - 1);  // the iteration in which the learner loses the size counts as one of `held`
    fail_once(job, 31 * kMB);
    EXPECT_EQ(resumed(job, {{31 * kMB, 100_ms}}), held == 8);
  }
}

TEST(IterationLearner, strikes__double_the_evidence_up_to_eight_times_and_proof_wipes_them_out) {
  Traffic job;
  std::vector<int> needed;
  for (const Bytes size : {10 * kMB, 13 * kMB, 17 * kMB, 23 * kMB, 31 * kMB, 41 * kMB})
    needed.push_back(iterations_until_known(job, size));
  // The learner knows a size after 2, 4, 8 and then 16 recurring gaps. The first gap and the last burst add 2 to the
  // number of iterations.
  EXPECT_EQ(needed, (std::vector{4, 6, 10, 18, 18, 18}));
  const Shape proof{"proof", {{41 * kMB, 100_ms}}};
  EXPECT_EQ(known_in(job, proof, 12), 12);
  EXPECT_EQ(iterations_until_known(job, 53 * kMB), 4) << "as at first";
  EXPECT_EQ(iterations_until_known(job, 67 * kMB), 6) << "which failed early";
}

TEST(IterationLearner, straggler__is_survived) {
  for (const Shape& shape : {one, buckets, halves}) {
    SCOPED_TRACE(shape.name);
    Traffic job;
    known_in(job, shape, 12);
    job.wrong = 0;
    for (int round = 0; round < 10; ++round) {
      iterate(job, shape);
      job.silence(shape.bursts.back().second * 9);
      EXPECT_EQ(known_in(job, shape, 3 + round), 3 + round);
    }
    EXPECT_EQ(job.wrong, 0u);
    EXPECT_NEAR(job.learner.compute_gap().millis() / shape.bursts.back().second.millis(), 1, 0.35);
  }
}

TEST(IterationLearner, straggler__while_learning_costs_no_more_than_its_iteration) {
  for (int late = 0; late < 6; ++late) {
    Traffic job;
    for (int i = 0; i < 8; ++i) {
      iterate(job, one);
      if (i == late) job.silence(900_ms);
    }
    EXPECT_TRUE(job.learner.known()) << late;
    EXPECT_EQ(job.learner.bytes_per_iteration(), 10 * kMB);
    EXPECT_EQ(job.wrong, 0u);
  }
}

TEST(IterationLearner, pause__of_minutes_is_survived) {
  for (const Shape& shape : {one, buckets, halves}) {
    SCOPED_TRACE(shape.name);
    Traffic job;
    known_in(job, shape, 12);
    for (const Nanos pause : {1'000_ms, 300'000_ms, 3'600'000_ms}) {
      job.silence(pause);
      EXPECT_EQ(known_in(job, shape, 3), 3);
      EXPECT_EQ(job.learner.bytes_per_iteration(), bytes_of(shape));
    }
  }
}

// A checkpoint is written between two buckets. The learner loses the size and finds it again within two iterations.
TEST(IterationLearner, pause__within_an_iteration_is_survived) {
  Traffic job;
  known_in(job, one, 12);
  job.burst(4 * kMB);
  job.silence(20'000_ms);
  job.burst(6 * kMB);
  job.silence(100_ms);
  EXPECT_FALSE(job.learner.known());
  iterate(job, one);
  EXPECT_EQ(known_in(job, one, 20), 20);
  EXPECT_EQ(job.wrong, 0u);
}

// One whole iteration is between two checkpoints. The learner finds neither a shorter nor a longer period.
TEST(IterationLearner, pause__within_an_iteration_again_soon_is_survived) {
  for (int late = 4; late <= 6; ++late) {
    Traffic job;
    job.truth = 10 * kMB;
    int known_from = 0;
    for (int i = 0; i < 24; ++i) {
      if (i == late || i == late + 2) {
        job.burst(2 * kMB);
        job.silence(120_ms);
        job.burst(8 * kMB);
      } else {
        job.burst(10 * kMB);
      }
      job.silence(100_ms);
      if (known_from == 0 && job.learner.known()) known_from = i;
    }
    EXPECT_EQ(known_from, 3) << late;
    EXPECT_TRUE(job.learner.known()) << late;
    EXPECT_EQ(job.wrong, 0u) << late;
  }
}

TEST(IterationLearner, batch_size__changes_the_gap_and_not_the_bytes) {
  for (const Nanos gap : {3_ms, 30_ms, 300_ms, 3'000_ms}) {
    Traffic job;
    known_in(job, one, 12);
    const Shape other{"another batch size", {{10 * kMB, gap}}};
    known_in(job, other, 2);
    EXPECT_EQ(known_in(job, other, 10), 10) << gap.millis();
    EXPECT_EQ(job.learner.bytes_per_iteration(), 10 * kMB);
    EXPECT_EQ(job.wrong, 0u);
  }
}

// The job sends the gradients of several steps at once, after a longer gap. Small control messages may divide this gap.
TEST(IterationLearner, accumulation__of_gradients_is_followed) {
  Traffic job;
  known_in(job, one, 12);
  const Shape accumulated{"four steps", {{10 * kMB, 100_ms}, {64, 100_ms}, {64, 100_ms}, {64, 100_ms}}};
  EXPECT_EQ(known_in(job, accumulated, 20), 20);
  EXPECT_EQ(job.wrong, 0u);
}

TEST(IterationLearner, size__that_changes_is_learned_anew) {
  for (const Bytes size : {1 * kMB, 5 * kMB, 7 * kMB, 11 * kMB, 20 * kMB, 25 * kMB, 500 * kMB}) {
    SCOPED_TRACE(size);
    Traffic job;
    known_in(job, one, 20);
    const Shape other{"other", {{size, 100_ms}}};
    known_in(job, other, 5);
    job.wrong = 0;
    EXPECT_EQ(known_in(job, other, 20), 20);
    EXPECT_EQ(job.wrong, 0u);
    EXPECT_EQ(job.learner.bytes_per_iteration(), size);
  }
}

TEST(IterationLearner, evaluation__phase_is_left_and_the_period_taken_up_again) {
  Traffic job;
  known_in(job, buckets, 20);
  job.truth = 0;
  for (int i = 0; i < 6; ++i) {
    job.burst(kMB / 2 + job.random.below(3 * kMB));
    job.silence(Nanos(static_cast<std::int64_t>(job.random.below(400'000'000))));
  }
  known_in(job, buckets, 2);
  job.wrong = 0;
  EXPECT_EQ(known_in(job, buckets, 10), 10);
  EXPECT_EQ(job.wrong, 0u);
}

TEST(IterationLearner, bulk__that_never_pauses_stays_unknown) {
  Traffic job;
  job.learner.on_send(job.now);
  for (int i = 0; i < 1'000'000; ++i) {
    job.now += 12_us;
    job.learner.on_delivered(job.now, 1448);
    ASSERT_FALSE(job.learner.known());
  }
}

// Chunks of equal size follow each other with pauses as short as a round trip. No other job could send in such pauses.
TEST(IterationLearner, bulk__with_hiccups_stays_unknown) {
  Traffic job;
  for (int i = 0; i < 2000; ++i) {
    job.burst(4 * kMB);
    job.silence(20_us);
    ASSERT_FALSE(job.learner.known());
  }
}

TEST(IterationLearner, bulk__after_training_is_unknown_within_an_iteration) {
  Traffic job;
  known_in(job, one, 12);
  job.learner.on_send(job.now);
  job.learner.on_delivered(job.now, 10 * kMB);
  EXPECT_TRUE(job.learner.known());
  job.learner.on_delivered(job.now, kMB);
  EXPECT_FALSE(job.learner.known());
}

TEST(IterationLearner, heartbeats__are_no_bursts) {
  for (const Shape& shape : {one, buckets, halves}) {
    for (const Nanos interval : {1_ms, 9_ms, 33_ms}) {
      SCOPED_TRACE(testing::Message() << shape.name << ", every " << interval.millis() << " ms");
      Traffic job;
      Nanos next = job.now;
      int known = 0;
      job.truth = bytes_of(shape);
      for (int i = 0; i < 40; ++i) {
        for (const auto& [bytes, silence] : shape.bursts) {
          job.burst(bytes);
          const Nanos until = job.now + silence;
          for (next = std::max(next, job.now); next < until; next += interval) {
            job.now = next;
            job.burst(64);
          }
          job.now = std::max(until, job.now);
        }
        known += job.learner.known() ? 1 : 0;
      }
      EXPECT_GE(known, 34);
      EXPECT_EQ(job.wrong, 0u);
      EXPECT_NEAR(share(job.learner, job.truth), 1, 0.002);
    }
  }
}

TEST(IterationLearner, idle__job_with_heartbeats_stays_unknown) {
  Traffic job;
  for (int i = 0; i < 1000; ++i) {
    job.burst(64);
    job.silence(1'000_ms);
    ASSERT_FALSE(job.learner.known());
  }
}

/// Sends bursts of random sizes. Returns the number of bursts in a million after which the learner knows a size.
template <typename Draw>
double known_of_random(const Draw& size) {
  std::uint64_t known = 0;
  std::uint64_t bursts = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Traffic job;
    job.random = Random(seed);
    for (int i = 0; i < 2000; ++i, ++bursts) {
      job.burst(size(job.random));
      job.silence(Nanos(static_cast<std::int64_t>(1e7 * -std::log(1 - job.random.uniform()))));
      known += job.learner.known() ? 1U : 0U;
    }
  }
  return 1e6 * static_cast<double>(known) / static_cast<double>(bursts);
}

TEST(IterationLearner, random__traffic_stays_unknown) {
  EXPECT_LT(
      known_of_random([](Random& random) { return static_cast<Bytes>(1e6 * -std::log(1 - random.uniform())) + 1; }),
      1'000);
}

// Sizes from a short list repeat by chance. Each early failure raises the required evidence.
TEST(IterationLearner, random__traffic_of_a_few_sizes_stays_unknown) {
  EXPECT_LT(known_of_random([](Random& random) { return kMB << random.below(3); }), 10'000);
}

TEST(IterationLearner, first_burst__of_a_job_that_is_created_late_counts_no_earlier_silence) {
  IterationLearner learner;
  EXPECT_FALSE(learner.on_send(3'600'000_ms));
  EXPECT_FALSE(learner.known());
  EXPECT_EQ(learner.iteration(), 0u);
  EXPECT_EQ(learner.bytes_per_iteration(), 0u);
}

}  // namespace
}  // namespace mltcp::cc
