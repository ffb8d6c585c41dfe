// Output files: replaced whole or not at all where they are files, written in place where they are devices or pipes.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace mltcp::tools {

/// Throws InputError if write_file(file, ...) is bound to fail, or would overwrite the file `input`. Makes, changes and
/// deletes nothing, so that it can be asked before hours of work.
void check_writable(const std::string& file, const std::string& input);

/// Throws InputError if two of `files`, which `options` name, lead to one file: the later would overwrite the earlier.
/// Devices and pipes take any number.
void check_distinct(std::initializer_list<std::optional<std::string>> files, std::string_view options);

/// Whether write_file() replaces what it wrote there before: a file, and no open descriptor, device or pipe.
bool replaceable(const std::string& file);

/// Writes all of `text` to `file`; "-", /dev/stdout and /dev/fd/N are the open descriptors. A file takes the place of
/// the one that links lead to, with its permissions, once it is complete. Throws RunError.
void write_file(const std::string& file, const std::string& text);

}  // namespace mltcp::tools
