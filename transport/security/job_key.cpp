// Keys of jobs, and their files (see job_key.h).
#include "mltcp/transport/security/job_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <system_error>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/system_random.h"
#include "mltcp/base/text.h"
#include "mltcp/transport/security/key_schedule.h"

namespace mltcp::security {
namespace {

constexpr std::string_view kLabel = "mltcp-key-1";
constexpr std::size_t kMaxText = 4096;
constexpr std::string_view kMake = "make one with `mltcp key FILE`";

std::string why(int error) { return std::generic_category().message(error); }

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

/// Text that is wiped on destruction, also after an exception.
class SecretText {
 public:
  SecretText() = default;
  ~SecretText() { wipe(text_.data(), text_.size()); }
  SecretText(const SecretText&) = delete;
  SecretText& operator=(const SecretText&) = delete;

  /// Reads to the end of the file. Returns false if the text is longer than a key file may be.
  bool read(int descriptor, bool is_regular, std::string_view name) {
    for (;;) {
      char* const at = text_.data() + used_;
      const std::size_t free = text_.size() - used_;
      // Uses pread(), because processes that have inherited a file also share its position.
      const ssize_t got =
          is_regular ? ::pread(descriptor, at, free, static_cast<off_t>(used_)) : ::read(descriptor, at, free);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw InputError(fmt::format("{}: the key cannot be read: {}", name, why(errno)));
      if (got == 0) return true;
      used_ += static_cast<std::size_t>(got);
      if (used_ == text_.size()) return false;
    }
  }
  [[nodiscard]] std::string_view view() const { return {text_.data(), used_}; }

 private:
  std::array<char, kMaxText + 1> text_{};
  std::size_t used_ = 0;
};

void check_owner(const struct stat& file, std::string_view name) {
  if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw InputError(
        fmt::format("{}: users other than its owner may use this key file (mode {:04o}); chmod 600 it, and make a new "
                    "key if they may have read it",
                    name, file.st_mode & 07777U));
  if (file.st_uid != ::geteuid() && file.st_uid != 0)
    throw InputError(fmt::format("{}: this key file belongs to user {}, who could change it; make a copy that you own",
                                 name, file.st_uid));
}

JobKey read_key(int descriptor, std::string_view name) {
  struct stat file {};
  if (::fstat(descriptor, &file) != 0) throw InputError(fmt::format("{}: {}", name, why(errno)));
  if (S_ISDIR(file.st_mode)) throw InputError(fmt::format("{}: is a folder, not a key file; {}", name, kMake));
  if (S_ISREG(file.st_mode)) check_owner(file, name);
  SecretText text;
  if (!text.read(descriptor, S_ISREG(file.st_mode), name))
    throw InputError(fmt::format("{}: is longer than {} bytes, so it is no key file; {}", name, kMaxText, kMake));
  return JobKey::from_text(text.view(), name);
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Returns whether `text` may be a key that was given by mistake instead of the name of its file.
bool looks_like_key(std::string_view text) {
  if (text.starts_with(kLabel) && text.find(' ') != std::string_view::npos) return true;
  std::size_t run = 0;
  for (const char c : text) {
    run = digit(c) >= 0 ? run + 1 : 0;
    if (run >= 2 * JobKey::kSize) return true;
  }
  return false;
}

/// Returns the key, or no value unless `digits` has exactly the right number of hexadecimal digits.
std::optional<Secret<JobKey::kSize>> parse(std::string_view digits) {
  Secret<JobKey::kSize> secret;
  if (digits.size() != 2 * JobKey::kSize) return std::nullopt;
  for (std::size_t i = 0; i < JobKey::kSize; ++i) {
    const int high = digit(digits[2 * i]);
    const int low = digit(digits[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    secret.bytes()[i] = static_cast<std::byte>(high << 4 | low);
  }
  return secret;
}

}  // namespace

JobKey::JobKey(const Secret<kSize>& secret) : secret_(secret), id_(key_id(extracted_key(secret))) {
  const auto bytes = secret.bytes();
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{}; }))
    throw InputError("the key is all zeros, which anyone can guess (uninitialised memory?); " +
                     fmt::format("{}", kMake));
}

JobKey JobKey::generate() {
  Secret<kSize> secret;
  draw_system_random(secret.bytes());
  return JobKey(secret);
}

JobKey JobKey::from_file(const std::filesystem::path& path) {
  const std::string name = one_line(path.string());
  // Opened with O_NONBLOCK, because opening a pipe without a writer would block the program.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.number() < 0)
    throw InputError(fmt::format("{}: the key file cannot be opened: {}{}", name, why(errno),
                                 errno == ENOENT ? fmt::format("; {}", kMake) : ""));
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) throw InputError(fmt::format("{}: {}", name, why(errno)));
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    throw InputError(fmt::format("{}: is no regular file; give a key from a pipe by its descriptor (fd:N)", name));
  return read_key(file.number(), name);
}

JobKey JobKey::from_descriptor(int descriptor) {
  return read_key(descriptor, fmt::format("descriptor {}", descriptor));
}

JobKey JobKey::from_source(std::string_view source) {
  constexpr std::string_view prefix = "fd:";
  if (source.empty()) throw InputError("no key is named; give a key file, or fd:N for descriptor N");
  if (source == "-") throw InputError("\"-\" is no key file; give its name, or fd:0 for standard input");
  if (!source.starts_with(prefix)) {
    // A file is read even if its path looks like a key. If there is no such file, the text may be a secret, so the
    // message does not repeat it.
    std::error_code ignored;
    if (looks_like_key(source) && !std::filesystem::exists(source, ignored))
      throw InputError(
          "this is no key file, but may be a key, which others can see here; make a new key with `mltcp key FILE`, and "
          "give the name of that file");
    return from_file(source);
  }
  const std::string_view digits = source.substr(prefix.size());
  int descriptor = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), descriptor);
  if (error != std::errc() || end != digits.data() + digits.size() || descriptor < 0)
    throw InputError(fmt::format("{} names no descriptor; give fd:N with its number, such as fd:3", in_quotes(source)));
  return from_descriptor(descriptor);
}

JobKey JobKey::from_text(std::string_view text, std::string_view name) {
  std::optional<Secret<kSize>> found;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.front() == '#') continue;
    if (found) throw InputError(fmt::format("{}, line {}: a second key; a key file holds one", name, number));
    const bool labelled = line.starts_with(kLabel) && line.size() > kLabel.size() && line[kLabel.size()] == ' ';
    if (labelled) found = parse(trimmed(line.substr(kLabel.size())));
    if (!found)
      throw InputError(fmt::format("{}, line {}: no key: expected \"{} \" and {} hexadecimal digits; {}", name, number,
                                   kLabel, 2 * kSize, kMake));
  }
  if (!found) throw InputError(fmt::format("{}: there is no key in it; {}", name, kMake));
  try {
    return JobKey(*found);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", name, error.what()));
  }
}

std::string JobKey::to_text() const {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = fmt::format(
      "# MLTCP key {:016x}: anyone who reads this can join the job and read its traffic.\n{} ", id_, kLabel);
  text.reserve(text.size() + 2 * kSize + 1);  // so that growing the string leaves no copy of the key in freed memory
  for (const std::byte byte : secret_.bytes()) {
    text += digits[std::to_integer<std::size_t>(byte >> 4)];
    text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  text += '\n';
  return text;
}

void JobKey::write_file(const std::filesystem::path& path) const {
  const std::string name = one_line(path.string());
  refuse_planted_links(path);
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, S_IRUSR | S_IWUSR));
  if (file.number() < 0) {
    const int error = errno;
    std::error_code unknown;
    throw InputError(fmt::format("{}: {}", name,
                                 std::filesystem::is_directory(path, unknown) ? "is a folder; name a file in it"
                                 : error == EEXIST
                                     ? "exists, and keys are not replaced by mistake; name another file, or "
                                       "remove it first"
                                     : "the key file cannot be made: " + why(error)));
  }
  std::string text = to_text();
  std::size_t written = 0;
  int error = 0;
  while (written < text.size() && error == 0) {
    const ssize_t took = ::write(file.number(), text.data() + written, text.size() - written);
    if (took >= 0)
      written += static_cast<std::size_t>(took);
    else if (errno != EINTR)
      error = errno;
  }
  wipe(text.data(), text.size());
  if (error == 0 && ::fsync(file.number()) != 0 && errno != EINVAL) error = errno;
  if (error == 0) return;
  ::unlink(path.c_str());
  throw InputError(fmt::format("{}: the key file cannot be written: {}", name, why(error)));
}

}  // namespace mltcp::security
