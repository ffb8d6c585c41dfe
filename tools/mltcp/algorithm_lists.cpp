// Congestion controls as text, Markdown and JSON (see algorithm_lists.h).
#include "algorithm_lists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

std::string needs_of(const cc::AlgorithmTable& algorithm) {
  std::vector<std::string_view> needs;
  if (algorithm.capabilities.needs_ecn) needs.emplace_back("links that mark packets (ecn)");
  if (algorithm.capabilities.rate_based) needs.emplace_back("the sender's rate");
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

std::string algorithms_text(AlgorithmTables algorithms) {
  std::string text;
  for (const cc::AlgorithmTable* algorithm : algorithms) {
    if (!text.empty()) text += '\n';
    const std::string library = cc::library_file(*algorithm).string();
    text += fmt::format("{}: needs {}{}\n", algorithm->name, needs_of(*algorithm),
                        library.empty() ? "" : ", from " + library);
    for (const cc::Parameter& parameter : algorithm->parameters) {
      const std::string bounds = bounds_of(parameter);
      text += fmt::format("  {}.{} = {}\n      {}{}\n", algorithm->name, parameter.name,
                          toml_text(parameter.by_default), parameter.help, bounds.empty() ? "" : "; " + bounds);
    }
  }
  return text;
}

std::string algorithms_markdown(AlgorithmTables algorithms) {
  std::string text = "| parameter | default | values | meaning |\n|---|---|---|---|\n";
  for (const cc::AlgorithmTable* algorithm : algorithms)
    for (const cc::Parameter& parameter : algorithm->parameters)
      text += fmt::format("| `{}.{}` | `{}` | {} | {} |\n", algorithm->name, parameter.name,
                          toml_text(parameter.by_default), bounds_of(parameter), parameter.help);
  return text;
}

void write_algorithms_json(AlgorithmTables algorithms, std::ostream& out) {
  OrderedJson json{{"schema", "mltcp.algorithms/1"}, {"algorithms", OrderedJson::array()}};
  for (const cc::AlgorithmTable* algorithm : algorithms) {
    OrderedJson entry{{"name", algorithm->name},
                      {"needs_ecn", algorithm->capabilities.needs_ecn},
                      {"rate_based", algorithm->capabilities.rate_based}};
    if (const std::string library = cc::library_file(*algorithm).string(); !library.empty())
      entry["shared_object"] = library;
    entry["parameters"] = OrderedJson::array();
    for (const cc::Parameter& parameter : algorithm->parameters)
      entry["parameters"].push_back({{"name", parameter.name},
                                     {"type", type_of(parameter)},
                                     {"default", cc::value_text(parameter.by_default)},
                                     {"unit", parameter.unit},
                                     {"range", cc::range_text(parameter)},
                                     {"help", parameter.help}});
    json["algorithms"].push_back(std::move(entry));
  }
  out << json.dump(2) << '\n';
}

}  // namespace mltcp::tools
