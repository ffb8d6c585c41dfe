// `mltcp help`: prints --help, and writes manual pages and shell completions.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include "command_line.h"
#include "commands.h"
#include "manual.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "output_file.h"

namespace mltcp::tools {
namespace {

struct HelpArguments {
  std::string command;               ///< name of a command; empty: help of the program
  std::optional<std::string> write;  ///< folder for manual pages and completions
};

void add_options(Options& options, HelpArguments& arguments) {
  options.add("COMMAND", arguments.command, "The command whose help is shown; default: all of mltcp");
  options.add("--write", arguments.write,
              "Write manual pages, and completions for bash and zsh, below this folder, e.g. ~/.local/share");
}

void write_manual(const CommandLine& line, const std::filesystem::path& folder) {
  for (const auto& [path, text] : manual_files(line, MLTCP_VERSION)) {
    const std::filesystem::path file = folder / path;
    std::error_code problem;
    std::filesystem::create_directories(file.parent_path(), problem);
    if (problem)
      throw InputError(fmt::format("{}: cannot be created ({}); name a folder that you may write to",
                                   file.parent_path().string(), problem.message()));
    write_file(file.string(), text);
  }
}

// ---- Which programs find the written files ----

namespace fs = std::filesystem;

/// Returns whether a list of folders such as "a:b" contains `wanted`.
bool lists(const std::string& folders, const fs::path& wanted) {
  std::istringstream list(folders);
  std::error_code problem;
  for (std::string folder; std::getline(list, folder, ':');)
    if (!folder.empty() && fs::weakly_canonical(folder, problem) == wanted) return true;
  return false;
}

/// Returns whether man-db finds the pages (manpath(5)). It searches MANPATH. If MANPATH is unset or has an empty entry,
/// it also searches folders beside those of PATH, and the system's folders.
bool man_finds(const fs::path& pages) {
  const std::string given = environment("MANPATH");
  if (lists(given, pages)) return true;
  if (!given.empty() && !given.starts_with(':') && !given.ends_with(':') && given.find("::") == std::string::npos)
    return false;
  std::istringstream path(environment("PATH"));
  std::error_code problem;
  for (std::string folder; std::getline(path, folder, ':');)
    if (!folder.empty() && fs::weakly_canonical(fs::path(folder) / "../share/man", problem) == pages) return true;
  return lists("/usr/share/man:/usr/local/share/man", pages);
}

/// Returns whether bash-completion finds the completions. It searches for them when a command is first completed.
bool bash_finds(const fs::path& completions) {
  std::string user = environment("BASH_COMPLETION_USER_DIR");
  std::string data = environment("XDG_DATA_HOME");
  if (data.empty()) data = environment("HOME") + "/.local/share";
  if (user.empty()) user = data + "/bash-completion";
  std::string folders = environment("XDG_DATA_DIRS");
  if (folders.empty()) folders = "/usr/local/share:/usr/share";
  const fs::path base = completions.parent_path();
  return lists(user, base) || (base.filename() == "bash-completion" && lists(folders, base.parent_path()));
}

/// Returns whether zsh finds the completions. Other programs see zsh's fpath only if the user exports it.
bool zsh_finds(const fs::path& functions) {
  return lists(environment("FPATH") + ":/usr/local/share/zsh/site-functions:/usr/share/zsh/site-functions", functions);
}

/// Returns the path, quoted for a shell if necessary.
std::string word(const fs::path& path) {
  const std::string text = path.string();
  if (text.find_first_of(" \t\n'\"\\$`&|;<>()*?[]#~!{}") == std::string::npos) return text;
  std::string result;
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return "'" + result + "'";
}

/// Prints where the files are, and what the user must still set so that man and the shells find them.
void print_where(const std::string& given) {
  std::error_code problem;
  fs::path folder = fs::weakly_canonical(fs::absolute(given), problem);
  if (!folder.has_filename()) folder = folder.parent_path();
  fmt::print("manual pages, and completions for bash and zsh, are below {}\n", folder.string());
  const fs::path pages = folder / "man";
  const fs::path bash = folder / "bash-completion/completions";
  const fs::path zsh = folder / "zsh/site-functions";
  if (!man_finds(pages))
    fmt::print("for man, add to your shell's startup file: export MANPATH={}:$MANPATH\n", word(pages));
  if (!bash_finds(bash)) fmt::print("for bash, add to ~/.bashrc: . {}\n", word(bash / "mltcp"));
  if (!zsh_finds(zsh)) fmt::print("for zsh, add to ~/.zshrc, before compinit: fpath=({} $fpath)\n", word(zsh));
}

}  // namespace

void add_help_command(CommandLine& line) {
  const auto help = [&line](const HelpArguments& arguments) {
    if (!arguments.write) {
      fmt::print("{}", line.help(arguments.command));
      return 0;
    }
    write_manual(line, *arguments.write);
    print_where(*arguments.write);
    return 0;
  };
  line.add<HelpArguments>("help", "Show the help of mltcp or of a command, as --help does", add_options, help);
}

}  // namespace mltcp::tools
