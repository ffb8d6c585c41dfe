// Lists of hosts as Slurm writes them (hostlist expressions): names separated by commas, each with ranges in brackets.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp::experiment {

/// Expands "gpu-a,node[01-03,7]" to gpu-a, node01, node02, node03, node7. Numbers have at least as many digits as the
/// first one of their range. With several brackets, as in "r[1-2]n[0-3]", the last one varies fastest. Throws
/// InputError "cause; cure" for an empty name, a name of more than 128 bytes, or invalid ranges. More than `most` names
/// are refused before they are created.
std::vector<std::string> expand_hosts(std::string_view list, std::size_t most);

}  // namespace mltcp::experiment
