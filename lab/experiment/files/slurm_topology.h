// Reader of Slurm's topology.conf (topology/tree and topology/block) and topology.yaml, as a network.
//
//   SwitchName=leaf[1] Nodes=gpu[01-16]        a switch, and the hosts on it
//   SwitchName=top Switches=leaf[1-8]          a switch, and those below it
//   BlockName=b1 Nodes=node[01-18]             a block: taken as a switch, with one more switch above all blocks
//
// Formats: topology.conf(5) and topology.yaml(5) of Slurm. They describe which switch is above which, but not the
// rates. LinkSpeed has no unit and is ignored, as by Slurm. BlockSizes, which Slurm plans with, are ignored, too. Two
// connected switches have one link in each direction, regardless of the number of cables.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "mltcp/base/topology.h"

namespace mltcp::experiment {

struct SlurmTopologyOptions {
  Rate host_rate;               ///< of each link of a host
  Rate uplink_rate = {};        ///< of each link between switches; 0: derived from `oversubscription`
  double oversubscription = 1;  ///< total rate of a switch's downlinks / that of its uplinks; above 0
  Nanos delay;                  ///< of each link
};

/// Hosts and switches are in the file's order. A switch may be below several others; the network must be connected.
/// Throws InputError "FILE:LINE: KEY: cause; cure", also for a duplicate host or switch, a missing switch, a switch
/// above itself, and separate parts. Limits are those of Topology.
Graph load_slurm_topology(const std::filesystem::path& path, const SlurmTopologyOptions& options);
/// The same from memory; `file` is used in messages.
Graph parse_slurm_topology(std::string_view text, const std::string& file, const SlurmTopologyOptions& options);

}  // namespace mltcp::experiment
