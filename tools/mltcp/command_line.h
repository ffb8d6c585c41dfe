// The command line of `mltcp`: commands with their options, and what is said of words that fit none of them. CLI11
// reads it and writes --help, and is known to command_line.cpp alone: its headers take longer to compile than any
// command.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "option_values.h"

namespace CLI {
class Option;
}

namespace mltcp::tools {

struct Command;  // of command_line.cpp

/// An option or argument of a command, to say more of it.
class Option {
 public:
  Option(CLI::Option& option, Command& command) : option_(&option), command_(&command) {}
  Option check(const ValueCheck& check);  // NOLINT(modernize-use-nodiscard): it changes the option
  /// Values that a shell completes; those of check(one_of()) are known.
  Option suggest(const std::vector<std::string>& values);
  Option required();
  /// How many words an argument has.
  Option words(int least, int most);

 private:
  CLI::Option* option_;
  Command* command_;
};

/// An option or argument as manuals and completions tell it.
struct OptionDescription {
  std::vector<std::string> names;    ///< "-o", "--output"; none: an argument
  std::string value;                 ///< the word for its value: "FILE"; empty: it takes none
  std::string bounds;                ///< of the value: "[1 - 64]"; empty: none
  std::vector<std::string> choices;  ///< values that are known; there may be others
  bool list = false;                 ///< several values, with commas between them
  bool required = false;
  std::string group;  ///< its heading in --help; empty: the first one
  std::string help;
};
struct CommandDescription {
  std::string name;  ///< empty: the program
  std::string help;
  std::vector<OptionDescription> options;  ///< arguments first, then options in the order of --help
};

/// The options and arguments of a command, in the order of --help. Values are stored when the command line is read, and
/// left as they are where an option is not given.
class Options {
 public:
  explicit Options(Command& command) : command_(&command) {}

  /// An option, "--name" or "-n,--name", or, without dashes, an argument, which may have several words. Of texts and
  /// numbers, optional or not (command_line.cpp).
  template <typename Value>
  Option add(const std::string& name, Value& value, const std::string& help);
  /// Takes a value that is read by `take`, which returns what is wrong with it, or nothing.
  Option add_read(const std::string& name, std::function<std::string(const std::string& text)> take,
                  const std::string& help);
  /// The value follows the option's name in `named`: {"rate", "1Gbps"}.
  Option add_named(const std::string& name, std::vector<std::pair<std::string, std::string>>& named,
                   const std::string& help);
  /// An option that is given once for each value.
  Option add_each(const std::string& name, std::vector<std::string>& values, const std::string& help);
  /// One with several values at a time, as in "fair,mltcp".
  Option add_list(const std::string& name, std::vector<std::string>& values, const std::string& help);
  /// One without a value.
  void flag(const std::string& name, bool& given, const std::string& help);

  /// What is added from here on stands under this heading of --help. Those that are given are listed in `given`:
  /// "--port".
  void group(const std::string& heading, std::vector<std::string>& given);

 private:
  Command* command_;
};

class CommandLine {
 public:
  /// `version` is asked only when it is to be told.
  CommandLine(const std::string& description, const std::string& footer, std::function<std::string()> version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// A command: `options` registers what its Arguments are filled from, and `run` does it and returns the exit status.
  template <typename Arguments>
  void add(const std::string& name, const std::string& help, void (*options)(Options&, Arguments&),
           std::function<int(const Arguments&)> run) {
    const auto arguments = std::make_shared<Arguments>();
    Options own = add_command(name, help, [arguments, run = std::move(run)] { return run(*arguments); });
    options(own, *arguments);
  }

  /// Reads the words and runs the command that they name, or prints --help or --version. Throws InputError for words
  /// that fit no command, and what the command throws.
  int run(int argc, char** argv);

  /// As --help prints it, of a command or, without a name, of the program. Throws InputError if there is no such
  /// command.
  [[nodiscard]] std::string help(const std::string& command) const;
  /// What it reads: the program, then its commands in their order.
  [[nodiscard]] std::vector<CommandDescription> describe() const;
  [[nodiscard]] std::string footer() const;

 private:
  Options add_command(const std::string& name, const std::string& help, std::function<int()> run);

  struct Program;
  std::unique_ptr<Program> program_;
};

}  // namespace mltcp::tools
