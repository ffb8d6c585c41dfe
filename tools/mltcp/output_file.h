// Output files: regular files are replaced atomically; devices and pipes are written in place.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace mltcp {
struct Provenance;
}

namespace mltcp::tools {

/// Throws InputError if write_file(file, ...) is certain to fail, or would overwrite the file `input`. Without side
/// effects, so that it can be called before hours of work.
void check_writable(const std::string& file, const std::string& input);

/// Throws InputError if two of `files`, given by `options`, are the same file, so that one would overwrite the other.
/// Devices and pipes may be repeated.
void check_distinct(std::initializer_list<std::optional<std::string>> files, std::string_view options);

/// Whether write_file() may be repeated to replace the contents: a regular file, not a descriptor, device or pipe.
bool replaceable(const std::string& file);

/// Writes `text` to `file`; "-", /dev/stdout and /dev/fd/N are open descriptors. A regular file, after following links,
/// is replaced when the new one is complete, and its permissions are kept (base/file.h). Throws RunError, and
/// InputError if somebody has planted a link or a file there.
void write_file(const std::string& file, const std::string& text);
/// The same of JSON, with "provenance".
void write_json(const std::string& file, nlohmann::ordered_json json, const Provenance& provenance);

}  // namespace mltcp::tools
