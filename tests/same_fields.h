// Compares two structs field by field, recursively, by their lists of fields (base/fields.h).
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/fields.h"

namespace mltcp {

template <HasFields T>
void expect_same_fields(const std::vector<T>& a, const std::vector<T>& b, const std::string& of);
template <HasFields T>
void expect_same_fields(const std::optional<T>& a, const std::optional<T>& b, const std::string& of);

/// Expects every field of `a` in the list of T to equal the same field of `b`. `of` names the structs in messages.
template <typename T>
void expect_same_fields(const T& a, const T& b, const std::string& of = "") {
  if constexpr (HasFields<T>)
    for_each_field<T>(
        [&](const auto& field) { expect_same_fields(a.*field.member, b.*field.member, of + "." + field.name); });
  else
    EXPECT_EQ(a, b) << of;
}
template <HasFields T>
void expect_same_fields(const std::vector<T>& a, const std::vector<T>& b, const std::string& of) {
  ASSERT_EQ(a.size(), b.size()) << of;
  for (std::size_t i = 0; i < a.size(); ++i) expect_same_fields(a[i], b[i], of + "[" + std::to_string(i) + "]");
}
template <HasFields T>
void expect_same_fields(const std::optional<T>& a, const std::optional<T>& b, const std::string& of) {
  ASSERT_EQ(a.has_value(), b.has_value()) << of;
  if (a) expect_same_fields(*a, *b, of);
}

}  // namespace mltcp
