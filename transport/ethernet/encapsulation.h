// Ethernet II, IPv4 or IPv6, and UDP headers around a UDP payload, with or without an IEEE 802.1Q tag: writing and
// parsing, with checksums computed here or by the NIC.
//
// RFC 791 and RFC 6864 (IPv4; the identification of an unfragmentable packet is meaningless and set to 0), RFC 8200
// (IPv6; its UDP checksum is mandatory), RFC 768 (UDP; an IPv4 checksum of 0 means "not computed"), RFC 1071 (computing
// the Internet checksum), RFC 1624 (updating it), RFC 2474 (DSCP), RFC 3168 (ECN), IEEE 802.1Q clause 9 (at most one
// tag, TPID 0x8100). Frames have no frame check sequence, as usual in a datapath. Sans-IO.
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
inline constexpr std::size_t kVlanBytes = 4;  ///< length of an 802.1Q tag; not included in kEthernetBytes
inline constexpr std::size_t kIpv4Bytes = 20;
inline constexpr std::size_t kIpv6Bytes = 40;
inline constexpr std::size_t kUdpBytes = 8;
/// All headers before a UDP payload in an untagged frame.
inline constexpr std::size_t kIpv4OverheadBytes = kEthernetBytes + kIpv4Bytes + kUdpBytes;
inline constexpr std::size_t kIpv6OverheadBytes = kEthernetBytes + kIpv6Bytes + kUdpBytes;
/// Maximum length of accepted headers: tagged, with all IPv4 options.
inline constexpr std::size_t kMaxHeaderBytes = kEthernetBytes + kVlanBytes + 60 + kUdpBytes;
inline constexpr std::uint16_t kMaxVlan = 4094;
/// Maximum UDP payload that the 16-bit lengths of IPv4 and UDP can express.
inline constexpr std::size_t kMaxPayloadBytes = 65535 - kIpv4Bytes - kUdpBytes;

// The Internet checksum (RFC 1071).
//
// A partial sum is the ones' complement sum of the bytes as 16-bit words in native byte order, folded to 16 bits; an
// odd last byte is padded by a zero. Ones' complement addition is independent of byte order, so only words that are
// written to a packet are swapped. Partial sums of adjacent pieces are combined by `join`, which must know whether the
// second piece starts at an odd offset.

/// Partial sum of `size` bytes.
std::uint16_t sum(const void* data, std::size_t size);
/// Copies `size` bytes to `destination` (no overlap) and returns their partial sum, in one pass over them.
std::uint16_t copy_and_sum(void* destination, const void* source, std::size_t size);
/// Partial sum of two adjacent pieces; `first_bytes` is the length of the first.
constexpr std::uint16_t join(std::uint16_t first, std::uint16_t second, std::size_t first_bytes) {
  if ((first_bytes & 1) != 0) second = static_cast<std::uint16_t>(second << 8 | second >> 8);
  const std::uint32_t total = std::uint32_t{first} + second;
  return static_cast<std::uint16_t>((total & 0xFFFF) + (total >> 16));
}
/// Updates `checksum` (in the byte order of the words) for data in which `before` was replaced by `after`. RFC 1624,
/// equation 3.
constexpr std::uint16_t update_checksum(std::uint16_t checksum, std::uint16_t before, std::uint16_t after) {
  std::uint32_t total = static_cast<std::uint16_t>(~checksum);
  total += static_cast<std::uint16_t>(~before);
  total += after;
  total = (total & 0xFFFF) + (total >> 16);
  total = (total & 0xFFFF) + (total >> 16);
  return static_cast<std::uint16_t>(~total);
}

/// TTL, or hop limit, of sent packets.
inline constexpr std::uint8_t kTimeToLive = 64;

using MacAddress = std::array<std::uint8_t, 6>;

/// The contents of a packet's headers.
struct Headers {
  MacAddress source_mac{};
  MacAddress destination_mac{};
  Address source;  ///< both IPv4, or both IPv6
  Address destination;
  Ecn ecn = Ecn::not_ect;
  /// 0 to 7. Written as the DSCP given by a DscpMap, and as the priority of the tag if there is one. Read from the DSCP
  /// only, since a tag is local to its segment and rewritten by bridges.
  std::uint8_t priority = 0;
  std::uint8_t time_to_live = kTimeToLive;  ///< as written; decremented by each router
  /// VLAN identifier of the 802.1Q tag, 1 to kMaxVlan; 0 = no tag, or when read, also a tag without a VLAN.
  std::uint16_t vlan = 0;
};

/// Maps priorities to DSCPs and back.
class DscpMap {
 public:
  /// Class selector CSn (RFC 2474 section 4.2.2) for priority n; any DSCP maps back by its upper three bits.
  constexpr DscpMap() {
    for (std::size_t n = 0; n < kPriorities; ++n) dscp_[n] = static_cast<std::uint8_t>(n << 3);
    for (std::size_t n = 0; n < priority_.size(); ++n) priority_[n] = static_cast<std::uint8_t>(n >> 3);
  }
  /// `dscp[n]`, 0 to 63, for priority n. A DSCP of several priorities maps back to the lowest; one of none by its upper
  /// three bits. Throws InputError for a value above 63.
  explicit DscpMap(const std::array<std::uint8_t, kPriorities>& dscp);

  /// `priority` must be below kPriorities.
  [[nodiscard]] constexpr std::uint8_t dscp(std::uint8_t priority) const { return dscp_[priority]; }
  /// `dscp` must be below 64.
  [[nodiscard]] constexpr std::uint8_t priority(std::uint8_t dscp) const { return priority_[dscp]; }

 private:
  std::array<std::uint8_t, kPriorities> dscp_{};
  std::array<std::uint8_t, 64> priority_{};
};
inline constexpr DscpMap kClassSelectors;

/// Number of routers that have forwarded a packet sent with kTimeToLive; 0 = not known.
constexpr std::uint8_t hops_of(const Headers& headers) {
  return headers.time_to_live < kTimeToLive ? static_cast<std::uint8_t>(kTimeToLive - headers.time_to_live) : 0;
}

/// Length of the headers before the payload of a packet to `destination` in VLAN `vlan` (0 = untagged).
inline std::size_t header_bytes(const Address& destination, std::uint16_t vlan = 0) {
  return (destination.is_v4() ? kIpv4OverheadBytes : kIpv6OverheadBytes) + (vlan != 0 ? kVlanBytes : 0);
}

/// The checksums that the NIC computes.
struct Offload {
  /// The IPv4 header checksum is written as 0.
  bool ip = false;
  /// The UDP checksum is written as the partial sum of the pseudo header, which the NIC completes; `payload_sum` is
  /// ignored.
  bool udp = false;
};

/// Writes the headers of a packet with `payload_bytes` bytes of UDP payload (at most kMaxPayloadBytes) whose partial
/// sum is `payload_sum`. Returns their length, header_bytes(headers.destination, headers.vlan), for which `out` must
/// have room. Sets "don't fragment", and all checksums except those of `offload`.
std::size_t write_headers(const Headers& headers, std::size_t payload_bytes, std::uint16_t payload_sum, std::byte* out,
                          const DscpMap& dscp = kClassSelectors, Offload offload = {});

/// Why a frame was rejected.
enum class Reject : std::uint8_t {
  none,              ///< accepted
  truncated,         ///< shorter than its headers, or than the lengths in them
  not_ip,            ///< another EtherType (also after a second tag), or an inconsistent IP version number
  not_udp,           ///< another protocol, or an IPv6 extension header other than a fragment's
  fragment,          ///< a fragment of an IP packet
  bad_ip_checksum,   ///< wrong checksum of the IPv4 header
  bad_udp_checksum,  ///< wrong, or missing over IPv6
  bad_length,        ///< inconsistent lengths
  oversized,         ///< exceeds the port's MTU (decided by the datapath)
  not_for_us,        ///< another MAC address, IP address or port (decided by the datapath); IPv4-mapped over IPv6
};
inline constexpr std::size_t kRejects = static_cast<std::size_t>(Reject::not_for_us) + 1;
/// "truncated", "bad UDP checksum", ...
std::string_view to_text(Reject reject);

/// `no` in switches, or if the NIC has verified the checksum.
enum class VerifyUdp : bool { no, yes };
enum class VerifyIp : bool { no, yes };  ///< whether to verify the checksum of the IPv4 header

/// A parsed frame; `payload` points into it.
struct Frame {
  Headers headers;
  std::span<const std::byte> payload;
};

/// Parses `bytes` from the Ethernet header on. Bytes after the IP packet (Ethernet padding) and IPv4 options are
/// ignored. With VerifyUdp::no the UDP checksum is not verified. `out` is valid only if the result is Reject::none.
Reject parse(std::span<const std::byte> bytes, VerifyUdp verify, Frame& out, VerifyIp verify_ip = VerifyIp::yes,
             const DscpMap& dscp = kClassSelectors);

// The same for a frame in several pieces: parse_headers(), then udp_checksum_holds() with the payload's sum, joined
// over its pieces.

/// Position of a frame's payload.
struct Layout {
  Headers headers;
  std::size_t payload_offset = 0;  ///< from the start of the Ethernet header
  std::size_t payload_bytes = 0;
};

/// Parses the headers of a frame of `frame_bytes` bytes. `first` has the frame's first bytes: all of them, at least
/// kMaxHeaderBytes, or all before the payload; with fewer the frame is rejected as truncated. The UDP checksum is not
/// verified.
Reject parse_headers(std::span<const std::byte> first, std::size_t frame_bytes, Layout& out,
                     VerifyIp verify_ip = VerifyIp::yes, const DscpMap& dscp = kClassSelectors);

/// Whether the UDP checksum is correct, or absent over IPv4. `first` contains the headers, `layout` is the result of
/// parse_headers(), and `payload_sum` is the partial sum of the payload.
bool udp_checksum_holds(std::span<const std::byte> first, const Layout& layout, std::uint16_t payload_sum);

/// The properties that a switch needs of a frame of any kind.
struct Glance {
  MacAddress source_mac{};
  MacAddress destination_mac{};
  /// Priority of the outer tag (802.1Q or 802.1ad), otherwise the upper three bits of an IP packet's DSCP, otherwise 0.
  std::uint8_t priority = 0;
  Ecn ecn = Ecn::not_ect;     ///< codepoint of the IP packet, after at most two tags
  std::size_t ip_offset = 0;  ///< offset of the IP packet; 0: there is none
};

enum class FrameFault : std::uint8_t {
  none,
  runt,        ///< ends within the Ethernet header or a tag
  bad_source,  ///< the source address is invalid: all zeros, or a group address
  cut_short,   ///< shorter than its IP packet, such as one longer than the receiver's buffer
};

/// Examines a frame of `frame_bytes` bytes, of which `bytes` are the first ones (all of them, or at least 64). Invalid
/// IP packets are treated as no IP packet. `out` is valid only if the result is FrameFault::none.
FrameFault glance(std::span<const std::byte> bytes, std::size_t frame_bytes, Glance& out);

/// Whether the frame has a complete TCP segment or UDP datagram with a wrong checksum, as left by a kernel for offload
/// to a NIC. `seen` is the result of glance() for `frame`.
bool transport_checksum_is_wrong(std::span<const std::byte> frame, const Glance& seen);

/// Sets the ECN codepoint of the IP packet in `frame` to CE and updates the IPv4 header checksum. False, without
/// changes, if there is no ECN-capable packet that glance() would find.
bool mark_congestion(std::span<std::byte> frame);

}  // namespace mltcp::encap
