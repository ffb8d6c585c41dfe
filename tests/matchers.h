// Includes GoogleTest and makes its most used matchers available in namespace mltcp without a prefix.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mltcp {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

/// Matches a text that contains all given parts.
template <typename... Part>
auto HasAll(const Part&... parts) {
  return AllOf(HasSubstr(parts)...);
}

}  // namespace mltcp
