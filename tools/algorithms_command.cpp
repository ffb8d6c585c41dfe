// `mltcp algorithms`: the congestion controls there are, and their parameters.
#include <fmt/format.h>

#include <sstream>

#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/experiment/files/algorithms.h"
#include "output_file.h"

namespace mltcp::tools {

int algorithms(const AlgorithmsArguments& arguments) {
  std::vector<const cc::AlgorithmTable*> tables;
  for (const std::string& name : arguments.names) tables.push_back(&cc::algorithm_from(name));
  if (tables.empty()) tables.assign(cc::algorithms().begin(), cc::algorithms().end());
  if (arguments.json) {
    check_writable(*arguments.json, "");
    std::ostringstream text;
    experiment::write_algorithms_json(tables, text);
    write_file(*arguments.json, text.str());
  }
  if (arguments.json != "-")
    fmt::print("{}",
               arguments.markdown ? experiment::algorithms_markdown(tables) : experiment::algorithms_text(tables));
  return 0;
}

}  // namespace mltcp::tools
