// Tests jobs: the tag on the wire, progress by delivered bytes over all flows, and the gain that reaches the algorithm.
#include <gtest/gtest.h>

#include <memory>

#include "../transport/test_network.h"
#include "mltcp/cc/dcqcn.h"

namespace mltcp {
namespace {

using namespace testing_network;
using JobConnected = ConnectedTest;

TEST(Job, tag__names_job_and_iteration_and_its_progress_only_rises_within_one) {
  Pair pair;
  pair.rate = Rate(1'000'000'000);
  const auto [c, s] = pair.connect();
  const JobId job = pair.c().add_job({.number = 77, .augmentation = cc::Augmentation::mltcp({}), .max_rate = {}});
  EXPECT_TRUE(pair.c().attach(c, job));
  const auto message = random_bytes(1'000'000);
  ByteVector buffer(message.size());
  for (std::uint16_t iteration = 1; iteration <= 3; ++iteration) {
    EXPECT_TRUE(pair.c().begin_iteration(job, message.size()));
    ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
    pair.run_for(1_ms);
    pair.log.clear();
    Random random(iteration);
    pair.fate = [&](const Parsed&, Fate& fate) { fate.drop = random.chance(0.02); };
    ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1));
    pair.fate = nullptr;
    std::uint16_t progress = 0;
    for (const Parsed& packet : pair.log) {
      if (packet.from != 0 || !is_data(packet)) continue;
      ASSERT_NE(packet.header.flags & wire::has_job, 0);
      ASSERT_EQ(packet.header.job.job, 77u);
      ASSERT_EQ(packet.header.job.iteration, iteration);
      ASSERT_GE(packet.header.job.progress, progress);
      progress = packet.header.job.progress;
    }
    EXPECT_GT(progress, 50'000);
    EXPECT_EQ(pair.c().job_progress(job)->tracker.bytes_sent(), message.size()) << "each byte once, losses or not";
    EXPECT_EQ(pair.c().job_progress(job)->gain(), 2.0);
    const Completion received = pair.server().completions.back();
    EXPECT_TRUE(received.has_job);
    EXPECT_EQ(received.job, 77u);
    EXPECT_EQ(received.iteration, iteration);
  }
  for (const Parsed& packet : pair.log) {
    if (packet.from == 1) {
      EXPECT_EQ(packet.header.flags & wire::has_job, 0);
    }
  }
}

TEST_F(JobConnected, begin_iteration__starts_from_zero) {
  const JobId job = pair.c().add_job({.number = 1, .augmentation = cc::Augmentation::mltcp({}), .max_rate = {}});
  EXPECT_TRUE(pair.c().attach(c, job));
  EXPECT_EQ(pair.c().job_progress(job)->gain(), 1.0) << "before the first iteration";
  const auto message = random_bytes(50'000);
  EXPECT_TRUE(pair.c().begin_iteration(job, 100'000));
  EXPECT_EQ(pair.c().job_progress(job)->gain(), 0.25);
  ASSERT_EQ(pair.s().receive_virtual(s, 50'000, 0), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_DOUBLE_EQ(pair.c().job_progress(job)->tracker.bytes_ratio(), 0.5);
  EXPECT_TRUE(pair.c().begin_iteration(job, 100'000));
  EXPECT_EQ(pair.c().job_progress(job)->tracker.bytes_ratio(), 0.0);
  EXPECT_EQ(pair.c().job_progress(job)->tracker.iteration(), 2u);
}

TEST(Job, progress__adds_up_over_the_job_s_connections) {
  Pair pair;
  const JobId job = pair.c().add_job({.number = 1, .augmentation = cc::Augmentation::mltcp({}), .max_rate = {}});
  EXPECT_TRUE(pair.c().begin_iteration(job, 400'000));
  const auto message = random_bytes(100'000);
  for (int i = 1; i <= 4; ++i) {
    const auto [c, s] = pair.connect();
    EXPECT_TRUE(pair.c().attach(c, job));
    ASSERT_EQ(pair.s().receive_virtual(s, 100'000, 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1));
    EXPECT_DOUBLE_EQ(pair.c().job_progress(job)->tracker.bytes_ratio(), 0.25 * i);
  }
}

/// Returns the growth of the window in congestion avoidance under a constant gain, in packets per round trip.
double growth(double gain) {
  Pair pair;
  const auto [c, s] = pair.connect();
  const JobId job = pair.c().add_job({.number = 1, .augmentation = cc::Augmentation::constant(gain), .max_rate = {}});
  EXPECT_TRUE(pair.c().attach(c, job));
  const auto message = random_bytes(10'000'000);
  EXPECT_EQ(pair.s().receive_virtual(s, message.size(), 0), PostResult::ok);
  pair.run_for(1_ms);
  pair.logging = false;
  pair.fate = [](const Parsed& packet, Fate& fate) {
    fate.drop = packet.from == 0 && packet.header.packet_number == 60;
  };
  EXPECT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  EXPECT_TRUE(pair.run([&, id = c] { return pair.c().stats(id)->congestion_events == 1; }, pair.now() + 1_s));
  pair.run_for(1_ms);
  const double before = pair.c().stats(c)->cwnd_bytes;
  const Nanos begin = pair.now();
  pair.run_for(5_ms);
  EXPECT_EQ(pair.c().stats(c)->congestion_events, 1u);
  const double rounds = (pair.now() - begin).seconds() / pair.c().stats(c)->smoothed_rtt.seconds();
  return (pair.c().stats(c)->cwnd_bytes - before) / 1472 / rounds;
}

TEST(Job, gain__reaches_the_algorithm) {
  const double plain = growth(1.0);
  EXPECT_NEAR(plain, 1.0, 0.2);
  EXPECT_NEAR(growth(2.0) / plain, 2.0, 0.15);
  EXPECT_NEAR(growth(0.25) / plain, 0.25, 0.04);
}

// Returns the increase of DCQCN's rate in four steps of its timer at the beginning of a long iteration, in bit/s.
double regained(const cc::Augmentation& augmentation, Bytes iteration_bytes = 1'000'000'000'000) {
  cc::Parameters parameters;
  parameters.edit<cc::Dcqcn>().additive_increase = Rate(500'000);
  parameters.edit<cc::Dcqcn>().increase_interval = 10_ms;
  parameters.edit<cc::Dcqcn>().increase_bytes = 1'000'000'000;
  ConnectionConfig config;
  config.congestion_control = "dcqcn";
  config.parameters = std::make_shared<const cc::Parameters>(parameters);
  config.ecn = true;
  config.max_rate = Rate(100'000'000);
  Pair pair(config, config);
  const auto [c, s] = pair.connect();
  const JobId job = pair.c().add_job({.number = 1, .augmentation = augmentation, .max_rate = {}});
  EXPECT_TRUE(pair.c().attach(c, job));
  EXPECT_TRUE(pair.c().begin_iteration(job, iteration_bytes));
  EXPECT_EQ(pair.s().receive_virtual(s, 10'000'000, 0), PostResult::ok);
  pair.run_for(1_ms);
  pair.logging = false;
  pair.fate = [marked = 0](const Parsed& packet, Fate& fate) mutable {
    if (packet.from == 0 && is_data(packet) && marked++ < 4) fate.ecn = Ecn::ce;
  };
  const auto message = random_bytes(10'000'000);
  EXPECT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  const auto rate = [&, id = c] { return static_cast<double>(pair.c().stats(id)->pacing_rate.bits_per_second); };
  pair.run_for(80_ms);  // until the four cuts and fast recovery are over
  const double before = rate();
  EXPECT_LT(before, 50e6);
  pair.run_for(40_ms);
  return rate() - before;
}

TEST(Job, gain__reaches_an_algorithm_of_timed_increases_as_a_multiple_of_the_least) {
  const double plain = regained(cc::Augmentation());
  EXPECT_NEAR(plain, 2e6, 0.2e6);  // each step moves the rate to halfway between the rate and its target
  EXPECT_NEAR(regained(cc::Augmentation::mltcp({})) / plain, 1.0, 0.01) << "F is 0.25 there, and is least";
  EXPECT_NEAR(regained(cc::Augmentation::constant(0.25)) / plain, 0.25, 0.02);
}

TEST(Job, iteration__its_bytes_reach_an_algorithm_of_timed_increases) {
  // A burst takes 1 s, and a quarter of it has 25 timer steps. To gain half of 100 Mbps in them, each step must be 2
  // Mbps, four times the configured step. After four cuts the target is an eighth of the line rate. At such a target,
  // steps are half as large, because they grow with the square root of the target.
  const auto flat = cc::Augmentation::mltcp(cc::Aggressiveness(0, 0.25));
  EXPECT_NEAR(regained(flat, 12'500'000) / regained(flat), 2.2, 0.1);
  EXPECT_NEAR(regained(cc::Augmentation(), 12'500'000) / regained(flat), 1.0, 0.01) << "plain flows do as always";
}

JobId add_learning_job(Pair& pair) {
  return pair.c().add_job(
      {.number = 9, .augmentation = cc::Augmentation::mltcp({}), .max_rate = {}, .learn_iterations = true});
}

// An application never states where its iterations begin. An iteration consists of messages of 100 kB, which two
// connections send in turn: 300 kB on the first one and 200 kB on the second one.
TEST(Job, iterations__are_learned_over_all_connections) {
  Pair pair;
  pair.rate = Rate(1'000'000'000);
  const auto [c, s] = pair.connect();
  const auto [d, t] = pair.connect();
  const JobId job = add_learning_job(pair);
  EXPECT_TRUE(pair.c().attach(c, job));
  EXPECT_TRUE(pair.c().attach(d, job));
  const auto message = random_bytes(100'000);
  const cc::IterationTracker& tracker = pair.c().job_progress(job)->tracker;
  const auto iterate = [&, c = c, s = s, d = d, t = t] {
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(pair.s().receive_virtual(i % 2 == 0 ? s : t, message.size(), 0), PostResult::ok);
      ASSERT_EQ(pair.c().send(i % 2 == 0 ? c : d, message, 0), PostResult::ok);
    }
    ASSERT_TRUE(pair.transfer(5, 5));
    pair.run_for(10_ms);
  };
  for (int i = 0; i < 3; ++i) {
    iterate();
    EXPECT_EQ(pair.c().job_progress(job)->gain(), 1.0) << "unknown: plain";
  }
  for (std::uint64_t i = 1; i <= 5; ++i) {
    iterate();
    EXPECT_TRUE(tracker.known());
    EXPECT_EQ(tracker.iteration(), i);
    EXPECT_EQ(tracker.bytes_sent(), 500'000u);
    EXPECT_EQ(tracker.bytes_ratio(), 1.0);
    EXPECT_EQ(pair.c().job_progress(job)->gain(), 2.0);
  }
  // When the application begins to state iterations, these replace the learned ones.
  EXPECT_TRUE(pair.c().begin_iteration(job, 1'000'000));
  for (int i = 0; i < 6; ++i) iterate();
  EXPECT_EQ(tracker.iteration(), 6u);
  EXPECT_EQ(tracker.bytes_sent(), 3'000'000u);
  // The stated iterations apply until the application requests that iterations are learned again.
  EXPECT_TRUE(pair.c().learn_iterations(job));
  EXPECT_FALSE(tracker.known());
  EXPECT_EQ(pair.c().job_progress(job)->gain(), 1.0) << "unknown: plain";
  for (int i = 0; i < 8; ++i) iterate();
  EXPECT_TRUE(tracker.known());
  EXPECT_EQ(tracker.bytes_per_iteration(), 500'000u);
  EXPECT_EQ(tracker.bytes_sent(), 500'000u);
  EXPECT_FALSE(pair.c().learn_iterations(12345)) << "no such job";
}

// The learner must learn iterations as quickly as for a new job, however long the application stated them before. The
// time without learning must not count as one burst.
TEST(Job, iterations__are_learned_again_after_many_that_were_stated) {
  Pair pair;
  pair.rate = Rate(1'000'000'000);
  const auto [c, s] = pair.connect();
  const JobId job = add_learning_job(pair);
  EXPECT_TRUE(pair.c().attach(c, job));
  const auto message = random_bytes(20'000);
  const cc::IterationTracker& tracker = pair.c().job_progress(job)->tracker;
  const auto iterate = [&, c = c, s = s] {
    ASSERT_EQ(pair.s().receive_virtual(s, message.size(), 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1));
    pair.run_for(3_ms);
  };
  constexpr std::uint64_t stated = 1500;
  for (std::uint64_t i = 0; i < stated; ++i) {
    ASSERT_TRUE(pair.c().begin_iteration(job, message.size()));
    iterate();
  }
  ASSERT_TRUE(pair.c().learn_iterations(job));
  for (int i = 0; i < 4; ++i) iterate();
  EXPECT_TRUE(tracker.known());
  EXPECT_EQ(tracker.bytes_per_iteration(), message.size());
  EXPECT_EQ(tracker.bytes_sent(), message.size());
  EXPECT_GT(tracker.iteration(), stated) << "numbers go on";
  EXPECT_LE(tracker.iteration(), stated + 4);
}

TEST_F(JobConnected, removed__its_connections_go_on_without_a_tag) {
  const JobId job = pair.c().add_job({.number = 5, .augmentation = cc::Augmentation::constant(1.5), .max_rate = {}});
  EXPECT_TRUE(pair.c().attach(c, job));
  const auto message = random_bytes(2'000'000);
  ByteVector buffer(message.size());
  ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  pair.run_for(1_ms);
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  pair.run_for(500_us);
  EXPECT_TRUE(pair.c().remove_job(job));
  EXPECT_EQ(pair.c().job_progress(job), nullptr);
  pair.log.clear();
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(buffer, message);
  for (const Parsed& packet : pair.log) EXPECT_EQ(packet.header.flags & wire::has_job, 0);
  EXPECT_FALSE(pair.server().completions.back().has_job);
  // The slot of the removed job is free again, and its counters are reset.
  EXPECT_EQ(pair.c().add_job({}), job);
  EXPECT_EQ(pair.c().job_progress(job)->tracker.bytes_sent(), 0u);
}

TEST_F(JobConnected, attach__moves_a_connection_between_jobs) {
  const JobId first = pair.c().add_job({.number = 1, .augmentation = {}, .max_rate = {}});
  const JobId second = pair.c().add_job({.number = 2, .augmentation = {}, .max_rate = {}});
  const auto message = random_bytes(10'000);
  for (const JobId job : {first, second}) {
    EXPECT_TRUE(pair.c().attach(c, job));
    EXPECT_TRUE(pair.c().begin_iteration(job, 10'000));
    ASSERT_EQ(pair.s().receive_virtual(s, 10'000, 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1));
    EXPECT_EQ(pair.server().completions.back().job, job == first ? 1u : 2u);
    EXPECT_EQ(pair.c().job_progress(job)->tracker.bytes_sent(), 10'000u);
  }
  EXPECT_FALSE(pair.c().attach(c, 12345)) << "no such job";
  EXPECT_EQ(pair.c().job_progress(first)->tracker.bytes_sent(), 10'000u);
}

// A message waits for a buffer of the peer for longer than the job computes. This wait must not count as a pause of the
// job, even if the connection is attached to the job again.
TEST(Job, attach__to_the_same_job_again_is_no_end_of_a_burst) {
  Pair pair;
  pair.rate = Rate(1'000'000'000);
  const auto [c, s] = pair.connect();
  const JobId job = add_learning_job(pair);
  const auto message = random_bytes(100'000);
  const cc::IterationTracker& tracker = pair.c().job_progress(job)->tracker;
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(pair.c().attach(c, job));
    ASSERT_EQ(pair.s().receive_virtual(s, message.size(), 0), PostResult::ok);
    for (int k = 0; k < 2; ++k) ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1));
    if (i == 6) {
      pair.run_for(20_ms);
      EXPECT_TRUE(pair.c().attach(c, job));
    }
    ASSERT_EQ(pair.s().receive_virtual(s, message.size(), 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1));
    pair.run_for(10_ms);
    if (i >= 3) {
      EXPECT_TRUE(tracker.known()) << "iteration " << i;
      EXPECT_EQ(tracker.bytes_sent(), 200'000u);
    }
  }
}

// The learner counts open messages. It must subtract each ended message exactly once. If a message stayed in the count,
// the job would never seem to pause, and nothing would be learned.
TEST(Job, messages__are_counted_off_however_they_end) {
  Pair pair;
  pair.rate = Rate(1'000'000'000);
  const auto [c, s] = pair.connect();
  const JobId job = add_learning_job(pair);
  const JobId other = pair.c().add_job({});
  EXPECT_TRUE(pair.c().attach(c, job));
  const auto message = random_bytes(100'000);
  for (int way = 0; way < 7; ++way) {
    const auto [d, t] = pair.connect();
    EXPECT_TRUE(pair.c().attach(d, way == 5 ? other : job));
    if (way != 3) {
      ASSERT_EQ(pair.s().receive_virtual(t, message.size(), 0), PostResult::ok);
    }
    for (int i = 0; i < 3; ++i) ASSERT_EQ(pair.c().send(d, message, 0), PostResult::ok);
    pair.run_for(way == 4 ? 10_ms : 200_us);
    switch (way) {
      case 0:
        pair.c().abort(d, pair.now());
        break;
      case 1:
        pair.s().abort(t, pair.now());
        break;
      case 2:  // the first message arrives, and the others find no buffer
      case 3:  // no message of either side finds a buffer
        if (way == 3) {
          ASSERT_EQ(pair.s().send(t, message, 0), PostResult::ok);
        }
        pair.c().close(d);
        pair.s().close(t);
        break;
      case 4:
        EXPECT_TRUE(pair.c().attach(d, other));
        pair.c().abort(d, pair.now());
        break;
      case 5:
        EXPECT_TRUE(pair.c().attach(d, job));
        pair.c().remove_job(other);
        pair.run_for(10_ms);
        pair.c().abort(d, pair.now());
        break;
      case 6:  // all packets are lost from now on
        pair.fate = [](const Parsed&, Fate& fate) { fate.drop = true; };
        pair.run_for(100_s);
        pair.fate = nullptr;
        break;
    }
    pair.run_for(1_s);
    EXPECT_FALSE(pair.c().exists(d)) << way;
    EXPECT_EQ(pair.client().count(Kind::sent), 3 * static_cast<std::size_t>(way + 1)) << way;
  }
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(pair.s().receive_virtual(s, message.size(), 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1));
    pair.run_for(10_ms);
  }
  EXPECT_TRUE(pair.c().job_progress(job)->tracker.known());
  EXPECT_EQ(pair.c().job_progress(job)->tracker.bytes_sent(), message.size());
}

TEST(Job, connections_that_end__leave_it_usable) {
  Pair pair;
  const JobId job = pair.c().add_job({.number = 1, .augmentation = {}, .max_rate = {}});
  for (int i = 0; i < 10; ++i) {
    const auto [c, s] = pair.connect();
    EXPECT_TRUE(pair.c().attach(c, job));
    if (i % 2 == 0)
      pair.c().close(c);
    else
      pair.c().abort(c, pair.now());
    pair.run_for(100_ms);
    EXPECT_FALSE(pair.c().exists(c));
  }
  EXPECT_TRUE(pair.c().remove_job(job));
  EXPECT_EQ(pair.c().job_progress(job), nullptr);
}

}  // namespace
}  // namespace mltcp
