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
  std::vector<std::string> names;   ///< NAME or FILE.so:NAME; empty: all available algorithms
  bool markdown = false;            ///< print the parameters as a Markdown table
  std::optional<std::string> json;  ///< file for the JSON, or "-" for standard output
};

void add_options(Options& options, AlgorithmsArguments& arguments) {
  options.add("NAME", arguments.names, "Show only these: names, or FILE.so:NAME").suggest(algorithm_names());
  options.flag("--markdown", arguments.markdown, "Print the parameters as a Markdown table");
  options.add("--json", arguments.json, "Write algorithms and parameters to this file as JSON; - is standard output");
}

int algorithms(const AlgorithmsArguments& arguments) {
  std::vector<const cc::AlgorithmTable*> tables;
  for (const std::string& name : arguments.names) tables.push_back(&cc::algorithm_from(name));
  if (tables.empty()) tables.assign(cc::algorithms().begin(), cc::algorithms().end());
  if (arguments.json) {
    check_writable(*arguments.json, "");
    std::ostringstream text;
    write_algorithms_json(tables, text);
    write_file(*arguments.json, text.str());
  }
  if (arguments.json != "-")
    fmt::print("{}", arguments.markdown ? algorithms_markdown(tables) : algorithms_text(tables));
  return 0;
}

}  // namespace

void add_algorithms_command(CommandLine& line) {
  line.add<AlgorithmsArguments>("algorithms",
                                "List the congestion controls and their parameters (docs/reference/algorithms.md)",
                                add_options, algorithms);
}

}  // namespace mltcp::tools
