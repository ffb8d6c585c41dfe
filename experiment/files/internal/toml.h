// TOML for the readers of this folder: toml++ as all of them include it, and what they share. Not installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The parser's assertions catch what its own checks of the input miss: a table header such as [=]. Left alone they
// abort, or with NDEBUG make the compiler assume that such input does not exist. They throw instead, so that it is
// refused like every other. This file must stay the only one that includes the parser, as its functions are inline.
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

/// Throws InputError "FILE:LINE: TOML: cause; cure", which ends with the page that describes the file; or, where quotes
/// around a value are all that is missing, "FILE:LINE: KEY: cause; put it in quotes: ...".
toml::table parse_toml(std::string_view text, const std::string& file, std::string_view page);

/// The value on one line, tables with their keys in order: the same text for what means the same. As a value it reads
/// back as itself.
std::string to_toml(const toml::node& node);

/// What a word of the command line means as a value: a number, true, false, a text in quotes, an array or a table if
/// TOML reads it so, otherwise a text. Throws InputError "cause; cure" for a text, array or table that isn't closed.
std::string value_from_word(std::string_view word);

/// Sets the value at a path of keys such as "bottleneck.buffer", "job[2].start" or "job[*].jitter" (counted from 1).
/// Missing tables are made. The keys that are set get `line`, and nodes below them none. Throws InputError
/// "cause; cure" for a path that is none or that leads through what is no table or array.
void set_value(toml::table& root, std::string_view path, const toml::node& value, std::uint32_t line);

/// "a table", "a whole number".
std::string_view type_name(const toml::node& node);

std::string joined(const std::vector<std::string>& words);

}  // namespace mltcp::experiment
