// Reads an object of a JSON file or message field by field. Validates each field that is read. Ignores all other
// fields, unless only() refuses them. Errors are InputErrors of one line with file, position, cause and cure. Not
// installed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/json.h"
#include "mltcp/base/json/provenance.h"
#include "mltcp/base/units.h"

namespace mltcp {

/// Stores references to the JSON value, `file` and `cure`, which must outlive this object.
class JsonObject {
 public:
  /// `file` and `cure` appear in error messages. `place` is the position of the object in the file; empty for the root.
  JsonObject(const nlohmann::json& json, const std::string& file, const std::string& cure, std::string place);

  [[nodiscard]] bool has(std::string_view key) const { return json_.contains(key); }
  [[nodiscard]] bool is_null(std::string_view key) const { return has(key) && json_[key].is_null(); }
  [[nodiscard]] std::string text(std::string_view key) const;
  /// Returns text(key), or an empty text if the field is null or missing.
  [[nodiscard]] std::string later_text(std::string_view key) const {
    return has(key) && !is_null(key) ? text(key) : std::string();
  }
  [[nodiscard]] bool truth(std::string_view key) const;
  /// Returns a number of magnitude at most 1e18, the limit for measurements.
  [[nodiscard]] double real(std::string_view key) const;
  [[nodiscard]] double real(std::string_view key, double max, double min = 0) const;
  /// Returns real(key); empty if the field is null or missing.
  [[nodiscard]] std::optional<double> later_real(std::string_view key) const;
  [[nodiscard]] std::uint64_t whole(std::string_view key, std::uint64_t max = std::numeric_limits<std::uint64_t>::max(),
                                    std::uint64_t min = 0) const;
  [[nodiscard]] std::uint32_t number(std::string_view key,
                                     std::uint32_t max = std::numeric_limits<std::uint32_t>::max(),
                                     std::uint32_t min = 0) const {
    return static_cast<std::uint32_t>(whole(key, max, min));
  }
  [[nodiscard]] Nanos nanos(std::string_view key) const;
  /// Returns a list of texts. Throws InputError if it has more than `max` elements.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key, std::size_t max = kMaxListed) const;
  [[nodiscard]] std::vector<double> reals(std::string_view key) const;
  [[nodiscard]] std::vector<Nanos> nanos_list(std::string_view key) const;
  [[nodiscard]] std::vector<std::uint64_t> whole_list(std::string_view key) const;
  [[nodiscard]] std::size_t length(std::string_view key) const { return list(key).size(); }
  [[nodiscard]] JsonObject object(std::string_view key) const;
  [[nodiscard]] std::vector<JsonObject> objects(std::string_view key, std::size_t max = kMaxListed) const;
  /// Like objects(), but returns an empty list if the field is missing.
  [[nodiscard]] std::vector<JsonObject> later_objects(std::string_view key) const;
  /// Returns a list of lists, each with `size` non-negative integers.
  [[nodiscard]] std::vector<std::vector<std::uint64_t>> tuples(std::string_view key, std::size_t size) const;

  [[nodiscard]] std::vector<std::string> keys() const;

  [[nodiscard]] const nlohmann::json& at(std::string_view key) const;
  /// Throws InputError if the object has a key that is not in `keys`. The message names the nearest key of `keys`.
  void only(std::initializer_list<std::string_view> keys) const;

  [[nodiscard]] std::string path_of(std::string_view key) const;
  /// Returns "FILE: PLACE" for messages.
  [[nodiscard]] std::string where(std::string_view key) const;
  [[noreturn]] void fail(std::string_view place, std::string_view problem) const { fail(place, problem, cure_); }
  /// Throws InputError with `cure` instead of the constructor's `cure`. An empty key refers to the object itself.
  [[noreturn]] void refuse(std::string_view key, std::string_view problem, std::string_view cure) const {
    fail(path_of(key), problem, cure);
  }

 private:
  [[noreturn]] void fail(std::string_view place, std::string_view problem, std::string_view cure) const;
  static constexpr auto kMaxListed = std::numeric_limits<std::size_t>::max();

  [[nodiscard]] const nlohmann::json& list(std::string_view key, std::size_t max = kMaxListed) const;
  [[nodiscard]] double real(const nlohmann::json& value, const std::string& place, double max, double min) const;
  [[nodiscard]] std::uint64_t whole(const nlohmann::json& value, const std::string& place,
                                    std::uint64_t max = std::numeric_limits<std::uint64_t>::max(),
                                    std::uint64_t min = 0) const;
  [[nodiscard]] Nanos nanos(const nlohmann::json& value, const std::string& place) const;
  /// Calls `visit` with each element of a list and the element's position, such as "runs[0]".
  template <typename Visit>
  void for_each(std::string_view key, const Visit& visit, std::size_t max = kMaxListed) const;

  const nlohmann::json& json_;
  const std::string& file_;
  const std::string& cure_;
  std::string place_;
};

/// Limits for files that the commands write.
inline constexpr JsonLimits kFileLimits{.depth = 64, .values = 32'000'000};

/// Parses the whole text, after checking `limits`. Throws InputError if `text` exceeds a limit or is not valid JSON.
/// Refuses an object with a duplicate key, because one program might use the first value of the key, and another
/// program the last.
nlohmann::json parsed(std::string_view text, const std::string& file, const std::string& cure,
                      const JsonLimits& limits = kFileLimits);

/// Returns `json` as text that ends with a newline: on one line if `indentation` is negative, else with `indentation`
/// spaces per level. Replaces bytes that are not UTF-8.
std::string json_text(const nlohmann::ordered_json& json, int indentation = -1);

/// Returns the field "provenance" of `root`; empty if it is missing.
std::optional<Provenance> provenance_of(const JsonObject& root);

}  // namespace mltcp
