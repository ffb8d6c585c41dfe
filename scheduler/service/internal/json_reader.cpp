// Reading of untrusted JSON (see json_reader.h).
#include "mltcp/scheduler/service/internal/json_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/nearest.h"
#include "mltcp/base/text.h"

namespace mltcp::service {
namespace {

constexpr std::size_t kLongestKeyShown = 60;

std::string_view type_of(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "true or false";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a text";
  return value.is_array() ? "a list" : "an object";
}

// Inserting and finding keys in an object of Json takes time in proportion to its members.
constexpr std::size_t kMaxMembers = 1000;

// Looks at the keys before anything is built of them. Of a key that stands twice, parsers take the first or the last:
// what one has checked, another may not have read.
class KeyCheck : public nlohmann::json_sax<Json> {
 public:
  bool start_object(std::size_t /*size*/) override {
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool key(std::string& text) override {
    if (keys_.back().size() == kMaxMembers) {
      too_many = true;
      return false;
    }
    if (!keys_.back().insert(text).second && twice.empty()) twice = text;
    return true;
  }
  bool start_array(std::size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(std::int64_t /*value*/) override { return true; }
  bool number_unsigned(std::uint64_t /*value*/) override { return true; }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return true; }
  bool string(std::string& /*value*/) override { return true; }
  bool binary(Json::binary_t& /*value*/) override { return true; }
  // What it is that is wrong, the parser says that comes after this.
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/, const Json::exception& /*error*/) override {
    return false;
  }

  std::string twice;
  bool too_many = false;

 private:
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

bool JsonReader::has(std::string_view key) const { return object_->contains(key); }

std::string JsonReader::path(std::string_view key) const {
  return key.empty() ? where_ : fmt::format("{}: {}", where_, key);
}

void JsonReader::fail(std::string_view key, std::string_view cause, std::string_view cure) const {
  throw InputError(one_line(fmt::format("{}: {}; {}", path(key), cause, cure)));
}

void JsonReader::only(std::initializer_list<std::string_view> keys) const {
  for (const auto& [key, value] : object_->items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    const auto meant = nearest(key, std::vector<std::string>(keys.begin(), keys.end()));
    fail(key.substr(0, kLongestKeyShown), "unknown key",
         meant ? fmt::format("did you mean \"{}\"?", *meant)
               : fmt::format("the keys here are {}", fmt::join(keys, ", ")));
  }
}

const Json& JsonReader::value(std::string_view key) const {
  const auto found = object_->find(key);
  if (found == object_->end()) fail(key, "the key is missing", "give it");
  return *found;
}

std::int64_t JsonReader::whole(std::string_view key, std::int64_t least, std::int64_t most) const {
  const Json& given = value(key);
  const auto number = whole_number<std::int64_t>(given, least, most);
  if (!number)
    fail(key,
         given.is_number() ? fmt::format("{} is out of range", given.dump())
                           : fmt::format("a whole number is expected and this is {}", type_of(given)),
         fmt::format("give a whole number from {} to {}", least, most));
  return *number;
}

const std::string& JsonReader::text(std::string_view key) const {
  const Json& given = value(key);
  if (!given.is_string()) fail(key, fmt::format("a text is expected and this is {}", type_of(given)), "give a text");
  return given.get_ref<const std::string&>();
}

std::optional<bool> JsonReader::optional_truth(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  const Json& given = value(key);
  if (!given.is_boolean())
    fail(key, fmt::format("true or false is expected and this is {}", type_of(given)), "give one of the two");
  return given.get<bool>();
}

std::optional<double> JsonReader::optional_factor(std::string_view key, double most) const {
  if (!has(key)) return std::nullopt;
  const Json& given = value(key);
  const double number = given.is_number() ? given.get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (!(number > 0 && number <= most))
    fail(key, "it is not in range", fmt::format("give a number above 0, at most {}", most));
  return number;
}

std::optional<Rate> JsonReader::optional_rate(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  return Rate(
      static_cast<std::uint64_t>(whole(key, 1, static_cast<std::int64_t>(scheduler::kHighestRate.bits_per_second))));
}

JsonReader JsonReader::object(std::string_view key) const {
  const Json& given = value(key);
  if (!given.is_object())
    fail(key, fmt::format("an object is expected and this is {}", type_of(given)), "give an object");
  return {given, path(key)};
}

std::vector<JsonReader> JsonReader::list(std::string_view key, std::size_t most) const {
  const Json& given = value(key);
  if (!given.is_array()) fail(key, fmt::format("a list is expected and this is {}", type_of(given)), "give a list");
  if (given.size() > most)
    fail(key, fmt::format("there are {} entries", given.size()), fmt::format("give at most {}", most));
  std::vector<JsonReader> all;
  for (std::size_t i = 0; i < given.size(); ++i) {
    JsonReader one(given[i], fmt::format("{}[{}]", path(key), i + 1));
    if (!given[i].is_object())
      one.fail("", fmt::format("an object is expected and this is {}", type_of(given[i])), "give an object");
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<std::string> JsonReader::texts(std::string_view key, std::size_t most) const {
  const Json& given = value(key);
  if (!given.is_array()) fail(key, fmt::format("a list is expected and this is {}", type_of(given)), "give a list");
  if (given.size() > most)
    fail(key, fmt::format("there are {} entries", given.size()), fmt::format("give at most {}", most));
  std::vector<std::string> all;
  for (const Json& one : given) {
    if (!one.is_string())
      fail(key, fmt::format("a list of texts is expected and this has {}", type_of(one)), "give texts");
    all.push_back(one.get<std::string>());
  }
  return all;
}

JsonDocument::JsonDocument(std::string_view text, const std::string& where, std::size_t max_bytes,
                           const JsonLimits& limits)
    : where_(where) {
  const auto fail = [&](std::string_view cause, std::string_view cure) {
    throw InputError(one_line(fmt::format("{}: {}; {}", where, cause, cure)));
  };
  if (text.size() > max_bytes)
    fail(fmt::format("it has {} bytes", text.size()), fmt::format("give at most {}", max_bytes));
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) fail("it is empty", "give an object of JSON");
  if (const std::string beyond = beyond_limits(text, limits); !beyond.empty())
    fail(fmt::format("it {}", beyond), "give less");
  KeyCheck keys;
  Json::sax_parse(text, &keys);
  if (keys.too_many) fail(fmt::format("an object has more than {} members", kMaxMembers), "give less");
  try {
    // Without a callback, for which the parser looks through all of a list at the end of each of its objects.
    json_ = Json::parse(text);
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 3: ..."
    std::string_view why = error.what();
    if (const std::size_t end = why.find("] "); end != std::string_view::npos) why.remove_prefix(end + 2);
    fail(fmt::format("this is not JSON ({})", why), "give an object of JSON in UTF-8");
  }
  if (!json_.is_object()) fail(fmt::format("this is {}", type_of(json_)), "give an object of JSON");
  if (!keys.twice.empty())
    fail(fmt::format("the key {} stands there twice", in_quotes(keys.twice)), "give each key once");
}

}  // namespace mltcp::service
