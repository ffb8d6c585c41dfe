// Writes output files. A regular file is replaced atomically, while a device or a pipe is written in place.
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

/// Throws InputError if write_file(file, ...) is certain to fail, or if it would overwrite the file `input`. Changes
/// nothing, so that a command can call it before hours of work.
void check_writable(const std::string& file, const std::string& input);

/// Throws InputError if two of `files` are the same regular file, so that one would overwrite the other. The same
/// device or pipe may occur several times. `options` names the options in the message.
void check_distinct(const std::vector<std::optional<std::string>>& files, std::string_view options);

/// The files that a command writes besides its text for people. Each belongs to an option.
class Outputs {
 public:
  /// Throws InputError if a name is empty, or if several files are standard output.
  explicit Outputs(std::vector<std::pair<std::string_view, std::optional<std::string>>> files);
  /// Calls check_writable() for each file, and check_distinct() for all of them.
  void check(const std::string& input) const;
  /// Returns the stream for people: standard error if one of the files is standard output, otherwise standard output.
  [[nodiscard]] std::FILE* text() const { return standard_output_ ? stderr : stdout; }

 private:
  std::vector<std::pair<std::string_view, std::optional<std::string>>> files_;
  std::string options_;  ///< the names of the options, as in "--json, --report"
  bool standard_output_ = false;
};

/// Returns whether write_file() can replace the contents again and again: true for a regular file or a new one, false
/// for a descriptor, a device or a pipe.
bool replaceable(const std::string& file);

/// Writes `text` to `file`. The names "-", /dev/stdout and /dev/fd/N stand for open descriptors. A regular file is
/// replaced when the new one is complete, and its permissions stay the same (base/file.h). If `file` is a link, its
/// target is replaced. Throws RunError on failure. Throws InputError if another user has created a link or a file at
/// this name in a shared folder (output_target() in base/file.h).
void write_file(const std::string& file, const std::string& text);
/// Adds the member "provenance" to `json`, and writes it like write_file().
void write_json(const std::string& file, nlohmann::ordered_json json, const Provenance& provenance);

}  // namespace mltcp::tools
