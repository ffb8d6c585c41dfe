// Text from outside, trimmed, and made fit for a message, which is one line on somebody's terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mltcp {

/// The text with a '?' for each character that would end the line or steer a terminal (control characters, those of
/// U+0080 to U+009F and line separators included) and for each byte that is not UTF-8.
std::string one_line(std::string_view text);

/// The same between quotation marks, cut after 60 bytes.
std::string in_quotes(std::string_view text);

/// Without the spaces, tabs and carriage returns at both ends.
std::string_view trimmed(std::string_view text);

/// "1 job", "2 jobs".
std::string plural(std::size_t count, std::string_view what);

}  // namespace mltcp
