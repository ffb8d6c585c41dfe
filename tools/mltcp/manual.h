// Manual pages and completions for shells, made from what the command line reads, so that nobody writes them a second
// time: `mltcp help --write FOLDER`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "command_line.h"

namespace mltcp::tools {

/// A manual page in the macros of man(7): of the program, commands[0], or of one of its commands.
std::string manual_page(const std::vector<CommandDescription>& commands, std::size_t which, const std::string& footer,
                        const std::string& version);

/// For bash, without the package bash-completion: command names, options, values that are known, files.
std::string bash_completion(const std::vector<CommandDescription>& commands);
/// For zsh: a function for a folder of its fpath, called _mltcp.
std::string zsh_completion(const std::vector<CommandDescription>& commands);

/// All of them, each with its file's path below a folder such as /usr/local/share.
std::vector<std::pair<std::string, std::string>> manual_files(const CommandLine& line, const std::string& version);

}  // namespace mltcp::tools
