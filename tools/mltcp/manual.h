// Manual pages and shell completions, generated from the command line's description: `mltcp help --write FOLDER`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "command_line.h"

namespace mltcp::tools {

/// A manual page in the macros of man(7), for the program, commands[0], or one of its commands.
std::string manual_page(const std::vector<CommandDescription>& commands, std::size_t which, const std::string& footer,
                        const std::string& version);

/// For bash, without the package bash-completion: command names, options, known values, files.
std::string bash_completion(const std::vector<CommandDescription>& commands);
/// For zsh: a function _mltcp for a folder of its fpath.
std::string zsh_completion(const std::vector<CommandDescription>& commands);

/// All of them, each with its path below a folder such as /usr/local/share.
std::vector<std::pair<std::string, std::string>> manual_files(const CommandLine& line, const std::string& version);

}  // namespace mltcp::tools
