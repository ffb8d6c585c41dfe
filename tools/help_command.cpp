// `mltcp help`: the same as --help, and the manual and completions that are made of it.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "command_line.h"
#include "commands.h"
#include "manual.h"
#include "mltcp/base/error.h"
#include "output_file.h"

namespace mltcp::tools {
namespace {

struct HelpArguments {
  std::string command;               ///< empty: this program
  std::optional<std::string> write;  ///< a folder
};

void add_options(Options& options, HelpArguments& arguments) {
  options.add("COMMAND", arguments.command, "The command; default: this program");
  options.add("--write", arguments.write,
              "Write manual pages, and completions for bash and zsh, below this folder, as in ~/.local/share");
}

void write_manual(const CommandLine& line, const std::filesystem::path& folder) {
  for (const auto& [path, text] : manual_files(line, MLTCP_VERSION)) {
    const std::filesystem::path file = folder / path;
    std::error_code problem;
    std::filesystem::create_directories(file.parent_path(), problem);
    if (problem)
      throw InputError(fmt::format("{}: can't be made ({}); name a folder that you may write to",
                                   file.parent_path().string(), problem.message()));
    write_file(file.string(), text);
  }
}

}  // namespace

void add_help_command(CommandLine& line) {
  const auto help = [&line](const HelpArguments& arguments) {
    if (arguments.write)
      write_manual(line, *arguments.write);
    else
      fmt::print("{}", line.help(arguments.command));
    return 0;
  };
  line.add<HelpArguments>("help", "The same as --help, of this program or of a command", add_options, help);
}

}  // namespace mltcp::tools
