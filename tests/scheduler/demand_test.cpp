// Demands of jobs on a link.
#include "mltcp/scheduler/demand.h"

#include <gtest/gtest.h>

#include "mltcp/base/error.h"

namespace mltcp::scheduler {
namespace {

using namespace literals;

TEST(demand, check__refuses_bursts_out_of_order_or_period) {
  EXPECT_NO_THROW(check({100_ms, {{0_ms, 20_ms, Rate(5)}, {20_ms, 100_ms, Rate(7)}}}));
  EXPECT_THROW(check({0_ms, {}}), InputError);
  EXPECT_THROW(check({100_ms, {{20_ms, 20_ms, Rate(5)}}}), InputError);
  EXPECT_THROW(check({100_ms, {{20_ms, 40_ms, Rate(5)}, {30_ms, 50_ms, Rate(5)}}}), InputError);
  EXPECT_THROW(check({100_ms, {{20_ms, 101_ms, Rate(5)}}}), InputError);
  EXPECT_THROW(check({100_ms, {{20_ms, 30_ms, Rate(0)}}}), InputError);
}

TEST(demand, sums__of_two_bursts) {
  const Demand demand{100_ms, {{0_ms, 20_ms, Rate(1'000)}, {50_ms, 60_ms, Rate(3'000)}}};
  EXPECT_EQ(busy_time(demand), 30_ms);
  EXPECT_DOUBLE_EQ(bits(demand), 50);
  EXPECT_EQ(peak(demand), Rate(3'000));
  EXPECT_EQ(peak(multiplied(demand, 3)), Rate(9'000));
}

}  // namespace
}  // namespace mltcp::scheduler
