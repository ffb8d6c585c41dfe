// Reads and writes whole files (see file.h).
#include "mltcp/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/file_format.h"
#include "mltcp/base/nearest.h"
#include "mltcp/base/text.h"

namespace mltcp {
namespace {

struct Descriptor {
  explicit Descriptor(int opened) : number(opened) {}
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number;
};

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): read_text_file() has no observer parameter
thread_local const FileObserver::OnRead* observer = nullptr;

// Guesses which file in the folder of `path` the user meant. If a file has the same name and an additional extension,
// returns this file. If not, returns the file with the nearest name. The result has the same folder part as `path`.
std::optional<std::string> meant_file(const std::filesystem::path& path) {
  constexpr std::size_t max_entries = 10'000;  // maximum number of files; searching more files would take too long
  constexpr std::size_t shortest = 3;  // minimum length of a name; two edits can change a shorter name completely
  const std::string name = path.filename().string();
  if (path.stem().string().size() < shortest) return std::nullopt;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (names.size() == max_entries) return std::nullopt;
    std::error_code unknown;
    if (entry->is_regular_file(unknown)) names.push_back(entry->path().filename().string());
  }
  // Makes the choice between equally near names independent of the folder's order.
  std::sort(names.begin(), names.end());
  const auto longer =
      std::find_if(names.begin(), names.end(), [&](const std::string& other) { return other.starts_with(name + '.'); });
  const auto meant = longer != names.end() ? std::optional(*longer) : nearest(name, names);
  if (!meant) return std::nullopt;
  return (path.parent_path() / *meant).string();
}

}  // namespace

FileObserver::FileObserver(OnRead on_read) : on_read_(std::move(on_read)) { observer = &on_read_; }
FileObserver::~FileObserver() { observer = nullptr; }
bool FileObserver::exists() { return observer != nullptr; }

std::string read_text_file(const std::filesystem::path& path, std::string_view name, const TextFile& expected) {
  const auto fail = [&](std::string_view cause, std::string_view cure) {
    throw InputError(fmt::format("{}: {}; {}", name, cause, cure));
  };
  const std::string give = fmt::format("give the path of {}", expected.what);
  // stat() comes before open(), because opening a device can already have side effects.
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      const auto meant = meant_file(path);
      fail("there is no such file", meant ? fmt::format("did you mean \"{}\"?", one_line(*meant)) : give);
    }
    fail(fmt::format("the file can't be opened ({})", std::strerror(errno)), "check its path and permissions");
  }
  if (S_ISDIR(found.st_mode)) fail("this is a directory", give);
  if (!S_ISREG(found.st_mode) && !S_ISFIFO(found.st_mode)) fail("this is a device or socket, not a file", give);
  // Without O_NONBLOCK, opening a pipe would wait until a process opens it for writing.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.number < 0 || fcntl(file.number, F_SETFL, 0) != 0)
    fail(fmt::format("the file can't be opened ({})", std::strerror(errno)), "check its permissions");
  std::string text;
  std::array<char, 65536> part{};
  while (true) {
    const ssize_t count = read(file.number, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(fmt::format("the file can't be read ({})", std::strerror(errno)), "check the disk");
    if (count == 0) {
      if (observer != nullptr) (*observer)(path, text);
      text.erase(0, text.size() - without_byte_order_mark(text).size());
      return text;
    }
    text.append(part.data(), static_cast<std::size_t>(count));
    if (text.size() > expected.max_bytes)
      fail(fmt::format("the file is larger than {} MiB", expected.max_bytes >> 20U), give);
  }
}

namespace {

namespace fs = std::filesystem;

std::optional<int> descriptor_of(const fs::path& path) {
  std::error_code error;
  if (!fs::equivalent(path.parent_path(), "/proc/self/fd", error)) return std::nullopt;
  const std::string name = path.filename().string();
  int number = -1;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (problem != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

void refuse_planted(const fs::path& path, const struct stat& found) {
  struct stat folder {};
  if (found.st_uid == geteuid() || found.st_uid == 0 || stat(path.parent_path().c_str(), &folder) != 0 ||
      found.st_uid == folder.st_uid)
    return;
  constexpr mode_t shared = S_ISVTX | S_IWOTH;
  if ((folder.st_mode & shared) != shared) return;
  throw InputError(
      fmt::format("{}: the {} belongs to another user, in a folder that all users may write to; remove it, or name a "
                  "file in your own folder",
                  one_line(path.string()),
                  S_ISLNK(found.st_mode)   ? "link"
                  : S_ISDIR(found.st_mode) ? "folder"
                                           : "file"));
}

// A temporary file in the folder of `target`. The destructor deletes it unless place() has succeeded.
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

  // Gives the temporary file the permissions of `target`, or the permissions of a new file if `target` is not a regular
  // file. Then renames the temporary file to `target`. Returns whether all steps succeeded.
  [[nodiscard]] bool place(const fs::path& target) {
    struct stat there {};
    if (lstat(target.c_str(), &there) == 0 && S_ISREG(there.st_mode)) {
      // Only root can preserve the owner of `target`. For other users fchown() may fail, and the new file belongs to
      // them.
      static_cast<void>(fchown(descriptor_, there.st_uid, there.st_gid) == 0);
    } else {
      const mode_t mask = umask(0);
      umask(mask);
      there.st_mode = 0666U & ~mask;
    }
    const bool permitted = fchmod(descriptor_, there.st_mode & 0777U) == 0;
    const bool closed = close(std::exchange(descriptor_, -1)) == 0;  // a full disk may be reported only here
    placed_ = permitted && closed && rename(name_.c_str(), target.c_str()) == 0;
    return placed_;
  }

 private:
  std::string name_;
  int descriptor_ = -1;
  bool made_ = false;
  bool placed_ = false;
};

bool is_in_proc(int descriptor) {
  struct statfs system {};
  return fstatfs(descriptor, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// Resolves the links in `name`. Throws InputError if another user may have planted a link or the last part. If `whole`
// is false, does not follow or check the last part of `name`.
OutputTarget resolved(const fs::path& name, bool whole) {
  constexpr int max_links = 40;  // Linux follows at most this many links
  OutputTarget target;
  std::error_code error;
  const fs::path absolute = fs::absolute(name, error);
  std::deque<fs::path> rest(absolute.begin(), absolute.end());
  for (int links = 0; !rest.empty();) {
    const fs::path part = rest.front();
    rest.pop_front();
    const bool last = rest.empty();
    if (!last && (part == "." || part.empty())) continue;
    const fs::path folder = target.path;
    target.path = !last && part == ".." ? folder.parent_path() : folder / part;
    if (last) target.descriptor = descriptor_of(target.path);
    if (last && (!whole || target.descriptor)) break;
    // Checks and reads the link through one descriptor, so that nobody can exchange the link in between.
    const Descriptor found(open(target.path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (found.number < 0 || fstat(found.number, &status) != 0) break;
    if (last || S_ISLNK(status.st_mode)) refuse_planted(target.path, status);
    // The text of a link in /proc may not be the path of its target, for example if the target is a socket. So a link
    // in /proc is resolved only if it is the last part.
    if (!S_ISLNK(status.st_mode) || (!last && is_in_proc(found.number))) continue;
    std::array<char, PATH_MAX> to{};
    const ssize_t length = ++links > max_links ? -1 : readlinkat(found.number, "", to.data(), to.size());
    if (length <= 0) break;
    const fs::path leads = std::string_view(to.data(), static_cast<std::size_t>(length));
    rest.insert(rest.begin(), leads.begin(), leads.end());
    target.path = folder;
  }
  for (const fs::path& part : rest) target.path /= part;
  return target;
}

}  // namespace

OutputTarget output_target(const fs::path& name) { return resolved(name, true); }

void refuse_planted_links(const fs::path& name) { static_cast<void>(output_target(name)); }

int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

int replace_file(const fs::path& name, std::string_view text) {
  fs::path path;
  try {
    path = resolved(name, false).path;
  } catch (const InputError&) {
    return EACCES;  // the error that Linux reports for a planted link
  }
  Neighbour neighbour(path);
  if (neighbour.descriptor() < 0) return errno;
  if (const int error = write_all(neighbour.descriptor(), text); error != 0) return error;
  return neighbour.place(path) ? 0 : errno;
}

}  // namespace mltcp
