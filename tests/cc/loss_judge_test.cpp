// Tests which losses count as congestion on a path that reports its queue, and when the judge trusts the reports of
// this path.
#include "mltcp/cc/loss_judge.h"

#include <gtest/gtest.h>

#include <string>

#include "mltcp/cc/controller.h"
#include "mltcp/cc/registry.h"

namespace mltcp::cc::loss_judge_test {
namespace {

/// A path that transfers rounds of packets. The last packets of a round may be lost.
struct Path {
  /// Causes heavy losses in a full window, and then light losses in a small window until these no longer count as
  /// congestion. Returns the number of light losses that counted.
  int probation(std::uint32_t window, std::uint32_t small_window) {
    round(window, 0);
    EXPECT_TRUE(round(window, window / 2));
    int signs = 0;
    while (round(small_window, 1) && signs < 10'000) ++signs;
    return signs;
  }

  bool round(std::uint32_t packets, std::uint32_t lost, bool signalled = false) {
    for (std::uint32_t i = lost; i < packets; ++i) judge.on_acked(1, signalled, rounds, Nanos(100'000), full);
    const bool found = lost > 0 && judge.is_congestion(lost, false, false);
    judge.on_acked(0, false, ++rounds, Nanos(100'000), full);
    return found;
  }
  int events(int count, std::uint32_t packets, std::uint32_t lost, bool signalled = false) {
    int found = 0;
    for (int i = 0; i < count; ++i) found += round(packets, lost, signalled) ? 1 : 0;
    return found;
  }
  LossJudge judge;
  std::uint64_t rounds = 0;
  bool full = false;
};

TEST(LossJudge, light_losses__are_none_at_first_and_ever_after) {
  Path path;
  EXPECT_EQ(path.events(1000, 100, 1), 0);
  EXPECT_EQ(path.events(1000, 100, 4), 0) << "4% of each round";
}

TEST(LossJudge, more_than_a_twentieth__on_average_is_heavy) {
  Path path;
  int rounds = 0;
  while (!path.round(100, 8)) ASSERT_LT(++rounds, 100);
  EXPECT_GT(rounds, 5) << "a few rounds are luck";
  // The congestion response clears the record of losses, but the judge still knows that the path reported no queue.
  EXPECT_TRUE(path.round(100, 1)) << "from now on every loss is one";
  EXPECT_EQ(path.events(10, 100, 1), 10);
}

TEST(LossJudge, more_than_an_eighth_of_a_round__is_heavy_at_once) {
  Path path;
  EXPECT_FALSE(path.round(100, 12));
  EXPECT_TRUE(path.round(100, 30));
  Path at_once;
  at_once.round(100, 0);
  EXPECT_FALSE(at_once.judge.is_congestion(12, false, false)) << "of a hundred, most of which are still to come";
  Path few;
  EXPECT_FALSE(few.round(16, 8)) << "eight are luck";
}

TEST(LossJudge, told__in_the_round_before_a_heavy_loss_keeps_the_trust) {
  for (const bool signalled : {true, false}) {
    Path path;
    path.round(100, 0, signalled);
    ASSERT_TRUE(path.round(100, 50));
    EXPECT_EQ(path.round(100, 1), !signalled);
  }
  Path batch;
  batch.round(100, 0);
  ASSERT_TRUE(batch.judge.is_congestion(50, true, false));
  EXPECT_FALSE(batch.round(100, 1)) << "told in the same batch";
}

TEST(LossJudge, queue_that_it_should_have_told_of__ends_the_trust) {
  LossJudge judge;
  EXPECT_FALSE(judge.shows_queue(Nanos(200'000), Nanos(100'000)));
  EXPECT_TRUE(judge.shows_queue(Nanos(200'001), Nanos(100'000)));
  EXPECT_TRUE(judge.is_congestion(1, false, true)) << "light as it is";
  EXPECT_TRUE(judge.is_congestion(1, false, false)) << "and every one from now on";
  judge.on_acked(10, true, 1, Nanos(300'000), false);
  EXPECT_FALSE(judge.shows_queue(Nanos(600'000), Nanos(100'000))) << "so far it tells";
  EXPECT_TRUE(judge.shows_queue(Nanos(600'001), Nanos(100'000)));
  EXPECT_FALSE(judge.is_congestion(1, false, true)) << "it has told just now";
  judge.on_acked(100, false, 2, Nanos(300'000), false);
  EXPECT_FALSE(judge.is_congestion(1, false, true)) << "in the round trip before";
  judge.on_acked(100, false, 3, Nanos(300'000), false);
  EXPECT_TRUE(judge.is_congestion(1, false, true));
}

TEST(LossJudge, told_again__trusts_again) {
  Path path;
  ASSERT_TRUE(path.round(100, 50));
  ASSERT_TRUE(path.round(100, 1));
  path.round(100, 0, true);
  EXPECT_EQ(path.events(100, 100, 1), 0);
}

TEST(LossJudge, losses_of_a_far_smaller_window__bring_the_trust_back) {
  Path random;
  EXPECT_EQ(random.probation(200, 40), 16);
  EXPECT_EQ(random.events(100, 200, 2), 0) << "and it lasts";
  Path capacity;
  EXPECT_EQ(capacity.probation(200, 50), 10'000) << "a quarter may be what is left for it";
  Path queue;
  queue.full = true;
  EXPECT_EQ(queue.probation(200, 40), 10'000) << "round trips show a queue";
  Path clean;
  clean.probation(200, 50);
  EXPECT_EQ(clean.events(1000, 40, 0), 0);
  EXPECT_TRUE(clean.round(40, 1)) << "round trips without a loss tell nothing";
  Path first_round;
  first_round.judge.on_acked(100, false, 0, Nanos(100'000), false);
  ASSERT_TRUE(first_round.judge.is_congestion(100, false, false));
  int signs = 0;
  while (first_round.round(40, 1) && signs < 100) ++signs;
  EXPECT_LE(signs, 16) << "of 200 packets";
  Path few;
  EXPECT_EQ(few.probation(60, 22), 10'000) << "round trips are taken together, but not for one with more packets";
}

TEST(LossJudge, who_fails_on_trial__has_twice_the_probation) {
  Path path;
  int expected = 16;
  for (int i = 0; i < 11; ++i) {
    EXPECT_EQ(path.probation(200, 40), expected);
    if (i < 8) expected *= 2;
    path.events(700, 200, 0);
  }
  EXPECT_EQ(expected, 16 << 8);
  path.events(100, 200, 0);
  EXPECT_EQ(path.probation(200, 40), 16) << "after 800 round trips it begins anew";
  EXPECT_EQ(path.probation(200, 40), 32);
  path.round(200, 0, true);
  EXPECT_EQ(path.probation(200, 40), 16) << "it has told";

  Path smaller;
  smaller.probation(160, 38);
  smaller.events(700, 160, 0);
  EXPECT_EQ(smaller.probation(160, 38), 16) << "four round trips for each packet";
}

TEST(LossJudge, trial__is_where_the_trust_ended) {
  Path slow;
  slow.probation(200, 40);
  slow.events(5000, 150, 0);
  EXPECT_EQ(slow.probation(200, 40), 32) << "however slowly the window grows";

  Path unlucky;
  unlucky.probation(200, 40);
  ASSERT_TRUE(unlucky.round(40, 20)) << "by chance, just after the trust came back";
  int signs = 0;
  while (unlucky.round(40, 1) && signs < 100) ++signs;
  EXPECT_EQ(signs, 32) << "40 are still few";

  Path narrower;
  narrower.probation(200, 40);
  narrower.events(900, 200, 0);
  narrower.events(10, 60, 0);
  ASSERT_TRUE(narrower.round(60, 30));
  EXPECT_EQ(narrower.events(1000, 40, 1), 1000) << "the trial over, it is the window that counts";

  Path wider;
  wider.probation(200, 40);
  wider.events(10, 400, 0);
  ASSERT_TRUE(wider.round(400, 200));
  EXPECT_EQ(wider.events(32, 80, 1), 32);
  EXPECT_EQ(wider.events(100, 80, 1), 0) << "few beside 400";
}

TEST(LossJudge, what_was_lost_before__is_not_held_against_the_trust_that_came_back) {
  Path path;
  path.round(200, 0);
  ASSERT_TRUE(path.round(200, 100));
  while (path.round(40, 2)) ASSERT_LT(path.rounds, 1000U);
  EXPECT_EQ(path.events(4, 20, 2), 0) << "a tenth of four round trips";
}

TEST(LossJudge, first_round_trips__are_taken_one_by_one) {
  Path path;
  path.events(10, 2, 0);
  ASSERT_TRUE(path.judge.is_congestion(20, false, false));
  EXPECT_EQ(path.events(1000, 6, 1), 1000) << "more than the two that it had then";
}

TEST(LossJudge, short_rounds__are_taken_together) {
  // One packet of four is lost in every eighth round, which is a loss rate of 3%.
  Path path;
  int found = 0;
  for (int i = 0; i < 4000; ++i) found += path.round(4, i % 8 == 0 ? 1 : 0) ? 1 : 0;
  EXPECT_EQ(found, 0);
  Path bad;
  EXPECT_GT(bad.events(100, 4, 1), 0) << "a quarter is heavy";
}

// A flow whose algorithm uses a loss judge.
struct Flow {
  explicit Flow(const std::string& name) : controller(find_algorithm(name), {1000, Rate(1'000'000'000)}) {}
  AckSample ack(std::uint32_t ce = 0, Nanos delay = Nanos(50'000)) {
    AckSample sample;
    sample.now = now += Nanos(100'000);
    sample.acked_packets = 100;
    sample.acked_bytes = 100'000;
    sample.ce_packets = ce;
    sample.ce_bytes = Bytes{ce} * 1000;
    sample.latest_rtt = sample.smoothed_rtt = delay;
    sample.min_rtt = Nanos(50'000);
    sample.round_count = ++rounds;
    return sample;
  }
  bool loses(std::uint32_t packets, bool ecn = true) {
    return controller.is_congestion({now, packets, 0, Nanos(50'000), Nanos(50'000), ecn});
  }

  Controller controller;
  Nanos now{1'000'000};
  std::uint64_t rounds = 0;
};

TEST(LossJudge, reno_and_cubic__take_every_loss_for_congestion) {
  for (const char* name : {"reno", "cubic"}) {
    Flow flow(name);
    EXPECT_EQ(flow.controller.algorithm().is_congestion, nullptr);
    EXPECT_TRUE(flow.loses(1)) << name;
  }
}

TEST(LossJudge, dctcp_and_dcqcn__trust_marks_while_ecn_works) {
  for (const char* name : {"dctcp", "dcqcn"}) {
    Flow flow(name);
    flow.controller.on_ack(flow.ack());
    EXPECT_FALSE(flow.loses(1)) << name;
    EXPECT_TRUE(flow.loses(1, false)) << name << ": the path hides marks";
    EXPECT_TRUE(flow.loses(50)) << name << ": half of a round";
    flow.controller.on_ack(flow.ack());
    EXPECT_TRUE(flow.loses(1)) << name << ": without any mark";
    flow.controller.on_ack(flow.ack(1));
    EXPECT_FALSE(flow.loses(1)) << name << ": the path marks";
    EXPECT_TRUE(flow.loses(50)) << name;
    flow.controller.on_ack(flow.ack());
    EXPECT_FALSE(flow.loses(1)) << name << ": it has marked in that round";
  }
}

TEST(LossJudge, swift__trusts_a_delay_that_has_reached_the_target) {
  Flow flow("swift");
  flow.controller.on_ack(flow.ack());
  EXPECT_FALSE(flow.loses(1));
  EXPECT_FALSE(flow.loses(1, false)) << "whether the path marks is nothing to it";
  EXPECT_TRUE(flow.loses(50));
  flow.controller.on_ack(flow.ack());
  EXPECT_TRUE(flow.loses(1)) << "a queue of less delay than the target";
  flow.controller.on_ack(flow.ack(0, Nanos(900'000)));
  EXPECT_TRUE(flow.loses(1)) << "loss and delay together";
  flow.controller.on_ack(flow.ack());
  EXPECT_FALSE(flow.loses(1)) << "this path's delay tells";
}

}  // namespace
}  // namespace mltcp::cc::loss_judge_test
