// Reads values from TOML files (see toml_reader.h).
#include "mltcp/lab/experiment/files/toml_reader.h"

#include <fmt/ranges.h>

#include <cmath>

namespace mltcp::experiment {
namespace {

constexpr Rate kMaxRate(100'000'000'000'000);  // 100 Tbps

}  // namespace

void TomlReader::fail(std::uint32_t line, std::string_view key, std::string_view cause, std::string_view cure) const {
  throw InputError(one_line(fmt::format("{}: {}: {}; {}", place(line), key, cause, cure)));
}

void TomlReader::fail(const Item& item, std::string_view cause, std::string_view cure) const {
  throw InputError(one_line(fmt::format("{}: {}; {}", place(item), cause, cure)));
}

std::string TomlReader::place(std::uint32_t line) const {
  if (overrides_ != nullptr && line >= kFirstOverrideLine) return (*overrides_)[line - kFirstOverrideLine].origin;
  return fmt::format("{}:{}", file_, line);
}

std::string TomlReader::place(const Item& item) const {
  if (!item.elsewhere.empty()) return item.elsewhere;
  const std::string where = place(item.line);
  // If the option has the name of the key, messages name only the option.
  const bool named = where.starts_with("--") && where.substr(2) == item.key;
  return named ? where : fmt::format("{}: {}", where, item.key);
}

std::optional<Item> TomlReader::find(const toml::table& table, std::string_view prefix, std::string_view key) {
  for (const auto& [name, node] : table)
    if (name.str() == key) return Item{&node, path(prefix, key), std::max<std::uint32_t>(name.source().begin.line, 1)};
  return std::nullopt;
}

void TomlReader::check_keys(const toml::table& table, std::string_view prefix,
                            const std::vector<std::string>& known) const {
  for (const auto& [name, node] : table) {
    if (std::ranges::find(known, name.str()) != known.end()) continue;
    const auto meant = nearest(name.str(), known);
    const std::string about = hint(prefix, name.str());
    fail(std::max<std::uint32_t>(name.source().begin.line, 1),
         path(prefix, one_line(name.str().substr(0, kMaxNameBytes))), "unknown key",
         !about.empty() ? about
         : meant        ? fmt::format("did you mean \"{}\"?", *meant)
                        : "the keys here are " + joined(known));
  }
}

const toml::table& TomlReader::table(const Item& item, std::string_view example) const {
  const toml::table* result = item.node->as_table();
  if (result == nullptr)
    fail(item, fmt::format("a table is expected, but this is {}", type_name(*item.node)),
         fmt::format("write {}", example));
  return *result;
}

const std::string& TomlReader::text(const Item& item, std::string_view example) const {
  const toml::value<std::string>* result = item.node->as_string();
  if (result == nullptr)
    fail(item, fmt::format("a text is expected, but this is {}", type_name(*item.node)),
         fmt::format("write \"{}\"", example));
  return result->get();
}

std::string TomlReader::name_text(const Item& item) const {
  const std::string& result = text(item, "two-jobs");
  const std::string wrong = objection_to_name(result);
  if (!wrong.empty()) throw_objection(item, wrong);
  return result;
}

std::int64_t TomlReader::whole(const Item& item, std::int64_t min, std::int64_t max) const {
  const toml::value<std::int64_t>* result = item.node->as_integer();
  if (result == nullptr)
    fail(item, fmt::format("a whole number is expected, but this is {}", type_name(*item.node)),
         fmt::format("write a number from {} to {}, without quotes", min, max));
  if (result->get() < min || result->get() > max)
    fail(item, fmt::format("{} is out of range", result->get()), fmt::format("write {} to {}", min, max));
  return result->get();
}

double TomlReader::decimal(const Item& item, std::string_view example) const {
  double result = 0;
  if (const auto* value = item.node->as_floating_point())
    result = value->get();
  else if (const auto* integer = item.node->as_integer())
    result = static_cast<double>(integer->get());
  else
    fail(item, fmt::format("a number is expected, but this is {}", type_name(*item.node)),
         fmt::format("write a number without quotes, such as {}", example));
  if (!std::isfinite(result)) fail(item, "the number is not finite", fmt::format("write one such as {}", example));
  return result;
}

double TomlReader::probability(const Item& item) const {
  const double result = decimal(item, "0.01");
  if (result < 0 || result > 1)
    fail(item, fmt::format("{} is not a probability", result), "write a number from 0 to 1");
  return result;
}

double TomlReader::factor(const Item& item, double max) const {
  const double result = decimal(item, "1.0");
  if (result <= 0 || result > max)
    fail(item, fmt::format("{} is out of range", result), fmt::format("write a number above 0 and at most {}", max));
  return result;
}

bool TomlReader::truth(const Item& item) const {
  const toml::value<bool>* result = item.node->as_boolean();
  if (result == nullptr)
    fail(item, fmt::format("true or false is expected, but this is {}", type_name(*item.node)),
         "write true or false, without quotes");
  return result->get();
}

Nanos TomlReader::duration(const Item& item, std::string_view example, Nanos max) const {
  const Nanos result = with_unit(item, example, parse_duration);
  if (result > max) fail(item, fmt::format("{} is too long", to_text(result)), "write at most " + to_text(max));
  return result;
}

Rate TomlReader::rate(const Item& item) const {
  const Rate result = with_unit(item, "1 Gbps", parse_rate);
  if (result < kMinRate || result > kMaxRate)
    fail(item, fmt::format("{} is out of range", to_text(result)),
         fmt::format("write {} to {}", to_text(kMinRate), to_text(kMaxRate)));
  return result;
}

Bytes TomlReader::bytes(const Item& item, std::string_view example, Bytes max) const {
  const Bytes result = with_unit(item, example, parse_bytes);
  if (result > max)
    fail(item, fmt::format("{} is too large", bytes_to_text(result)), "write at most " + bytes_to_text(max));
  return result;
}

void TomlReader::throw_objection(const Item& item, std::string_view wrong) const {
  throw InputError(one_line(fmt::format("{}: {}", place(item), wrong)));
}

std::uint32_t TomlReader::line_of(const toml::node& node, std::uint32_t otherwise) {
  const std::uint32_t line = node.source().begin.line;
  return line > 0 ? line : otherwise;
}

std::string TomlReader::either(std::vector<std::string> words) {
  const std::string last = words.back();
  words.pop_back();
  return words.empty() ? last : fmt::format("{} or {}", fmt::join(words, ", "), last);
}

std::vector<Item> TomlReader::elements(const Item& item, std::string_view what, std::string_view example) const {
  const toml::array* list = item.node->as_array();
  if (list == nullptr)
    fail(item, fmt::format("an array of {} is expected, but this is {}", what, type_name(*item.node)),
         fmt::format("write {}", example));
  std::vector<Item> items;
  for (const toml::node& node : *list) items.push_back({&node, item.key, line_of(node, item.line)});
  return items;
}

Item TomlReader::required(const Item& item, const toml::table& keys, std::string_view key,
                          std::string_view example) const {
  const auto found = find(keys, item.key, key);
  if (!found)
    fail(line_of(*item.node, item.line), path(item.key, key), "the key is missing",
         fmt::format("write {} = {}", key, example));
  return *found;
}

void apply_overrides(toml::table& root, const std::vector<Override>& overrides) {
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    const Override& override = overrides[i];
    const auto refuse = [&](std::string_view why) {
      throw InputError(one_line(fmt::format("{}: {}: {}", override.origin, override.key, why)));
    };
    toml::table value;
    try {
      value = toml::parse("v = " + override.value);
    } catch (const toml::parse_error&) {
      // The check of value.size() below refuses an invalid value, and also a value that is followed by other keys.
    } catch (const ParserAssertion&) {
    }
    if (value.size() != 1)
      refuse(fmt::format("{} is not a value; write it as in the file, in one line", in_quotes(override.value)));
    try {
      set_value(root, override.key, *value.get("v"), kFirstOverrideLine + static_cast<std::uint32_t>(i));
    } catch (const InputError& error) {
      refuse(error.what());
    }
  }
}

std::string objection_to_name(std::string_view name) {
  if (name.empty()) return "the name is empty; write a name";
  if (name.size() > kMaxNameBytes)
    return fmt::format("the name has {} bytes; write at most {}", name.size(), kMaxNameBytes);
  if (one_line(name) != name) return "the name has control characters or is not UTF-8; write printable characters only";
  return {};
}

}  // namespace mltcp::experiment
