// The values of the options of `mltcp`: their words in --help, the error messages for missing values, and checks of
// numbers and words. Error messages contain the given value and the permitted ones.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/error.h"

namespace mltcp::tools {

/// Describes the value of an option. An option has the same description in all commands, except --network.
struct OptionValue {
  std::string_view word;     ///< the word in --help, as in "FILE"
  std::string_view needs;    ///< completes "--json needs ...", as in "a file to write to, or - for standard output"
  std::string_view example;  ///< an example, as in "results.json"
};

/// Returns the description of the value of `option`, as in "--json". Returns nothing if the option has no value or is
/// unknown.
std::optional<OptionValue> option_value(std::string_view option, std::string_view command);

/// A check of an option's value.
struct ValueCheck {
  std::string bounds;                                             ///< text for --help, as in "[1 - 64]"; may be empty
  std::function<std::string(const std::string& text)> objection;  ///< returns the error text; empty if `text` is valid
  std::vector<std::string> words{};  ///< all permitted words; empty if the value is not one of a few words
};

/// Returns a check that accepts a whole number from `min` to `max`, in decimal digits.
ValueCheck whole(std::uint64_t min, std::uint64_t max);

/// Returns a check that accepts a number from 0 to `max`.
ValueCheck share(double max);

/// Returns a check that accepts a number above 0 and up to `max`.
ValueCheck factor(double max);

/// Returns a check that accepts a list of CPU numbers, as in "0,1" or "0-3".
ValueCheck cpu_list();

/// Returns a check that accepts one of `words`. Its error text suggests a word that is similar to the given one.
ValueCheck one_of(std::vector<std::string> words);

/// Calls `parse` and returns its result. If `parse` throws an InputError, puts the option's name before the message.
template <typename Parse>
auto of_option(std::string_view option, Parse parse) {
  try {
    return parse();
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", option, error.what()));
  }
}
/// Calls `parse` with the text of the option's value, as in of_option("--rate", text, parse_rate). If `parse` throws an
/// InputError, puts the option's name before the message.
template <typename Parse>
auto of_option(std::string_view option, const std::string& text, Parse parse) {
  return of_option(option, [&] { return parse(text); });
}

}  // namespace mltcp::tools
