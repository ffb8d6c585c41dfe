// The command line of `mltcp`: its commands, their options, and error texts for unknown words. The library CLI11 reads
// the command line and writes --help. Only command_line.cpp includes CLI11, because its headers take longer to compile
// than any command.
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

/// An option or argument of a command. Its functions change the option, and return it for further calls.
class Option {
 public:
  Option(CLI::Option& option, Command& command) : option_(&option), command_(&command) {}
  Option check(const ValueCheck& check);  // NOLINT(modernize-use-nodiscard): it changes the option
  /// Sets the values that a shell completes. The values of check(one_of()) are completed without this call.
  Option suggest(const std::vector<std::string>& values);
  Option required();
  /// Sets the minimum and maximum number of words of an argument.
  Option words(int min, int max);

 private:
  CLI::Option* option_;
  Command* command_;
};

/// The description of an option or argument, for manual pages and shell completions.
struct OptionDescription {
  std::vector<std::string> names;    ///< as in "-o", "--output"; empty for an argument
  std::string value;                 ///< the word for its value in --help, as in "FILE"; empty: the option has no value
  std::string bounds;                ///< the bounds of the value, as in "[1 - 64]"; empty: none
  std::vector<std::string> choices;  ///< known values; other values may be valid
  bool list = false;                 ///< whether the value is a list, separated by commas
  bool required = false;
  std::string group;  ///< the heading above this option in --help; empty: the first heading
  std::string help;
};
struct CommandDescription {
  std::string name;  ///< name of the command; empty: the program itself
  std::string help;
  std::vector<OptionDescription> options;  ///< arguments first, then options in the order of --help
};

/// The options and arguments of a command, in the order of --help. The variables passed to add() get the values when
/// the command line is read. If an option is not given, its variable stays unchanged.
class Options {
 public:
  explicit Options(Command& command) : command_(&command) {}

  /// Adds an option ("--name" or "-n,--name") or an argument (a name without dashes), which may have several words.
  /// `Value` is a text, a number, or a std::optional of a text or number; see command_line.cpp.
  template <typename Value>
  Option add(const std::string& name, Value& value, const std::string& help);
  /// Adds an option whose text is passed to `take`. `take` returns an error text; empty if the value is valid.
  Option add_read(const std::string& name, std::function<std::string(const std::string& text)> take,
                  const std::string& help);
  /// Adds an option. If it is given, appends its name and value to `named`, as in {"rate", "1Gbps"}.
  Option add_named(const std::string& name, std::vector<std::pair<std::string, std::string>>& named,
                   const std::string& help);
  /// Adds an option that may be repeated, with one value each time.
  Option add_each(const std::string& name, std::vector<std::string>& values, const std::string& help);
  /// Adds an option whose value is a list, as in "fair,mltcp".
  Option add_list(const std::string& name, std::vector<std::string>& values, const std::string& help);
  /// Adds an option without a value.
  void flag(const std::string& name, bool& given, const std::string& help);

  /// Starts a heading of --help for the options added after this call. If such an option is given, its name, as in
  /// "--port", is appended to `given`.
  void group(const std::string& heading, std::vector<std::string>& given);

 private:
  Command* command_;
};

class CommandLine {
 public:
  /// `version` returns the version. It is called only when the version is printed.
  CommandLine(const std::string& description, const std::string& footer, std::function<std::string()> version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Adds a command: `options` registers the options that set the command's Arguments, and `run` executes the command
  /// and returns its exit status.
  template <typename Arguments>
  void add(const std::string& name, const std::string& help, void (*options)(Options&, Arguments&),
           std::function<int(const Arguments&)> run) {
    const auto arguments = std::make_shared<Arguments>();
    Options own = add_command(name, help, [arguments, run = std::move(run)] { return run(*arguments); });
    options(own, *arguments);
  }

  /// Reads the command line and runs the command that it names, or prints --help or --version. Returns the exit status.
  /// Throws InputError for unknown words, and every exception of the command.
  int run(int argc, char** argv);

  /// Returns the help text of a command or, if `command` is empty, of the program. Throws InputError if there is no
  /// such command.
  [[nodiscard]] std::string help(const std::string& command) const;
  /// Returns the description of the program, followed by the descriptions of its commands in the order of add().
  [[nodiscard]] std::vector<CommandDescription> describe() const;
  [[nodiscard]] std::string footer() const;

 private:
  Options add_command(const std::string& name, const std::string& help, std::function<int()> run);

  struct Program;
  std::unique_ptr<Program> program_;
};

}  // namespace mltcp::tools
