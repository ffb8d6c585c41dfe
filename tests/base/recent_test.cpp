#include "mltcp/base/recent.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace mltcp {
namespace {

struct Owner {
  std::map<std::uint32_t, int> all;
  Recent<int> recent;
  int looks = 0;

  int& at(std::uint32_t number) {
    return recent.get(number, [&]() -> int& {
      ++looks;
      return all[number];
    });
  }
};

TEST(Recent, get__looks_up_once_until_another_takes_the_place) {
  Owner owner;
  owner.at(3) = 7;
  EXPECT_EQ(owner.at(3), 7);
  EXPECT_EQ(owner.looks, 1);
  owner.at(3 + 16) = 8;
  EXPECT_EQ(owner.at(3), 7);
  EXPECT_EQ(owner.at(4), 0);
  EXPECT_EQ(owner.at(4), 0);
  EXPECT_EQ(owner.looks, 4);
}

TEST(Recent, copies_and_moves__point_to_their_own_entries) {
  Owner owner;
  owner.at(3) = 7;
  Owner copy = owner;
  copy.at(3) = 8;
  EXPECT_EQ(owner.at(3), 7);
  owner = copy;
  owner.at(3) = 9;
  EXPECT_EQ(copy.at(3), 8);
  Owner moved = std::move(copy);
  copy.at(3) = 1;  // a moved-from object allocates new memory
  EXPECT_EQ(moved.at(3), 8);
  copy = std::move(moved);
  moved.at(3) = 2;
  EXPECT_EQ(copy.at(3), 8);
}

}  // namespace
}  // namespace mltcp
