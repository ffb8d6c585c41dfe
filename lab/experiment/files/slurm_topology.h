// Reader of Slurm's topology.conf (topology/tree and topology/block) and topology.yaml, as a network.
//
//   SwitchName=leaf[1] Nodes=gpu[01-16]        a switch, and the hosts on it
//   SwitchName=top Switches=leaf[1-8]          a switch, and those below it
//   BlockName=b1 Nodes=node[01-18]             a block: taken as a switch, with one more switch above all blocks
//
// Formats: topology.conf(5) and topology.yaml(5) of Slurm. They say which switch is above which, and nothing that is
// known of rates: LinkSpeed has no unit and is ignored, as Slurm ignores it, and so are BlockSizes, which are sizes
// that Slurm plans with. A line between two switches is one link in each direction, however many cables it stands for.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "mltcp/base/topology.h"

namespace mltcp::experiment {

struct SlurmTopologyOptions {
  Rate host_rate;               ///< of each link of a host
  Rate uplink_rate = {};        ///< of each link between switches; 0: by `oversubscription`
  double oversubscription = 1;  ///< what the links of a switch down have together, over what those up have; above 0
  Nanos delay;                  ///< of each link
};

/// Hosts and switches are in the file's order. A switch may be below several others; every switch must be joined to all
/// others. Throws InputError "FILE:LINE: KEY: cause; cure": also for a host or a switch that is named twice, a switch
/// that is not there or is above itself, and parts that nothing joins. Limits are those of Topology.
Graph load_slurm_topology(const std::filesystem::path& path, const SlurmTopologyOptions& options);
/// The same from memory; `file` is used in messages.
Graph parse_slurm_topology(std::string_view text, const std::string& file, const SlurmTopologyOptions& options);

}  // namespace mltcp::experiment
