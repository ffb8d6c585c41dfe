// Writes manual pages and shell completions from the description of the command line: `mltcp help --write FOLDER`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "command_line.h"

namespace mltcp::tools {

/// Returns the manual page of commands[which] in the macros of man(7). commands[0] is the program itself.
std::string manual_page(const std::vector<CommandDescription>& commands, std::size_t which, const std::string& footer,
                        const std::string& version);

/// Returns completions for bash: command names, options, known values and files. They do not need the package
/// bash-completion.
std::string bash_completion(const std::vector<CommandDescription>& commands);
/// Returns completions for zsh: the function _mltcp, for a folder in zsh's fpath.
std::string zsh_completion(const std::vector<CommandDescription>& commands);

/// Returns all manual pages and completions. Each has a path relative to a folder such as /usr/local/share.
std::vector<std::pair<std::string, std::string>> manual_files(const CommandLine& line, const std::string& version);

}  // namespace mltcp::tools
