// Tests the aggressiveness functions: the six functions of the papers, tables, and refused settings.
#include "mltcp/cc/aggressiveness.h"

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp::cc::aggressiveness_test {
namespace {

using Point = Aggressiveness::Point;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

TEST(Aggressiveness, default__is_the_paper_s) {
  const Aggressiveness f;
  EXPECT_DOUBLE_EQ(f(0), 0.25);
  EXPECT_DOUBLE_EQ(f(0.5), 1.125);
  EXPECT_DOUBLE_EQ(f(1), 2.0);
}

TEST(Aggressiveness, validate__takes_rising_falling_and_flat) {
  EXPECT_NO_THROW((Aggressiveness{1.75, 0.25}.validate()));
  EXPECT_NO_THROW((Aggressiveness{-1.75, 2}.validate()));
  EXPECT_NO_THROW((Aggressiveness{0, 1}.validate()));
}

TEST(Aggressiveness, validate__refuses_what_is_not_above_zero_somewhere) {
  for (const Aggressiveness& f :
       {Aggressiveness{1, 0}, Aggressiveness{1, -1}, Aggressiveness{-1, 1}, Aggressiveness{-2, 1},
        Aggressiveness{kInfinity, 1}, Aggressiveness{1, kInfinity}, Aggressiveness{kNotANumber, 1},
        Aggressiveness{1, kNotANumber}, Aggressiveness{std::numeric_limits<double>::max(), kInfinity}}) {
    EXPECT_THROW(f.validate(), InputError);
  }
}

TEST(Aggressiveness, validate__a_sum_beyond_all_numbers_is_refused) {
  const Aggressiveness f{std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  EXPECT_THROW(f.validate(), InputError) << "F(1) is infinite";
}

TEST(Aggressiveness, validate__names_the_numbers_and_a_cure) {
  const std::string refused = refusal_of([&] { Aggressiveness{-2, 1}.validate(); });
  EXPECT_THAT(refused, HasAll("F(1) is -1", "F1"));
}

TEST(Aggressiveness, named__are_the_six_of_the_papers) {
  const double x = 0.4;
  EXPECT_DOUBLE_EQ(Aggressiveness::named("F1")(x), 1.75 * x + 0.25);
  EXPECT_DOUBLE_EQ(Aggressiveness::named("F2")(x), 1.75 * x * x + 0.25);
  EXPECT_DOUBLE_EQ(Aggressiveness::named("F3")(x), 1 / (4 - 3.5 * x));
  EXPECT_DOUBLE_EQ(Aggressiveness::named("F4")(x), -1.75 * x * x + 3.5 * x + 0.25);
  EXPECT_DOUBLE_EQ(Aggressiveness::named("F5")(x), 2 - 1.75 * x);
  EXPECT_DOUBLE_EQ(Aggressiveness::named("F6")(x), 2 - 1.75 * x * x);
  for (const char* name : {"F1", "F2", "F3", "F4", "F5", "F6"}) EXPECT_NO_THROW(Aggressiveness::named(name).validate());
  for (const char* rising : {"F1", "F2", "F3", "F4"}) {
    EXPECT_DOUBLE_EQ(Aggressiveness::named(rising)(0), 0.25) << rising;
    EXPECT_DOUBLE_EQ(Aggressiveness::named(rising)(1), 2) << rising;
  }
  EXPECT_THROW(Aggressiveness::named("F7"), InputError);
}

TEST(Aggressiveness, validate__looks_between_the_ends) {
  // The points at 0 and 1 are above 0, but the point between them is below 0.
  const std::vector<Point> dip{{0, 1}, {0.5, -0.1}, {1, 1}};
  EXPECT_THROW(Aggressiveness::table(dip).validate(), InputError);
}

TEST(Aggressiveness, least__is_that_of_the_whole_iteration) {
  for (const char* name : {"F1", "F2", "F3", "F4", "F5", "F6"})
    EXPECT_DOUBLE_EQ(Aggressiveness::named(name).least(), 0.25) << name;
  EXPECT_DOUBLE_EQ(Aggressiveness(0, 3).least(), 3.0);
  EXPECT_DOUBLE_EQ(Aggressiveness::from_text("polynomial 1 -2 2").least(), 0.5) << "between the ends";
  const std::array<Aggressiveness::Point, 3> points{{{0, 1}, {0.3, 0.125}, {1, 2}}};
  EXPECT_DOUBLE_EQ(Aggressiveness::table(points).least(), 0.125);
}

TEST(Aggressiveness, table__is_straight_between_its_points) {
  const std::vector<Point> points{{0, 0.5}, {0.25, 0.5}, {0.5, 1.5}, {1, 2}};
  const Aggressiveness f = Aggressiveness::table(points);
  EXPECT_NO_THROW(f.validate());
  for (const Point& point : points) EXPECT_DOUBLE_EQ(f(point.x), point.gain) << point.x;
  EXPECT_DOUBLE_EQ(f(0.125), 0.5);
  EXPECT_DOUBLE_EQ(f(0.375), 1.0);
  EXPECT_DOUBLE_EQ(f(0.75), 1.75);
}

TEST(Aggressiveness, table__refuses_what_is_no_function_of_the_ratio) {
  const auto table = [](std::vector<Point> points) { return Aggressiveness::table(points); };
  EXPECT_THROW(table({}), InputError);
  EXPECT_THROW(table({{0, 1}}), InputError);
  EXPECT_THROW(table({{0.1, 1}, {1, 1}}), InputError);
  EXPECT_THROW(table({{0, 1}, {0.9, 1}}), InputError);
  EXPECT_THROW(table({{0, 1}, {0.5, 1}, {0.5, 2}, {1, 1}}), InputError);
  EXPECT_THROW(table({{0, 1}, {kNotANumber, 1}, {1, 1}}), InputError);
  EXPECT_THROW(table(std::vector<Point>(Aggressiveness::kMaxPoints + 1, Point{0, 1})), InputError);
}

}  // namespace
}  // namespace mltcp::cc::aggressiveness_test
