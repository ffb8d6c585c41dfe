// Reads JSON values (nlohmann-json), with error messages for the author of the file. Not installed.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/json.h"
#include "mltcp/base/text.h"
#include "mltcp/base/units.h"

namespace mltcp {

/// Maximum time in a file. It is far longer than any run, and so small that sums and small multiples do not overflow.
inline constexpr Nanos kMaxTime(std::int64_t{1} << 60);

/// kIsList: whether a type is a list. kIsMaybe: whether a type is an optional, which may be null.
template <typename T>
inline constexpr bool kIsList = false;
template <typename T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <typename T>
inline constexpr bool kIsMaybe = false;
template <typename T>
inline constexpr bool kIsMaybe<std::optional<T>> = true;

/// Returns the message of nlohmann-json without its internals, as in "line 1, column 5: syntax error ...".
inline std::string problem_of(const nlohmann::json::exception& error) {
  std::string_view text = error.what();
  for (const std::string_view lead : {"] ", "parse error at "})
    if (const auto at = text.find(lead); at != std::string_view::npos) text.remove_prefix(at + lead.size());
  return std::string(text);
}

/// Returns `value` as an integer from `min` to `max`. Throws InputError that names `key` for any other value:
/// "\"flows\" is -1, not a whole number from 0 to 255".
template <std::integral T>
T whole_value(const nlohmann::json& value, const char* key, T min = std::numeric_limits<T>::min(),
              T max = std::numeric_limits<T>::max()) {
  if (const auto number = whole_number<T>(value, min, max)) return *number;
  throw InputError(fmt::format("\"{}\" is {}, not a whole number from {} to {}", key,
                               value.is_structured() ? value.type_name() : in_quotes(value.dump(-1, ' ', true)), min,
                               max));
}
/// Returns field `key` of `object`, checked by whole_value(). Throws InputError if the field is missing.
template <std::integral T>
T whole_field(const nlohmann::json& object, const char* key, T min = std::numeric_limits<T>::min(),
              T max = std::numeric_limits<T>::max()) {
  const auto field = object.find(key);
  if (field == object.end()) throw InputError(fmt::format("\"{}\" is missing", key));
  return whole_value<T>(*field, key, min, max);
}

}  // namespace mltcp
