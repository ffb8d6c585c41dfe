// Lists the algorithms of the registry (cc/registry.h): their names for help texts, and the parameters of algorithms
// and of policy `turns` as text, Markdown or JSON.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "mltcp/cc/registry.h"

namespace mltcp::tools {

/// Tables of registered algorithms, or of policy `turns`.
using ParameterTables = std::span<const cc::ParameterTable* const>;

/// Returns the names of the congestion controls that this program contains.
std::vector<std::string> algorithm_names();
/// Returns the possible values of option --cc: "reno, cubic, ..., or FILE.so:NAME".
std::string algorithm_choices();

/// Returns the tables of the algorithms or policy that `names` name; all tables if it is empty. Throws InputError like
/// cc::algorithm_from().
std::vector<const cc::ParameterTable*> tables_named(const std::vector<std::string>& names);
/// Returns text for a terminal: each table with its parameters, and the requirements of algorithms.
std::string parameters_text(ParameterTables tables);
/// Returns a Markdown table of all parameters.
std::string parameters_markdown(ParameterTables tables);
/// Writes the algorithms, and the policy, as JSON. The schema is docs/schema/algorithms-1.schema.json.
void write_parameters_json(ParameterTables tables, std::ostream& out);

}  // namespace mltcp::tools
