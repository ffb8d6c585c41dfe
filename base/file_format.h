// Recognises the format of a file by its first bytes, for messages about files that cannot be read: pictures, archives,
// databases, XML, tables. The formats that this project reads are not included; their readers recognise them.
#pragma once

#include <string_view>

namespace mltcp {

struct FileFormat {
  std::string_view name;  ///< for example "XML", "a picture (PNG)", "numbers in columns"; empty if unknown
  /// Advice for the user, such as "unpack it and give what is in it"; empty if there is no advice.
  std::string_view cure;
  /// True if no input file of this program can begin like this. False if the file may be an input file with a mistake.
  bool is_foreign = false;
};

/// Returns the format of a file. `beginning` is the whole file or its first few hundred bytes.
FileFormat file_format(std::string_view beginning);

/// Returns `text` without the byte order mark that some editors and shells put before UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

/// Returns whether `beginning` is free of control characters, white space excepted.
bool is_text(std::string_view beginning);

}  // namespace mltcp
