// Tests how steps and ranks are parsed from a user's options.
#include "mltcp/lab/workload/replay_choice.h"

#include "../matchers.h"
#include "mltcp/base/error.h"

namespace mltcp::workload {
namespace {

TEST(ReplayChoice, steps_and_ranks__are_read) {
  EXPECT_TRUE(StepChoice::from_text("typical").typical);
  EXPECT_FALSE(StepChoice::from_text("all").range.has_value());
  EXPECT_EQ(StepChoice::from_text("2").range, std::pair(2U, 2U));
  EXPECT_EQ(StepChoice::from_text("1-3").range, std::pair(1U, 3U));
  for (const std::string wrong : {"", "some", "3-1", "1-", "-1"})
    EXPECT_THROW(StepChoice::from_text(wrong), InputError);
  EXPECT_THAT(ranks_from_text("0-2,6"), ElementsAre(0, 1, 2, 6));
  for (const std::string wrong : {"", "a", "0,,1", "0-4000000000"}) EXPECT_THROW(ranks_from_text(wrong), InputError);
}

}  // namespace
}  // namespace mltcp::workload
