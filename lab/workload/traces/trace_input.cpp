// Inputs of traces (see trace_input.h), unpacked by libarchive:
// https://github.com/libarchive/libarchive/wiki/ManualPages.
//
// Packed files, tar archives and their packed members are recognised by their first bytes, not by their names. Input
// that is packed more deeply is rejected. The size of the file bounds the unpacked size.
#include "mltcp/lab/workload/traces/trace_input.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/file_format.h"
#include "mltcp/base/text.h"

namespace mltcp::workload {
namespace {

constexpr std::size_t kBeginning = std::size_t{64} << 10;
constexpr std::size_t kBlock = std::size_t{256} << 10;
constexpr std::size_t kMaxFiles = 100'000;  // maximum number of files in a folder, and of members in an archive
// Maximum ratio of the unpacked size to the size of the file. Unpacked traces are 10 to 30 times as large as packed
// ones.
constexpr std::uint64_t kMaxTimes = 40;
constexpr std::uint64_t kAnyway = std::uint64_t{256} << 20;

[[noreturn]] void fail(std::string_view name, std::string_view cause, std::string_view cure) {
  throw InputError(fmt::format("{}: {}; {}", name, cause, cure));
}

/// Returns a source of the bytes of a file. Throws InputError.
TraceSource file_source(const std::filesystem::path& path, const std::string& name) {
  // Without O_NONBLOCK, opening a pipe would wait until a writer opens it.
  const int number = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (number < 0)
    fail(name, fmt::format("the file can't be opened ({})", std::strerror(errno)), "check its path and permissions");
  const std::shared_ptr<void> closed(nullptr, [number](void*) { close(number); });
  if (fcntl(number, F_SETFL, 0) != 0)
    fail(name, fmt::format("the file can't be opened ({})", std::strerror(errno)), "check its permissions");
  return [number, name, closed](char* to, std::size_t max) {
    while (true) {
      const ssize_t count = ::read(number, to, max);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR)
        fail(name, fmt::format("the file can't be read ({})", std::strerror(errno)), "check the disk");
    }
  };
}

TraceSource memory_source(std::string_view text) {
  return [text](char* to, std::size_t max) mutable {
    const std::size_t count = text.copy(to, max);
    text.remove_prefix(count);
    return count;
  };
}

struct CloseArchive {
  void operator()(archive* opened) const { archive_read_free(opened); }
};

/// Returns libarchive's filter for packed data with these first bytes.
int filter_of(std::string_view beginning) {
  using namespace std::literals;
  for (const auto& [magic, filter] : {std::pair("\x1f\x8b"sv, ARCHIVE_FILTER_GZIP),
                                      {"\x28\xb5\x2f\xfd"sv, ARCHIVE_FILTER_ZSTD},
                                      {"BZh"sv, ARCHIVE_FILTER_BZIP2},
                                      {"\xfd\x37zXZ\0"sv, ARCHIVE_FILTER_XZ}})
    if (beginning.starts_with(magic)) return filter;
  return ARCHIVE_FILTER_NONE;
}
bool is_packed(std::string_view beginning) { return filter_of(beginning) != ARCHIVE_FILTER_NONE; }

/// An archive or a packed file. A packed file that is not an archive counts as one member without a name.
class Unpacked {
 public:
  /// `whole` is the archive of which this input is a member; nullptr if there is none.
  Unpacked(TraceSource source, std::string name, Unpacked* whole = nullptr)
      : source_(std::move(source)),
        name_(std::move(name)),
        whole_(whole == nullptr ? this : whole),
        block_(kBlock),
        archive_(archive_read_new()) {
    if (archive_ == nullptr) fail(name_, "there is no memory to unpack it", "close other programs");
    while (begun_ < kLongestMagic) {
      const std::size_t count = source_(block_.data() + begun_, block_.size() - begun_);
      if (count == 0) break;
      begun_ += count;
    }
    // Enables only one filter. With automatic detection, libarchive would unpack any number of nested levels.
    if (const int filter = filter_of({block_.data(), begun_}); filter != ARCHIVE_FILTER_NONE)
      opened(archive_read_append_filter(archive_.get(), filter));
    archive_read_support_format_tar(archive_.get());
    archive_read_support_format_raw(archive_.get());
    archive_read_support_format_empty(archive_.get());
    opened(archive_read_open(archive_.get(), this, nullptr, &Unpacked::more, nullptr));
    // libarchive treats data that it cannot unpack as empty, but sets an error.
    if (archive_errno(archive_.get()) != 0) damaged();
  }

  /// Goes to the next member that is a file. Returns false after the last one.
  bool next() {
    while (true) {
      pass_over_rest();
      archive_entry* entry = nullptr;
      const int result = archive_read_next_header(archive_.get(), &entry);
      if (result == ARCHIVE_EOF) {
        rethrow();
        return false;
      }
      opened(result);
      charge(0);
      if (++members_ > kMaxFiles)
        fail(name_, fmt::format("the archive has more than {} members", kMaxFiles), "give those of one job");
      is_archive_ = archive_format(archive_.get()) != ARCHIVE_FORMAT_RAW;
      if (archive_format(archive_.get()) == ARCHIVE_FORMAT_EMPTY) return false;
      if (!is_archive_) {
        member_.clear();
        return true;
      }
      if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) continue;
      const char* path = archive_entry_pathname(entry);
      member_ = one_line(path == nullptr ? "?" : path);
      if (!std::filesystem::path(member_).filename().string().starts_with('.')) return true;
    }
  }

  /// Returns the name of the current member, for messages.
  [[nodiscard]] std::string name() const { return is_archive_ ? fmt::format("{}:{}", name_, member_) : name_; }
  [[nodiscard]] bool is_archive() const { return is_archive_; }
  [[nodiscard]] std::uint64_t bytes() const { return packed_; }  ///< number of packed bytes read

  std::size_t read(char* to, std::size_t max) {
    const la_ssize_t count = archive_read_data(archive_.get(), to, max);
    rethrow();
    if (count < 0) damaged();
    charge(static_cast<std::size_t>(count));
    return static_cast<std::size_t>(count);
  }

 private:
  static constexpr std::size_t kLongestMagic = 6;

  /// Reads the rest of a member, so that its bytes are charged. libarchive would skip it without a limit.
  void pass_over_rest() {
    while (members_ > 0) {
      const void* block = nullptr;
      std::size_t size = 0;
      la_int64_t offset = 0;
      const int result = archive_read_data_block(archive_.get(), &block, &size, &offset);
      if (result == ARCHIVE_EOF) break;
      opened(result);
      charge(size);
    }
    rethrow();
  }

  /// Adds `given` bytes of members and checks the limit of the unpacked size. The unpacked size is the larger of two
  /// counts: the bytes of members, including holes of sparse members, and the bytes that libarchive has unpacked.
  void charge(std::size_t given) {
    given_ += given;
    const std::uint64_t now = std::max(given_, static_cast<std::uint64_t>(archive_filter_bytes(archive_.get(), 0)));
    whole_->unpacked_ += now - std::exchange(counted_, now);
    if (whole_->unpacked_ > std::max(kAnyway, kMaxTimes * whole_->packed_))
      fail(whole_->name_,
           fmt::format("it unpacks to more than {} MiB, and more than {} times its size", kAnyway >> 20U, kMaxTimes),
           "unpack it, and give its content");
  }

  // An exception must not cross libarchive, which is written in C. So the exception is stored until libarchive has
  // returned.
  static la_ssize_t more(archive* opened, void* self, const void** block) {
    auto& unpacked = *static_cast<Unpacked*>(self);
    try {
      *block = unpacked.block_.data();
      std::size_t count = std::exchange(unpacked.begun_, 0);
      if (count == 0) count = unpacked.source_(unpacked.block_.data(), unpacked.block_.size());
      unpacked.packed_ += count;
      return static_cast<la_ssize_t>(count);
    } catch (...) {
      unpacked.failure_ = std::current_exception();
      archive_set_error(opened, EIO, "the input failed");
      return ARCHIVE_FATAL;
    }
  }

  void rethrow() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  void opened(int result) {
    rethrow();
    // Warnings concern attributes of a member, which do not matter here.
    if (result < ARCHIVE_WARN) damaged();
  }

  [[noreturn]] void damaged() {
    const char* why = archive_error_string(archive_.get());
    fail(name(), fmt::format("its compressed content is damaged or cut off ({})", one_line(why == nullptr ? "?" : why)),
         "copy or record it again");
  }

  TraceSource source_;
  std::string name_;
  std::string member_;
  Unpacked* whole_;
  std::vector<char> block_;
  std::size_t begun_ = 0;  ///< number of bytes in the first block
  std::unique_ptr<archive, CloseArchive> archive_;
  std::exception_ptr failure_;
  std::size_t members_ = 0;
  std::uint64_t packed_ = 0;    ///< number of packed bytes read
  std::uint64_t given_ = 0;     ///< number of bytes of members, returned or skipped
  std::uint64_t counted_ = 0;   ///< number of bytes charged so far
  std::uint64_t unpacked_ = 0;  ///< number of bytes unpacked, including those of packed members
  bool is_archive_ = false;
};

[[noreturn]] void packed_twice(std::string_view name) {
  fail(name, "its compressed content is compressed again", "unpack it once, and give the result");
}

/// Returns a source of the bytes of the current member. `unpacked` must outlive the source.
TraceSource member_source(Unpacked& unpacked) {
  return [&unpacked](char* to, std::size_t max) { return unpacked.read(to, max); };
}

void each_unpacked(TraceSource source, const std::string& name, const std::function<void(TraceInput&)>& each) {
  Unpacked unpacked(std::move(source), name);
  bool any = false;
  while (unpacked.next()) {
    any = true;
    TraceInput input(unpacked.name(), member_source(unpacked));
    if (!is_packed(input.beginning())) {
      each(input);
      continue;
    }
    if (!unpacked.is_archive()) packed_twice(name);
    // A packed member must not be an archive. Its unpacked content has the name of the member.
    const auto again = [&input](char* to, std::size_t max) { return input.read(to, max); };
    Unpacked inner(again, unpacked.name(), &unpacked);
    if (!inner.next()) continue;
    if (inner.is_archive())
      fail(unpacked.name(), "this is an archive within an archive", "unpack the outer one, and give the inner one");
    TraceInput inner_input(unpacked.name(), member_source(inner));
    if (is_packed(inner_input.beginning())) packed_twice(unpacked.name());
    each(inner_input);
  }
  if (!any)
    fail(name, unpacked.bytes() > 0 ? "it is an archive without files, or nothing but zeros" : "it holds nothing",
         "give a trace that has been written to its end");
}

void each_of_file(const std::filesystem::path& path, const std::function<void(TraceInput&)>& each) {
  const std::string name = one_line(path.string());
  each_unpacked(file_source(path, name), name, each);
}

}  // namespace

std::string_view TraceInput::beginning() {
  if (!begun_) {
    begun_ = true;
    beginning_.resize(kBeginning);
    std::size_t size = 0;
    while (size < kBeginning) {
      const std::size_t count = source_(beginning_.data() + size, kBeginning - size);
      if (count == 0) break;
      size += count;
    }
    beginning_.resize(size);
    taken_ = size - without_byte_order_mark(beginning_).size();
  }
  return std::string_view(beginning_).substr(taken_);
}

std::size_t TraceInput::read(char* to, std::size_t max) {
  beginning();
  if (taken_ == beginning_.size()) return source_(to, max);
  const std::size_t count = beginning_.copy(to, max, taken_);
  taken_ += count;
  return count;
}

void for_each_input(const std::filesystem::path& path, const std::function<void(TraceInput&)>& each) {
  const std::string name = one_line(path.string());
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    // Throws InputError with suggestions of similar names.
    read_text_file(path, name, TextFile{"a trace", 0});
    fail(name, "there is no such file", "give the path of a trace");
  }
  if (error)
    fail(name, fmt::format("the file can't be opened ({})", error.message()), "check its path and permissions");
  if (std::filesystem::is_regular_file(status) || std::filesystem::is_fifo(status)) return each_of_file(path, each);
  if (!std::filesystem::is_directory(status))
    fail(name, "this is a device or socket, not a file", "give the path of a trace");
  std::vector<std::filesystem::path> files;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code unknown;
    if (!entry->is_regular_file(unknown) || entry->path().filename().string().starts_with('.')) continue;
    files.push_back(entry->path());
    if (files.size() > kMaxFiles)
      fail(name, fmt::format("the folder has more than {} files", kMaxFiles), "give those of one job");
  }
  if (error) fail(name, fmt::format("the folder can't be read ({})", error.message()), "check its permissions");
  if (files.empty()) fail(name, "the folder has no files", "give a folder with a trace of each rank");
  std::ranges::sort(files);
  for (const std::filesystem::path& file : files) each_of_file(file, each);
}

void for_each_input_in(std::string_view text, const std::string& name, const std::function<void(TraceInput&)>& each) {
  each_unpacked(memory_source(text), name, each);
}

std::unique_ptr<TraceInput> memory_input(std::string_view text, std::string name) {
  return std::make_unique<TraceInput>(std::move(name), memory_source(text));
}

}  // namespace mltcp::workload
