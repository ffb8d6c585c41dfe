// The algorithms of the registry (cc/registry.h) for people and files: names for help texts, and lists of all
// algorithms with their parameters as text, Markdown or JSON.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "mltcp/cc/registry.h"

namespace mltcp::tools {

using AlgorithmTables = std::span<const cc::AlgorithmTable* const>;

/// The congestion controls that this program has.
std::vector<std::string> algorithm_names();
/// The values that option --cc takes: "reno, cubic, ..., or FILE.so:NAME".
std::string algorithm_choices();

/// For a terminal: each algorithm, its requirements, and its parameters.
std::string algorithms_text(AlgorithmTables algorithms);
/// A table of all their parameters.
std::string algorithms_markdown(AlgorithmTables algorithms);
/// The schema is docs/schema/algorithms-1.schema.json.
void write_algorithms_json(AlgorithmTables algorithms, std::ostream& out);

}  // namespace mltcp::tools
