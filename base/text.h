// Trimming of untrusted text, and sanitising it for one-line messages on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mltcp {

/// Whether a character neither ends the line nor controls the terminal (control characters, including U+0080 to U+009F,
/// and line separators), and can be seen: it neither reorders others (U+202E) nor hides (U+200B).
bool is_printable(char32_t code);

/// Replaces each unprintable character, except the ASCII ones in `kept`, and each byte that is not valid UTF-8, by '?'.
std::string one_line(std::string_view text, std::string_view kept = {});

/// The same in quotation marks, truncated after 60 bytes.
std::string in_quotes(std::string_view text);

/// Removes spaces, tabs and carriage returns at both ends.
std::string_view trimmed(std::string_view text);

/// An environment variable; empty if it is not set.
std::string environment(const char* name);

/// "1 job", "2 jobs".
std::string plural(std::size_t count, std::string_view what);

}  // namespace mltcp
