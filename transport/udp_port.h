// The default UDP port of hosts.
//
// It is a Dynamic Port (49152 to 65535), which IANA assigns to no service (RFC 6335 section 6), so that no tool decodes
// these packets as another protocol. It is above Linux's ephemeral ports, 32768 to 60999
// (net.ipv4.ip_local_port_range). So are the ports after it, which further shards and ranks use.
//
// Simulations use other ports (sim::Dumbbell, lab/experiment/backends/topology_network.h), because hashes of paths
// depend on them.
#pragma once

#include <cstdint>

namespace mltcp {

constexpr std::uint16_t kDefaultUdpPort = 62400;

/// The port of RoCEv2, assigned by IANA. Do not use it, because packet analysers decode its packets as InfiniBand, and
/// NICs with RoCE may not deliver them to other receivers.
constexpr std::uint16_t kRoceUdpPort = 4791;

}  // namespace mltcp
