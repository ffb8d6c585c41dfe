// Splits a text into parts, words and numbers.
#pragma once

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace mltcp {

/// Returns the parts of `text` between separators, including empty parts.
inline std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Returns the words of `text`, which are separated by one or more characters of `spaces`.
inline std::vector<std::string_view> words_of(std::string_view text, std::string_view spaces) {
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(spaces); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(spaces, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(spaces, end);
  }
  return words;
}

/// Converts `text` to a number. Returns empty if the whole of `text` is not a number in the format of
/// std::from_chars(), or if `Number` cannot represent the value.
template <typename Number>
std::optional<Number> number_from(std::string_view text) {
  Number value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Converts `text` to a number. Returns empty if the whole of `text` is not a number from `min` to `max`.
template <typename Number>
std::optional<Number> number_from(std::string_view text, std::type_identity_t<Number> min,
                                  std::type_identity_t<Number> max) {
  const auto value = number_from<Number>(text);
  return value && *value >= min && *value <= max ? value : std::nullopt;
}

/// Returns the word that `words` lists for `value`; "?" if there is none.
template <typename Value>
std::string_view word_of(std::type_identity_t<Value> value,
                         std::initializer_list<std::pair<Value, std::string_view>> words) {
  const auto found = std::ranges::find(words, value, &std::pair<Value, std::string_view>::first);
  return found == words.end() ? "?" : found->second;
}

}  // namespace mltcp
