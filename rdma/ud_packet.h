// The bytes before a packet in a message of an unreliable datagram queue pair: 40 bytes that the device writes on
// arrival, and a shim of this project.
//
// The 40 bytes are the Global Route Header (InfiniBand Architecture Specification, volume 1, section 8.3). On RoCEv2
// (annex A17) they are the packet's IP header: all 40 for IPv6; for IPv4 the last 20, and the first 20 are undefined.
// Both contain the sender's address, which is its GID. On RoCEv2 they also contain the received ECN codepoint, DSCP and
// TTL.
//
//   shim:  0 source UDP port, 2 destination UDP port, 4 the packet; in network byte order
//
// The ports are those of `Address`. No UDP header contains them, since RoCEv2 uses its own port for all packets.
// Sans-IO.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "mltcp/transport/address.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::rdma {

inline constexpr std::size_t kGrhBytes = 40;
inline constexpr std::size_t kShimBytes = 4;
/// Size of a message, which is one packet: the shortest and the longest MTU of InfiniBand.
inline constexpr std::uint32_t kMinMessage = 256;
inline constexpr std::uint32_t kMaxMessage = 4096;
using Shim = std::array<std::byte, kShimBytes>;

/// The network that carries packets. It determines the contents of the 40 bytes and the headers on the wire.
enum class Network : std::uint8_t {
  roce_v4,  ///< RoCEv2 over IPv4
  roce_v6,
  infiniband,
};

/// Bytes that an IP packet (RoCEv2), or an InfiniBand packet after its local route header, has beyond the message.
std::uint32_t network_overhead(Network network);
/// Bytes on the wire beyond the packet: link, network and transport headers, checksums, the shim.
std::uint32_t wire_overhead(Network network);

Shim make_shim(std::uint16_t source_port, std::uint16_t destination_port);

/// Traffic class of a packet: DSCP class selector and ECN codepoint (RFC 2474, RFC 3168).
std::uint8_t traffic_class(const TxPacket& packet);

struct Arrival {
  Address source;
  std::uint16_t destination_port = 0;
  Ecn ecn = Ecn::not_ect;
  std::uint8_t priority = 0;
  std::uint8_t hops = 0;
};

/// Whether a host with address `own` can have `address` as its peer. Multicast and unspecified addresses are excluded,
/// and loopback unless `own` is one.
bool is_host(const Address& address, const Address& own);

/// Reads the 40 bytes and the shim of a message. False if they are invalid: too short, another IP version, a wrong
/// checksum of the IPv4 header, or a sender that is no host. `own` is the destination GID.
bool read_arrival(std::span<const std::byte> message, Network network, const Address& own, Arrival& out);

}  // namespace mltcp::rdma
