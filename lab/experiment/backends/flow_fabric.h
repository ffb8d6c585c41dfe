// The network of datapath flow: its links, and the paths of the jobs' connections. Connections take the same paths as
// at packet level.
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

/// The path of one connection: the numbers of the links of data packets, and of acknowledgements. A number occurs at
/// most once in each list.
struct FlowPath {
  std::vector<std::uint32_t> data;  ///< links of data packets; at least one
  std::vector<std::uint32_t> acknowledgements;
  Nanos round_trip;  ///< round-trip time of a full packet and its acknowledgement with empty queues
};

/// The network that jobs run on.
struct FlowFabric {
  struct Link {
    std::string name;
    Rate rate;
  };
  std::vector<Link> links;
  std::uint32_t mtu = 1500;
  /// Returns the paths of the connections from `worker` to its receiver, one path per connection.
  std::function<std::vector<FlowPath>(const JobSpec& job, std::uint32_t worker)> route;
  /// Returns the path from rank `from` to rank `to` of a job. If there are several paths of equal cost, all connections
  /// of these two ranks use the same path. Empty function if a network has no separate hosts for ranks.
  std::function<FlowPath(const JobSpec& job, std::uint32_t from, std::uint32_t to)> between;
};

/// Returns a network with a single link that all jobs share.
FlowFabric flow_fabric(const fabric::DumbbellConfig& config);
/// Returns the network of a topology, with the link numbers of the topology. Its paths are those that
/// sim::SwitchedNetworkMap computes.
FlowFabric flow_fabric(const fabric::SwitchedNetworkConfig& config);

/// Returns the size of a full packet as an Ethernet frame, in bytes.
inline Bytes frame_bytes(std::uint32_t mtu) { return Bytes{mtu} + encap::kEthernetBytes; }
inline constexpr Bytes kAcknowledgementBytes = encap::kIpv4OverheadBytes + wire::kHeaderBytes + wire::kAckFrameBytes;

}  // namespace mltcp::experiment
