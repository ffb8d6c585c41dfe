// Values of the options of `mltcp`: their word in --help, the message if they are missing, and the checks of numbers
// and words. Messages name the given and the permitted values.
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

/// The value of an option; the same in all commands, except for --network.
struct OptionValue {
  std::string_view word;     ///< in --help: "FILE"
  std::string_view needs;    ///< "a file to write to, or - for standard output"
  std::string_view example;  ///< "results.json"
};

/// The value of an option such as "--json" of `command`; nothing if it takes none or is unknown.
std::optional<OptionValue> option_value(std::string_view option, std::string_view command);

/// A check of a value.
struct ValueCheck {
  std::string bounds;                                             ///< in --help: "[1 - 64]"; may be empty
  std::function<std::string(const std::string& text)> objection;  ///< the error text; empty: valid
  std::vector<std::string> words{};                               ///< all permitted words; empty: not a list
};

/// A whole number within bounds, in decimal digits.
ValueCheck whole(std::uint64_t least, std::uint64_t most);

/// A number within bounds; "nan" is refused.
ValueCheck share(double most);

/// A number above 0.
ValueCheck factor(double most);

/// Numbers of CPUs, as in "0,1" or "0-3".
ValueCheck cpu_list();

/// One of a few words; the error text suggests a similar one.
ValueCheck one_of(std::vector<std::string> words);

/// Calls `parse` for the option's value; InputErrors name the option.
template <typename Parse>
auto of_option(std::string_view option, Parse parse) {
  try {
    return parse();
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", option, error.what()));
  }
}
/// Likewise for its text: of_option("--rate", text, parse_rate).
template <typename Parse>
auto of_option(std::string_view option, const std::string& text, Parse parse) {
  return of_option(option, [&] { return parse(text); });
}

}  // namespace mltcp::tools
