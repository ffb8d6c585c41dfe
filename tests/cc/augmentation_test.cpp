// Tests the iteration tracker and the gain: ratios without overflow or integer division, and refused settings.
#include "mltcp/cc/augmentation.h"

#include <gtest/gtest.h>

#include <limits>

#include "mltcp/base/error.h"

namespace mltcp::cc::augmentation_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

TEST(IterationTracker, begin__is_unknown_until_the_first_iteration) {
  IterationTracker tracker;
  EXPECT_EQ(tracker.iteration(), 0u);
  EXPECT_FALSE(tracker.known());
  tracker.on_delivered(1000);
  EXPECT_EQ(tracker.bytes_ratio(), 0.0);
}

TEST(IterationTracker, bytes_ratio__is_a_fraction_and_not_an_integer_division) {
  IterationTracker tracker;
  tracker.begin_iteration(3);
  tracker.on_delivered(1);
  EXPECT_DOUBLE_EQ(tracker.bytes_ratio(), 1.0 / 3);
  tracker.on_delivered(1);
  EXPECT_DOUBLE_EQ(tracker.bytes_ratio(), 2.0 / 3);
}

TEST(IterationTracker, bytes_ratio__stops_at_one) {
  IterationTracker tracker;
  tracker.begin_iteration(1000);
  tracker.on_delivered(1000);
  EXPECT_EQ(tracker.bytes_ratio(), 1.0);
  tracker.on_delivered(5000);
  EXPECT_EQ(tracker.bytes_ratio(), 1.0);
  EXPECT_EQ(tracker.bytes_sent(), 6000u);
}

TEST(IterationTracker, overrun__by_twice_what_was_stated) {
  IterationTracker tracker;
  tracker.on_delivered(500);
  EXPECT_FALSE(tracker.overrun());
  EXPECT_EQ(tracker.undeclared_bytes(), 0U) << "nothing was stated";
  tracker.begin_iteration(100);
  tracker.on_delivered(201);
  EXPECT_FALSE(tracker.overrun());
  EXPECT_EQ(tracker.undeclared_bytes(), 101U);
  tracker.on_delivered(1);
  EXPECT_TRUE(tracker.overrun());
  tracker.begin_iteration(100);
  EXPECT_FALSE(tracker.overrun());
  tracker.on_delivered(150);
  EXPECT_EQ(tracker.undeclared_bytes(), 152U) << "of all iterations";
  tracker.learn_again();
  tracker.on_delivered(1000);
  EXPECT_FALSE(tracker.overrun());
  EXPECT_EQ(tracker.undeclared_bytes(), 152U);
}

TEST(Augmentation, gain__of_an_iteration_that_overruns_is_the_least) {
  for (const char* const name : {"F1", "F3", "F5"}) {
    Augmentation augmentation = Augmentation::mltcp(Aggressiveness::read(name));
    const double min = std::min(augmentation.gain_at(0), augmentation.gain_at(1));
    augmentation.tracker.begin_iteration(1000);
    augmentation.tracker.on_delivered(1000);
    EXPECT_DOUBLE_EQ(augmentation.gain(), augmentation.gain_at(1)) << name;
    augmentation.tracker.on_delivered(1002);
    EXPECT_DOUBLE_EQ(augmentation.gain(), min) << name;
    EXPECT_DOUBLE_EQ(augmentation.gain_over_min(), 1) << name;
    augmentation.tracker.begin_iteration(1000);
    EXPECT_DOUBLE_EQ(augmentation.gain(), augmentation.gain_at(0)) << name;
  }
}

TEST(IterationTracker, bytes_ratio__does_not_wrap_at_4_GiB) {
  constexpr Bytes gib = Bytes{1} << 30;
  IterationTracker tracker;
  tracker.begin_iteration(40 * gib);
  double before = -1;
  for (int i = 0; i < 40; ++i) {
    EXPECT_GT(tracker.bytes_ratio(), before);
    before = tracker.bytes_ratio();
    EXPECT_DOUBLE_EQ(before, i / 40.0);
    tracker.on_delivered(gib);
  }
  EXPECT_EQ(tracker.bytes_sent(), 40 * gib);
  EXPECT_EQ(tracker.bytes_ratio(), 1.0);
}

TEST(IterationTracker, begin_iteration__counts_and_starts_from_zero) {
  IterationTracker tracker;
  tracker.begin_iteration(100);
  tracker.on_delivered(60);
  tracker.begin_iteration(200);
  EXPECT_EQ(tracker.iteration(), 2u);
  EXPECT_EQ(tracker.bytes_sent(), 0u);
  tracker.on_delivered(50);
  EXPECT_DOUBLE_EQ(tracker.bytes_ratio(), 0.25);
  tracker.begin_iteration(0);
  EXPECT_FALSE(tracker.known());
  EXPECT_EQ(tracker.bytes_ratio(), 0.0);
}

TEST(IterationTracker, learn_again__forgets_what_was_stated_and_follows_the_learner) {
  IterationTracker tracker;
  tracker.begin_iteration(100);
  tracker.on_delivered(60);
  EXPECT_TRUE(tracker.exact());
  tracker.learn_again();
  EXPECT_FALSE(tracker.exact());
  EXPECT_FALSE(tracker.known());
  EXPECT_EQ(tracker.bytes_sent(), 0u);
  tracker.follow(IterationLearner{});
  EXPECT_EQ(tracker.iteration(), 1u) << "counted on";
  tracker.begin_iteration(300);
  EXPECT_TRUE(tracker.exact());
  EXPECT_EQ(tracker.bytes_per_iteration(), 300u);
}

TEST(Augmentation, gain__is_one_by_default_whatever_is_sent) {
  Augmentation plain;
  EXPECT_EQ(plain.gain(), 1.0);
  plain.tracker.begin_iteration(100);
  plain.tracker.on_delivered(70);
  EXPECT_EQ(plain.gain(), 1.0);
}

TEST(Augmentation, gain__constant_does_not_look_at_progress) {
  Augmentation weighted = Augmentation::constant(1.5);
  EXPECT_EQ(weighted.gain(), 1.5);
  weighted.tracker.begin_iteration(100);
  weighted.tracker.on_delivered(70);
  EXPECT_EQ(weighted.gain(), 1.5);
}

TEST(Augmentation, gain__mltcp_follows_the_ratio) {
  Augmentation aware = Augmentation::mltcp({});
  EXPECT_EQ(aware.gain(), 1.0) << "unknown size: plain";
  aware.tracker.begin_iteration(1000);
  EXPECT_DOUBLE_EQ(aware.gain(), 0.25);
  aware.tracker.on_delivered(500);
  EXPECT_DOUBLE_EQ(aware.gain(), 1.125);
  aware.tracker.on_delivered(700);
  EXPECT_DOUBLE_EQ(aware.gain(), 2.0);
  aware.tracker.begin_iteration(1000);
  EXPECT_DOUBLE_EQ(aware.gain(), 0.25);
  aware.tracker.begin_iteration(0);
  EXPECT_EQ(aware.gain(), 1.0);
}

TEST(Augmentation, gain_over_least__is_one_or_more_and_keeps_ratios) {
  Augmentation aware = Augmentation::mltcp({});
  EXPECT_EQ(aware.gain_over_min(), 1.0) << "unknown size: plain";
  aware.tracker.begin_iteration(1000);
  EXPECT_DOUBLE_EQ(aware.gain_over_min(), 1.0);
  aware.tracker.on_delivered(500);
  EXPECT_DOUBLE_EQ(aware.gain_over_min(), 4.5);
  aware.tracker.on_delivered(500);
  EXPECT_DOUBLE_EQ(aware.gain_over_min(), 8.0);
  aware.tracker.begin_iteration(0);
  EXPECT_EQ(aware.gain_over_min(), 1.0);
  Augmentation weighted = Augmentation::constant(0.5);
  weighted.tracker.begin_iteration(1000);
  EXPECT_EQ(weighted.gain_over_min(), 0.5);
}

TEST(Augmentation, constant__refuses_what_is_no_weight) {
  for (const double gain : {0.0, -1.0, kInfinity, kNotANumber})
    EXPECT_THROW(Augmentation::constant(gain), InputError) << gain;
}

TEST(Augmentation, decrease_gain__is_one_unless_asked_for) {
  Augmentation aware = Augmentation::mltcp({});
  aware.tracker.begin_iteration(100);
  aware.tracker.on_delivered(100);
  EXPECT_EQ(aware.decrease_gain(), 1.0);
  aware.scale_decrease(true);
  EXPECT_EQ(aware.decrease_gain(), 2.0);
  EXPECT_EQ(aware.gain(), 2.0);
}

TEST(Augmentation, read__takes_what_people_write) {
  EXPECT_FALSE(Augmentation::read("fair").iteration_aware());
  EXPECT_EQ(Augmentation::read("fair").gain(), 1);
  EXPECT_EQ(Augmentation::read("0.5").gain(), 0.5);
  EXPECT_TRUE(Augmentation::read("F5").iteration_aware());
  EXPECT_EQ(Augmentation::read("F5").gain_at(0), 2);
  EXPECT_EQ(Augmentation::read("polynomial 0.5 1 0").gain_at(1), 1.5);
  EXPECT_FALSE(Augmentation::read("F5").takes_turns());
  for (const char* text : {"turns", "turns F1", "turns polynomial 0.25 1.75 0"}) {
    EXPECT_TRUE(Augmentation::read(text).takes_turns()) << text;
    EXPECT_EQ(Augmentation::read(text).gain_at(1), 2) << text;
  }
  for (const char* const wrong : {"", "F7", "fairly", "0", "-1", "inf", "0.5x", "polynomial 1", "polynomial 1 2 3 4",
                                  "polynomial 1 2 3x", "polynomial 1 2 3 x", "polynomial 1 2 3 ", "polynomial  1 2 3",
                                  "turn", "turns ", "turns fair", "turns 2", "turns turns", "turnsF1"})
    EXPECT_THROW(Augmentation::read(wrong), InputError) << wrong;
}

}  // namespace
}  // namespace mltcp::cc::augmentation_test
