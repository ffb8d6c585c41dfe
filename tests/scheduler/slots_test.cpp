// Tests how one perimeter is chosen for periods without a short common multiple.
#include <gtest/gtest.h>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/scheduler/problem.h"

namespace mltcp::scheduler {
namespace {

using namespace literals;

/// Checks properties that every result has.
void expect_consistent(const Slots& slots, const std::vector<Nanos>& periods, const SolveOptions& options = {}) {
  ASSERT_EQ(slots.periods.size(), periods.size());
  ASSERT_EQ(slots.repetitions.size(), periods.size());
  double stretch = 0;
  for (std::size_t j = 0; j < periods.size(); ++j) {
    EXPECT_EQ(slots.periods[j] * slots.repetitions[j], slots.perimeter);
    EXPECT_GE(slots.periods[j], periods[j]);
    stretch = std::max(stretch, slots.periods[j].seconds() / periods[j].seconds() - 1);
  }
  EXPECT_NEAR(slots.stretch, stretch, 1e-9);
  EXPECT_EQ(slots.within_limit, slots.stretch <= options.max_stretch + options.slack);
}

TEST(choose_slots, the_talks_40_and_60_ms_meet_on_120_ms) {
  SolveOptions options;
  options.max_stretch = 0;
  const Slots slots = choose_slots({40_ms, 60_ms}, options);
  EXPECT_EQ(slots.perimeter, 120_ms);
  EXPECT_EQ(slots.repetitions, (std::vector<std::uint32_t>{3, 2}));
  EXPECT_EQ(slots.stretch, 0);
  EXPECT_TRUE(slots.exact);
  EXPECT_TRUE(slots.within_limit);
}

TEST(choose_slots, equal_and_harmonic_periods_need_no_more_than_the_longest) {
  const Slots equal = choose_slots({70_ms, 70_ms, 70_ms});
  EXPECT_EQ(equal.perimeter, 70_ms);
  EXPECT_TRUE(equal.exact);
  const Slots harmonic = choose_slots({25_ms, 100_ms, 50_ms});
  EXPECT_EQ(harmonic.perimeter, 100_ms);
  EXPECT_EQ(harmonic.repetitions, (std::vector<std::uint32_t>{4, 1, 2}));
  EXPECT_TRUE(harmonic.exact);
}

TEST(choose_slots, absurd_common_multiples_are_stretched_a_little) {
  const std::vector<Nanos> primes{Nanos(99'999'991), Nanos(100'000'007)};
  const Slots slots = choose_slots(primes);
  expect_consistent(slots, primes);
  EXPECT_EQ(slots.perimeter.count, 100'000'007);
  EXPECT_FALSE(slots.exact);
  EXPECT_LT(slots.stretch, 1e-6);

  const std::vector<Nanos> more{Nanos(99'999'989), Nanos(151'000'003), Nanos(230'000'009), Nanos(777'777'777)};
  const Slots several = choose_slots(more);
  expect_consistent(several, more);
  EXPECT_TRUE(several.within_limit);
  EXPECT_LE(several.perimeter, Nanos(33 * 777'777'777LL));
}

TEST(choose_slots, off_by_a_nanosecond_is_as_good_as_equal) {
  const std::vector<Nanos> periods{40_ms, Nanos(60'000'001)};
  const Slots slots = choose_slots(periods);
  expect_consistent(slots, periods);
  EXPECT_LE(slots.perimeter, Nanos(120'000'006));
  EXPECT_EQ(slots.repetitions, (std::vector<std::uint32_t>{3, 2}));
}

TEST(choose_slots, smallest_perimeter_within_max_stretch) {
  // For periods of 100 and 130 ms, the stretch depends on the perimeter: 0.54 with 200 ms (2 and 1 repetitions), 0.3
  // with 260 ms (2 and 2), 0.15 with 300 ms (3 and 2), 0.0256 with 400 ms (4 and 3), 0.04 with 520 ms (5 and 4).
  const std::vector<Nanos> periods{100_ms, 130_ms};
  SolveOptions options;
  options.max_stretch = 0.16;
  EXPECT_EQ(choose_slots(periods, options).perimeter, 300_ms);
  options.max_stretch = 0.03;
  // the perimeter is divisible by 12, for 4 and 3 repetitions
  EXPECT_EQ(choose_slots(periods, options).perimeter, Nanos(400'000'008));
  options.max_stretch = 0;
  EXPECT_EQ(choose_slots(periods, options).perimeter, 1'300_ms);
}

TEST(choose_slots, says_when_max_repetitions_keeps_it_from_max_stretch) {
  SolveOptions options;
  options.max_repetitions = 2;
  const std::vector<Nanos> periods{100_ms, 130_ms};
  const Slots slots = choose_slots(periods, options);
  expect_consistent(slots, periods, options);
  EXPECT_EQ(slots.perimeter, 130_ms);  // the stretch is 0.3, the same as with 260 ms, and less than with 200 ms (0.54)
  EXPECT_FALSE(slots.within_limit);
}

TEST(choose_slots, slack_lengthens_every_slot) {
  SolveOptions options;
  options.slack = 0.1;
  const Slots slots = choose_slots({40_ms, 60_ms}, options);
  EXPECT_EQ(slots.perimeter, 132_ms);
  EXPECT_EQ(slots.periods, (std::vector<Nanos>{44_ms, 66_ms}));
  EXPECT_FALSE(slots.exact);
  EXPECT_TRUE(slots.within_limit);
}

TEST(choose_slots, never_overflows_or_hangs) {
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    std::vector<Nanos> periods;
    const std::uint64_t count = 1 + random.below(12);
    for (std::uint64_t j = 0; j < count; ++j)
      periods.emplace_back(1 + static_cast<std::int64_t>(random.next() >> (11 + random.below(53))));
    const Slots slots = choose_slots(periods);
    expect_consistent(slots, periods);
    ASSERT_LE(slots.perimeter, kLongestPeriod) << i;
  }
}

TEST(choose_slots, very_different_periods) {
  std::vector<Nanos> periods{Nanos(1'000'000'007)};
  for (int i = 0; i < 8; ++i) periods.emplace_back(10'007 + 1'013 * i);
  const Slots slots = choose_slots(periods);
  expect_consistent(slots, periods);
  EXPECT_LT(slots.stretch, 0.15);
}

TEST(choose_slots, refuses_bad_input) {
  EXPECT_THROW(choose_slots({}), InputError);
  EXPECT_THROW(choose_slots({0_ms}), InputError);
  EXPECT_THROW(choose_slots({kLongestPeriod + Nanos(1)}), InputError);
  SolveOptions options;
  options.max_repetitions = 0;
  EXPECT_THROW(choose_slots({1_ms}, options), InputError);
  options = {};
  options.slack = -1;
  EXPECT_THROW(choose_slots({1_ms}, options), InputError);
}

}  // namespace
}  // namespace mltcp::scheduler
