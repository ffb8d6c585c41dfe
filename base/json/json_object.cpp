// Checked reading of JSON (see json_object.h).
#include "mltcp/base/json/json_object.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/json.h"
#include "mltcp/base/json/json_fields.h"
#include "mltcp/base/json/json_values.h"
#include "mltcp/base/json/provenance_fields.h"
#include "mltcp/base/nearest.h"
#include "mltcp/base/text.h"

namespace mltcp {
namespace {

using Json = nlohmann::json;

// Maximum magnitude; larger numbers are no measurements, and do not fit the columns of tables.
constexpr double kMaxNumber = 1e18;
constexpr std::size_t kMaxShown = 60;  // maximum bytes of a key or a value in messages

std::string shown(const Json& value) {
  const std::string text = value.is_structured() ? value.type_name() : value.dump(-1, ' ', true);
  return text.substr(0, kMaxShown);
}

/// Returns the number of members of all objects in `value`, at any depth.
std::size_t members_of(const Json& value) {
  std::size_t members = value.is_object() ? value.size() : 0;
  if (value.is_structured())
    for (const Json& element : value) members += members_of(element);
  return members;
}

/// Returns the first key that appears twice in an object. `text` must be valid JSON.
std::string key_given_twice(std::string_view text) {
  std::vector<std::set<std::string>> open;
  std::string twice;
  const auto look = [&](int /*depth*/, Json::parse_event_t event, const Json& value) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && twice.empty() && !open.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  [[maybe_unused]] const Json json = Json::parse(text.begin(), text.end(), look);
  return twice;
}

/// Returns the number of keys in valid JSON. Outside of strings, each colon follows a key.
std::size_t keys_of(std::string_view text) {
  std::size_t keys = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_text && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      in_text = !in_text;
    else if (!in_text && text[i] == ':')
      ++keys;
  }
  return keys;
}

}  // namespace

JsonObject::JsonObject(const Json& json, const std::string& file, const std::string& cure, std::string place)
    : json_(json), file_(file), cure_(cure), place_(std::move(place)) {
  if (!json_.is_object()) fail(place_, "is not an object");
}

std::string JsonObject::path_of(std::string_view key) const {
  return fmt::format("{}{}{}", place_, place_.empty() || key.empty() ? "" : ".", key);
}

std::string JsonObject::where(std::string_view key) const { return fmt::format("{}: {}", file_, path_of(key)); }

void JsonObject::fail(std::string_view place, std::string_view problem, std::string_view cure) const {
  throw InputError(one_line(fmt::format("{}: {} {}; {}", file_, place.empty() ? "it" : place, problem, cure)));
}

void JsonObject::only(std::initializer_list<std::string_view> keys) const {
  for (const std::string& key : this->keys()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    const auto meant = nearest(key, std::vector<std::string>(keys.begin(), keys.end()));
    refuse(key.substr(0, kMaxShown), "is not known",
           meant ? fmt::format("did you mean \"{}\"?", *meant)
                 : fmt::format("the keys here are {}", fmt::join(keys, ", ")));
  }
}

const Json& JsonObject::at(std::string_view key) const {
  if (!has(key)) fail(path_of(key), "is missing");
  return json_[key];
}

const Json& JsonObject::list(std::string_view key, std::size_t max) const {
  if (!at(key).is_array()) fail(path_of(key), "is not a list");
  if (at(key).size() > max)
    refuse(key, fmt::format("has {} entries", at(key).size()), fmt::format("give at most {}", max));
  return json_[key];
}

std::string JsonObject::text(std::string_view key) const {
  if (!at(key).is_string()) fail(path_of(key), "is not a text");
  return at(key).get<std::string>();
}

bool JsonObject::truth(std::string_view key) const {
  if (!at(key).is_boolean()) fail(path_of(key), "is not true or false");
  return at(key).get<bool>();
}

template <typename Visit>
void JsonObject::for_each(std::string_view key, const Visit& visit, std::size_t max) const {
  const std::string place = path_of(key);
  std::size_t index = 0;
  for (const Json& value : list(key, max)) visit(value, fmt::format("{}[{}]", place, index++));
}

double JsonObject::real(const Json& value, const std::string& place, double max, double min) const {
  if (!value.is_number() || !(value.get<double>() >= min && value.get<double>() <= max))
    fail(place, fmt::format("is not a number from {} to {}: {}", min, max, shown(value)));
  return value.get<double>();
}

double JsonObject::real(std::string_view key) const { return real(at(key), path_of(key), kMaxNumber, -kMaxNumber); }

double JsonObject::real(std::string_view key, double max, double min) const {
  return real(at(key), path_of(key), max, min);
}

std::optional<double> JsonObject::later_real(std::string_view key) const {
  if (!has(key) || is_null(key)) return std::nullopt;
  return real(key);
}

std::uint64_t JsonObject::whole(const Json& value, const std::string& place, std::uint64_t max,
                                std::uint64_t min) const {
  const auto number = whole_number<std::uint64_t>(value, min, max);
  if (!number) fail(place, fmt::format("is not a whole number from {} to {}: {}", min, max, shown(value)));
  return *number;
}

std::uint64_t JsonObject::whole(std::string_view key, std::uint64_t max, std::uint64_t min) const {
  return whole(at(key), path_of(key), max, min);
}

Nanos JsonObject::nanos(const Json& value, const std::string& place) const {
  const auto number = whole_number<std::int64_t>(value, 0, kMaxTime.count);
  if (!number)
    fail(place, fmt::format("is not a time in whole nanoseconds from 0 to 2^60 (36 years): {}", shown(value)));
  return Nanos(*number);
}

Nanos JsonObject::nanos(std::string_view key) const { return nanos(at(key), path_of(key)); }

std::vector<std::string> JsonObject::texts(std::string_view key, std::size_t max) const {
  std::vector<std::string> result;
  const auto add = [&](const Json& value, const std::string& place) {
    if (!value.is_string()) fail(place, "is not a text");
    result.push_back(value.get<std::string>());
  };
  for_each(key, add, max);
  return result;
}

std::vector<double> JsonObject::reals(std::string_view key) const {
  std::vector<double> result;
  for_each(key, [&](const Json& value, const std::string& place) {
    result.push_back(real(value, place, kMaxNumber, -kMaxNumber));
  });
  return result;
}

std::vector<Nanos> JsonObject::nanos_list(std::string_view key) const {
  std::vector<Nanos> result;
  for_each(key, [&](const Json& value, const std::string& place) { result.push_back(nanos(value, place)); });
  return result;
}

std::vector<std::uint64_t> JsonObject::whole_list(std::string_view key) const {
  std::vector<std::uint64_t> result;
  for_each(key, [&](const Json& value, const std::string& place) { result.push_back(whole(value, place)); });
  return result;
}

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> result;
  for (const auto& item : json_.items()) result.push_back(item.key());
  return result;
}

JsonObject JsonObject::object(std::string_view key) const { return {at(key), file_, cure_, path_of(key)}; }

std::vector<JsonObject> JsonObject::objects(std::string_view key, std::size_t max) const {
  std::vector<JsonObject> result;
  const auto add = [&](const Json& value, const std::string& place) {
    result.emplace_back(value, file_, cure_, place);
  };
  for_each(key, add, max);
  return result;
}

std::vector<JsonObject> JsonObject::later_objects(std::string_view key) const {
  return has(key) ? objects(key) : std::vector<JsonObject>();
}

std::vector<std::vector<std::uint64_t>> JsonObject::tuples(std::string_view key, std::size_t size) const {
  std::vector<std::vector<std::uint64_t>> result;
  for (const Json& value : list(key)) {
    const std::string place = fmt::format("{}[{}]", path_of(key), result.size());
    if (!value.is_array() || value.size() != size) fail(place, fmt::format("is not a list of {} numbers", size));
    std::vector<std::uint64_t>& tuple = result.emplace_back();
    for (const Json& member : value) {
      const auto number = whole_number<std::uint64_t>(member);
      if (!number) fail(place, "has an entry that is not a whole number of 0 or more");
      tuple.push_back(*number);
    }
  }
  return result;
}

Json parsed(std::string_view text, const std::string& file, const std::string& cure, const JsonLimits& limits) {
  if (const std::string wrong = beyond_limits(text, limits); !wrong.empty())
    throw InputError(one_line(fmt::format("{}: {}; {}", file, wrong, cure)));
  try {
    Json json = Json::parse(text.begin(), text.end());
    if (members_of(json) != keys_of(text))
      throw InputError(one_line(fmt::format("{}: an object has the key {} twice; give each key once", file,
                                            in_quotes(key_given_twice(text)))));
    return json;
  } catch (const Json::exception& error) {  // a syntax error, or a number too large for a double
    if (file.ends_with(".toml") && !trimmed(text).starts_with('{'))
      throw InputError(one_line(
          fmt::format("{}: this is TOML, not a result; run it first: mltcp run {} --json results.json", file, file)));
    throw InputError(one_line(fmt::format("{}: not JSON, {}; {}", file, problem_of(error), cure)));
  }
}

std::string json_text(const nlohmann::ordered_json& json, int indentation) {
  return json.dump(indentation, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::optional<Provenance> provenance_of(const JsonObject& root) {
  if (!root.has("provenance")) return std::nullopt;
  Provenance provenance;
  read(root.object("provenance"), provenance);
  return provenance;
}

}  // namespace mltcp
