// Writes the file of a capture (see capture_file.h).
#include "mltcp/transport/capture/internal/capture_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"

namespace mltcp::capture {
namespace {

constexpr std::size_t kBuffer = 256 * 1024;
/// kBlockBytes: maximum overhead of a packet block. kStatisticsBytes: maximum size of an interface's statistics.
constexpr Bytes kBlockBytes = 64;
constexpr Bytes kStatisticsBytes = 80;
constexpr Bytes kUsualPacket = 2048;

std::string numbered(const CaptureOptions& options, std::uint32_t number) {
  return options.files > 1 ? with_suffix(options, fmt::format("{:05}", number)).file : options.file;
}

}  // namespace

CaptureFile::CaptureFile(const CaptureOptions& options, std::string comment)
    : options_(options), comment_(std::move(comment)) {
  buffer_.reserve(kBuffer + 128 * 1024);
  open();
  if (failure_.empty()) return;
  throw RunError(failure_);
}

CaptureFile::~CaptureFile() { close(); }

void CaptureFile::open() {
  std::string name = numbered(options_, ++opened_);
  const OutputTarget target = [&] {
    try {
      return output_target(name);
    } catch (const InputError& error) {
      failure_ = error.what();
      return OutputTarget{};
    }
  }();
  if (!failure_.empty()) return;
  // Does not truncate the file, because the file must be locked first. Only this user can read a new file, because it
  // contains sent data. O_NONBLOCK is needed because opening a pipe without a reader would block the program.
  std::error_code unknown;
  const int how = target.descriptor ? 0 : std::filesystem::exists(target.path, unknown) ? O_NOFOLLOW : O_CREAT | O_EXCL;
  file_ = ::open(target.path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | how, S_IRUSR | S_IWUSR);
  if (file_ < 0) {
    failure_ = fmt::format("{} cannot be written ({}); name a file in a folder where you may write", in_quotes(name),
                           std::strerror(errno));
    return;
  }
  fcntl(file_, F_SETFL, fcntl(file_, F_GETFL) & ~O_NONBLOCK);
  // Files without locks, such as pipes or devices, count as not in use by another capture.
  if (flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    failure_ =
        fmt::format("{} is being written by another capture; put %p, the process id, into its name", in_quotes(name));
    ::close(std::exchange(file_, -1));
    return;
  }
  if (ftruncate(file_, 0) != 0 && errno != EINVAL) {
    failure_ = fmt::format("{} can't be emptied ({}); name another file", in_quotes(name), std::strerror(errno));
    ::close(std::exchange(file_, -1));
    return;
  }
  names_.push_back(std::move(name));
  written_ = 0;
  begin();
}

void CaptureFile::close() {
  flush();
  if (file_ >= 0) ::close(std::exchange(file_, -1));
}

void CaptureFile::begin() {
  append_section(buffer_, "mltcp", comment_);
  for (const InterfaceInfo& info : interfaces_) append_interface(buffer_, info, options_.snap_bytes);
}

void CaptureFile::add(const InterfaceInfo& info) {
  interfaces_.push_back(info);
  append_interface(buffer_, info, options_.snap_bytes);
}

void CaptureFile::check_size() const {
  if (options_.file_bytes == 0) return;
  std::vector<std::byte> front;
  append_section(front, "mltcp", comment_);
  for (const InterfaceInfo& info : interfaces_) append_interface(front, info, options_.snap_bytes);
  const Bytes needed = front.size() + kStatisticsBytes * interfaces_.size() +
                       std::min<Bytes>(options_.snap_bytes, kUsualPacket) + kBlockBytes;
  if (needed > options_.file_bytes)
    throw RunError(fmt::format(
        "{} of {} have no room for packets of {}; give size={} or more, or a smaller snap=", in_quotes(name()),
        bytes_to_text(options_.file_bytes), plural(interfaces_.size(), "interface"), needed));
}

bool CaptureFile::packet(std::uint32_t interface, Nanos time, Direction direction, std::span<const std::byte> header,
                         std::span<const std::byte> data, std::uint32_t original_bytes) {
  if (is_over()) return false;
  if (options_.file_bytes > 0 &&
      written_ + buffer_.size() + header.size() + data.size() + kBlockBytes + kStatisticsBytes * interfaces_.size() >
          options_.file_bytes) {
    if (!next_file()) return false;
  }
  append_packet(buffer_, interface, time, direction, header, data, original_bytes);
  if (buffer_.size() >= kBuffer) flush();
  return failure_.empty();
}

bool CaptureFile::next_file() {
  if (options_.files <= 1) {
    is_full_ = true;
    return false;
  }
  close();
  if (names_.size() == options_.files) {
    unlink(names_.front().c_str());
    names_.pop_front();
  }
  open();
  return failure_.empty();
}

void CaptureFile::statistics(std::uint32_t interface, const InterfaceStatistics& statistics) {
  append_statistics(buffer_, interface, statistics);
}

void CaptureFile::flush() {
  for (std::size_t done = 0; done < buffer_.size() && failure_.empty() && file_ >= 0;) {
    const ssize_t count = write(file_, buffer_.data() + done, buffer_.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      failure_ =
          fmt::format("{} cannot be written any more ({}); make room, or write fewer bytes of each packet (snap=)",
                      in_quotes(name()), std::strerror(count == 0 ? ENOSPC : errno));
      break;
    }
    done += static_cast<std::size_t>(count);
    written_ += static_cast<Bytes>(count);
  }
  buffer_.clear();
}

}  // namespace mltcp::capture
