// `mltcp help`: the same as --help.
#include <fmt/format.h>

#include <string>

#include "command_line.h"
#include "commands.h"

namespace mltcp::tools {
namespace {

struct HelpArguments {
  std::string command;  ///< empty: this program
};

void add_options(Options& options, HelpArguments& arguments) {
  options.add("COMMAND", arguments.command, "The command; default: this program");
}

}  // namespace

void add_help_command(CommandLine& line) {
  const auto help = [&line](const HelpArguments& arguments) {
    fmt::print("{}", line.help(arguments.command));
    return 0;
  };
  line.add<HelpArguments>("help", "The same as --help, of this program or of a command", add_options, help);
}

}  // namespace mltcp::tools
