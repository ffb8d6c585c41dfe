// The UDP port that hosts use where nobody chooses one.
//
// It is one of the Dynamic Ports, 49152 to 65535, which IANA assigns to no service (RFC 6335 section 6), so that no
// tool takes these packets for somebody else's. Nor does a kernel hand it out to a socket that asks for any: Linux
// takes those from 32768 to 60999 (net.ipv4.ip_local_port_range). The ports behind it, of further shards and ranks, are
// free as well.
//
// Virtual time has ports of its own (sim::Dumbbell, experiment/backends/topology_network.h), which hashes of paths
// depend on.
#pragma once

#include <cstdint>

namespace mltcp {

constexpr std::uint16_t default_udp_port = 62400;

/// RoCEv2's, assigned by IANA. Packet analysers read what comes there as InfiniBand, and NICs with RoCE may keep it
/// from all others.
constexpr std::uint16_t roce_udp_port = 4791;

}  // namespace mltcp
