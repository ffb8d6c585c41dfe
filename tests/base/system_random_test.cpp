// Tests that the system's random numbers differ within one source, after the source is refilled, and between two
// sources.
#include "mltcp/base/system_random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <set>

namespace mltcp {
namespace {

TEST(SystemRandom, next__never_the_same_twice) {
  std::set<std::uint64_t> seen;
  for (int source = 0; source < 20; ++source) {
    SystemRandom random;
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(seen.insert(random.next()).second);
  }
}

TEST(SystemRandom, next__uses_every_bit) {
  SystemRandom random;
  std::uint64_t ever_set = 0;
  std::uint64_t ever_clear = 0;
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t drawn = random.next();
    ever_set |= drawn;
    ever_clear |= ~drawn;
  }
  EXPECT_EQ(std::popcount(ever_set), 64);
  EXPECT_EQ(std::popcount(ever_clear), 64);
}

}  // namespace
}  // namespace mltcp
