// Bounded reading of whole text files, which never blocks on input that will not come. Safe writing of files: other
// users who may write to the same folder cannot redirect this program to another file.
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

  /// Whether this thread has a FileObserver.
  [[nodiscard]] static bool exists();

 private:
  OnRead on_read_;
};

/// The file to which a name leads.
struct OutputTarget {
  std::filesystem::path path;     ///< no link; may not exist
  std::optional<int> descriptor;  ///< a descriptor of this process that `path` names (/dev/stdout, /dev/fd/N)
};
/// Follows links, including those to missing files. Throws InputError "NAME: cause; cure" if a link on the way, or the
/// file, is planted: in a folder that all may write to, and owned by neither this user, root nor the folder's owner.
/// This is Linux's rule for links (proc_sys_fs(5), "protected_symlinks").
OutputTarget output_target(const std::filesystem::path& name);
/// Only the check, for files that are created by other means.
void refuse_planted_links(const std::filesystem::path& name);

/// Replaces the file `path` by `text` in one step: writes it to a new file with an unpredictable name in the same
/// folder, then renames that. An existing file keeps its permissions, and its owner if permitted; a new one gets those
/// that umask allows. A link is replaced. Returns an errno; 0: done; EACCES for a folder to which a planted link leads.
[[nodiscard]] int replace_file(const std::filesystem::path& path, std::string_view text);
/// Writes all of `text`. Returns an errno; 0: done.
[[nodiscard]] int write_all(int descriptor, std::string_view text);

}  // namespace mltcp
