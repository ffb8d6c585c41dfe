// Reading of whole text files (see file.h).
#include "mltcp/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
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

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): readers of files know nothing of who looks on
thread_local const FileObserver::OnRead* observer = nullptr;

// The file beside `path` that was meant, as a path that begins like it: one that only has an ending more, or the one
// whose name is nearest.
std::optional<std::string> meant_file(const std::filesystem::path& path) {
  constexpr std::size_t most_entries = 10'000;  // a folder of more is none that somebody knows by heart
  constexpr std::size_t shortest = 3;           // two edits make any shorter name of any other
  const std::string name = path.filename().string();
  if (path.stem().string().size() < shortest) return std::nullopt;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (names.size() == most_entries) return std::nullopt;
    std::error_code unknown;
    if (entry->is_regular_file(unknown)) names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());  // so that of two as near as each other it is always the same
  const auto longer =
      std::find_if(names.begin(), names.end(), [&](const std::string& other) { return other.starts_with(name + '.'); });
  const auto meant = longer != names.end() ? std::optional(*longer) : nearest(name, names);
  if (!meant) return std::nullopt;
  return (path.parent_path() / *meant).string();
}

}  // namespace

FileObserver::FileObserver(OnRead on_read) : on_read_(std::move(on_read)) { observer = &on_read_; }
FileObserver::~FileObserver() { observer = nullptr; }

std::string read_text_file(const std::filesystem::path& path, std::string_view name, const TextFile& expected) {
  const auto fail = [&](std::string_view cause, std::string_view cure) {
    throw InputError(fmt::format("{}: {}; {}", name, cause, cure));
  };
  const std::string give = fmt::format("give the path of {}", expected.what);
  // Looked at before it is opened: opening a device alone may set something off.
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      const auto meant = meant_file(path);
      fail("there is no such file", meant ? fmt::format("did you mean \"{}\"?", one_line(*meant)) : give);
    }
    fail(fmt::format("the file can't be opened ({})", std::strerror(errno)), "check its path and permissions");
  }
  if (S_ISDIR(found.st_mode)) fail("this is a directory", give);
  if (!S_ISREG(found.st_mode) && !S_ISFIFO(found.st_mode)) fail("this is no file but a device or socket", give);
  // Without O_NONBLOCK a pipe would be waited for until somebody opens its other end.
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
      return text;
    }
    text.append(part.data(), static_cast<std::size_t>(count));
    if (text.size() > expected.most_bytes)
      fail(fmt::format("the file is larger than {} MiB", expected.most_bytes >> 20U), give);
  }
}

}  // namespace mltcp
