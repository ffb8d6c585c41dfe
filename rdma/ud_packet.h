// The bytes before a packet in a message of an unreliable datagram queue pair: 40 bytes that the device writes on
// arrival, and a shim of this project.
//
// The 40 bytes are the Global Route Header (InfiniBand Architecture Specification, volume 1, section 8.3). On RoCEv2
// (annex A17) they contain the packet's IP header instead. An IPv6 header fills all 40 bytes. An IPv4 header is in the
// last 20 bytes, and the first 20 bytes are undefined. Each of these headers contains the sender's address, which is
// its GID. On RoCEv2 the IP header also contains the received ECN codepoint, DSCP and TTL.
//
//   shim:  0 source UDP port, 2 destination UDP port, 4 the packet; in network byte order
//
// The ports are those of `Address`. No UDP header contains them, because RoCEv2 uses its own port for all packets. This
// code is sans-IO: it makes no system calls.
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
/// Limits in bytes for the maximum size of a message: InfiniBand's smallest and largest MTU. A message is one packet.
inline constexpr std::uint32_t kMinMessage = 256;
inline constexpr std::uint32_t kMaxMessage = 4096;
using Shim = std::array<std::byte, kShimBytes>;

/// The network that carries packets. It determines the contents of the 40 bytes and the headers on the wire.
enum class Network : std::uint8_t {
  roce_v4,  ///< RoCEv2 over IPv4
  roce_v6,
  infiniband,
};

/// Returns the number of bytes that an IP packet (RoCEv2) has in addition to the message. On InfiniBand, the local
/// route header does not count.
std::uint32_t network_overhead(Network network);
/// Returns the number of bytes on the wire in addition to the packet: link, network and transport headers, checksums
/// and the shim.
std::uint32_t wire_overhead(Network network);

Shim make_shim(std::uint16_t source_port, std::uint16_t destination_port);

/// Returns the traffic class of a packet: DSCP class selector and ECN codepoint (RFC 2474, RFC 3168).
std::uint8_t traffic_class(const TxPacket& packet);

struct Arrival {
  Address source;
  std::uint16_t destination_port = 0;
  Ecn ecn = Ecn::not_ect;
  std::uint8_t priority = 0;
  std::uint8_t hops = 0;
};

/// Returns whether a host with address `own` can have a peer with `address`. Multicast and unspecified addresses are
/// excluded. A loopback address is excluded unless `own` is one.
bool is_host(const Address& address, const Address& own);

/// Reads the 40 bytes and the shim of a message. `own` is the GID of the receiving host. Returns false if the message
/// is too short, has the wrong IP version, IPv4 checksum or destination, or comes from an address that no host can
/// have.
bool read_arrival(std::span<const std::byte> message, Network network, const Address& own, Arrival& out);

}  // namespace mltcp::rdma
