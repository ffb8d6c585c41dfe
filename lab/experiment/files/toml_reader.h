// Reads values from TOML files, with bounds checks and errors "FILE:LINE: KEY: cause; cure". Base of the readers of
// experiment and cluster files. Not installed.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/files/toml.h"

namespace mltcp::experiment {

/// A value and its position, for messages.
struct Item {
  const toml::node* node = nullptr;
  std::string key;
  std::uint32_t line = 0;
  std::string elsewhere{};  ///< "FILE:LINE: KEY" if it comes from another file, used in messages
};

/// Line numbers from this one on denote overrides by index; larger than any line number of a file.
inline constexpr std::uint32_t kFirstOverrideLine = 1U << 31;
inline constexpr std::size_t kMaxNameBytes = 100;
inline constexpr Rate kMinRate(1'000);  // 1 kbps

/// Applies `overrides` to the file's values. Throws InputError "ORIGIN: KEY: cause; cure".
void apply_overrides(toml::table& root, const std::vector<Override>& overrides);

class TomlReader {
 public:
  /// `overrides`, for messages about values that override the file's, must outlive the reader.
  explicit TomlReader(std::string file, const std::vector<Override>* overrides = nullptr)
      : file_(std::move(file)), overrides_(overrides) {}
  virtual ~TomlReader() = default;
  TomlReader(const TomlReader&) = delete;
  TomlReader& operator=(const TomlReader&) = delete;

 protected:
  /// Throws InputError "FILE:LINE: KEY: cause; cure".
  [[noreturn]] void fail(std::uint32_t line, std::string_view key, std::string_view cause, std::string_view cure) const;
  [[noreturn]] void fail(const Item& item, std::string_view cause, std::string_view cure) const;
  /// A line's place for messages: "FILE:LINE", or the origin of its override.
  [[nodiscard]] std::string place(std::uint32_t line) const;
  [[nodiscard]] std::string place(const Item& item) const;
  static std::string path(std::string_view prefix, std::string_view key) {
    return prefix.empty() ? std::string(key) : fmt::format("{}.{}", prefix, key);
  }
  /// The value of `key` in `table`, whose own path is `prefix` ("job[2]", or empty at the top).
  static std::optional<Item> find(const toml::table& table, std::string_view prefix, std::string_view key);
  /// The value of a required key of the table `item`; throws InputError if it is missing.
  Item required(const Item& item, const toml::table& keys, std::string_view key, std::string_view example) const;
  /// Refuses unknown keys.
  void check_keys(const toml::table& table, std::string_view prefix, const std::vector<std::string>& known) const;
  // These read a value of a given type and range; errors contain `example` in the cure.
  const toml::table& table(const Item& item, std::string_view example) const;
  const std::string& text(const Item& item, std::string_view example) const;
  std::string name_text(const Item& item) const;
  std::int64_t whole(const Item& item, std::int64_t least, std::int64_t most) const;
  std::uint32_t count(const Item& item, std::int64_t least, std::int64_t most) const {
    return static_cast<std::uint32_t>(whole(item, least, most));
  }
  /// The value of the word written, which must be one of `known`; the first one is the example.
  template <typename Value>
  Value one_of(const Item& item, const std::vector<std::pair<std::string_view, Value>>& known) const {
    std::vector<std::string> words;
    for (const auto& [word, value] : known) words.push_back(fmt::format("\"{}\"", word));
    const std::string& written = text(item, known.front().first);
    for (const auto& [word, value] : known)
      if (word == written) return value;
    fail(item, fmt::format("{} is not known", in_quotes(written)), fmt::format("write {}", either(words)));
  }
  /// The elements of an array of `what`; errors contain `example` in the cure.
  std::vector<Item> elements(const Item& item, std::string_view what, std::string_view example) const;
  double decimal(const Item& item, std::string_view example) const;
  double probability(const Item& item) const;
  double factor(const Item& item, double most) const;
  bool truth(const Item& item) const;
  /// A text with a unit. A bare number, the likely mistake, gets a specific hint.
  template <typename Parse>
  auto with_unit(const Item& item, std::string_view example, Parse parse) const {
    const auto* integer = item.node->as_integer();
    const auto* floating = item.node->as_floating_point();
    if (integer != nullptr || floating != nullptr)
      fail(item,
           integer != nullptr ? fmt::format("the number {} has no unit", integer->get())
                              : fmt::format("the number {} has no unit", floating->get()),
           fmt::format("write a text with a unit, such as \"{}\"", example));
    const std::string& written = text(item, example);
    try {
      return parse(written);
    } catch (const InputError& error) {
      throw InputError(one_line(fmt::format("{}: {}: {}", place(item.line), item.key, error.what())));
    }
  }
  Nanos duration(const Item& item, std::string_view example, Nanos most) const;
  Rate rate(const Item& item) const;
  Bytes bytes(const Item& item, std::string_view example, Bytes most) const;
  static bool contains(const std::vector<std::string>& list, std::string_view word) {
    return std::ranges::find(list, word) != list.end();
  }
  /// `wrong` is "cause; cure".
  [[noreturn]] void throw_objection(const Item& item, std::string_view wrong) const;
  /// "a, b or c".
  static std::string either(std::vector<std::string> words);
  static std::uint32_t line_of(const toml::node& node, std::uint32_t otherwise);
  /// Returns work(); its InputErrors, which are about the value of `item`, get the position of `item`.
  template <typename Work>
  auto at(const Item& item, const Work& work) const {
    try {
      return work();
    } catch (const InputError& error) {
      throw_objection(item, error.what());
    }
  }
  /// A more specific cure for an unknown key; empty: list the known keys.
  [[nodiscard]] virtual std::string hint(std::string_view /*prefix*/, std::string_view /*key*/) const { return {}; }

  std::string file_;

 private:
  const std::vector<Override>* overrides_;
};

}  // namespace mltcp::experiment
