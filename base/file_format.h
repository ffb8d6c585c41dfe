// The format of a file by its first bytes, for messages about files that cannot be read: pictures, archives, data
// bases, XML, tables. Readers recognise their own formats themselves.
#pragma once

#include <string_view>

namespace mltcp {

struct FileFormat {
  std::string_view name;  ///< "XML", "a picture (PNG)", "numbers in columns"; empty: unknown
  std::string_view cure;  ///< what the user can do: "unpack it and give what is in it"; empty: no advice
  /// Whether no text written for this program begins like this; else it may be such a text with a mistake.
  bool is_foreign = false;
};

/// `beginning`: the first few hundred bytes, or the whole file.
FileFormat file_format(std::string_view beginning);

/// `text` without the byte order mark that some editors and shells put before UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

/// Whether it has no control characters except white space.
bool is_text(std::string_view beginning);

}  // namespace mltcp
