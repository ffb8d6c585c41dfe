// Bounded reading of whole text files, which never blocks on input that will not come; and files that are written so
// that nobody who may write to the same folder leads this program to another one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace mltcp {

/// Requirements on a file.
struct TextFile {
  std::string_view what;  ///< for messages, such as "an experiment file"
  std::size_t max_bytes = 0;
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

  /// Whether this thread has one.
  [[nodiscard]] static bool exists();

 private:
  OnRead on_read_;
};

/// Where a name leads.
struct OutputTarget {
  std::filesystem::path path;     ///< no link; may not exist
  std::optional<int> descriptor;  ///< one of this process (/dev/stdout, /dev/fd/N), whose name `path` is
};
/// Follows links, those to what does not exist too. Throws InputError "NAME: cause; cure" if a link on the way, or the
/// file, is planted: another user's, neither this one's nor root's nor the folder's owner's, in a folder that all may
/// write to (as Linux has it for links, proc_sys_fs(5), "protected_symlinks").
OutputTarget output_target(const std::filesystem::path& name);
/// The same check alone, for what is made there by other means.
void refuse_planted_links(const std::filesystem::path& name);

/// Puts `text` in the place of the file `path`, once it is complete: it is written to a new file beside it, of a name
/// that nobody can know. A file that is there keeps its permissions, and its owner if that may be; a new one has those
/// that umask leaves. A link is replaced. Returns an errno; 0: done; EACCES for a folder that a planted link leads to.
[[nodiscard]] int replace_file(const std::filesystem::path& path, std::string_view text);
/// Writes all of `text`. Returns an errno; 0: done.
[[nodiscard]] int write_all(int descriptor, std::string_view text);

}  // namespace mltcp
