// Writes manual pages and shell completions (see manual.h).
#include "manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace mltcp::tools {
namespace {

constexpr std::string_view kProgram = "mltcp";

bool is_argument(const OptionDescription& option) { return option.names.empty(); }

/// Returns whether the option's value is a file or a folder, according to the value's word in --help.
bool takes_file(const OptionDescription& option) {
  return option.value.starts_with("FILE") || option.value.starts_with("FOLDER") || option.value.starts_with("TRACE") ||
         option.value.ends_with(".toml") || option.value.ends_with(".json");
}

// ---- Manual pages ----

/// Returns the text for roff: no line begins with a control character, and readers can copy its hyphens.
std::string roff(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool begins = i == 0 || text[i - 1] == '\n';
    if (begins && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result;
}

std::string value_text(const OptionDescription& option) {
  std::string text = "\\fI" + roff(option.value) + "\\fR";
  if (option.list) text += ",...";
  return text;
}

void write_option(const OptionDescription& option, std::string& page) {
  page += ".TP\n";
  if (is_argument(option)) {
    page += value_text(option) + "\n";
  } else {
    std::vector<std::string> names;
    for (const std::string& name : option.names) names.push_back("\\fB" + roff(name) + "\\fR");
    page += fmt::format("{}{}\n", fmt::join(names, ", "), option.value.empty() ? "" : " " + value_text(option));
  }
  page += roff(option.help);
  const bool names_choices = std::ranges::all_of(
      option.choices, [&](const std::string& choice) { return option.help.find(choice) != std::string::npos; });
  if (!option.choices.empty() && !names_choices)
    page += roff(fmt::format(" ({})", fmt::join(option.choices, ", ")));
  else if (option.choices.empty() && !option.bounds.empty())
    page += " " + roff(option.bounds);
  page += "\n";
}

std::string synopsis(const CommandDescription& command) {
  std::string text = fmt::format(".B {}", kProgram);
  if (command.name.empty()) return text + "\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.br\n.B mltcp help\n[\\fICOMMAND\\fR]\n";
  text += fmt::format(" {}\n[\\fIOPTIONS\\fR]\n", command.name);
  for (const OptionDescription& option : command.options)
    if (is_argument(option)) text += (option.required ? value_text(option) : "[" + value_text(option) + "]") + "\n";
  return text;
}

void write_options(const CommandDescription& command, std::string& page) {
  std::string section;
  for (const OptionDescription& option : command.options) {
    const std::string heading = is_argument(option) ? "ARGUMENTS" : "OPTIONS";
    const std::string sub = is_argument(option) ? "" : option.group;
    if (const std::string now = heading + sub; now != section) {
      page += sub.empty() ? fmt::format(".SH {}\n", heading) : fmt::format(".SS {}\n", roff(sub));
      section = now;
    }
    write_option(option, page);
  }
}

// ---- Shells ----

/// Returns the word, quoted for bash and zsh.
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  }
  return result + "'";
}

std::vector<std::string> option_names(const CommandDescription& command) {
  std::vector<std::string> names;
  for (const OptionDescription& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

/// Returns the bash statement that completes the option's value.
std::string bash_values(const OptionDescription& option) {
  if (!option.choices.empty())
    return fmt::format("_mltcp_words {} {}", option.list ? "list" : "one",
                       shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
  return takes_file(option) ? "_mltcp_files" : "COMPREPLY=()";
}

void write_bash_command(const CommandDescription& command, std::string& script) {
  script += fmt::format("    {})\n      case $option in\n", command.name);
  for (const OptionDescription& option : command.options)
    if (!is_argument(option) && !option.value.empty())
      script += fmt::format("        {}) {}; return ;;\n", fmt::join(option.names, "|"), bash_values(option));
  script += "      esac\n";
  const auto argument = std::ranges::find_if(command.options, is_argument);
  const std::string otherwise = argument == command.options.end() ? ":" : bash_values(*argument);
  script += fmt::format(
      "      case $current in\n        -*) _mltcp_words one {} ;;\n        *) {} ;;\n      esac\n      ;;\n",
      shell_quoted(fmt::format("{}", fmt::join(option_names(command), " "))), otherwise);
}

/// Returns the text with brackets and colons escaped, as a specification of zsh's _arguments needs it.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(const OptionDescription& option) {
  if (!option.choices.empty())
    return option.list ? fmt::format("_values -s , {} {}", zsh_text(option.value), fmt::join(option.choices, " "))
                       : fmt::format("({})", fmt::join(option.choices, " "));
  return takes_file(option) ? "_files" : " ";
}

std::string zsh_specification(const OptionDescription& option) {
  const std::string value = fmt::format(":{}:{}", zsh_text(option.value), zsh_action(option));
  if (is_argument(option)) return shell_quoted("*" + value);
  const std::string rest = fmt::format("[{}]{}", zsh_text(option.help), option.value.empty() ? "" : value);
  if (option.names.size() == 1) return shell_quoted("*" + option.names[0] + rest);
  return fmt::format("{{{}}}{}", fmt::join(option.names, ","), shell_quoted(rest));
}

}  // namespace

std::string manual_page(const std::vector<CommandDescription>& commands, std::size_t which, const std::string& footer,
                        const std::string& version) {
  const CommandDescription& command = commands[which];
  const std::string name = command.name.empty() ? std::string(kProgram) : fmt::format("{}-{}", kProgram, command.name);
  std::string title = name;
  std::transform(title.begin(), title.end(), title.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  std::string page = fmt::format(".TH {} 1 \"\" \"MLTCP {}\" \"User Commands\"\n.ad l\n", roff(title), roff(version));
  page += fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}", roff(name), roff(command.help), synopsis(command));
  write_options(command, page);
  if (which == 0) {
    page += ".SH COMMANDS\n";
    for (const CommandDescription& one : commands)
      if (!one.name.empty()) page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(one.name), roff(one.help));
  }
  page += fmt::format(".SH EXIT STATUS\n{}\n.SH SEE ALSO\n", roff(footer.substr(footer.find(": ") + 2)));
  std::vector<std::string> others;
  for (std::size_t i = 0; i < commands.size(); ++i)
    if (i != which)
      others.push_back(i == 0 ? ".BR mltcp (1)" : fmt::format(".BR mltcp\\-{} (1)", roff(commands[i].name)));
  return page + fmt::format("{}\n", fmt::join(others, ",\n"));
}

std::string bash_completion(const std::vector<CommandDescription>& commands) {
  std::vector<std::string> names;
  for (const CommandDescription& command : commands)
    if (!command.name.empty()) names.push_back(command.name);
  std::string script = R"(# Completion of mltcp for bash, made by `mltcp help --write`.

# $1: "one" word of $2, or a "list" of them with commas between them, of which the last is completed.
_mltcp_words() {
  local before=
  if [[ $1 = list && $current = *,* ]]; then before=${current%,*},; fi
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$2" -- "${current#"$before"}")
}

_mltcp_files() {
  mapfile -t COMPREPLY < <(compgen -f -- "$current")
  compopt -o filenames 2>/dev/null || true
}

_mltcp() {
  local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} command= word
  COMPREPLY=()
  # bash takes "--json=x" for three words.
  if [[ $current = '=' ]]; then current=; elif [[ $option = '=' ]]; then option=${COMP_WORDS[COMP_CWORD - 2]}; fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $word != -* ]]; then command=$word; break; fi
  done
  case $command in
)";
  script +=
      fmt::format("    '')\n      _mltcp_words one {}\n      ;;\n",
                  shell_quoted(fmt::format("{} {}", fmt::join(names, " "), fmt::join(option_names(commands[0]), " "))));
  for (const CommandDescription& command : commands) {
    if (command.name == "help")
      script +=
          fmt::format("    help)\n      _mltcp_words one {}\n      ;;\n",
                      shell_quoted(fmt::format("{} {}", fmt::join(names, " "), fmt::join(option_names(command), " "))));
    else if (!command.name.empty())
      write_bash_command(command, script);
  }
  return script + "  esac\n}\n\ncomplete -F _mltcp mltcp\n";
}

std::string zsh_completion(const std::vector<CommandDescription>& commands) {
  std::string script = "#compdef mltcp\n# Completion of mltcp for zsh, made by `mltcp help --write`.\n\n";
  script += "_mltcp() {\n  local context state state_descr line\n  typeset -A opt_args\n  local -a commands=(\n";
  for (const CommandDescription& command : commands)
    if (!command.name.empty())
      script += fmt::format("    {}\n", shell_quoted(zsh_text(command.name) + ":" + zsh_text(command.help)));
  script += "  )\n  _arguments -C \\\n";
  for (const OptionDescription& option : commands[0].options) script += "    " + zsh_specification(option) + " \\\n";
  script += "    '1: :->command' '*:: :->arguments'\n";
  script += "  case $state in\n    command) _describe command commands ;;\n    arguments)\n      case $words[1] in\n";
  for (const CommandDescription& command : commands) {
    if (command.name.empty()) continue;
    if (command.name == "help") {
      script += "        help) _describe command commands ;;\n";
      continue;
    }
    script += fmt::format("        {}) _arguments", command.name);
    for (const OptionDescription& option : command.options) script += " \\\n          " + zsh_specification(option);
    script += " ;;\n";
  }
  return script + "      esac ;;\n  esac\n}\n\n_mltcp \"$@\"\n";
}

std::vector<std::pair<std::string, std::string>> manual_files(const CommandLine& line, const std::string& version) {
  const std::vector<CommandDescription> commands = line.describe();
  std::vector<std::pair<std::string, std::string>> files{
      {"bash-completion/completions/mltcp", bash_completion(commands)},
      {"zsh/site-functions/_mltcp", zsh_completion(commands)}};
  for (std::size_t i = 0; i < commands.size(); ++i)
    files.emplace_back(fmt::format("man/man1/{}{}.1", kProgram, i == 0 ? "" : "-" + commands[i].name),
                       manual_page(commands, i, line.footer(), version));
  return files;
}

}  // namespace mltcp::tools
