// An object of a JSON file or message, read field by field: used fields are validated, others ignored, unless only()
// refuses them. Errors are InputErrors of one line with file, position, cause and cure. Not installed.
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

/// Refers to the JSON and to `file` and `cure`, which must outlive it.
class JsonObject {
 public:
  /// `file` and `cure` are for messages; `place` is the object's position in the file, empty for the root.
  JsonObject(const nlohmann::json& json, const std::string& file, const std::string& cure, std::string place);

  [[nodiscard]] bool has(std::string_view key) const { return json_.contains(key); }
  [[nodiscard]] bool is_null(std::string_view key) const { return has(key) && json_[key].is_null(); }
  [[nodiscard]] std::string text(std::string_view key) const;
  /// Empty if null or missing.
  [[nodiscard]] std::string later_text(std::string_view key) const {
    return has(key) && !is_null(key) ? text(key) : std::string();
  }
  [[nodiscard]] bool truth(std::string_view key) const;
  /// Magnitude at most 1e18, as for measurements.
  [[nodiscard]] double real(std::string_view key) const;
  [[nodiscard]] double real(std::string_view key, double most, double least = 0) const;
  /// Empty if null or missing.
  [[nodiscard]] std::optional<double> later_real(std::string_view key) const;
  [[nodiscard]] std::uint64_t whole(std::string_view key,
                                    std::uint64_t most = std::numeric_limits<std::uint64_t>::max(),
                                    std::uint64_t least = 0) const;
  [[nodiscard]] std::uint32_t number(std::string_view key,
                                     std::uint32_t most = std::numeric_limits<std::uint32_t>::max(),
                                     std::uint32_t least = 0) const {
    return static_cast<std::uint32_t>(whole(key, most, least));
  }
  [[nodiscard]] Nanos nanos(std::string_view key) const;
  /// At most `most` texts; as objects().
  [[nodiscard]] std::vector<std::string> texts(std::string_view key, std::size_t most = kMaxListed) const;
  [[nodiscard]] std::vector<double> reals(std::string_view key) const;
  [[nodiscard]] std::vector<Nanos> nanos_list(std::string_view key) const;
  [[nodiscard]] std::vector<std::uint64_t> whole_list(std::string_view key) const;
  [[nodiscard]] std::size_t length(std::string_view key) const { return list(key).size(); }
  [[nodiscard]] JsonObject object(std::string_view key) const;
  [[nodiscard]] std::vector<JsonObject> objects(std::string_view key, std::size_t most = kMaxListed) const;
  /// Like objects(), empty if missing.
  [[nodiscard]] std::vector<JsonObject> later_objects(std::string_view key) const;
  /// A list of lists of `size` non-negative integers.
  [[nodiscard]] std::vector<std::vector<std::uint64_t>> tuples(std::string_view key, std::size_t size) const;

  [[nodiscard]] std::vector<std::string> keys() const;

  [[nodiscard]] const nlohmann::json& at(std::string_view key) const;
  /// Refuses other keys, and names the nearest known one.
  void only(std::initializer_list<std::string_view> keys) const;

  [[nodiscard]] std::string place_of(std::string_view key) const;
  /// "FILE: PLACE".
  [[nodiscard]] std::string where(std::string_view key) const;
  [[noreturn]] void fail(std::string_view place, std::string_view problem) const { fail(place, problem, cure_); }
  /// Refuses with another cure. An empty key refers to the object.
  [[noreturn]] void refuse(std::string_view key, std::string_view problem, std::string_view cure) const {
    fail(place_of(key), problem, cure);
  }

 private:
  [[noreturn]] void fail(std::string_view place, std::string_view problem, std::string_view cure) const;
  static constexpr auto kMaxListed = std::numeric_limits<std::size_t>::max();

  [[nodiscard]] const nlohmann::json& list(std::string_view key, std::size_t most = kMaxListed) const;
  [[nodiscard]] double real(const nlohmann::json& value, const std::string& place, double most, double least) const;
  [[nodiscard]] std::uint64_t whole(const nlohmann::json& value, const std::string& place,
                                    std::uint64_t most = std::numeric_limits<std::uint64_t>::max(),
                                    std::uint64_t least = 0) const;
  [[nodiscard]] Nanos nanos(const nlohmann::json& value, const std::string& place) const;
  /// Calls `visit` for each element, with its position: "runs[0]".
  template <typename Visit>
  void for_each(std::string_view key, const Visit& visit, std::size_t most = kMaxListed) const;

  const nlohmann::json& json_;
  const std::string& file_;
  const std::string& cure_;
  std::string place_;
};

/// Limits of files that the commands write.
inline constexpr JsonLimits kFileLimits{.depth = 64, .values = 32'000'000};

/// Parses the whole text, after checking its bounds. An object with a duplicate key is refused, because one reader
/// might check the first value and another use the last.
nlohmann::json parsed(std::string_view text, const std::string& file, const std::string& cure,
                      const JsonLimits& limits = kFileLimits);

/// On one line, or indented; ends with a newline. Bytes that are not UTF-8 are replaced.
std::string json_text(const nlohmann::ordered_json& json, int indentation = -1);

/// The field "provenance", if present.
std::optional<Provenance> provenance_of(const JsonObject& root);

}  // namespace mltcp
