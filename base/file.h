// Reading of whole text files, as far as they can be what they should be: bounded, and never waiting for what will
// not come.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp {

/// What a file should be.
struct TextFile {
  std::string_view what;  ///< for messages, as in "an experiment file"
  std::size_t most_bytes = 0;
};

/// The bytes of a regular file or of a pipe, as a shell's <(...) makes; of a pipe that nobody has open for writing,
/// none. Throws InputError "NAME: cause; cure" for everything else: devices, folders, what can't be read or is longer
/// than it should be. `name` stands for the file in messages.
std::string read_text_file(const std::filesystem::path& path, std::string_view name, const TextFile& expected);

/// While it lives, keeps what read_text_file() reads in this thread: a file read twice is kept once, in the order of
/// first reading. One at a time in a thread, and destroyed there.
class FileRecorder {
 public:
  struct File {
    std::filesystem::path path;  ///< as it was given
    std::string text;
  };

  FileRecorder();
  ~FileRecorder();
  FileRecorder(const FileRecorder&) = delete;
  FileRecorder& operator=(const FileRecorder&) = delete;

  [[nodiscard]] const std::vector<File>& files() const { return files_; }

 private:
  friend std::string read_text_file(const std::filesystem::path&, std::string_view, const TextFile&);
  void add(const std::filesystem::path& path, const std::string& text);

  std::vector<File> files_;
};

}  // namespace mltcp
