// The algorithms of the registry (cc/registry.h) for people and files: names for help texts, a list of all algorithms
// with their parameters as text, Markdown or JSON, and the parameters that an experiment has set.
#pragma once

#include <iosfwd>
#include <map>
#include <span>
#include <string>

#include "mltcp/cc/registry.h"
#include "mltcp/lab/experiment/files/experiment_file.h"

namespace mltcp::experiment {

using AlgorithmTables = std::span<const cc::AlgorithmTable* const>;

/// The values that option --cc takes: "reno, cubic, ..., or FILE.so:NAME".
std::string algorithm_choices();

/// For a terminal: each algorithm, its requirements, and its parameters.
std::string algorithms_text(AlgorithmTables algorithms);
/// A table of all their parameters.
std::string algorithms_markdown(AlgorithmTables algorithms);
/// The schema is docs/schema/algorithms-1.schema.json.
void write_algorithms_json(AlgorithmTables algorithms, std::ostream& out);

/// The parameters, of algorithms used by the experiment's jobs, that differ from the defaults: text values by key, such
/// as {"swift.base_target", "40 us"}.
std::map<std::string, std::string> changed_parameters(const Experiment& experiment);

}  // namespace mltcp::experiment
