// What options of `mltcp` take: the word for it in --help, what is said to whoever leaves it out, and the checks of
// numbers and of words, each naming what was given and what is wanted.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace mltcp::tools {

/// Gives every option of every command the word for its value that --help shows, as in "--json FILE".
void name_values(CLI::App& app);

/// The first option of the command line whose value is missing, in words: "--json needs a file to write to, or - for
/// standard output, as in --json results.json; see mltcp run --help"; empty if none is. That another option follows
/// counts as missing, too.
std::string missing_value(const CLI::App& app, int argc, const char* const* argv);

/// A whole number within bounds, in decimal digits.
CLI::Validator whole(std::uint64_t least, std::uint64_t most);

/// A number within bounds; CLI::Range lets "nan" pass.
CLI::Validator share(double most);

/// A number above 0.
CLI::Validator factor(double most);

/// Numbers of CPUs, as in "0,1" or "0-3".
CLI::Validator cpu_list();

/// One of a few words. CLI::IsMember names no word that is near.
CLI::Validator one_of(std::vector<std::string> words);

}  // namespace mltcp::tools
