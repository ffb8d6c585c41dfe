// Output files (see output_file.h).
#include "output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"

namespace mltcp::tools {
namespace {

namespace fs = std::filesystem;

// Where a name leads.
struct Target {
  fs::path path;                  // no link; may not exist
  std::optional<int> descriptor;  // one of ours; path is its name then
};

std::optional<int> descriptor_of(const fs::path& path) {
  std::error_code error;
  if (!fs::equivalent(path.parent_path(), "/proc/self/fd", error)) return std::nullopt;
  const std::string name = path.filename().string();
  int number = -1;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (problem != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

// Follows links, those to what does not exist too, but not those of /proc: opening what they lead to anew would start
// at the beginning of a file that the shell has opened to append, and can't be done with a socket.
Target target_of(const std::string& file) {
  constexpr int most_links = 40;  // as Linux
  if (file == "-") return {file, STDOUT_FILENO};
  Target target;
  std::error_code error;
  target.path = fs::absolute(file, error);
  for (int links = 0; links < most_links; ++links) {
    target.descriptor = descriptor_of(target.path);
    if (target.descriptor || !fs::is_symlink(fs::symlink_status(target.path, error))) break;
    target.path = target.path.parent_path() / fs::read_symlink(target.path, error);
  }
  return target;
}

std::string reason() { return std::strerror(errno); }

bool may(const fs::path& path, int how) { return faccessat(AT_FDCWD, path.c_str(), how, AT_EACCESS) == 0; }

// A file that is deleted again unless it has been put into the place of another.
class Neighbour {
 public:
  explicit Neighbour(const fs::path& target) : name_((target.parent_path() / ".mltcp-XXXXXX").string()) {
    descriptor_ = mkostemp(name_.data(), O_CLOEXEC);
    made_ = descriptor_ >= 0;
  }
  ~Neighbour() {
    if (descriptor_ >= 0) close(descriptor_);
    if (made_ && !placed_) unlink(name_.c_str());
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }

  // Gives it the permissions of `target`, or those of a new file, and puts it there.
  [[nodiscard]] bool place(const fs::path& target) {
    struct stat there {};
    if (stat(target.c_str(), &there) == 0) {
      // Only root can keep the owner; whoever else may write the file becomes it.
      static_cast<void>(fchown(descriptor_, there.st_uid, there.st_gid) == 0);
    } else {
      const mode_t mask = umask(0);
      umask(mask);
      there.st_mode = 0666U & ~mask;
    }
    const bool permitted = fchmod(descriptor_, there.st_mode & 0777U) == 0;
    const bool closed = close(std::exchange(descriptor_, -1)) == 0;  // some file systems say here that they are full
    placed_ = permitted && closed && rename(name_.c_str(), target.c_str()) == 0;
    return placed_;
  }

 private:
  std::string name_;
  int descriptor_ = -1;
  bool made_ = false;
  bool placed_ = false;
};

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

void check_writable(const std::string& file, const std::string& input) {
  const auto fail = [&](std::string_view cause, std::string_view cure) {
    throw InputError(fmt::format("{}: {}; {}", file, cause, cure));
  };
  const Target target = target_of(file);
  if (target.descriptor) {
    const int flags = fcntl(*target.descriptor, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) fail("is not open for writing", "redirect it, or name a file");
    return;
  }
  std::error_code error;
  const fs::path folder = target.path.parent_path();
  const fs::file_status status = fs::status(target.path, error);
  if (fs::is_directory(status)) fail("is a folder", "name a file in it");
  if (fs::is_symlink(fs::symlink_status(target.path, error))) fail("is a link that leads to itself", "name a file");
  if (fs::is_socket(status)) fail("is a socket", "name a file");
  if (fs::exists(status)) {
    if (fs::equivalent(target.path, input, error)) fail("is the file that is read", "name another file");
    if (!may(target.path, W_OK))
      fail(fmt::format("can't be written ({})", reason()), "change that, or name another file");
    if (!fs::is_regular_file(status)) return;
  }
  if (!fs::is_directory(folder, error))
    fail(fmt::format("the folder {} does not exist", folder.string()), "make it, or name another file");
  if (!may(folder, W_OK | X_OK))
    fail(fmt::format("can't be written ({})", reason()), fmt::format("check the permissions of {}", folder.string()));
}

void check_distinct(std::initializer_list<std::optional<std::string>> files, std::string_view options) {
  std::vector<fs::path> seen;
  for (const auto& file : files) {
    if (!file) continue;
    const Target target = target_of(*file);
    std::error_code error;
    const fs::file_status status = fs::status(target.path, error);
    if (target.descriptor || (fs::exists(status) && !fs::is_regular_file(status))) continue;
    const fs::path path = fs::weakly_canonical(target.path, error);
    if (std::find(seen.begin(), seen.end(), path) != seen.end())
      throw InputError(fmt::format("{}: two of them are {}; name different files", options, *file));
    seen.push_back(path);
  }
}

bool replaceable(const std::string& file) {
  const Target target = target_of(file);
  std::error_code error;
  const fs::file_status status = fs::status(target.path, error);
  return !target.descriptor && (!fs::exists(status) || fs::is_regular_file(status));
}

void write_file(const std::string& file, const std::string& text) {
  const auto require = [&](bool done) {
    if (!done)
      throw RunError(fmt::format("{} can't be written: {}", file == "-" ? "standard output" : file + ":", reason()));
  };
  const Target target = target_of(file);
  // What was printed before comes before it.
  std::fflush(stdout);
  if (target.descriptor) {
    require(write_all(*target.descriptor, text));
    return;
  }
  std::error_code error;
  const fs::file_status status = fs::status(target.path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    const int device = open(target.path.c_str(), O_WRONLY | O_CLOEXEC);
    require(device >= 0);
    const bool written = write_all(device, text);
    const int why = errno;
    const bool closed = close(device) == 0;
    if (!written) errno = why;
    require(written && closed);
    return;
  }
  Neighbour neighbour(target.path);
  require(neighbour.descriptor() >= 0);
  require(write_all(neighbour.descriptor(), text));
  require(neighbour.place(target.path));
}

}  // namespace mltcp::tools
