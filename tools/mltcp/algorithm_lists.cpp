// Congestion controls as text, Markdown and JSON (see algorithm_lists.h).
#include "algorithm_lists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>
#include <variant>
#include <vector>

namespace mltcp::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::array<std::string_view, std::variant_size_v<cc::ParameterValue>> kTypes{
    "number", "true or false", "whole number", "time", "rate", "size"};

std::string_view type_of(const cc::Parameter& parameter) { return kTypes[parameter.by_default.index()]; }

/// Returns the value as it is written in TOML.
std::string toml_text(const cc::ParameterValue& value) {
  const std::string text = cc::value_text(value);
  const bool with_unit = std::holds_alternative<Nanos>(value) || std::holds_alternative<Rate>(value) ||
                         std::holds_alternative<Bytes>(value);
  return with_unit ? fmt::format("\"{}\"", text) : text;
}

/// Returns the algorithm whose table this is; null if it is the table of a policy.
const cc::AlgorithmTable* algorithm_of(const cc::ParameterTable* table) {
  const auto all = cc::algorithms();
  const auto at = std::ranges::find(all, table);
  return at == all.end() ? nullptr : *at;
}

std::string needs_of(const cc::AlgorithmTable* algorithm) {
  if (algorithm == nullptr) return "packets; a policy, with any of the algorithms";
  std::vector<std::string_view> needs;
  if (algorithm->capabilities.needs_ecn) needs.emplace_back("links that mark packets (ecn)");
  if (algorithm->capabilities.rate_based) needs.emplace_back("the sender's rate");
  return needs.empty() ? "nothing of the network" : fmt::format("{}", fmt::join(needs, " and "));
}

/// Returns the unit and the range of a parameter, separated by a comma. Omits the unit or the range if it is empty.
std::string bounds_of(const cc::Parameter& parameter) {
  const std::string range = cc::range_text(parameter);
  return parameter.unit.empty() || range.empty() ? fmt::format("{}{}", parameter.unit, range)
                                                 : fmt::format("{}, {}", parameter.unit, range);
}

}  // namespace

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names;
  for (const cc::AlgorithmTable* table : cc::algorithms()) names.emplace_back(table->name);
  return names;
}

std::string algorithm_choices() { return cc::algorithm_names() + ", or FILE.so:NAME"; }

std::vector<const cc::ParameterTable*> tables_named(const std::vector<std::string>& names) {
  if (names.empty()) return cc::parameter_tables();
  std::vector<const cc::ParameterTable*> tables;
  for (const std::string& name : names) {
    const bool is_file = cc::names_a_library(name);
    tables.push_back(is_file ? &cc::algorithm_from(name) : &cc::find_parameters(name));
  }
  return tables;
}

std::string parameters_text(ParameterTables tables) {
  std::string text;
  for (const cc::ParameterTable* table : tables) {
    if (!text.empty()) text += '\n';
    const cc::AlgorithmTable* algorithm = algorithm_of(table);
    const std::string library = algorithm == nullptr ? "" : cc::library_file(*algorithm).string();
    text +=
        fmt::format("{}: needs {}{}\n", table->name, needs_of(algorithm), library.empty() ? "" : ", from " + library);
    for (const cc::Parameter& parameter : table->parameters) {
      const std::string bounds = bounds_of(parameter);
      text += fmt::format("  {}.{} = {}\n      {}{}\n", table->name, parameter.name, toml_text(parameter.by_default),
                          parameter.help, bounds.empty() ? "" : "; " + bounds);
    }
  }
  return text;
}

std::string parameters_markdown(ParameterTables tables) {
  std::string text = "| parameter | default | values | meaning |\n|---|---|---|---|\n";
  for (const cc::ParameterTable* table : tables)
    for (const cc::Parameter& parameter : table->parameters)
      text += fmt::format("| `{}.{}` | `{}` | {} | {} |\n", table->name, parameter.name,
                          toml_text(parameter.by_default), bounds_of(parameter), parameter.help);
  return text;
}

void write_parameters_json(ParameterTables tables, std::ostream& out) {
  OrderedJson json{{"schema", "mltcp.algorithms/1"}, {"algorithms", OrderedJson::array()}};
  for (const cc::ParameterTable* table : tables) {
    OrderedJson entry{{"name", table->name}};
    if (const cc::AlgorithmTable* algorithm = algorithm_of(table); algorithm != nullptr) {
      entry["needs_ecn"] = algorithm->capabilities.needs_ecn;
      entry["rate_based"] = algorithm->capabilities.rate_based;
      if (const std::string library = cc::library_file(*algorithm).string(); !library.empty())
        entry["shared_object"] = library;
    }
    entry["parameters"] = OrderedJson::array();
    for (const cc::Parameter& parameter : table->parameters)
      entry["parameters"].push_back({{"name", parameter.name},
                                     {"type", type_of(parameter)},
                                     {"default", cc::value_text(parameter.by_default)},
                                     {"unit", parameter.unit},
                                     {"range", cc::range_text(parameter)},
                                     {"help", parameter.help}});
    json[algorithm_of(table) == nullptr ? "policies" : "algorithms"].push_back(std::move(entry));
  }
  out << json.dump(2) << '\n';
}

}  // namespace mltcp::tools
