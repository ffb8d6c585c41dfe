// Reader of topology files for the scheduler's service. A topology file is TOML that describes a network and the names
// of its hosts:
//
//   hosts = ["node[01-16]", "gpu-a"]       names, in the order of the topology's hosts (host_list.h)
//   [topology]                             the same keys as in experiment files (docs/reference/experiment-network.md)
//   kind = "leaf-spine"
//   ...
//
// If `hosts` is missing, hosts have the names in the topology. Errors are as for experiment files (experiment_file.h).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/topology.h"

namespace mltcp::experiment {

struct TopologyFile {
  std::string file;  ///< path as the user gave it
  std::shared_ptr<const Topology> topology;
  std::vector<std::string> host_names;  ///< name of each host; unique
};

/// Reads a topology file, and the list of links that it names. Throws InputError for invalid files.
TopologyFile load_topology(const std::filesystem::path& path);
/// Parses the text of a topology file. Messages name `file`; relative paths in `text` start from the folder of `file`.
TopologyFile parse_topology(std::string_view text, const std::string& file);

}  // namespace mltcp::experiment
