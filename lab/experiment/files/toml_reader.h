// Reads values from TOML files, checks their ranges, and reports errors as "FILE:LINE: KEY: cause; cure". Base class of
// the readers of experiment and cluster files. Not installed.
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

/// A value with its position in a file, for messages.
struct Item {
  const toml::node* node = nullptr;
  std::string key;
  std::uint32_t line = 0;
  /// "FILE:LINE: KEY" for messages if the value is from another file than the one being read; empty if not.
  std::string elsewhere{};
};

/// Lines from this number on stand for overrides: line kFirstOverrideLine + i means override i. No file has so many
/// lines.
inline constexpr std::uint32_t kFirstOverrideLine = 1U << 31;
inline constexpr std::size_t kMaxNameBytes = 100;
inline constexpr Rate kMinRate(1'000);  // 1 kbps

/// Applies `overrides` to the values of a file. Throws InputError "ORIGIN: KEY: cause; cure".
void apply_overrides(toml::table& root, const std::vector<Override>& overrides);

class TomlReader {
 public:
  /// `overrides` is used in messages about overridden values, and must outlive the reader.
  explicit TomlReader(std::string file, const std::vector<Override>* overrides = nullptr)
      : file_(std::move(file)), overrides_(overrides) {}
  virtual ~TomlReader() = default;
  TomlReader(const TomlReader&) = delete;
  TomlReader& operator=(const TomlReader&) = delete;

 protected:
  /// Throws InputError "FILE:LINE: KEY: cause; cure".
  [[noreturn]] void fail(std::uint32_t line, std::string_view key, std::string_view cause, std::string_view cure) const;
  [[noreturn]] void fail(const Item& item, std::string_view cause, std::string_view cure) const;
  /// Returns the position of a line for messages: "FILE:LINE", or the origin of an override.
  [[nodiscard]] std::string place(std::uint32_t line) const;
  [[nodiscard]] std::string place(const Item& item) const;
  static std::string path(std::string_view prefix, std::string_view key) {
    return prefix.empty() ? std::string(key) : fmt::format("{}.{}", prefix, key);
  }
  /// Returns the value of `key` in `table`; empty if there is none. `prefix` is the path of the table, such as
  /// "job[2]"; empty at the top level.
  static std::optional<Item> find(const toml::table& table, std::string_view prefix, std::string_view key);
  /// Returns the value of a required key in the table `item`. Throws InputError if the key is missing.
  Item required(const Item& item, const toml::table& keys, std::string_view key, std::string_view example) const;
  /// Throws InputError if `table` has a key that is not in `known`.
  void check_keys(const toml::table& table, std::string_view prefix, const std::vector<std::string>& known) const;
  // The next functions read a value of a given type and range. Their errors contain `example` in the cure.
  const toml::table& table(const Item& item, std::string_view example) const;
  const std::string& text(const Item& item, std::string_view example) const;
  std::string name_text(const Item& item) const;
  std::int64_t whole(const Item& item, std::int64_t min, std::int64_t max) const;
  std::uint32_t count(const Item& item, std::int64_t min, std::int64_t max) const {
    return static_cast<std::uint32_t>(whole(item, min, max));
  }
  /// Returns the value of the word in `item`, which must be one of `known`. Errors give the first word as an example.
  template <typename Value>
  Value one_of(const Item& item, const std::vector<std::pair<std::string_view, Value>>& known) const {
    std::vector<std::string> words;
    for (const auto& [word, value] : known) words.push_back(fmt::format("\"{}\"", word));
    const std::string& written = text(item, known.front().first);
    for (const auto& [word, value] : known)
      if (word == written) return value;
    fail(item, fmt::format("{} is not known", in_quotes(written)), fmt::format("write {}", either(words)));
  }
  /// Returns the elements of an array of `what`, such as "tables". Errors contain `example` in the cure.
  std::vector<Item> elements(const Item& item, std::string_view what, std::string_view example) const;
  double decimal(const Item& item, std::string_view example) const;
  double probability(const Item& item) const;
  double factor(const Item& item, double max) const;
  bool truth(const Item& item) const;
  /// Returns the parsed value of a text with a unit. A number without a unit is a common mistake and gets a specific
  /// error.
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
  Nanos duration(const Item& item, std::string_view example, Nanos max) const;
  Rate rate(const Item& item) const;
  Bytes bytes(const Item& item, std::string_view example, Bytes max) const;
  static bool contains(const std::vector<std::string>& list, std::string_view word) {
    return std::ranges::find(list, word) != list.end();
  }
  /// Throws InputError for `item` with the objection `wrong`, which is "cause; cure".
  [[noreturn]] void throw_objection(const Item& item, std::string_view wrong) const;
  /// Returns the words as a list such as "a, b or c".
  static std::string either(std::vector<std::string> words);
  static std::uint32_t line_of(const toml::node& node, std::uint32_t otherwise);
  /// Returns work(). If work() throws an InputError, which is about the value of `item`, adds the position of `item`.
  template <typename Work>
  auto at(const Item& item, const Work& work) const {
    try {
      return work();
    } catch (const InputError& error) {
      throw_objection(item, error.what());
    }
  }
  /// Returns a more specific cure for an unknown key. If empty, the error lists the known keys.
  [[nodiscard]] virtual std::string hint(std::string_view /*prefix*/, std::string_view /*key*/) const { return {}; }

  std::string file_;

 private:
  const std::vector<Override>* overrides_;
};

}  // namespace mltcp::experiment
