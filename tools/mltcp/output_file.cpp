// Writes output files (see output_file.h).
#include "output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/json/json_object.h"

namespace mltcp::tools {
namespace {

namespace fs = std::filesystem;

OutputTarget target_of(const std::string& file) {
  return file == "-" ? OutputTarget{file, STDOUT_FILENO} : output_target(file);
}

std::string reason() { return std::strerror(errno); }

bool may(const fs::path& path, int how) { return faccessat(AT_FDCWD, path.c_str(), how, AT_EACCESS) == 0; }

}  // namespace

void check_writable(const std::string& file, const std::string& input) {
  const auto fail = [&](std::string_view cause, std::string_view cure) {
    throw InputError(fmt::format("{}: {}; {}", file, cause, cure));
  };
  const OutputTarget target = target_of(file);
  if (target.descriptor) {
    const int flags = fcntl(*target.descriptor, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) fail("is not open for writing", "redirect it, or name a file");
    return;
  }
  std::error_code error;
  const fs::path folder = target.path.parent_path();
  const fs::file_status status = fs::status(target.path, error);
  if (fs::is_directory(status)) fail("is a folder", "name a file in it");
  if (fs::is_symlink(fs::symlink_status(target.path, error)))
    fail("is a symbolic link that points to itself", "name a file");
  if (fs::is_socket(status)) fail("is a socket", "name a file");
  if (fs::exists(status)) {
    if (fs::equivalent(target.path, input, error)) fail("is also the input file", "name another file");
    if (!may(target.path, W_OK))
      fail(fmt::format("cannot be written ({})", reason()), "change its permissions, or name another file");
    if (!fs::is_regular_file(status)) return;
  }
  if (!fs::is_directory(folder, error))
    fail(fmt::format("the folder {} does not exist", folder.string()), "make it, or name another file");
  if (!may(folder, W_OK | X_OK))
    fail(fmt::format("cannot be written ({})", reason()), fmt::format("check the permissions of {}", folder.string()));
}

void check_distinct(const std::vector<std::optional<std::string>>& files, std::string_view options) {
  std::vector<fs::path> seen;
  for (const auto& file : files) {
    if (!file) continue;
    const OutputTarget target = target_of(*file);
    std::error_code error;
    const fs::file_status status = fs::status(target.path, error);
    if (target.descriptor || (fs::exists(status) && !fs::is_regular_file(status))) continue;
    const fs::path path = fs::weakly_canonical(target.path, error);
    if (std::ranges::find(seen, path) != seen.end())
      throw InputError(fmt::format("{}: two of these options name {}; name different files", options, *file));
    seen.push_back(path);
  }
}

Outputs::Outputs(std::vector<std::pair<std::string_view, std::optional<std::string>>> files)
    : files_(std::move(files)) {
  std::size_t on_standard_output = 0;
  for (const auto& [option, file] : files_) {
    options_ += fmt::format("{}{}", options_.empty() ? "" : ", ", option);
    if (file && file->empty())
      throw InputError(fmt::format("{}: the name is empty; name a file, or - for standard output", option));
    if (file == "-") ++on_standard_output;
  }
  standard_output_ = on_standard_output > 0;
  if (on_standard_output > 1)
    throw InputError(fmt::format("{}: only one of these options can write to standard output; name {}", options_,
                                 files_.size() == 2 ? "a file for the other" : "files for the others"));
}

void Outputs::check(const std::string& input) const {
  std::vector<std::optional<std::string>> all;
  for (const auto& [option, file] : files_) all.push_back(file);
  for (const auto& file : all)
    if (file) check_writable(*file, input);
  check_distinct(all, options_);
}

bool replaceable(const std::string& file) {
  const OutputTarget target = target_of(file);
  std::error_code error;
  const fs::file_status status = fs::status(target.path, error);
  return !target.descriptor && (!fs::exists(status) || fs::is_regular_file(status));
}

void write_file(const std::string& file, const std::string& text) {
  const auto require = [&](int error) {
    if (error == 0) return;
    throw RunError(
        fmt::format("{} cannot be written: {}", file == "-" ? "standard output" : file + ":", std::strerror(error)));
  };
  const OutputTarget target = target_of(file);
  // Text that is still buffered must be printed before the file's text.
  std::fflush(stdout);
  if (target.descriptor) {
    require(write_all(*target.descriptor, text));
    return;
  }
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target.path, error);
  if (!fs::exists(status) || fs::is_regular_file(status)) {
    require(replace_file(target.path, text));
    return;
  }
  const int device = open(target.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  require(device >= 0 ? 0 : errno);
  const int written = write_all(device, text);
  const int closed = close(device) == 0 ? 0 : errno;
  require(written != 0 ? written : closed);
}

void write_json(const std::string& file, nlohmann::ordered_json json, const Provenance& provenance) {
  json["provenance"] = to_json(provenance);
  write_file(file, json_text(json, 2));
}

}  // namespace mltcp::tools
