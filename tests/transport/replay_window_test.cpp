// Tests the window of packet numbers that a sealed connection has received. Compares the window with a set of all
// received numbers, and tests its lower edge.
#include "mltcp/transport/internal/replay_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <unordered_set>

#include "mltcp/base/random.h"

namespace mltcp::transport {
namespace {

TEST(ReplayWindow, number__is_known_once_it_was_added) {
  ReplayWindow window;
  for (const std::uint64_t number : {0u, 1u, 63u, 64u, 4095u}) {
    EXPECT_FALSE(window.contains(number));
    window.add(number);
    EXPECT_TRUE(window.contains(number));
  }
  EXPECT_FALSE(window.contains(2));
  EXPECT_FALSE(window.contains(4094));
  EXPECT_FALSE(window.contains(4096));
}

TEST(ReplayWindow, numbers_below_it__count_as_known) {
  ReplayWindow window;
  constexpr std::uint64_t top = 1'000'000;
  window.add(top);
  EXPECT_FALSE(window.contains(top - ReplayWindow::kNumbers));
  EXPECT_TRUE(window.contains(top - ReplayWindow::kNumbers - 64));
  EXPECT_TRUE(window.contains(0));
  window.add(0);  // has no effect, because the number is below the window
  EXPECT_FALSE(window.contains(top - 1));
  EXPECT_FALSE(window.contains(top + 1));
}

TEST(ReplayWindow, leap__leaves_nothing_of_what_was_before) {
  for (const std::uint64_t leap : {std::uint64_t{64}, ReplayWindow::kNumbers, ReplayWindow::kNumbers + 64,
                                   std::uint64_t{1} << 22, std::uint64_t{1} << 40}) {
    ReplayWindow window;
    for (std::uint64_t number = 0; number < 2 * ReplayWindow::kNumbers; ++number) window.add(number);
    const std::uint64_t top = 2 * ReplayWindow::kNumbers - 1 + leap;
    window.add(top);
    const std::uint64_t first = std::max(2 * ReplayWindow::kNumbers, top - ReplayWindow::kNumbers);
    for (std::uint64_t number = first; number < top; ++number) EXPECT_FALSE(window.contains(number)) << number;
    EXPECT_TRUE(window.contains(top));
  }
}

TEST(ReplayWindow, random_numbers__are_taken_once_and_all_that_are_in_it) {
  Random random(1);
  ReplayWindow window;
  std::unordered_set<std::uint64_t> added;
  std::uint64_t top = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t base = top + (random.below(2000) == 0 ? random.below(10'000) : 4);
    const std::uint64_t number = base - std::min(base, random.below(ReplayWindow::kNumbers + 200));
    if (!window.contains(number)) {
      EXPECT_TRUE(added.insert(number).second) << number;
      window.add(number);
    } else if (number + ReplayWindow::kNumbers >= top) {
      EXPECT_TRUE(added.count(number) > 0) << number;
    }
    top = std::max(top, number);
  }
}

}  // namespace
}  // namespace mltcp::transport
