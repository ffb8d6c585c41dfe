// Reads parameters from text, for programs that have no experiment file (see parameters.h).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "mltcp/base/error.h"
#include "mltcp/base/nearest.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/parameters.h"
#include "mltcp/cc/registry.h"

namespace mltcp::cc {
namespace {

template <typename Number>
Number number_from(std::string_view text, std::string_view wanted) {
  Number value{};
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || at != text.data() + text.size())
    throw InputError(fmt::format("{} is no {}; write one, such as 5", in_quotes(text), wanted));
  return value;
}

ParameterValue value_from(std::string_view text, const Parameter& parameter) {
  return std::visit(
      [&](const auto& by_default) -> ParameterValue {
        using T = std::remove_cvref_t<decltype(by_default)>;
        if constexpr (std::is_same_v<T, bool>) {
          if (text != "true" && text != "false")
            throw InputError(fmt::format("{} is neither true nor false; write one of the two", in_quotes(text)));
          return text == "true";
        } else if constexpr (std::is_same_v<T, Nanos>) {
          return parse_duration(text);
        } else if constexpr (std::is_same_v<T, Rate>) {
          return parse_rate(text);
        } else if constexpr (std::is_same_v<T, Bytes>) {
          return parse_bytes(text);
        } else if constexpr (std::is_same_v<T, std::uint32_t>) {
          return number_from<T>(text, "whole number");
        } else {
          return number_from<T>(text, "number");
        }
      },
      parameter.by_default);
}

std::string_view unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

const Parameter& parameter_of(const ParameterTable& algorithm, std::string_view name) {
  std::vector<std::string> known;
  for (const Parameter& parameter : algorithm.parameters) {
    if (parameter.name == name) return parameter;
    known.emplace_back(parameter.name);
  }
  if (known.empty())
    throw InputError(fmt::format("{} has no parameters; leave {} out", algorithm.name, in_quotes(name)));
  const auto close = nearest(name, known);
  throw InputError(fmt::format(
      "{} has no parameter {}; {}", algorithm.name, in_quotes(name),
      close ? fmt::format("did you mean {}?", *close) : fmt::format("there are {}", fmt::join(known, ", "))));
}

const ParameterTable& set_one(Parameters& parameters, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string_view key = trimmed(assignment.substr(0, equals));
  const std::size_t dot = key.find('.');
  if (equals == std::string_view::npos || dot == std::string_view::npos)
    throw InputError(
        fmt::format("{} sets no parameter; write ALGORITHM.PARAMETER=VALUE, such as swift.base_target=40 us",
                    in_quotes(assignment)));
  const ParameterTable& algorithm = find_parameters(key.substr(0, dot));
  const Parameter& parameter = parameter_of(algorithm, key.substr(dot + 1));
  try {
    parameters.set(algorithm, parameter, value_from(unquoted(trimmed(assignment.substr(equals + 1))), parameter));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", key, error.what()));
  }
  return algorithm;
}

}  // namespace

void set_from_text(Parameters& parameters, std::string_view text) {
  Parameters changed = parameters;
  std::vector<const ParameterTable*> algorithms;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(",;\n");
    const std::string_view one = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!one.empty()) algorithms.push_back(&set_one(changed, one));
  }
  // Some parameters bound others, so all are set before they are checked.
  for (const ParameterTable* algorithm : algorithms) changed.validate(algorithm->name);
  parameters = std::move(changed);
}

}  // namespace mltcp::cc
