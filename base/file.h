// Reads whole text files up to a maximum size, without waiting for input that never comes. Writes files safely: other
// users who may write to the same folder cannot redirect this program to another file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace mltcp {

/// Requirements on a file to read.
struct TextFile {
  std::string_view what;  ///< the kind of file in messages, such as "an experiment file"
  std::size_t max_bytes = 0;
};

/// Returns the contents of a regular file or of a pipe, such as a shell's <(...). A pipe that no process has open for
/// writing counts as empty. Throws InputError "NAME: cause; cure" for devices, folders, unreadable files, and files
/// longer than `expected.max_bytes`. If `path` does not exist but its folder contains a file with a similar name, the
/// cure names that file. `name` is the name of the file in messages.
std::string read_text_file(const std::filesystem::path& path, std::string_view name, const TextFile& expected);

/// During its lifetime, calls `on_read` for each file that read_text_file() reads in this thread. A thread can have at
/// most one FileObserver, and must destroy it itself.
class FileObserver {
 public:
  using OnRead = std::function<void(const std::filesystem::path& path, const std::string& text)>;

  explicit FileObserver(OnRead on_read);
  ~FileObserver();
  FileObserver(const FileObserver&) = delete;
  FileObserver& operator=(const FileObserver&) = delete;

  /// Returns whether this thread has a FileObserver.
  [[nodiscard]] static bool exists();

 private:
  OnRead on_read_;
};

/// The file that a name refers to after all links have been followed.
struct OutputTarget {
  std::filesystem::path path;     ///< path without links; the file may not exist
  std::optional<int> descriptor;  ///< this process's descriptor if `path` names one (/dev/stdout, /dev/fd/N)
};
/// Follows the links in `name`, including links to missing files. Throws InputError "NAME: cause; cure" if one of the
/// links or the file is planted. Planted means that it is in a shared folder such as /tmp (writable by all, sticky bit
/// set) and belongs to neither this user, nor root, nor the owner of the folder. Linux has this rule for links
/// (proc_sys_fs(5), "protected_symlinks").
OutputTarget output_target(const std::filesystem::path& name);
/// Throws like output_target(). For code that creates files without the functions of this header.
void refuse_planted_links(const std::filesystem::path& name);

/// Replaces the contents of file `path` by `text` in one step: writes `text` to a new file with an unpredictable name
/// in the same folder, then renames that file to `path`. An existing file keeps its permissions, and its owner if the
/// system permits that. A file that did not exist gets the permissions that umask allows. If `path` is a link, the link
/// is replaced. Returns 0 if successful, otherwise an errno value; EACCES if the folder is reached through a planted
/// link.
[[nodiscard]] int replace_file(const std::filesystem::path& path, std::string_view text);
/// Writes all of `text`. Returns 0 if successful, otherwise an errno value.
[[nodiscard]] int write_all(int descriptor, std::string_view text);

}  // namespace mltcp
