// Trims and sanitises text (see text.h). UTF-8 is decoded as in RFC 3629, section 4.
#include "mltcp/base/text.h"

#include <algorithm>
#include <cstdlib>

namespace mltcp {
namespace {

struct Character {
  std::size_t bytes = 1;
  char32_t code = 0;
  bool valid = false;
};

// Returns the first character of `text`, which must not be empty. If `text` begins with an invalid byte, returns that
// byte as an invalid character.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, lead, true};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  char32_t code = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (overlong || surrogate || code > 0x10FFFF) return {};
  return {bytes, code, true};
}

struct Range {
  char32_t first;
  char32_t last;
};
// Invisible characters, and characters that reorder or join their neighbours (Unicode Standard Annex #9 and general
// category Cf).
constexpr Range kInvisible[] = {{0x00AD, 0x00AD}, {0x061C, 0x061C}, {0x180E, 0x180E},
                                {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},
                                {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF}};

}  // namespace

bool is_printable(char32_t code) {
  return code >= 0x20 && (code < 0x7F || code > 0x9F) && std::ranges::none_of(kInvisible, [&](const Range& range) {
           return code >= range.first && code <= range.last;
         });
}

std::string one_line(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_of(text);
    if ((character.valid && is_printable(character.code)) || kept.find(text.front()) != std::string_view::npos)
      result += text.substr(0, character.bytes);
    else
      result += '?';
    text.remove_prefix(character.bytes);
  }
  return result;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::size_t end = 0;
  while (end < text.size()) {
    const std::size_t next = end + first_of(text.substr(end)).bytes;
    if (next > longest) break;
    end = next;
  }
  return '"' + one_line(text.substr(0, end)) + (end < text.size() ? "...\"" : "\"");
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view white = " \t\r";
  const std::size_t first = text.find_first_not_of(white);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(white) - first + 1);
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string plural(std::size_t count, std::string_view what) {
  std::string text = std::to_string(count) + " ";
  text += what;
  return count == 1 ? text : text + "s";
}

}  // namespace mltcp
