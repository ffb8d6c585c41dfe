// What is in front of a packet's bytes in a message of an unreliable datagram queue pair: 40 bytes that the device
// writes on arrival, and a shim of ours.
//
// The 40 bytes are the Global Route Header (InfiniBand Architecture Specification, volume 1, section 8.3). On RoCEv2
// (annex A17) they are the packet's IP header: all 40 for IPv6; for IPv4 the last 20, and the first 20 are undefined.
// Either has the sender's address, which is its GID, and on RoCEv2 the ECN codepoint, DSCP and TTL as they arrived.
//
//   shim:  0 source UDP port, 2 destination UDP port, 4 the packet; in network byte order
//
// The ports are those of `Address`; no UDP header has them, as RoCEv2 uses its own for all. Sans-IO.
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
/// Of a message, which is one packet: the shortest and the longest MTU of InfiniBand.
inline constexpr std::uint32_t kMinMessage = 256;
inline constexpr std::uint32_t kMaxMessage = 4096;
using Shim = std::array<std::byte, kShimBytes>;

/// What carries packets: it decides what the 40 bytes tell, and what headers take on the wire.
enum class Network : std::uint8_t {
  roce_v4,  ///< RoCEv2 over IPv4
  roce_v6,
  infiniband,
};

/// Bytes of an IP packet (RoCEv2), or of an InfiniBand packet behind its local route header, beyond the message.
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

/// Whether a host can have that address, as seen from one that has `own`: not a group's, nobody's, or, but for one that
/// has such itself, that of the loopback.
bool is_host(const Address& address, const Address& own);

/// Reads the 40 bytes and the shim of a message. False if they make no sense: another IP version, a wrong checksum of
/// the IPv4 header, a sender that is no host, or too short. `own` is the GID that it came to.
bool read_arrival(std::span<const std::byte> message, Network network, const Address& own, Arrival& out);

}  // namespace mltcp::rdma
