// Reader of topology files: a network and the names of its hosts, for the scheduler's service. TOML:
//
//   hosts = ["node[01-16]", "gpu-a"]       names, in the order of the topology's hosts (host_list.h)
//   [topology]                             as in experiment files (docs/reference/experiment-network.md)
//   kind = "leaf-spine"
//   ...
//
// Without `hosts`, hosts have the topology's names. Errors are as in experiment files (experiment_file.h).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/topology.h"

namespace mltcp::experiment {

struct TopologyFile {
  std::string file;  ///< path as given
  std::shared_ptr<const Topology> topology;
  std::vector<std::string> host_names;  ///< by host; unique
};

/// Reads a topology file, and the list of links it refers to. Throws InputError.
TopologyFile load_topology(const std::filesystem::path& path);
/// The same from memory; `file` is used in messages, and its folder to find other files.
TopologyFile parse_topology(std::string_view text, const std::string& file);

}  // namespace mltcp::experiment
