// Tests lists of fields: that they are complete, and which members they visit.
#include "mltcp/base/fields.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mltcp {
namespace {

struct Inner {
  int a = 1;
  double b = 2;
};
constexpr auto fields_of(const Inner* /*type*/) { return list_of<Inner>(field("a", &Inner::a), field("b", &Inner::b)); }

struct Bounds {
  int most = 0;
};
struct Outer {
  std::string name;
  Inner inner{};
  std::optional<Inner> perhaps{};
  int hidden = 7;
  std::vector<Inner> list{};

  [[nodiscard]] bool empty() const { return name.empty(); }
};
constexpr auto fields_of(const Outer* /*type*/) {
  return list_of<Outer>(field("list", &Outer::list), field("name", &Outer::name, Bounds{3}),
                        field("inner", &Outer::inner), field("perhaps", &Outer::perhaps), left_out(&Outer::hidden));
}

TEST(Fields, members__are_counted_whatever_they_are) {
  struct None {};
  struct Other {
    std::array<int, 3> array;
    std::unique_ptr<int> pointer;
    std::optional<std::string> text;
    std::optional<std::uint32_t> number;
    Inner nested;
    enum class Kind { one } kind;
    bool flag : 1;
  };
  static_assert(count_members<None>() == 0);
  static_assert(count_members<Inner>() == 2);
  static_assert(count_members<Outer>() == 5);
  EXPECT_EQ(count_members<Other>(), 7U) << "one that isn't counted would be missed by nobody";
}

TEST(Fields, list__is_visited_in_its_order_but_for_what_is_left_out) {
  std::string visited;
  int bounded = 0;
  for_each_field<Outer>([&](const auto& field) {
    visited += std::string(field.name) + " ";
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field.about)>, Bounds>) bounded += field.about.most;
  });
  EXPECT_EQ(visited, "list name inner perhaps ");
  EXPECT_EQ(bounded, 3);
}

TEST(Fields, member__is_read_and_written_through_its_field) {
  Inner inner;
  for_each_field<Inner>([&](const auto& field) { inner.*field.member += 10; });
  EXPECT_EQ(inner.a, 11);
  EXPECT_EQ(inner.b, 12);
}

TEST(Fields, clash__a_member_or_a_name_that_stands_twice) {
  using internal::each_once;
  static_assert(each_once(field("a", &Inner::a), field("b", &Inner::b)));
  EXPECT_FALSE(each_once(field("a", &Inner::a), field("a", &Inner::b)));
  EXPECT_FALSE(each_once(field("a", &Inner::a), field("b", &Inner::b), field("c", &Inner::a)));
  EXPECT_FALSE(each_once(left_out(&Inner::a), left_out(&Inner::a)));
}

TEST(Fields, struct_without_a_list__has_none) {
  static_assert(HasFields<Inner>);
  static_assert(!HasFields<Bounds>);
  static_assert(!HasFields<int>);
  static_assert(!HasFields<std::string>);
}

}  // namespace
}  // namespace mltcp
