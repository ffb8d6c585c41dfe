// Parser of host lists as Slurm writes them (hostlist expressions): names separated by commas, each with optional
// ranges in brackets.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp::experiment {

/// Expands a list such as "gpu-a,node[01-03,7]" to gpu-a, node01, node02, node03, node7. Numbers have at least as many
/// digits as the first number of their range. If a name has several brackets, as "r[1-2]n[0-3]" has, the last number
/// varies fastest. Throws InputError "cause; cure" for an empty name, a name of more than 128 bytes, or invalid ranges.
/// Refuses more than `max` names before it creates them.
std::vector<std::string> expand_hosts(std::string_view list, std::size_t max);

}  // namespace mltcp::experiment
