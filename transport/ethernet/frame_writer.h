// Writes the frames of one host: puts headers of Ethernet, IP and UDP before a packet of the transport, and copies and
// sums the bytes of the packet in one pass. For datapaths that build their own frames, in buffers of any kind. Performs
// no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "mltcp/transport/address.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::encap {

/// Returns the UDP source port of packets with path value `path` from a host that receives at port `own`. Value 0 has
/// this port, and each other value another port of the dynamic range (RFC 6335), as other tunnels choose theirs (RFC
/// 7348 section 5). Nothing listens at these ports.
constexpr std::uint16_t source_port(std::uint16_t own, std::uint8_t path) {
  constexpr std::uint32_t first = 49'152;
  return path == 0 ? own : static_cast<std::uint16_t>(first + (own + path) % (65'536 - first));
}

/// Where the checksums of sent frames are computed.
enum class Checksums : std::uint8_t {
  software,
  port,     ///< the port computes both the IP and the UDP checksum
  ip_only,  ///< the port computes the IP checksum; the UDP checksum is marked as absent, which IPv4 allows
};

class FrameWriter {
 public:
  struct Config {
    MacAddress mac{};
    Address source;
    std::uint16_t vlan = 0;
    std::uint32_t mtu = 1500;
    Checksums checksums = Checksums::software;
    DscpMap dscp{};
  };

  explicit FrameWriter(const Config& config)
      : config_(config),
        overhead_(header_bytes(config.source, config.vlan)),
        network_((config.source.is_v4() ? kIpv4Bytes : kIpv6Bytes) + kUdpBytes) {
    headers_.source = config.source;
    headers_.source_mac = config.mac;
    headers_.vlan = config.vlan;
    if (config.checksums == Checksums::port) offload_ = {true, true};
  }

  /// Length of all headers before the UDP payload.
  [[nodiscard]] std::size_t overhead_bytes() const { return overhead_; }
  /// Length of the IP and UDP headers.
  [[nodiscard]] std::size_t network_bytes() const { return network_; }
  /// Maximum UDP payload in bytes.
  [[nodiscard]] std::uint32_t max_packet_bytes() const { return config_.mtu - static_cast<std::uint32_t>(network_); }

  /// Returns whether the packet fits into the MTU, has no virtual payload, and goes to an address of the source's IP
  /// version.
  [[nodiscard]] bool is_sendable(const TxPacket& packet) const {
    return packet.destination != nullptr && packet.destination->is_v4() == headers_.source.is_v4() &&
           packet.fits(max_packet_bytes());
  }

  /// Writes `packet`, which must be sendable, as a frame to `destination`. Writes the payload only if `copies_payload`;
  /// if not, the caller must add it. Returns the number of bytes written. `frame` must have space for these bytes.
  std::size_t write(const TxPacket& packet, const MacAddress& destination, std::byte* frame, bool copies_payload) {
    const std::size_t header = packet.header.size();
    const std::size_t payload = packet.payload.size();
    std::byte* const data = frame + overhead_;
    std::uint16_t partial = 0;
    if (config_.checksums == Checksums::software) {
      partial = copy_and_sum(data, packet.header.data(), header);
      if (payload != 0) {
        partial = join(partial,
                       copies_payload ? copy_and_sum(data + header, packet.payload.data(), payload)
                                      : sum(packet.payload.data(), payload),
                       header);
      }
    } else {
      std::memcpy(data, packet.header.data(), header);
      if (payload != 0 && copies_payload) std::memcpy(data + header, packet.payload.data(), payload);
    }
    headers_.source.port = source_port(config_.source.port, packet.path);
    headers_.destination = *packet.destination;
    headers_.destination_mac = destination;
    headers_.ecn = packet.ecn;
    headers_.priority = packet.priority;
    write_headers(headers_, header + payload, partial, frame, config_.dscp, offload_);
    if (config_.checksums == Checksums::ip_only) std::memset(data - 2, 0, 2);
    return overhead_ + header + (copies_payload ? payload : 0);
  }

 private:
  Config config_;
  std::size_t overhead_;
  std::size_t network_;
  Headers headers_;
  Offload offload_;
};

/// Returns a parsed frame as a packet for the transport. `tail` is the part of the payload that is stored apart from
/// `bytes`.
inline RxPacket packet_of(const Headers& headers, std::span<const std::byte> bytes,
                          std::span<const std::byte> tail = {}) {
  return {headers.source, bytes, 0, headers.ecn, headers.priority, hops_of(headers), tail};
}

}  // namespace mltcp::encap
