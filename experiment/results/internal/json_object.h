// An object of a JSON file that was written by a command of ours, read field by field: what is used is checked, the
// rest skipped. Each mistake is an InputError of one line that names file, place, what is wrong and the cure. Not
// installed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/results/provenance.h"

namespace mltcp::experiment {

/// Refers to the JSON and to `file` and `cure`, which outlive it.
class JsonObject {
 public:
  /// `file` is its name in messages, `cure` what to do about them; `place` is empty for the whole file.
  JsonObject(const nlohmann::json& json, const std::string& file, const std::string& cure, std::string place);

  [[nodiscard]] bool has(std::string_view key) const { return json_.contains(key); }
  [[nodiscard]] bool is_null(std::string_view key) const { return has(key) && json_[key].is_null(); }
  [[nodiscard]] std::string text(std::string_view key) const;
  /// Empty where it is missing.
  [[nodiscard]] std::string later_text(std::string_view key) const { return has(key) ? text(key) : std::string(); }
  [[nodiscard]] bool truth(std::string_view key) const;
  /// Of a magnitude that a measurement has, up to 1e18.
  [[nodiscard]] double real(std::string_view key) const;
  [[nodiscard]] double real(std::string_view key, double most, double least = 0) const;
  /// Nothing where it is null or missing.
  [[nodiscard]] std::optional<double> later_real(std::string_view key) const;
  [[nodiscard]] std::uint64_t whole(std::string_view key) const;
  [[nodiscard]] std::uint32_t number(std::string_view key) const;
  [[nodiscard]] Nanos nanos(std::string_view key) const;
  /// 0 where it is missing, as of fields that came after the first version.
  [[nodiscard]] std::uint64_t later_whole(std::string_view key) const { return has(key) ? whole(key) : 0; }
  [[nodiscard]] Nanos later_nanos(std::string_view key) const { return has(key) ? nanos(key) : Nanos(); }
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;
  [[nodiscard]] std::vector<double> reals(std::string_view key) const;
  [[nodiscard]] std::vector<Nanos> nanos_list(std::string_view key) const;
  [[nodiscard]] std::vector<std::uint64_t> whole_list(std::string_view key) const;
  [[nodiscard]] std::size_t length(std::string_view key) const { return list(key).size(); }
  [[nodiscard]] JsonObject object(std::string_view key) const;
  [[nodiscard]] std::vector<JsonObject> objects(std::string_view key) const;
  /// As objects(), none where it is missing.
  [[nodiscard]] std::vector<JsonObject> later_objects(std::string_view key) const;
  /// A list of lists of `size` whole numbers of 0 or more.
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
  /// "runs[0]", and so on for each element.
  template <typename Visit>
  void for_each(std::string_view key, const Visit& visit) const;

  const nlohmann::json& json_;
  const std::string& file_;
  const std::string& cure_;
  std::string place_;
};

/// The whole file as JSON, bounded before it is parsed.
nlohmann::json parsed(std::string_view text, const std::string& file, const std::string& cure);

/// Field "provenance", if it is there.
std::optional<Provenance> provenance_of(const JsonObject& root);

}  // namespace mltcp::experiment
