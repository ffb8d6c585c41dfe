// Tests the limits of JSON texts, and whole numbers in them.
#include "mltcp/base/json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>

namespace mltcp {
namespace {

using Json = nlohmann::json;

TEST(beyond_limits, depth__is_that_of_lists_and_objects_within_each_other) {
  const JsonLimits limits{.depth = 3, .values = 100};
  EXPECT_EQ(beyond_limits("[[[]]]", limits), "");
  EXPECT_EQ(beyond_limits("[[[[]]]]", limits), "nests more than 3 levels deep");
  EXPECT_EQ(beyond_limits(R"({"a":[{"b":1}]})", limits), "");
  EXPECT_EQ(beyond_limits(R"({"a":[{"b":[]}]})", limits), "nests more than 3 levels deep");
  EXPECT_EQ(beyond_limits("[[[]],[[]],{},[[]]]", limits), "") << "beside each other";
  EXPECT_EQ(beyond_limits("]]][[[]]]", limits), "") << "no JSON, but that is not for it to say";
}

TEST(beyond_limits, values__are_counted_with_lists_and_objects) {
  const JsonLimits limits{.depth = 3, .values = 5};
  EXPECT_EQ(beyond_limits("[1,2,3,4]", limits), "");
  EXPECT_EQ(beyond_limits("[1,2,3,4,5]", limits), "has more than 5 values");
  EXPECT_EQ(beyond_limits(R"({"a":1,"b":2,"c":3,"d":4})", limits), "");
  EXPECT_EQ(beyond_limits(R"({"a":1,"b":2,"c":3,"d":4,"e":5})", limits), "has more than 5 values");
  EXPECT_EQ(beyond_limits("[[],[],[]]", limits), "has more than 5 values");
  EXPECT_EQ(beyond_limits("{},{},{}", limits), "has more than 5 values");
}

TEST(beyond_limits, strings__hold_no_values) {
  const JsonLimits limits{.depth = 1, .values = 3};
  EXPECT_EQ(beyond_limits(R"(["[[,,,{{,"])", limits), "");
  EXPECT_EQ(beyond_limits(R"(["\"[[,,,"])", limits), "") << "an escaped quotation mark ends none";
  EXPECT_EQ(beyond_limits(R"(["\\",[]])", limits), "nests more than 1 levels deep") << "after an escaped backslash";
  EXPECT_EQ(beyond_limits("[\"\\", limits), "") << "ends within an escape";
}

template <typename T>
std::optional<T> number(const char* text) {
  return whole_number<T>(Json::parse(text));
}

TEST(whole_number, whole_numbers_of_the_type__are_taken) {
  EXPECT_EQ(number<std::uint32_t>("0"), 0U);
  EXPECT_EQ(number<std::uint32_t>("4294967295"), 4294967295U);
  EXPECT_EQ(number<std::int32_t>("-2147483648"), INT32_MIN);
  EXPECT_EQ(number<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(number<std::int64_t>("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(number<std::int64_t>("-9223372036854775808"), INT64_MIN);
}

TEST(whole_number, others__are_none) {
  for (const char* text : {"4294967296", "-1", "1e300", "-1e300", "1e3", "2.0", "0.5", "9223372036854775808",
                           "18446744073709551616", "\"1\"", "null", "true", "[]", "{}"})
    EXPECT_EQ(number<std::uint32_t>(text), std::nullopt) << text;
  EXPECT_EQ(number<std::int32_t>("2147483648"), std::nullopt);
  EXPECT_EQ(number<std::int32_t>("-2147483649"), std::nullopt);
  EXPECT_EQ(number<std::int64_t>("9223372036854775808"), std::nullopt) << "2^63";
  EXPECT_EQ(number<std::uint64_t>("18446744073709551616"), std::nullopt) << "2^64";
  EXPECT_EQ(number<std::uint64_t>("-1"), std::nullopt);
}

TEST(whole_number, bounds__belong_to_the_range) {
  EXPECT_EQ(whole_number(Json(3), 3, 5), 3);
  EXPECT_EQ(whole_number(Json(5), 3, 5), 5);
  EXPECT_EQ(whole_number(Json(2), 3, 5), std::nullopt);
  EXPECT_EQ(whole_number(Json(6), 3, 5), std::nullopt);
  EXPECT_EQ(whole_number(Json(-4), -4, -4), -4);
}

}  // namespace
}  // namespace mltcp
