// Headers of packets in messages of queue pairs; see ud_packet.h.
#include "mltcp/rdma/ud_packet.h"

#include <cstring>

#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/ethernet/ip_address.h"

namespace mltcp::rdma {
namespace {

constexpr std::size_t kIpv4At = kGrhBytes - encap::kIpv4Bytes;
constexpr std::uint8_t kUdp = 17;
constexpr std::uint32_t kTransportBytes = 12 + 8;  // sizes of the base and datagram transport headers
constexpr std::uint32_t kInvariantCrcBytes = 4;
constexpr std::uint32_t kLocalRouteBytes = 8;  // local route header, without the variant CRC
constexpr std::uint32_t kVariantCrcBytes = 2;

std::uint8_t byte_at(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<std::uint8_t>(bytes[at]);
}

std::uint16_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  return static_cast<std::uint16_t>(byte_at(bytes, at) << 8 | byte_at(bytes, at + 1));
}

std::uint8_t hops_of(std::uint8_t time_to_live) {
  return time_to_live > 0 && time_to_live < encap::kTimeToLive
             ? static_cast<std::uint8_t>(encap::kTimeToLive - time_to_live)
             : std::uint8_t{0};
}

bool read_ipv4(std::span<const std::byte> ip, Arrival& out, Address& destination, std::uint8_t& traffic) {
  constexpr std::uint8_t no_options = 0x45;
  if (byte_at(ip, 0) != no_options || byte_at(ip, 9) != kUdp) return false;
  // Software devices leave the checksum 0 if a packet never leaves the machine.
  if (encap::sum(ip.data(), encap::kIpv4Bytes) != 0xFFFF && word_at(ip, 10) != 0) return false;
  traffic = byte_at(ip, 1);
  out.hops = hops_of(byte_at(ip, 8));
  out.source = Address::v4(0, 0);
  destination = Address::v4(0, 0);
  std::memcpy(out.source.ip.data() + 12, ip.data() + 12, 4);
  std::memcpy(destination.ip.data() + 12, ip.data() + 16, 4);
  return true;
}

bool read_ipv6(std::span<const std::byte> ip, std::uint8_t next_header, Arrival& out, Address& destination,
               std::uint8_t& traffic) {
  if (byte_at(ip, 0) >> 4 != 6 || byte_at(ip, 6) != next_header) return false;
  traffic = static_cast<std::uint8_t>(byte_at(ip, 0) << 4 | byte_at(ip, 1) >> 4);
  out.hops = hops_of(byte_at(ip, 7));
  std::memcpy(out.source.ip.data(), ip.data() + 8, 16);
  std::memcpy(destination.ip.data(), ip.data() + 24, 16);
  return true;
}

}  // namespace

std::uint32_t network_overhead(Network network) {
  const auto route = static_cast<std::uint32_t>(network == Network::roce_v4 ? encap::kIpv4Bytes : kGrhBytes);
  const auto udp = network == Network::infiniband ? 0U : static_cast<std::uint32_t>(encap::kUdpBytes);
  return route + udp + kTransportBytes + kInvariantCrcBytes;
}

std::uint32_t wire_overhead(Network network) {
  const std::uint32_t link = network == Network::infiniband ? kLocalRouteBytes + kVariantCrcBytes
                                                            : static_cast<std::uint32_t>(encap::kEthernetBytes);
  return link + network_overhead(network) + static_cast<std::uint32_t>(kShimBytes);
}

Shim make_shim(std::uint16_t source_port, std::uint16_t destination_port) {
  const auto byte = [](unsigned value) { return static_cast<std::byte>(value & 0xFF); };
  return {byte(source_port >> 8U), byte(source_port), byte(destination_port >> 8U), byte(destination_port)};
}

std::uint8_t traffic_class(const TxPacket& packet) {
  const unsigned dscp = encap::kClassSelectors.dscp(packet.priority);
  return static_cast<std::uint8_t>(dscp << 2 | static_cast<unsigned>(packet.ecn));
}

bool is_host(const Address& address, const Address& own) {
  if (is_unspecified(address)) return false;
  if (!address.is_v4()) {
    constexpr std::array<std::uint8_t, 16> loopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    return address.ip[0] != 0xFF && (address.ip != loopback || own.ip == loopback);
  }
  constexpr std::uint8_t loopback = 127;
  constexpr std::uint8_t kFirstGroup = 224;  // first octet of multicast, reserved and broadcast addresses
  const std::uint8_t network = address.ip[12];
  return network != 0 && network < kFirstGroup && (network != loopback || (own.is_v4() && own.ip[12] == loopback));
}

bool read_arrival(std::span<const std::byte> message, Network network, const Address& own, Arrival& out) {
  if (message.size() < kGrhBytes + kShimBytes) return false;
  std::uint8_t traffic = 0;
  Address destination;
  constexpr std::uint8_t infiniband_transport = 0x1B;  // value of the next-header field in the route header
  const bool is_valid =
      network == Network::roce_v4
          ? read_ipv4(message.subspan(kIpv4At, encap::kIpv4Bytes), out, destination, traffic)
          : read_ipv6(message.first(kGrhBytes), network == Network::infiniband ? infiniband_transport : kUdp, out,
                      destination, traffic);
  if (!is_valid || destination.ip != own.ip || !is_host(out.source, own)) return false;
  out.priority = encap::kClassSelectors.priority(static_cast<std::uint8_t>(traffic >> 2));
  out.ecn = static_cast<Ecn>(traffic & 3);
  if (network == Network::infiniband) {
    // InfiniBand switches neither mark packets nor count hops. So the route header has no ECN codepoint and no useful
    // hop limit.
    out.ecn = Ecn::not_ect;
    out.hops = 0;
  }
  out.source.port = word_at(message, kGrhBytes);
  out.destination_port = word_at(message, kGrhBytes + 2);
  return out.source.port != 0;
}

}  // namespace mltcp::rdma
