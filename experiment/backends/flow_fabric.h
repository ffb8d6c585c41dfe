// The network of datapath flow: its links, and the ways that the connections of a job take over them, which are those
// that their packets would take.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/ethernet/encapsulation.h"
#include "mltcp/experiment/engine/job_spec.h"
#include "mltcp/fabric/dumbbell.h"
#include "mltcp/sim/switched_network.h"
#include "mltcp/transport/wire.h"

namespace mltcp::experiment {

/// The way of one connection: links by number, each at most once.
struct FlowPath {
  std::vector<std::uint32_t> data;  ///< at least one
  std::vector<std::uint32_t> acknowledgements;
  Nanos round_trip;  ///< of a full packet and its acknowledgement in the empty network
};

/// The network that jobs run on.
struct FlowFabric {
  struct Link {
    std::string name;
    Rate rate;
  };
  std::vector<Link> links;
  std::uint32_t mtu = 1500;
  /// The ways of the job's connections from that worker, as many as it has flows.
  std::function<std::vector<FlowPath>(const JobSpec& job, std::uint32_t worker)> route;
};

/// One link, which all jobs share.
FlowFabric flow_fabric(const fabric::DumbbellConfig& config);
/// Links numbered as in the topology, and the paths of sim::SwitchedNetworkMap.
FlowFabric flow_fabric(const sim::SwitchedNetworkConfig& config);

/// Of a full packet, as Ethernet counts it, and of one that only acknowledges.
inline Bytes frame_bytes(std::uint32_t mtu) { return Bytes{mtu} + encap::kEthernetBytes; }
inline constexpr Bytes kAcknowledgementBytes = encap::kIpv4OverheadBytes + wire::header_bytes + wire::ack_frame_bytes;

}  // namespace mltcp::experiment
