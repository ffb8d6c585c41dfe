// Ethernet II, IPv4 or IPv6, and UDP headers around a UDP payload: written and parsed in software, with their
// checksums.
//
// RFC 791 and RFC 6864 (IPv4; the identification of an unfragmentable packet means nothing and is 0), RFC 8200
// (IPv6; its UDP checksum is mandatory), RFC 768 (UDP; an IPv4 checksum of 0 means "not computed"), RFC 1071 (how
// to compute the Internet checksum), RFC 1624 (how to update it), RFC 3168 (ECN). Frames are whole, untagged and
// without Ethernet's frame check sequence, as a datapath hands them over. Sans-IO.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "mltcp/transport/address.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::encap {

inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::size_t kIpv4Bytes = 20;
inline constexpr std::size_t kIpv6Bytes = 40;
inline constexpr std::size_t kUdpBytes = 8;
/// All that is put before a UDP payload.
inline constexpr std::size_t kIpv4OverheadBytes = kEthernetBytes + kIpv4Bytes + kUdpBytes;
inline constexpr std::size_t kIpv6OverheadBytes = kEthernetBytes + kIpv6Bytes + kUdpBytes;
/// Longest UDP payload that IPv4's and UDP's 16-bit lengths can express.
inline constexpr std::size_t kMaxPayloadBytes = 65535 - kIpv4Bytes - kUdpBytes;

// The Internet checksum (RFC 1071).
//
// A partial sum is the ones' complement sum of the bytes taken as 16-bit words in the machine's byte order, folded
// to 16 bits; an odd last byte counts as if a zero followed. Ones' complement addition is blind to byte order, so
// words are swapped only where one is written to a packet. Partial sums of neighbouring pieces are joined by
// `join`, which needs to know whether the second piece starts at an odd offset.

/// Partial sum of `size` bytes.
std::uint16_t sum(const void* data, std::size_t size);
/// Copies `size` bytes to `destination` (no overlap) and returns their partial sum, in one pass over them.
std::uint16_t copy_and_sum(void* destination, const void* source, std::size_t size);
/// Partial sum of two neighbouring pieces; `first_bytes` is the length of the first.
constexpr std::uint16_t join(std::uint16_t first, std::uint16_t second, std::size_t first_bytes) {
  if ((first_bytes & 1) != 0) second = static_cast<std::uint16_t>(second << 8 | second >> 8);
  const std::uint32_t total = std::uint32_t{first} + second;
  return static_cast<std::uint16_t>((total & 0xFFFF) + (total >> 16));
}
/// The checksum `checksum` (as read, in the same byte order as the words) of data in which `before` became `after`.
/// RFC 1624, equation 3.
constexpr std::uint16_t update_checksum(std::uint16_t checksum, std::uint16_t before, std::uint16_t after) {
  std::uint32_t total = static_cast<std::uint16_t>(~checksum);
  total += static_cast<std::uint16_t>(~before);
  total += after;
  total = (total & 0xFFFF) + (total >> 16);
  total = (total & 0xFFFF) + (total >> 16);
  return static_cast<std::uint16_t>(~total);
}

/// What this end gives its packets.
inline constexpr std::uint8_t kTimeToLive = 64;

using MacAddress = std::array<std::uint8_t, 6>;

/// What the headers of a packet say.
struct Headers {
  MacAddress source_mac{};
  MacAddress destination_mac{};
  Address source;  ///< both IPv4, or both IPv6
  Address destination;
  Ecn ecn = Ecn::not_ect;
  /// Upper three bits of the DSCP: a packet is written with class selector CSn, and read whatever the lower three say.
  std::uint8_t priority = 0;
  std::uint8_t time_to_live = kTimeToLive;  ///< as written, and lower by one a hop as read
};

/// Routers that have forwarded the packet since an end like this one sent it; 0 = not known.
constexpr std::uint8_t hops_of(const Headers& headers) {
  return headers.time_to_live < kTimeToLive ? static_cast<std::uint8_t>(kTimeToLive - headers.time_to_live) : 0;
}

/// Length of the headers before the payload of a packet to `destination`: kIpv4OverheadBytes or kIpv6OverheadBytes.
inline std::size_t header_bytes(const Address& destination) {
  return destination.is_v4() ? kIpv4OverheadBytes : kIpv6OverheadBytes;
}

/// Writes the headers of a packet whose UDP payload has `payload_bytes` (at most kMaxPayloadBytes) and the partial
/// sum `payload_sum`; returns their length, header_bytes(headers.destination), which `out` has room for.
/// Don't fragment, all checksums filled in.
std::size_t write_headers(const Headers& headers, std::size_t payload_bytes, std::uint16_t payload_sum, std::byte* out);

/// Why a frame was refused.
enum class Reject : std::uint8_t {
  none,              ///< it was not
  truncated,         ///< it ends before its headers or the length they tell
  not_ip,            ///< another EtherType, or a version number that contradicts it
  not_udp,           ///< another protocol, or an IPv6 extension header other than a fragment's
  fragment,          ///< a part of a fragmented packet
  bad_ip_checksum,   ///< of the IPv4 header
  bad_udp_checksum,  ///< or none over IPv6
  bad_length,        ///< lengths that contradict each other
  oversized,         ///< longer than the port's MTU allows (decided by the datapath)
  not_for_us,        ///< another MAC address, IP address or port (decided by the datapath); IPv4-mapped over IPv6
};
inline constexpr std::size_t kRejects = static_cast<std::size_t>(Reject::not_for_us) + 1;
/// "truncated", "bad UDP checksum", ...
std::string_view to_text(Reject reject);

enum class VerifyUdp : bool { no, yes };

/// A parsed frame; `payload` points into it.
struct Frame {
  Headers headers;
  std::span<const std::byte> payload;
};

/// Parses `bytes` from the Ethernet header on. What follows the IP packet (Ethernet padding) is ignored; IPv4
/// options are skipped. With VerifyUdp::no the UDP checksum is not looked at, as in a switch. `out` is complete only
/// when the result is Reject::none.
Reject parse(std::span<const std::byte> bytes, VerifyUdp verify, Frame& out);

/// Sets the ECN codepoint of the IP packet in `frame`, which parse() accepted, to "congestion experienced"; false,
/// and nothing changed, if the packet is not ECN-capable.
bool mark_congestion(std::span<std::byte> frame);

}  // namespace mltcp::encap
