// Runs tshark with the project's dissector on a capture.
#pragma once

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

namespace mltcp::capture::test {

inline bool has_tshark() { return std::string_view(MLTCP_TSHARK) != ""; }
inline constexpr const char* kNoTshark = "tshark is missing (Debian: tshark)";

/// Returns the standard output and the standard error of `command`. Sets `status` to the exit status of `command`.
inline std::string output_of(const std::string& command, int& status) {
  std::string text;
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return text;
  std::array<char, 4096> block{};
  for (std::size_t count = 0; (count = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
    text.append(block.data(), count);
  const int end = pclose(pipe);
  status = WIFEXITED(end) ? WEXITSTATUS(end) : -1;
  return text;
}

/// Returns the output of `tshark -r FILE WORDS` without the warning about root. Uses the default settings of tshark,
/// not those of the user. As root, tshark runs no scripts (Wireshark 4.4). If the test runs as root, it therefore runs
/// tshark as another user. This user gets access to the file's folder and to a copy of the dissector.
inline std::string tshark(const std::string& file, const std::string& words, int* status = nullptr) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(file).parent_path();
  fs::path dissector = MLTCP_DISSECTOR;
  std::string as;
  if (geteuid() == 0) {
    as = "setpriv --reuid=65534 --regid=65534 --clear-groups ";
    fs::copy_file(dissector, folder / dissector.filename(), fs::copy_options::overwrite_existing);
    dissector = folder / dissector.filename();
    constexpr auto readable = fs::perms::owner_all | fs::perms::group_read | fs::perms::others_read;
    fs::permissions(folder, readable | fs::perms::group_exec | fs::perms::others_exec);
    for (const fs::path& each : {fs::path(file), dissector}) fs::permissions(each, readable);
  }
  int end = 0;
  const std::string text =
      output_of(fmt::format("{}env HOME={} XDG_CONFIG_HOME={} '{}' -X lua_script:'{}' -r '{}' {}", as, folder.string(),
                            folder.string(), MLTCP_TSHARK, dissector.string(), file, words),
                end);
  if (status != nullptr) *status = end;
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t line_end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, line_end - at);
    if (line.find("Running as user") == std::string::npos) kept += line + "\n";
    at = line_end + 1;
  }
  return kept;
}

/// A temporary folder, removed by the destructor.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "mltcp-capture-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace mltcp::capture::test
