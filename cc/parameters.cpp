// Values, texts and ranges of type-erased parameters (see parameters.h).
#include "mltcp/cc/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mltcp/base/error.h"
#include "mltcp/cc/registry.h"

namespace mltcp::cc {
namespace {

constexpr double kLongestTime = 1e12;  // ns

double number_of(const ParameterValue& value) {
  return std::visit(
      [](const auto& v) {
        using T = std::remove_cvref_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Nanos>)
          return static_cast<double>(v.count);
        else if constexpr (std::is_same_v<T, Rate>)
          return static_cast<double>(v.bits_per_second);
        else
          return static_cast<double>(v);
      },
      value);
}

bool is_time(const Parameter& parameter) { return std::holds_alternative<Nanos>(parameter.by_default); }

double max_of(const Parameter& parameter) {
  return is_time(parameter) ? std::min(parameter.range.max, kLongestTime) : parameter.range.max;
}

bool in_range(const Parameter& parameter, const ParameterValue& value) {
  if (std::holds_alternative<bool>(value)) return true;
  const ParameterRange& range = parameter.range;
  const double x = number_of(value);
  const double max = max_of(parameter);
  if (!std::isfinite(x)) return false;
  if (x == 0 && !range.zero.empty()) return true;
  return (range.without_min ? x > range.min : x >= range.min) && (range.without_max ? x < max : x <= max);
}

/// Returns a bound of a range as text, in the unit of the parameter.
std::string bound_text(const Parameter& parameter, double bound) {
  return std::visit(
      [&](const auto& v) {
        using T = std::remove_cvref_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Nanos>)
          return bound == 0 ? std::string("0") : to_text(Nanos(static_cast<std::int64_t>(bound)));
        else if constexpr (std::is_same_v<T, Rate>)
          return bound == 0 ? std::string("0") : to_text(Rate(static_cast<std::uint64_t>(bound)));
        else if constexpr (std::is_same_v<T, Bytes>)
          return bound == 0 ? std::string("0") : bytes_to_text(static_cast<Bytes>(bound));
        else
          return fmt::format("{}", bound);
      },
      parameter.by_default);
}

/// Returns the noun for messages such as "give a whole number of 1 or more".
std::string_view kind_of(const Parameter& parameter) {
  constexpr std::array<std::string_view, std::variant_size_v<ParameterValue>> words{"value", "value", "whole number",
                                                                                    "time",  "rate",  "size"};
  return words[parameter.by_default.index()];
}

}  // namespace

std::string value_text(const ParameterValue& value) {
  return std::visit(
      [](const auto& v) {
        using T = std::remove_cvref_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Nanos> || std::is_same_v<T, Rate>)
          return to_text(v);
        else if constexpr (std::is_same_v<T, Bytes>)
          return bytes_to_text(v);
        else
          return fmt::format("{}", v);
      },
      value);
}

std::string range_text(const Parameter& parameter) {
  const ParameterRange& range = parameter.range;
  if (std::holds_alternative<bool>(parameter.by_default)) return {};
  // The maximum of 1000 s, which applies to all times, is not mentioned.
  const bool has_min = std::isfinite(range.min);
  const bool has_max = std::isfinite(range.max);
  std::string text;
  if (has_min && has_max && !range.without_min)
    text = fmt::format("from {} to {}{}", bound_text(parameter, range.min), range.without_max ? "below " : "",
                       bound_text(parameter, range.max));
  else if (has_min)
    text = fmt::format("{} {}{}", range.without_min ? "above" : "of", bound_text(parameter, range.min),
                       range.without_min ? "" : " or more");
  if (has_max && (range.without_min || !has_min))
    text += fmt::format("{}{} {}", has_min ? " and " : "", range.without_max ? "below" : "at most",
                        bound_text(parameter, range.max));
  if (!range.zero.empty()) text += fmt::format("{}0 for {}", text.empty() ? "" : ", or ", range.zero);
  return text;
}

Parameters::Block& Parameters::block_of(const ParameterTable& algorithm) {
  if (Block* block = find(algorithm.name)) return *block;
  Block& block = blocks_.emplace_back();
  block.algorithm = algorithm.name;
  algorithm.set_defaults(block.bytes.data());
  return block;
}

ParameterValue Parameters::get(const ParameterTable& algorithm, const Parameter& parameter) const {
  const Block* block = find(algorithm.name);
  return block == nullptr ? parameter.by_default : parameter.get(block->bytes.data());
}

void Parameters::set(const ParameterTable& algorithm, const Parameter& parameter, const ParameterValue& value) {
  parameter.set(block_of(algorithm).bytes.data(), value);
}

Parameters::Objection Parameters::objection(const ParameterTable& algorithm) const {
  const Block* block = find(algorithm.name);
  if (block == nullptr) return {};
  const auto refused = [&](const Parameter& parameter, std::string_view wanted, std::string_view bound_by) {
    return Objection{parameter.name, bound_by,
                     fmt::format("{} {} of {} is out of range; give a {} {}", algorithm.name, parameter.name,
                                 value_text(parameter.get(block->bytes.data())), kind_of(parameter), wanted)};
  };
  for (const Parameter& parameter : algorithm.parameters) {
    if (in_range(parameter, parameter.get(block->bytes.data()))) continue;
    std::string wanted = range_text(parameter);
    if (is_time(parameter) && !std::isfinite(parameter.range.max))
      wanted += fmt::format(", and at most {}", to_text(Nanos(static_cast<std::int64_t>(kLongestTime))));
    return refused(parameter, wanted.empty() ? "that is finite" : wanted, {});
  }
  const ParameterProblem problem = algorithm.problem_of(block->bytes.data());
  const auto named = [&](std::string_view name) {
    return std::ranges::find(algorithm.parameters, name, &Parameter::name);
  };
  const auto parameter = named(problem.parameter);
  if (parameter == algorithm.parameters.end()) return {};
  std::string wanted(problem.wanted);
  if (const auto bound = named(problem.bound_by); bound != algorithm.parameters.end())
    wanted += fmt::format(" ({} is {})", bound->name, value_text(bound->get(block->bytes.data())));
  return refused(*parameter, wanted, problem.bound_by);
}

void Parameters::validate(std::string_view name) const {
  const Objection wrong = objection(find_parameters(name));
  if (!wrong.parameter.empty()) throw InputError(wrong.text);
}

void Parameters::fit(const NetworkInfo& network) {
  for (const ParameterTable* algorithm : parameter_tables())
    if (algorithm->fit != nullptr) algorithm->fit(block_of(*algorithm).bytes.data(), network);
}

}  // namespace mltcp::cc
