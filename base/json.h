// Checks untrusted JSON before it is parsed. For each byte of a malicious text ("[[[[..." or "[],[],..."), a DOM parser
// may need a hundred bytes of memory. So nesting depth and number of values are counted first. This takes one pass
// without allocation, and does not depend on the JSON library.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mltcp {

/// Limits for one kind of document.
struct JsonLimits {
  std::size_t depth = 0;   ///< nesting depth of objects and arrays
  std::size_t values = 0;  ///< number of objects, arrays and values in them, not counting keys
};

/// Returns which limit `json` exceeds, such as "nests more than 16 levels deep"; empty if none. Does not check whether
/// `json` is valid. A parser stops at the first error, so it never reads more than is counted here.
std::string beyond_limits(std::string_view json, const JsonLimits& limits);

/// Returns `value` if it is an integer from `min` to `max`; empty for anything else, such as 1e300, 2.0, 2^64, -1
/// for an unsigned type, "1" or null. `Json` is nlohmann::json, whose get() would convert most of these, some by
/// undefined behaviour.
template <std::integral T, typename Json>
requires(!std::same_as<T, bool>) std::optional<T> whole_number(const Json& value, T min = std::numeric_limits<T>::min(),
                                                               T max = std::numeric_limits<T>::max()) {
  const auto within = [&](auto number) -> std::optional<T> {
    if (std::cmp_less(number, min) || std::cmp_greater(number, max)) return std::nullopt;
    return static_cast<T>(number);
  };
  if (value.is_number_unsigned()) return within(value.template get<std::uint64_t>());
  if (value.is_number_integer()) return within(value.template get<std::int64_t>());
  return std::nullopt;
}

}  // namespace mltcp
