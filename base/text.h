// Trims untrusted text, and sanitises it for one-line messages on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mltcp {

/// Returns whether a character is visible and safe in a one-line message on a terminal. Returns false for control
/// characters (including U+0080 to U+009F), line separators, invisible characters such as U+200B, and characters that
/// reorder other characters, such as U+202E.
bool is_printable(char32_t code);

/// Returns `text` with '?' in place of each unprintable character and of each byte that is not valid UTF-8. ASCII
/// characters in `kept` are not replaced.
std::string one_line(std::string_view text, std::string_view kept = {});

/// Returns one_line(text) in quotation marks, truncated after 60 bytes.
std::string in_quotes(std::string_view text);

/// Returns `text` without spaces, tabs and carriage returns at both ends.
std::string_view trimmed(std::string_view text);

/// Returns the value of an environment variable; empty if it is not set.
std::string environment(const char* name);

/// Returns the count and the noun, such as "1 job" or "2 jobs".
std::string plural(std::size_t count, std::string_view what);

}  // namespace mltcp
