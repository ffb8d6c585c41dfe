// Reading of JSON from somebody who is not trusted: bounds before it is parsed, then values with types and ranges, and
// errors "WHERE: KEY: cause; cure" in one line. Not installed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/json.h"
#include "mltcp/base/units.h"
#include "mltcp/scheduler/service/job_profile.h"

namespace mltcp::service {

using Json = nlohmann::ordered_json;

/// A view of an object of a document, which must outlive it.
class JsonReader {
 public:
  /// `where` is the object's own path: "body: profile".
  JsonReader(const Json& object, std::string where) : object_(&object), where_(std::move(where)) {}

  [[nodiscard]] bool has(std::string_view key) const;
  /// Refuses other keys, and names the nearest known one.
  void only(std::initializer_list<std::string_view> keys) const;
  [[nodiscard]] std::int64_t whole(std::string_view key, std::int64_t least, std::int64_t most) const;
  [[nodiscard]] const std::string& text(std::string_view key) const;
  [[nodiscard]] std::optional<bool> optional_truth(std::string_view key) const;
  /// A number above 0 and at most `most`.
  [[nodiscard]] std::optional<double> optional_factor(std::string_view key, double most) const;
  /// A rate in bit/s above 0.
  [[nodiscard]] std::optional<Rate> optional_rate(std::string_view key) const;
  [[nodiscard]] JsonReader object(std::string_view key) const;
  /// A list of objects.
  [[nodiscard]] std::vector<JsonReader> list(std::string_view key, std::size_t most) const;
  /// A list of texts.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key, std::size_t most) const;
  [[nodiscard]] const Json& value(std::string_view key) const;
  [[nodiscard]] const Json& value() const { return *object_; }

  [[nodiscard]] std::string path(std::string_view key) const;
  /// About a key, or, if empty, about the object.
  [[noreturn]] void fail(std::string_view key, std::string_view cause, std::string_view cure) const;

 private:
  const Json* object_;
  std::string where_;
};

/// A parsed text, which is an object.
class JsonDocument {
 public:
  /// Throws InputError for a text that is too long, nested too deeply, not JSON, not UTF-8, or not an object, or has a
  /// key twice in one object, or more than 1000 keys.
  JsonDocument(std::string_view text, const std::string& where, std::size_t max_bytes, const JsonLimits& limits);
  [[nodiscard]] JsonReader root() const { return {json_, where_}; }

 private:
  Json json_;
  std::string where_;
};

/// The profile in an object of a document.
JobProfile profile_from_json(const JsonReader& reader);

}  // namespace mltcp::service
