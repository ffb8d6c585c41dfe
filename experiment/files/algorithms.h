// What the registry of congestion control (cc/registry.h) says, for people and for files: names for help texts, a list
// of all algorithms with their parameters as text, Markdown and JSON, and the parameters that an experiment has set.
#pragma once

#include <iosfwd>
#include <map>
#include <span>
#include <string>

#include "mltcp/cc/registry.h"
#include "mltcp/experiment/files/experiment_file.h"

namespace mltcp::experiment {

using AlgorithmTables = std::span<const cc::AlgorithmTable* const>;

/// What option --cc takes: "reno, cubic, ..., or FILE.so:NAME".
std::string algorithm_choices();

/// For a terminal: each algorithm, what it needs, and below it its parameters.
std::string algorithms_text(AlgorithmTables algorithms);
/// A table of all their parameters.
std::string algorithms_markdown(AlgorithmTables algorithms);
/// The schema is docs/schema/algorithms-1.schema.json.
void write_algorithms_json(AlgorithmTables algorithms, std::ostream& out);

/// The parameters of the algorithms that the experiment's jobs use, where they differ from the defaults: values by key,
/// as in {"swift.base_target", "40 us"}.
std::map<std::string, std::string> changed_parameters(const Experiment& experiment);

}  // namespace mltcp::experiment
