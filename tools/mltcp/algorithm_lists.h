// Lists the algorithms of the registry (cc/registry.h): their names for help texts, and all algorithms with their
// parameters as text, Markdown or JSON.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "mltcp/cc/registry.h"

namespace mltcp::tools {

using AlgorithmTables = std::span<const cc::AlgorithmTable* const>;

/// Returns the names of the congestion controls that this program contains.
std::vector<std::string> algorithm_names();
/// Returns the possible values of option --cc: "reno, cubic, ..., or FILE.so:NAME".
std::string algorithm_choices();

/// Returns text for a terminal: each algorithm with its requirements and parameters.
std::string algorithms_text(AlgorithmTables algorithms);
/// Returns a Markdown table of the parameters of all `algorithms`.
std::string algorithms_markdown(AlgorithmTables algorithms);
/// Writes the algorithms as JSON. Its schema is docs/schema/algorithms-1.schema.json.
void write_algorithms_json(AlgorithmTables algorithms, std::ostream& out);

}  // namespace mltcp::tools
