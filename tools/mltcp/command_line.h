// The command line of `mltcp`: commands with their options, and error texts for words that match none of them. CLI11
// reads the command line and writes --help. Only command_line.cpp includes it, because its headers take longer to
// compile than any command.
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

struct Command;  // defined in command_line.cpp

/// An option or argument of a command, for further settings.
class Option {
 public:
  Option(CLI::Option& option, Command& command) : option_(&option), command_(&command) {}
  Option check(const ValueCheck& check);  // NOLINT(modernize-use-nodiscard): it changes the option
  /// Values that a shell completes; not needed for those of check(one_of()).
  Option suggest(const std::vector<std::string>& values);
  Option required();
  /// Minimum and maximum number of words of an argument.
  Option words(int least, int most);

 private:
  CLI::Option* option_;
  Command* command_;
};

/// An option or argument as manuals and completions describe it.
struct OptionDescription {
  std::vector<std::string> names;    ///< "-o", "--output"; none: an argument
  std::string value;                 ///< the word for its value: "FILE"; empty: it takes none
  std::string bounds;                ///< of the value: "[1 - 64]"; empty: none
  std::vector<std::string> choices;  ///< known values; there may be others
  bool list = false;                 ///< several values, separated by commas
  bool required = false;
  std::string group;  ///< its heading in --help; empty: the first one
  std::string help;
};
struct CommandDescription {
  std::string name;  ///< empty: the program
  std::string help;
  std::vector<OptionDescription> options;  ///< arguments first, then options in the order of --help
};

/// The options and arguments of a command, in the order of --help. Values are stored when the command line is read;
/// those of options that are not given stay unchanged.
class Options {
 public:
  explicit Options(Command& command) : command_(&command) {}

  /// Adds an option, "--name" or "-n,--name", or, without dashes, an argument, which may have several words. `Value` is
  /// a text or number, optional or not (command_line.cpp).
  template <typename Value>
  Option add(const std::string& name, Value& value, const std::string& help);
  /// Adds a value that `take` reads; it returns an error text, or an empty one.
  Option add_read(const std::string& name, std::function<std::string(const std::string& text)> take,
                  const std::string& help);
  /// Adds the option's name and value to `named`: {"rate", "1Gbps"}.
  Option add_named(const std::string& name, std::vector<std::pair<std::string, std::string>>& named,
                   const std::string& help);
  /// Adds an option that is repeated for each value.
  Option add_each(const std::string& name, std::vector<std::string>& values, const std::string& help);
  /// Adds an option with several values, as in "fair,mltcp".
  Option add_list(const std::string& name, std::vector<std::string>& values, const std::string& help);
  /// Adds an option without a value.
  void flag(const std::string& name, bool& given, const std::string& help);

  /// Options added from now on are listed under this heading of --help. The names of given ones are added to `given`:
  /// "--port".
  void group(const std::string& heading, std::vector<std::string>& given);

 private:
  Command* command_;
};

class CommandLine {
 public:
  /// `version` is only called when the version is printed.
  CommandLine(const std::string& description, const std::string& footer, std::function<std::string()> version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Adds a command: `options` registers the options of its Arguments, and `run` executes it and returns the exit
  /// status.
  template <typename Arguments>
  void add(const std::string& name, const std::string& help, void (*options)(Options&, Arguments&),
           std::function<int(const Arguments&)> run) {
    const auto arguments = std::make_shared<Arguments>();
    Options own = add_command(name, help, [arguments, run = std::move(run)] { return run(*arguments); });
    options(own, *arguments);
  }

  /// Reads the words and runs the command that they name, or prints --help or --version. Throws InputError for unknown
  /// words, and the exceptions of the command.
  int run(int argc, char** argv);

  /// The help text of a command or, without a name, of the program. Throws InputError if there is no such command.
  [[nodiscard]] std::string help(const std::string& command) const;
  /// Description of the program, then of its commands in their order.
  [[nodiscard]] std::vector<CommandDescription> describe() const;
  [[nodiscard]] std::string footer() const;

 private:
  Options add_command(const std::string& name, const std::string& help, std::function<int()> run);

  struct Program;
  std::unique_ptr<Program> program_;
};

}  // namespace mltcp::tools
