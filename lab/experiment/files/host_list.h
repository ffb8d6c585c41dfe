// Lists of hosts as Slurm writes them (hostlist expressions): names separated by commas, each with ranges in brackets.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp::experiment {

/// The names that "gpu-a,node[01-03,7]" stands for: gpu-a, node01, node02, node03, node7. Numbers have at least as many
/// digits as the first of their range. Of several brackets, as in "r[1-2]n[0-3]", the last counts fastest. Throws
/// InputError "cause; cure" for an empty name, one beyond 128 bytes, brackets that hold no ranges, or for more than
/// `most` names, before it makes them.
std::vector<std::string> expand_hosts(std::string_view list, std::size_t most);

}  // namespace mltcp::experiment
