// Reads the command line with CLI11 (see command_line.h).
#include "command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <map>
#include <string_view>

#include "mltcp/base/error.h"
#include "mltcp/base/nearest.h"
#include "mltcp/base/text.h"

namespace mltcp::tools {

struct Command {
  struct Group {
    std::string heading;
    std::vector<std::string>* given;
  };
  CLI::App* app;
  std::function<int()> run;
  std::vector<Group> groups{};
  std::map<const CLI::Option*, std::string> bounds{};
  std::map<const CLI::Option*, std::vector<std::string>> choices{};
};

namespace {

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

// Returns the error text for an unknown command.
std::string no_command(const CLI::App& app, const std::string& name) {
  if (name.starts_with("-")) {
    const auto option = nearest(name, std::vector<std::string>{"--help", "--version"});
    return fmt::format("{} is not an option of mltcp; {}see mltcp --help", in_quotes(name),
                       option && name.starts_with("--") ? fmt::format("did you mean \"{}\"? ", *option) : "");
  }
  const std::vector<std::string> commands = names_of_commands(app);
  const auto meant = nearest(name, commands);
  return fmt::format("{}; {} see mltcp --help",
                     name.empty() ? "no command is given" : in_quotes(name) + " is not a command",
                     meant ? fmt::format("did you mean \"{}\"?", *meant)
                           : fmt::format("the commands are {};", fmt::join(commands, ", ")));
}

bool has_option(const CLI::App& command, const std::string& name) {
  return command.get_option_no_throw(name) != nullptr;
}

// Returns the error text for words that `command` does not accept.
std::string no_argument(const CLI::App& app, const CLI::App& command, const std::vector<std::string>& words) {
  const auto option =
      std::ranges::find_if(words, [](const std::string& word) { return word.size() > 1 && word.front() == '-'; });
  const std::string see = fmt::format("see mltcp {} --help", command.get_name());
  if (option == words.end())
    return fmt::format("{}: unexpected argument; {}", words.empty() ? "a word" : in_quotes(words[0]), see);
  const std::string name = option->substr(0, option->find('='));
  // In `mltcp testbed`, options for `mltcp gen` must follow "--". The program always has both commands.
  if (command.get_name() == "testbed" && has_option(*app.get_subcommand("gen"), name))
    return fmt::format(
        "{0} is an option of mltcp gen; write options of mltcp gen after \"--\", e.g. mltcp testbed EXPERIMENT.toml -- "
        "{0} ...; {1}",
        one_line(name), see);
  // The user may have mistaken the command: name the commands that accept the option.
  std::vector<std::string> others;
  for (const CLI::App* other : app.get_subcommands([](const CLI::App*) { return true; }))
    if (name.starts_with("--") && has_option(*other, name)) others.push_back(other->get_name());
  if (!others.empty())
    return fmt::format("{} is not an option of mltcp {}, but of mltcp {}; {}", in_quotes(name), command.get_name(),
                       fmt::join(others, ", "), see);
  std::vector<std::string> known{"--help"};
  for (const CLI::Option* one : command.get_options())
    for (const std::string& long_name : one->get_lnames()) known.push_back("--" + long_name);
  if (!name.starts_with("--") && option->find('.') != std::string::npos)
    return fmt::format("{0} is not an option of mltcp {1}; if it is a file, write {2}; {3}", in_quotes(*option),
                       command.get_name(), in_quotes("./" + *option), see);
  // Suggest nothing for a short word, because two changed letters turn it into any other short word.
  auto meant = nearest(name.starts_with("--") ? name : "-" + name, known);
  constexpr std::size_t shortest = 4;
  if (name.size() < shortest) meant.reset();
  return fmt::format("{} is not an option of mltcp {}; {}{}", in_quotes(name), command.get_name(),
                     meant ? fmt::format("did you mean \"{}\"? ", *meant) : "", see);
}

std::optional<OptionValue> value_of(const CLI::App& command, const CLI::Option& option) {
  for (const std::string& name : option.get_lnames())
    if (const auto value = option_value("--" + name, command.get_name())) return value;
  return std::nullopt;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

/// Returns the option's name at the start of a word of the command line: "--json" for "--json=x". Returns an empty text
/// if the word is not an option.
std::string_view option_name(std::string_view word) {
  return word.size() > 1 && word.front() == '-' ? word.substr(0, word.find('=')) : "";
}

const CLI::Option* option_of(const CLI::App& command, std::string_view word) {
  const std::string_view name = option_name(word);
  return name.empty() ? nullptr : command.get_option_no_throw(std::string(name));
}

std::string needs_value(const CLI::App& command, const CLI::Option& option, std::string_view followed_by) {
  const std::string name = option.get_name();
  const auto value = value_of(command, option);
  const std::string needs = value ? fmt::format("{}, e.g. {} {}", value->needs, name, value->example) : "a value";
  const std::string next = followed_by.empty() ? "" : fmt::format(", but is followed by {}", followed_by);
  return fmt::format("{} needs {}{}; see mltcp {} --help", name, needs, next, command.get_name());
}

/// Returns an error text for the first option of the command line whose value is missing; empty if all values are
/// given. Example: "--json needs a file to write to, or - for standard output, as in --json results.json; see mltcp run
/// --help". A value is also missing if the next word is an option.
std::string missing_value(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* command = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (command == nullptr) {
      const auto named = app.get_subcommands([&](const CLI::App* one) { return one->get_name() == word; });
      if (!named.empty()) command = named.front();
      continue;
    }
    if (word == "--") break;
    const CLI::Option* const option = option_of(*command, word);
    if (option == nullptr || !takes_value(*option)) continue;
    std::string_view followed_by;
    if (const std::size_t equals = word.find('='); equals != std::string::npos) {
      if (equals + 1 < word.size()) continue;
    } else if (++i < argc) {
      const std::string_view next = argv[i];
      if (next != "--" && option_of(*command, next) == nullptr) continue;
      followed_by = option_name(next);
    }
    return needs_value(*command, *option, followed_by);
  }
  return {};
}

/// Sets the word for each option's value that --help shows, as in "--json FILE".
void name_values(CLI::App& app) {
  for (CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    for (CLI::Option* const option : command->get_options())
      if (const auto value = value_of(*command, *option); value && takes_value(*option))
        option->type_name(std::string(value->word));
  // CLI11 would show a list as words separated by spaces.
  for (CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    for (CLI::Option* const option : command->get_options())
      if (option->get_delimiter() != '\0') option->option_text(option->get_type_name() + ",...");
}

// Returns an error text with the permitted values, in place of CLI11's "Could not convert: --rank = x".
std::string no_number(const CLI::App& command, std::string why) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string begin = "Could not convert: " + option->get_name() + " = ";
    const auto value = value_of(command, *option);
    if (!value || !why.starts_with(begin)) continue;
    return fmt::format("{}: {} is not {}; write one, e.g. {} {}", option->get_name(),
                       in_quotes(why.substr(begin.size())), value->needs, option->get_name(), value->example);
  }
  return why;
}

/// Writes help like CLI11, except for arguments of several words: "FILE...", not "FILE(1x)".
class Formatter : public CLI::Formatter {
 public:
  std::string make_option_usage(const CLI::Option* option) const override {
    const std::string name = option->get_name(true) + (option->get_expected_max() > 1 ? "..." : "");
    return option->get_required() ? name : "[" + name + "]";
  }
};

// Returns the error text for a command line that CLI11 refuses.
std::string wrong_usage(const CLI::App& app, const CLI::ParseError& error, const std::string& first) {
  if (app.get_subcommands().empty()) return no_command(app, first);
  const CLI::App& command = *app.get_subcommands().back();
  // If an argument is missing, a word that looks like an option may be meant as that argument.
  const std::vector<std::string> left = app.remaining(true);
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  if (is_extra || (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !left.empty()))
    return no_argument(app, command, left);
  const std::string why =
      dynamic_cast<const CLI::ConversionError*>(&error) != nullptr ? no_number(command, error.what()) : error.what();
  return fmt::format("{}{} see mltcp {} --help", why, why.ends_with('?') ? "" : ";", command.get_name());
}

void note_given(const Command& command) {
  for (const CLI::Option* option : command.app->get_options())
    for (const Command::Group& group : command.groups)
      if (option->count() > 0 && option->get_group() == group.heading) group.given->push_back(option->get_name());
}

OptionDescription description_of(const Command* command, const CLI::Option& option) {
  OptionDescription described;
  for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  if (option.get_positional())
    described.value = option.get_name(true);
  else if (takes_value(option))
    described.value = option.get_type_name().substr(0, option.get_type_name().find(':'));
  described.list = option.get_delimiter() != '\0';
  described.required = option.get_required();
  if (option.get_group() != "Options") described.group = option.get_group();
  described.help = option.get_description();
  if (command == nullptr) return described;
  if (const auto bounds = command->bounds.find(&option); bounds != command->bounds.end())
    described.bounds = bounds->second;
  if (const auto choices = command->choices.find(&option); choices != command->choices.end())
    described.choices = choices->second;
  return described;
}

CommandDescription description_of(const Command* command, const CLI::App& app) {
  CommandDescription described{command == nullptr ? "" : app.get_name(), app.get_description(), {}};
  for (const bool positional : {true, false})
    for (const CLI::Option* option : app.get_options())
      if (option->get_positional() == positional) described.options.push_back(description_of(command, *option));
  return described;
}

}  // namespace

Option Option::check(const ValueCheck& check) {
  option_->check(
      CLI::Validator([objection = check.objection](std::string& text) { return objection(text); }, check.bounds));
  command_->bounds[option_] = check.bounds;
  return suggest(check.words);
}

Option Option::suggest(const std::vector<std::string>& values) {
  if (!values.empty()) command_->choices[option_] = values;
  return *this;
}

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::words(int min, int max) {
  option_->expected(min, max);
  return *this;
}

template <typename Value>
Option Options::add(const std::string& name, Value& value, const std::string& help) {
  return {*command_->app->add_option(name, value, help), *command_};
}
template Option Options::add(const std::string&, std::string&, const std::string&);
template Option Options::add(const std::string&, std::optional<std::string>&, const std::string&);
template Option Options::add(const std::string&, std::vector<std::string>&, const std::string&);
template Option Options::add(const std::string&, std::uint16_t&, const std::string&);
template Option Options::add(const std::string&, std::uint32_t&, const std::string&);
template Option Options::add(const std::string&, std::optional<std::uint32_t>&, const std::string&);
template Option Options::add(const std::string&, double&, const std::string&);
template Option Options::add(const std::string&, std::optional<double>&, const std::string&);

Option Options::add_read(const std::string& name, std::function<std::string(const std::string& text)> take,
                         const std::string& help) {
  const auto taken = [name, take = std::move(take)](const std::string& text) {
    if (const std::string wrong = take(text); !wrong.empty()) throw CLI::ValidationError(name, wrong);
  };
  return {*command_->app->add_option_function<std::string>(name, taken, help), *command_};
}

Option Options::add_named(const std::string& name, std::vector<std::pair<std::string, std::string>>& named,
                          const std::string& help) {
  const auto taken = [&named, name](const std::string& value) {
    named.emplace_back(name.substr(name.find_first_not_of('-')), value);
  };
  return {*command_->app->add_option_function<std::string>(name, taken, help), *command_};
}

Option Options::add_each(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  return {*command_->app->add_option(name, values, help)->allow_extra_args(false), *command_};
}

Option Options::add_list(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  return {*command_->app->add_option(name, values, help)->delimiter(',')->allow_extra_args(false), *command_};
}

void Options::flag(const std::string& name, bool& given, const std::string& help) {
  command_->app->add_flag(name, given, help);
}

void Options::group(const std::string& heading, std::vector<std::string>& given) {
  command_->app->option_defaults()->group(heading);
  command_->groups.push_back({heading, &given});
}

struct CommandLine::Program {
  CLI::App app;
  std::deque<Command> commands;  // a deque, because pointers to commands must stay valid
};

CommandLine::CommandLine(const std::string& description, const std::string& footer,
                         std::function<std::string()> version)
    : program_(std::make_unique<Program>()) {
  CLI::App& app = program_->app;
  app.formatter(std::make_shared<Formatter>());
  app.description(description);
  app.set_version_flag("-V,--version", std::move(version));
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(footer);
}

CommandLine::~CommandLine() = default;

Options CommandLine::add_command(const std::string& name, const std::string& help, std::function<int()> run) {
  CLI::App* const app = program_->app.add_subcommand(name, help);
  return Options(program_->commands.emplace_back(Command{app, std::move(run)}));
}

int CommandLine::run(int argc, char** argv) {
  CLI::App& app = program_->app;
  name_values(app);
  // For an unknown command, CLI11 would print --help and return success.
  const std::vector<std::string> commands = names_of_commands(app);
  if (argc > 1 && argv[1][0] != '-' && std::ranges::find(commands, argv[1]) == commands.end())
    throw InputError(no_command(app, argv[1]));
  if (const std::string missing = missing_value(app, argc, argv); !missing.empty()) throw InputError(missing);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // the user asked for --help or --version
    throw InputError(wrong_usage(app, error, argc > 1 ? argv[1] : ""));
  }
  const auto command = std::ranges::find_if(program_->commands, [](const Command& one) { return one.app->parsed(); });
  note_given(*command);
  return command->run();
}

std::string CommandLine::help(const std::string& command) const {
  const CLI::App& app = program_->app;
  // App::help() would print the help of the command that was given on the command line.
  if (command.empty()) return app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal);
  const std::vector<std::string> commands = names_of_commands(app);
  if (std::ranges::find(commands, command) == commands.end()) throw InputError(no_command(app, command));
  return app.get_subcommand(command)->help(app.get_name());
}

std::vector<CommandDescription> CommandLine::describe() const {
  std::vector<CommandDescription> all{description_of(nullptr, program_->app)};
  for (const Command& command : program_->commands) all.push_back(description_of(&command, *command.app));
  return all;
}

std::string CommandLine::footer() const { return program_->app.get_footer(); }

}  // namespace mltcp::tools
