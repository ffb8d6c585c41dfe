// An object of a JSON file written by one of our commands, read field by field: used fields are validated, others
// ignored. Errors are InputErrors of one line with file, position, cause and cure. Not installed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  /// Empty if missing.
  [[nodiscard]] std::string later_text(std::string_view key) const { return has(key) ? text(key) : std::string(); }
  [[nodiscard]] bool truth(std::string_view key) const;
  /// Magnitude at most 1e18, as for measurements.
  [[nodiscard]] double real(std::string_view key) const;
  [[nodiscard]] double real(std::string_view key, double most, double least = 0) const;
  /// Empty if null or missing.
  [[nodiscard]] std::optional<double> later_real(std::string_view key) const;
  [[nodiscard]] std::uint64_t whole(std::string_view key) const;
  [[nodiscard]] std::uint32_t number(std::string_view key) const;
  [[nodiscard]] Nanos nanos(std::string_view key) const;
  /// 0 if missing, for fields added after the first version.
  [[nodiscard]] std::uint64_t later_whole(std::string_view key) const { return has(key) ? whole(key) : 0; }
  [[nodiscard]] Nanos later_nanos(std::string_view key) const { return has(key) ? nanos(key) : Nanos(); }
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;
  [[nodiscard]] std::vector<double> reals(std::string_view key) const;
  [[nodiscard]] std::vector<Nanos> nanos_list(std::string_view key) const;
  [[nodiscard]] std::vector<std::uint64_t> whole_list(std::string_view key) const;
  [[nodiscard]] std::size_t length(std::string_view key) const { return list(key).size(); }
  [[nodiscard]] JsonObject object(std::string_view key) const;
  [[nodiscard]] std::vector<JsonObject> objects(std::string_view key) const;
  /// Like objects(), empty if missing.
  [[nodiscard]] std::vector<JsonObject> later_objects(std::string_view key) const;
  /// A list of lists of `size` non-negative integers.
  [[nodiscard]] std::vector<std::vector<std::uint64_t>> tuples(std::string_view key, std::size_t size) const;

  [[nodiscard]] std::vector<std::string> keys() const;

  [[nodiscard]] std::string place_of(std::string_view key) const;
  [[noreturn]] void fail(std::string_view place, std::string_view problem) const;

 private:
  [[nodiscard]] const nlohmann::json& at(std::string_view key) const;
  [[nodiscard]] const nlohmann::json& list(std::string_view key) const;
  [[nodiscard]] double real(const nlohmann::json& value, const std::string& place, double most, double least) const;
  [[nodiscard]] std::uint64_t whole(const nlohmann::json& value, const std::string& place) const;
  [[nodiscard]] Nanos nanos(const nlohmann::json& value, const std::string& place) const;
  /// Calls `visit` for each element, with its position: "runs[0]".
  template <typename Visit>
  void for_each(std::string_view key, const Visit& visit) const;

  const nlohmann::json& json_;
  const std::string& file_;
  const std::string& cure_;
  std::string place_;
};

/// Parses the whole file, after checking its bounds.
nlohmann::json parsed(std::string_view text, const std::string& file, const std::string& cure);

/// Field "provenance", if it is there.
std::optional<Provenance> provenance_of(const JsonObject& root);

}  // namespace mltcp
