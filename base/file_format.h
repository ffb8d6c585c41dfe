// What a file is by its first bytes, for messages about files that can't be read: pictures, archives, data bases, XML,
// tables. Not how it is read: readers recognise their own.
#pragma once

#include <string_view>

namespace mltcp {

struct FileFormat {
  std::string_view name;  ///< "XML", "a picture (PNG)", "numbers in columns"; empty: nothing that is known
  std::string_view cure;  ///< what to do with it: "unpack it and give what is in it"; empty: nothing
  /// Whether no text that a person writes for this program begins so; else it may be one with a mistake in it.
  bool is_foreign = false;
};

/// By `beginning`, a few hundred bytes or all of it.
FileFormat file_format(std::string_view beginning);

/// Of text, what follows the mark that some editors and shells put before UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

/// Whether it has no control characters but white space.
bool is_text(std::string_view beginning);

}  // namespace mltcp
