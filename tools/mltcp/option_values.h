// What options of `mltcp` take: the word for it in --help, what is said to whoever leaves it out, and the checks of
// numbers and of words, each naming what was given and what is wanted.
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

/// What an option takes, the same in whatever command it is one, but for --network.
struct OptionValue {
  std::string_view word;     ///< in --help: "FILE"
  std::string_view needs;    ///< "a file to write to, or - for standard output"
  std::string_view example;  ///< "results.json"
};

/// What an option, as "--json", of `command` takes; nothing if it takes no value or is not known.
std::optional<OptionValue> option_value(std::string_view option, std::string_view command);

/// What is asked of a value.
struct ValueCheck {
  std::string bounds;                                             ///< in --help: "[1 - 64]"; may be empty
  std::function<std::string(const std::string& text)> objection;  ///< what is wrong with it; empty: nothing
  std::vector<std::string> words{};                               ///< all that it may be; empty: more than a list
};

/// A whole number within bounds, in decimal digits.
ValueCheck whole(std::uint64_t least, std::uint64_t most);

/// A number within bounds, and no "nan".
ValueCheck share(double most);

/// A number above 0.
ValueCheck factor(double most);

/// Numbers of CPUs, as in "0,1" or "0-3".
ValueCheck cpu_list();

/// One of a few words; an objection names the one that is near.
ValueCheck one_of(std::vector<std::string> words);

/// What `parse` makes of what was given with the option. InputErrors say which option it was.
template <typename Parse>
auto of_option(std::string_view option, Parse parse) {
  try {
    return parse();
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", option, error.what()));
  }
}
/// The same of its text: of_option("--rate", text, parse_rate).
template <typename Parse>
auto of_option(std::string_view option, const std::string& text, Parse parse) {
  return of_option(option, [&] { return parse(text); });
}

}  // namespace mltcp::tools
