// The TOML parser (toml++) as included by all readers of this folder, and common helpers. Not installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Some invalid input, such as a table header [=], passes the parser's checks and violates its assertions, which would
// abort, or with NDEBUG be undefined behaviour. They are made to throw instead, so that such input is refused normally.
// Only this file may include the parser, as its functions are inline.
namespace mltcp::experiment {
struct ParserAssertion {};
[[noreturn]] inline void fail_parser_assertion() { throw ParserAssertion(); }
}  // namespace mltcp::experiment
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? void() : ::mltcp::experiment::fail_parser_assertion())
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "mltcp/base/nearest.h"

namespace mltcp::experiment {

/// Throws InputError "FILE:LINE: TOML: cause; cure", which ends with the page that describes the file; or, if only
/// quotes around a value are missing, "FILE:LINE: KEY: cause; put it in quotes: ...".
toml::table parse_toml(std::string_view text, const std::string& file, std::string_view page);

/// The value on one line, tables with sorted keys, so that equal values give equal texts. Can be parsed again.
std::string to_toml(const toml::node& node);

/// A command-line word as value: a number, boolean, quoted text, array or table if it is valid TOML, otherwise a text.
/// Throws InputError "cause; cure" for an unclosed text, array or table.
std::string value_from_word(std::string_view word);

/// Sets the value at a key path such as "bottleneck.buffer", "job[2].start" or "job[*].jitter" (counted from 1).
/// Missing tables are created. The keys set get line number `line`, nodes below them none. Throws InputError "cause;
/// cure" for an invalid path, or one that leads through something other than a table or array.
void set_value(toml::table& root, std::string_view path, const toml::node& value, std::uint32_t line);

/// "a table", "a whole number".
std::string_view type_name(const toml::node& node);

std::string joined(const std::vector<std::string>& words);

}  // namespace mltcp::experiment
