// Output files: regular files are replaced atomically; devices and pipes are written in place.
#pragma once

#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mltcp {
struct Provenance;
}

namespace mltcp::tools {

/// Throws InputError if write_file(file, ...) is certain to fail, or would overwrite the file `input`. Without side
/// effects, so that it can be called before hours of work.
void check_writable(const std::string& file, const std::string& input);

/// Throws InputError if two of `files`, given by `options`, are the same file, so that one would overwrite the other.
/// Devices and pipes may be repeated.
void check_distinct(const std::vector<std::optional<std::string>>& files, std::string_view options);

/// The files that a command writes besides its text for people, by option.
class Outputs {
 public:
  /// Throws InputError for an empty name, and if several are standard output.
  explicit Outputs(std::vector<std::pair<std::string_view, std::optional<std::string>>> files);
  /// Calls check_writable() for each, and checks that they are different files.
  void check(const std::string& input) const;
  /// Where text for people goes: to standard error if a file is written to standard output.
  [[nodiscard]] std::FILE* text() const { return standard_output_ ? stderr : stdout; }

 private:
  std::vector<std::pair<std::string_view, std::optional<std::string>>> files_;
  std::string options_;  ///< "--json, --report"
  bool standard_output_ = false;
};

/// Whether write_file() may be repeated to replace the contents: a regular file, not a descriptor, device or pipe.
bool replaceable(const std::string& file);

/// Writes `text` to `file`; "-", /dev/stdout and /dev/fd/N are open descriptors. A regular file, after following links,
/// is replaced when the new one is complete; it keeps its permissions (base/file.h). Throws RunError, and InputError if
/// another user has planted a link or a file there.
void write_file(const std::string& file, const std::string& text);
/// Likewise for JSON, with "provenance".
void write_json(const std::string& file, nlohmann::ordered_json json, const Provenance& provenance);

}  // namespace mltcp::tools
