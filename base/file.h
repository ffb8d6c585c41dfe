// Bounded reading of whole text files, which never blocks on input that will not come.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace mltcp {

/// Requirements on a file.
struct TextFile {
  std::string_view what;  ///< for messages, such as "an experiment file"
  std::size_t most_bytes = 0;
};

/// Reads a regular file or a pipe, such as a shell's <(...); empty for a pipe that no process has open for writing.
/// Throws InputError "NAME: cause; cure" for anything else: devices, folders, unreadable or too long files. If the file
/// does not exist, the cure names a similarly named one in its folder, if any. `name` is used in messages.
std::string read_text_file(const std::filesystem::path& path, std::string_view name, const TextFile& expected);

/// During its lifetime, calls `on_read` for each file read by read_text_file() in this thread. At most one per thread,
/// destroyed in the same thread.
class FileObserver {
 public:
  using OnRead = std::function<void(const std::filesystem::path& path, const std::string& text)>;

  explicit FileObserver(OnRead on_read);
  ~FileObserver();
  FileObserver(const FileObserver&) = delete;
  FileObserver& operator=(const FileObserver&) = delete;

 private:
  OnRead on_read_;
};

}  // namespace mltcp
