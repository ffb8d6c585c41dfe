// Reading of whole text files, as far as they can be what they should be: bounded, and never waiting for what will
// not come.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace mltcp {

/// What a file should be.
struct TextFile {
  std::string_view what;  ///< for messages, as in "an experiment file"
  std::size_t most_bytes = 0;
};

/// The bytes of a regular file or of a pipe, as a shell's <(...) makes; of a pipe that nobody has open for writing,
/// none. Throws InputError "NAME: cause; cure" for everything else: devices, folders, what can't be read or is longer
/// than it should be. For a file that does not exist, the cure is the nearest one in its folder, if one is near. `name`
/// stands for the file in messages.
std::string read_text_file(const std::filesystem::path& path, std::string_view name, const TextFile& expected);

/// While it lives, told of each file that read_text_file() has read in this thread, and of its bytes. One at a time in
/// a thread, and destroyed there.
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
