// Ethernet II, IPv4 or IPv6, and UDP headers around a UDP payload, with or without an IEEE 802.1Q tag: written and
// parsed, their checksums computed or left to the NIC.
//
// RFC 791 and RFC 6864 (IPv4; the identification of an unfragmentable packet means nothing and is 0), RFC 8200
// (IPv6; its UDP checksum is mandatory), RFC 768 (UDP; an IPv4 checksum of 0 means "not computed"), RFC 1071 (how
// to compute the Internet checksum), RFC 1624 (how to update it), RFC 2474 (DSCP), RFC 3168 (ECN), IEEE 802.1Q clause 9
// (the tag: one at most, of TPID 0x8100). Frames come without Ethernet's frame check sequence, as a datapath hands them
// over. Sans-IO.
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
inline constexpr std::size_t kVlanBytes = 4;  ///< of an 802.1Q tag, beside kEthernetBytes
inline constexpr std::size_t kIpv4Bytes = 20;
inline constexpr std::size_t kIpv6Bytes = 40;
inline constexpr std::size_t kUdpBytes = 8;
/// All that is put before a UDP payload in an untagged frame.
inline constexpr std::size_t kIpv4OverheadBytes = kEthernetBytes + kIpv4Bytes + kUdpBytes;
inline constexpr std::size_t kIpv6OverheadBytes = kEthernetBytes + kIpv6Bytes + kUdpBytes;
/// The longest headers that are accepted: tagged, with all IPv4 options.
inline constexpr std::size_t kMostHeaderBytes = kEthernetBytes + kVlanBytes + 60 + kUdpBytes;
inline constexpr std::uint16_t kMostVlan = 4094;
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
  /// 0 to 7. Written as the DSCP that a DscpMap gives it, and as the priority of the tag if there is one. Read from the
  /// DSCP alone: a tag ends with its segment, and bridges rewrite it.
  std::uint8_t priority = 0;
  std::uint8_t time_to_live = kTimeToLive;  ///< as written, and lower by one a hop as read
  /// VLAN identifier of the 802.1Q tag, 1 to kMostVlan; 0 = none is written, and read: no tag, or one without a VLAN.
  std::uint16_t vlan = 0;
};

/// The DSCP of each priority, and back.
class DscpMap {
 public:
  /// Class selector CSn (RFC 2474 section 4.2.2) for priority n; every DSCP is read by its upper three bits.
  constexpr DscpMap() {
    for (std::size_t n = 0; n < kPriorities; ++n) dscp_[n] = static_cast<std::uint8_t>(n << 3);
    for (std::size_t n = 0; n < priority_.size(); ++n) priority_[n] = static_cast<std::uint8_t>(n >> 3);
  }
  /// `dscp[n]`, 0 to 63, for priority n. Of priorities that share a value the lowest is read; a value that none has is
  /// read by its upper three bits. Throws InputError for a value above 63.
  explicit DscpMap(const std::array<std::uint8_t, kPriorities>& dscp);

  /// `priority` is below kPriorities.
  [[nodiscard]] constexpr std::uint8_t dscp(std::uint8_t priority) const { return dscp_[priority]; }
  /// `dscp` is below 64.
  [[nodiscard]] constexpr std::uint8_t priority(std::uint8_t dscp) const { return priority_[dscp]; }

 private:
  std::array<std::uint8_t, kPriorities> dscp_{};
  std::array<std::uint8_t, 64> priority_{};
};
inline constexpr DscpMap kClassSelectors;

/// Routers that have forwarded the packet since an end like this one sent it; 0 = not known.
constexpr std::uint8_t hops_of(const Headers& headers) {
  return headers.time_to_live < kTimeToLive ? static_cast<std::uint8_t>(kTimeToLive - headers.time_to_live) : 0;
}

/// Length of the headers before the payload of a packet to `destination` in VLAN `vlan` (0 = untagged).
inline std::size_t header_bytes(const Address& destination, std::uint16_t vlan = 0) {
  return (destination.is_v4() ? kIpv4OverheadBytes : kIpv6OverheadBytes) + (vlan != 0 ? kVlanBytes : 0);
}

/// The checksums that the NIC fills in.
struct Offload {
  /// The IPv4 header's: written as 0.
  bool ip = false;
  /// UDP's: the partial sum of the pseudo header is written in its place, for the NIC to add the rest to and to
  /// complement; `payload_sum` isn't looked at.
  bool udp = false;
};

/// Writes the headers of a packet whose UDP payload has `payload_bytes` (at most kMaxPayloadBytes) and the partial
/// sum `payload_sum`; returns their length, header_bytes(headers.destination, headers.vlan), which `out` has room for.
/// Don't fragment, all checksums filled in but those of `offload`.
std::size_t write_headers(const Headers& headers, std::size_t payload_bytes, std::uint16_t payload_sum, std::byte* out,
                          const DscpMap& dscp = kClassSelectors, Offload offload = {});

/// Why a frame was refused.
enum class Reject : std::uint8_t {
  none,              ///< it was not
  truncated,         ///< it ends before its headers or the length they tell
  not_ip,            ///< another EtherType (also a second tag's), or a version number that contradicts it
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

/// `no` where a switch does not care or the NIC has verified the checksum.
enum class VerifyUdp : bool { no, yes };
enum class VerifyIp : bool { no, yes };  ///< the checksum of the IPv4 header

/// A parsed frame; `payload` points into it.
struct Frame {
  Headers headers;
  std::span<const std::byte> payload;
};

/// Parses `bytes` from the Ethernet header on. What follows the IP packet (Ethernet padding) is ignored; IPv4
/// options are skipped. With VerifyUdp::no the UDP checksum is not looked at, as in a switch. `out` is complete only
/// when the result is Reject::none.
Reject parse(std::span<const std::byte> bytes, VerifyUdp verify, Frame& out, VerifyIp verify_ip = VerifyIp::yes,
             const DscpMap& dscp = kClassSelectors);

// The same for a frame that lies in several pieces: parse_headers(), then the sum of the payload, joined over its
// pieces, goes to udp_checksum_holds().

/// Where a frame's payload is.
struct Layout {
  Headers headers;
  std::size_t payload_offset = 0;  ///< from the Ethernet header on
  std::size_t payload_bytes = 0;
};

/// Parses the headers of a frame of `frame_bytes`, of which `first` has the first bytes: all of them, or at least
/// kMostHeaderBytes, or those up to the payload; with less the frame is refused as truncated. The UDP checksum is not
/// looked at.
Reject parse_headers(std::span<const std::byte> first, std::size_t frame_bytes, Layout& out,
                     VerifyIp verify_ip = VerifyIp::yes, const DscpMap& dscp = kClassSelectors);

/// Whether the UDP checksum is right, or was left out over IPv4. `first` has the headers, and `layout` is what
/// parse_headers() made of them; `payload_sum` is the partial sum of the payload.
bool udp_checksum_holds(std::span<const std::byte> first, const Layout& layout, std::uint16_t payload_sum);

/// What a frame of any kind tells a switch between its ends.
struct Glance {
  MacAddress source_mac{};
  MacAddress destination_mac{};
  /// Priority of the outer tag (802.1Q or 802.1ad), otherwise the upper three bits of an IP packet's DSCP, otherwise 0.
  std::uint8_t priority = 0;
  Ecn ecn = Ecn::not_ect;     ///< of the IP packet, behind at most two tags
  std::size_t ip_offset = 0;  ///< where it begins; 0: there is none
};

enum class FrameFault : std::uint8_t {
  none,
  runt,        ///< ends within the Ethernet header or a tag
  bad_source,  ///< the source address is none of a station: all zeros, or a group's
  cut_short,   ///< ends before its IP packet does, as a frame longer than a receiver's buffer may
};

/// Looks at a frame of `frame_bytes` in all, whose first ones are `bytes` (all of them, or 64 at least). What looks
/// like an IP packet and is none counts as none. `out` is complete only when the result is FrameFault::none.
FrameFault glance(std::span<const std::byte> bytes, std::size_t frame_bytes, Glance& out);

/// Whether the frame holds a whole TCP segment or UDP datagram whose checksum is wrong, as one that a kernel left for a
/// NIC to fill in. `frame` and what glance() saw of it.
bool transport_checksum_is_wrong(std::span<const std::byte> frame, const Glance& seen);

/// Sets the ECN codepoint of the IP packet in `frame`, of any kind and as glance() sees it, to "congestion
/// experienced", and updates the IPv4 header checksum; false, and nothing changed, if there is no ECN-capable packet.
bool mark_congestion(std::span<std::byte> frame);

}  // namespace mltcp::encap
