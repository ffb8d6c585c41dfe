// Checked reading of JSON (see json_object.h).
#include "mltcp/base/json/json_object.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/json.h"
#include "mltcp/base/json/json_fields.h"
#include "mltcp/base/json/json_values.h"
#include "mltcp/base/json/provenance_fields.h"
#include "mltcp/base/text.h"

namespace mltcp {
namespace {

using Json = nlohmann::json;

constexpr JsonLimits kLimits{.depth = 64, .values = 32'000'000};
constexpr double kMost = 1e18;  // beyond it a number is no measurement, and no column holds it

}  // namespace

JsonObject::JsonObject(const Json& json, const std::string& file, const std::string& cure, std::string place)
    : json_(json), file_(file), cure_(cure), place_(std::move(place)) {
  if (!json_.is_object()) fail(place_.empty() ? "the file" : place_, "is not an object");
}

std::string JsonObject::place_of(std::string_view key) const {
  return place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key);
}

void JsonObject::fail(std::string_view place, std::string_view problem) const {
  throw InputError(one_line(fmt::format("{}: {} {}; {}", file_, place, problem, cure_)));
}

const Json& JsonObject::at(std::string_view key) const {
  if (!has(key)) fail(place_of(key), "is missing");
  return json_[key];
}

const Json& JsonObject::list(std::string_view key) const {
  if (!at(key).is_array()) fail(place_of(key), "is not a list");
  return json_[key];
}

std::string JsonObject::text(std::string_view key) const {
  if (!at(key).is_string()) fail(place_of(key), "is not a text");
  return at(key).get<std::string>();
}

bool JsonObject::truth(std::string_view key) const {
  if (!at(key).is_boolean()) fail(place_of(key), "is not true or false");
  return at(key).get<bool>();
}

template <typename Visit>
void JsonObject::for_each(std::string_view key, const Visit& visit) const {
  const std::string place = place_of(key);
  std::size_t index = 0;
  for (const Json& value : list(key)) visit(value, fmt::format("{}[{}]", place, index++));
}

double JsonObject::real(const Json& value, const std::string& place, double most, double least) const {
  if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most))
    fail(place, fmt::format("is not a number from {} to {}", least, most));
  return value.get<double>();
}

double JsonObject::real(std::string_view key) const { return real(at(key), place_of(key), kMost, -kMost); }

double JsonObject::real(std::string_view key, double most, double least) const {
  return real(at(key), place_of(key), most, least);
}

std::optional<double> JsonObject::later_real(std::string_view key) const {
  if (!has(key) || is_null(key)) return std::nullopt;
  return real(key);
}

std::uint64_t JsonObject::whole(const Json& value, const std::string& place) const {
  const auto number = whole_number<std::uint64_t>(value);
  if (!number) fail(place, "is not a whole number of 0 or more");
  return *number;
}

std::uint64_t JsonObject::whole(std::string_view key) const { return whole(at(key), place_of(key)); }

std::uint32_t JsonObject::number(std::string_view key) const {
  const auto value = whole_number<std::uint32_t>(at(key));
  if (!value) fail(place_of(key), "is not a whole number from 0 to 2^32 - 1");
  return *value;
}

Nanos JsonObject::nanos(const Json& value, const std::string& place) const {
  const auto number = whole_number<std::int64_t>(value, 0, kMaxTime.count);
  if (!number) fail(place, "is not a time in whole nanoseconds from 0 to 2^60 (36 years)");
  return Nanos(*number);
}

Nanos JsonObject::nanos(std::string_view key) const { return nanos(at(key), place_of(key)); }

std::vector<std::string> JsonObject::texts(std::string_view key) const {
  std::vector<std::string> result;
  for_each(key, [&](const Json& value, const std::string& place) {
    if (!value.is_string()) fail(place, "is not a text");
    result.push_back(value.get<std::string>());
  });
  return result;
}

std::vector<double> JsonObject::reals(std::string_view key) const {
  std::vector<double> result;
  for_each(key,
           [&](const Json& value, const std::string& place) { result.push_back(real(value, place, kMost, -kMost)); });
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

JsonObject JsonObject::object(std::string_view key) const { return {at(key), file_, cure_, place_of(key)}; }

std::vector<JsonObject> JsonObject::objects(std::string_view key) const {
  std::vector<JsonObject> result;
  for_each(key, [&](const Json& value, const std::string& place) { result.emplace_back(value, file_, cure_, place); });
  return result;
}

std::vector<JsonObject> JsonObject::later_objects(std::string_view key) const {
  return has(key) ? objects(key) : std::vector<JsonObject>();
}

std::vector<std::vector<std::uint64_t>> JsonObject::tuples(std::string_view key, std::size_t size) const {
  std::vector<std::vector<std::uint64_t>> result;
  for (const Json& value : list(key)) {
    const std::string place = fmt::format("{}[{}]", place_of(key), result.size());
    if (!value.is_array() || value.size() != size) fail(place, fmt::format("is not a list of {} numbers", size));
    std::vector<std::uint64_t>& tuple = result.emplace_back();
    for (const Json& member : value) {
      const auto number = whole_number<std::uint64_t>(member);
      if (!number) fail(place, "holds what is not a whole number of 0 or more");
      tuple.push_back(*number);
    }
  }
  return result;
}

Json parsed(std::string_view text, const std::string& file, const std::string& cure) {
  if (const std::string wrong = beyond_limits(text, kLimits); !wrong.empty())
    throw InputError(one_line(fmt::format("{}: {}; {}", file, wrong, cure)));
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception& error) {  // of syntax, or a number that no double holds
    if (file.ends_with(".toml"))
      throw InputError(
          one_line(fmt::format("{}: this is TOML and no result; run it first, as in mltcp run {} --json "
                               "results.json",
                               file, file)));
    throw InputError(one_line(fmt::format("{}: not JSON, {}; {}", file, problem_of(error), cure)));
  }
}

std::optional<Provenance> provenance_of(const JsonObject& root) {
  if (!root.has("provenance")) return std::nullopt;
  Provenance provenance;
  read(root.object("provenance"), provenance);
  return provenance;
}

}  // namespace mltcp
