// `mltcp algorithms`: the available congestion controls and their parameters.
#include <fmt/format.h>

#include <sstream>

#include "algorithm_lists.h"
#include "command_line.h"
#include "commands.h"
#include "output_file.h"

namespace mltcp::tools {
namespace {

struct AlgorithmsArguments {
  std::vector<std::string> names;   ///< NAME or FILE.so:NAME; empty: all that are available
  bool markdown = false;            ///< print the parameters as a Markdown table
  std::optional<std::string> json;  ///< file for the JSON, or "-" for standard output
};

void add_options(Options& options, AlgorithmsArguments& arguments) {
  std::vector<std::string> names;
  for (const cc::ParameterTable* table : cc::parameter_tables()) names.emplace_back(table->name);
  options.add("NAME", arguments.names, "Show only these: algorithms, FILE.so:NAME, or policy turns").suggest(names);
  options.flag("--markdown", arguments.markdown, "Print the parameters as a Markdown table");
  options.add("--json", arguments.json, "Write names and parameters to this file as JSON; - is standard output");
}

int algorithms(const AlgorithmsArguments& arguments) {
  const std::vector<const cc::ParameterTable*> tables = tables_named(arguments.names);
  if (arguments.json) {
    check_writable(*arguments.json, "");
    std::ostringstream text;
    write_parameters_json(tables, text);
    write_file(*arguments.json, text.str());
  }
  if (arguments.json != "-")
    fmt::print("{}", arguments.markdown ? parameters_markdown(tables) : parameters_text(tables));
  return 0;
}

}  // namespace

void add_algorithms_command(CommandLine& line) {
  line.add<AlgorithmsArguments>(
      "algorithms", "List congestion controls, policy turns, and their parameters (docs/reference/algorithms.md)",
      add_options, algorithms);
}

}  // namespace mltcp::tools
