// JSON from outside, bounded before it is parsed: a parser that keeps what it reads takes up to a hundred times the
// bytes of a text that is made for that ("[[[[..." or "[],[],..."), so depth and number of values are counted first,
// in one pass over the text that keeps nothing. Of the library that parses, nothing is needed here.
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

/// Of one kind of document.
struct JsonLimits {
  std::size_t depth = 0;   ///< objects and lists within each other
  std::size_t values = 0;  ///< objects, lists and what is in them, keys not counted
};

/// What the text has more of than `limits` allow, as in "nests more than 16 levels deep"; empty if it keeps to them.
/// Whether it is JSON at all is the parser's to find out: of text that is none, no parser gets to see more than this
/// has counted.
std::string beyond_limits(std::string_view json, const JsonLimits& limits);

/// The value as a whole number from `least` to `most`, if it is one: 1e300, 2.0, 2^64, -1 for an unsigned type, "1" and
/// null are none. `Json` is nlohmann::json, whose get() would convert each of them but the last two, some by undefined
/// behaviour.
template <std::integral T, typename Json>
requires(!std::same_as<T, bool>) std::optional<T> whole_number(const Json& value,
                                                               T least = std::numeric_limits<T>::min(),
                                                               T most = std::numeric_limits<T>::max()) {
  const auto within = [&](auto number) -> std::optional<T> {
    if (std::cmp_less(number, least) || std::cmp_greater(number, most)) return std::nullopt;
    return static_cast<T>(number);
  };
  if (value.is_number_unsigned()) return within(value.template get<std::uint64_t>());
  if (value.is_number_integer()) return within(value.template get<std::int64_t>());
  return std::nullopt;
}

}  // namespace mltcp
