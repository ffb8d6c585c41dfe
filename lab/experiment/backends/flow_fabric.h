// The network of datapath flow: its links, and the paths of the jobs' connections, which are the same as for packets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/engine/job_spec.h"
#include "mltcp/lab/fabric/dumbbell.h"
#include "mltcp/lab/sim/switched_network.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/wire.h"

namespace mltcp::experiment {

/// The path of one connection: link numbers, each at most once.
struct FlowPath {
  std::vector<std::uint32_t> data;  ///< at least one
  std::vector<std::uint32_t> acknowledgements;
  Nanos round_trip;  ///< RTT of a full packet and its acknowledgement, with empty queues
};

/// The network that jobs run on.
struct FlowFabric {
  struct Link {
    std::string name;
    Rate rate;
  };
  std::vector<Link> links;
  std::uint32_t mtu = 1500;
  /// The paths of the job's connections from `worker`, one for each flow.
  std::function<std::vector<FlowPath>(const JobSpec& job, std::uint32_t worker)> route;
  /// The path between two ranks of a job. If there are paths of equal cost, all connections of the two ranks take the
  /// same one. Empty function if workers have no hosts of their own.
  std::function<FlowPath(const JobSpec& job, std::uint32_t from, std::uint32_t to)> between;
};

/// A single link shared by all jobs.
FlowFabric flow_fabric(const fabric::DumbbellConfig& config);
/// Links are numbered as in the topology; paths are those of sim::SwitchedNetworkMap.
FlowFabric flow_fabric(const fabric::SwitchedNetworkConfig& config);

/// Bytes on the wire of a full packet as an Ethernet frame; below, those of a pure acknowledgement.
inline Bytes frame_bytes(std::uint32_t mtu) { return Bytes{mtu} + encap::kEthernetBytes; }
inline constexpr Bytes kAcknowledgementBytes = encap::kIpv4OverheadBytes + wire::kHeaderBytes + wire::kAckFrameBytes;

}  // namespace mltcp::experiment
