#include "mltcp/base/nearest.h"

#include <gtest/gtest.h>

namespace mltcp {
namespace {

const std::vector<std::string> words{"run", "report", "replay", "schedule", "gen"};

TEST(Nearest, edits__are_letters_in_out_replaced_and_swapped) {
  for (const char* const word : {"ru", "runn", "ran", "rnu", "urn"}) EXPECT_EQ(nearest(word, words), "run") << word;
  EXPECT_EQ(nearest("shcedlue", words), "schedule");
  EXPECT_EQ(nearest("reprot", words), "report");
}

TEST(Nearest, far__is_none) {
  EXPECT_EQ(nearest("bogus", words), std::nullopt) << "three edits from gen";
  EXPECT_EQ(nearest("schedxyz", words), std::nullopt) << "three edits of eight letters";
  EXPECT_EQ(nearest("schedulexyz", words), "schedule") << "three of eleven";
  EXPECT_EQ(nearest(std::string(38, 's') + "run", words), std::nullopt);
  EXPECT_EQ(nearest("run", {}), std::nullopt);
}

TEST(Nearest, as_near__is_the_first) { EXPECT_EQ(nearest("x", {"ab", "cd"}), "ab"); }

}  // namespace
}  // namespace mltcp
