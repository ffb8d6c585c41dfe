// Tests that the generator produces the numbers of the published algorithms, and that its distributions have the right
// moments.
#include "mltcp/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <set>

namespace mltcp {
namespace {

// The numbers come from an implementation of SplitMix64 and xoshiro256** in another language. That implementation was
// checked against the sequences that the authors published.
TEST(Random, next__known_sequences) {
  const auto expect = [](std::uint64_t seed, const std::array<std::uint64_t, 4>& numbers) {
    Random random(seed);
    for (const std::uint64_t number : numbers) EXPECT_EQ(random.next(), number) << "seed " << seed;
  };
  expect(0, {11091344671253066420U, 13793997310169335082U, 1900383378846508768U, 7684712102626143532U});
  expect(1, {12966619160104079557U, 9600361134598540522U, 10590380919521690900U, 7218738570589545383U});
  expect(42, {1546998764402558742U, 6990951692964543102U, 12544586762248559009U, 17057574109182124193U});
  expect(~0ULL, {10328197420357168392U, 14156678507024973869U, 9357971779955476126U, 13791585006304312367U});
}

TEST(Random, next__thousandth_number) {
  Random random(1);
  for (int i = 0; i < 999; ++i) random.next();
  EXPECT_EQ(random.next(), 13281533337853546835U);
}

TEST(Random, stream__known_sequence) {
  Random random = Random::stream(7, 3);
  EXPECT_EQ(random.next(), 7703812958920803650U);
  EXPECT_EQ(random.next(), 16361629534288345008U);
  EXPECT_EQ(random.next(), 15582771427974274272U);
}

TEST(Random, stream__differs_by_seed_and_number) {
  std::set<std::uint64_t> firsts;
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    for (std::uint64_t number = 0; number < 50; ++number) firsts.insert(Random::stream(seed, number).next());
  EXPECT_EQ(firsts.size(), 2500U);
}

TEST(Random, next__at_compile_time) {
  constexpr std::uint64_t first = [] {
    Random random(1);
    return random.next();
  }();
  static_assert(first == 12966619160104079557U);
}

TEST(Random, uniform__known_value_range_and_mean) {
  Random random(1);
  EXPECT_DOUBLE_EQ(random.uniform(), 0.7029218331588505);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.005);
}

TEST(Random, below__stays_below_and_is_even) {
  Random random(5);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts.at(random.below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 400);
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, chance__zero_draws_nothing) {
  Random random(9);
  Random untouched(9);
  EXPECT_FALSE(random.chance(0));
  EXPECT_FALSE(random.chance(-1));
  EXPECT_EQ(random.next(), untouched.next());
  EXPECT_TRUE(random.chance(1));
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) hits += random.chance(0.25) ? 1 : 0;
  EXPECT_NEAR(hits, 25'000, 700);
}

TEST(Random, normal__moments) {
  Random random(11);
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  constexpr int n = 200'000;
  for (int i = 0; i < n; ++i) {
    const double value = random.normal();
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(fourth / n, 3, 0.1);
}

}  // namespace
}  // namespace mltcp
