// Reads Slurm's topology.conf (topology/tree and topology/block) or topology.yaml as a network.
//
//   SwitchName=leaf[1] Nodes=gpu[01-16]        a switch and its hosts
//   SwitchName=top Switches=leaf[1-8]          a switch and the switches below it
//   BlockName=b1 Nodes=node[01-18]             a block, read as a switch; an additional switch connects all blocks
//
// Slurm's manual pages topology.conf(5) and topology.yaml(5) define the formats. They describe the tree of switches,
// but not the rates of links. This reader ignores BlockSizes. It also ignores LinkSpeed, which has no unit and which
// Slurm ignores, too. Two connected switches have one link in each direction, regardless of the number of cables.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "mltcp/base/topology.h"

namespace mltcp::experiment {

struct SlurmTopologyOptions {
  Rate host_rate;         ///< rate of each link of a host
  Rate uplink_rate = {};  ///< rate of each link between switches; 0 to derive it from `oversubscription`
  /// Total rate of a switch's downlinks divided by the total rate of its uplinks; above 0.
  double oversubscription = 1;
  Nanos delay;  ///< delay of each link
};

/// Reads a network from a file. Hosts and switches are in the file's order. A switch may be below several switches; the
/// network must be connected. Throws InputError "FILE:LINE: KEY: cause; cure", also for a duplicate host or switch, a
/// missing switch, a switch above itself, and separate parts. The limits of Topology apply.
Graph load_slurm_topology(const std::filesystem::path& path, const SlurmTopologyOptions& options);
/// Parses the text of a topology file. Messages name `file`.
Graph parse_slurm_topology(std::string_view text, const std::string& file, const SlurmTopologyOptions& options);

}  // namespace mltcp::experiment
