// Writes and parses Ethernet II, IPv4 or IPv6, and UDP headers around a UDP payload, with or without an IEEE 802.1Q
// tag. Checksums are computed here or by the NIC. Performs no I/O.
//
// Standards: RFC 791 and RFC 6864 (IPv4; the identification of an unfragmentable packet is meaningless and set to 0),
// RFC 8200 (IPv6; its UDP checksum is mandatory), RFC 768 (UDP; an IPv4 checksum of 0 means "not computed"), RFC 1071
// (computing the Internet checksum), RFC 1624 (updating it), RFC 2474 (DSCP), RFC 3168 (ECN), IEEE 802.1Q clause 9 (at
// most one tag, TPID 0x8100). Frames have no frame check sequence, as usual in a datapath.
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
/// Length of all headers before a UDP payload in an untagged frame.
inline constexpr std::size_t kIpv4OverheadBytes = kEthernetBytes + kIpv4Bytes + kUdpBytes;
inline constexpr std::size_t kIpv6OverheadBytes = kEthernetBytes + kIpv6Bytes + kUdpBytes;
/// Maximum length of all headers before a UDP payload: with a tag and all IPv4 options.
inline constexpr std::size_t kMaxHeaderBytes = kEthernetBytes + kVlanBytes + 60 + kUdpBytes;
inline constexpr std::uint16_t kMaxVlan = 4094;
/// Maximum UDP payload that the 16-bit lengths of IPv4 and UDP can express.
inline constexpr std::size_t kMaxPayloadBytes = 65535 - kIpv4Bytes - kUdpBytes;

// The Internet checksum (RFC 1071).
//
// A partial sum is the ones' complement sum of the bytes as 16-bit words in native byte order, folded to 16 bits; an
// odd last byte is padded by a zero. Ones' complement addition is independent of byte order, so bytes are swapped only
// in words that are written to a packet. Partial sums of adjacent pieces are combined by `join`, which must know
// whether the second piece starts at an odd offset.

/// Returns the partial sum of `size` bytes.
std::uint16_t sum(const void* data, std::size_t size);
/// Copies `size` bytes to `destination`, which must not overlap `source`, and returns their partial sum, in one pass.
std::uint16_t copy_and_sum(void* destination, const void* source, std::size_t size);
/// Returns the partial sum of two adjacent pieces. `first_bytes` is the length of the first piece.
constexpr std::uint16_t join(std::uint16_t first, std::uint16_t second, std::size_t first_bytes) {
  if ((first_bytes & 1) != 0) second = static_cast<std::uint16_t>(second << 8 | second >> 8);
  const std::uint32_t total = std::uint32_t{first} + second;
  return static_cast<std::uint16_t>((total & 0xFFFF) + (total >> 16));
}
/// Returns `checksum` after the 16-bit word `before` of the data was replaced by `after` (RFC 1624, equation 3). All
/// three are in the same byte order.
constexpr std::uint16_t update_checksum(std::uint16_t checksum, std::uint16_t before, std::uint16_t after) {
  std::uint32_t total = static_cast<std::uint16_t>(~checksum);
  total += static_cast<std::uint16_t>(~before);
  total += after;
  total = (total & 0xFFFF) + (total >> 16);
  total = (total & 0xFFFF) + (total >> 16);
  return static_cast<std::uint16_t>(~total);
}

/// TTL (IPv4) or hop limit (IPv6) of sent packets.
inline constexpr std::uint8_t kTimeToLive = 64;

using MacAddress = std::array<std::uint8_t, 6>;

/// The contents of a packet's headers.
struct Headers {
  MacAddress source_mac{};
  MacAddress destination_mac{};
  Address source;  ///< source and destination are both IPv4 or both IPv6
  Address destination;
  Ecn ecn = Ecn::not_ect;
  /// Priority, 0 to 7. write_headers() writes it as the DSCP that a DscpMap gives, and also into the tag if there is
  /// one. The parsers read the priority from the DSCP only, because bridges rewrite tags.
  std::uint8_t priority = 0;
  std::uint8_t time_to_live = kTimeToLive;  ///< TTL or hop limit; each router decrements it
  /// VLAN identifier of the 802.1Q tag, 1 to kMaxVlan; 0 if there is no tag. When a frame is read, 0 can also mean a
  /// tag without a VLAN.
  std::uint16_t vlan = 0;
};

/// Maps priorities to DSCPs and back.
class DscpMap {
 public:
  /// Maps priority n to class selector CSn (RFC 2474 section 4.2.2), and any DSCP to its upper three bits.
  constexpr DscpMap() {
    for (std::size_t n = 0; n < kPriorities; ++n) dscp_[n] = static_cast<std::uint8_t>(n << 3);
    for (std::size_t n = 0; n < priority_.size(); ++n) priority_[n] = static_cast<std::uint8_t>(n >> 3);
  }
  /// Maps priority n to `dscp[n]`, 0 to 63. Maps a DSCP of several priorities to the lowest of them, and a DSCP of no
  /// priority to its upper three bits. Throws InputError for a value above 63.
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

/// Returns the number of routers that have forwarded a packet sent with kTimeToLive; 0 if not known.
constexpr std::uint8_t hops_of(const Headers& headers) {
  return headers.time_to_live < kTimeToLive ? static_cast<std::uint8_t>(kTimeToLive - headers.time_to_live) : 0;
}

/// Returns the length of the headers before the payload of a packet to `destination` in VLAN `vlan`. If `vlan` is 0,
/// the frame has no tag.
inline std::size_t header_bytes(const Address& destination, std::uint16_t vlan = 0) {
  return (destination.is_v4() ? kIpv4OverheadBytes : kIpv6OverheadBytes) + (vlan != 0 ? kVlanBytes : 0);
}

/// The checksums that the NIC computes.
struct Offload {
  /// True if the NIC computes the IPv4 header checksum, which is then written as 0.
  bool ip = false;
  /// True if the NIC completes the UDP checksum. The partial sum of the pseudo header is then written, and
  /// `payload_sum` is ignored.
  bool udp = false;
};

/// Writes the headers of a packet with `payload_bytes` bytes of UDP payload (at most kMaxPayloadBytes) whose partial
/// sum is `payload_sum`. Returns the length of the headers, which is header_bytes(headers.destination, headers.vlan).
/// `out` must have space for the headers. Sets "don't fragment". Computes all checksums except those that `offload`
/// leaves to the NIC.
std::size_t write_headers(const Headers& headers, std::size_t payload_bytes, std::uint16_t payload_sum, std::byte* out,
                          const DscpMap& dscp = kClassSelectors, Offload offload = {});

/// Why a frame was rejected.
enum class Reject : std::uint8_t {
  none,              ///< accepted
  truncated,         ///< shorter than its headers, or than the lengths stated in them
  not_ip,            ///< the EtherType (after at most one tag) is not IP, or does not match the IP version number
  not_udp,           ///< a protocol other than UDP, or an IPv6 extension header other than a fragment header
  fragment,          ///< a fragment of an IP packet
  bad_ip_checksum,   ///< wrong checksum of the IPv4 header
  bad_udp_checksum,  ///< wrong UDP checksum, or a missing one over IPv6
  bad_length,        ///< inconsistent lengths
  oversized,         ///< exceeds the port's MTU (decided by the datapath)
  /// Not addressed to this host's MAC address, IP address or port (decided by the datapath), or an IPv4-mapped address
  /// in IPv6.
  not_for_us,
};
inline constexpr std::size_t kRejects = static_cast<std::size_t>(Reject::not_for_us) + 1;
/// Returns the reason in words, such as "truncated" or "bad UDP checksum".
std::string_view to_text(Reject reject);

/// Whether to verify the UDP checksum: `no` in switches, or if the NIC has verified the checksum.
enum class VerifyUdp : bool { no, yes };
enum class VerifyIp : bool { no, yes };  ///< whether to verify the checksum of the IPv4 header

/// A parsed frame. `payload` points into the frame's bytes.
struct Frame {
  Headers headers;
  std::span<const std::byte> payload;
};

/// Parses a frame. `bytes` begins with the Ethernet header. Ignores bytes after the IP packet (Ethernet padding) and
/// IPv4 options. With VerifyUdp::no the UDP checksum is not verified. `out` is valid only if the result is
/// Reject::none.
Reject parse(std::span<const std::byte> bytes, VerifyUdp verify, Frame& out, VerifyIp verify_ip = VerifyIp::yes,
             const DscpMap& dscp = kClassSelectors);

// To parse a frame that is stored in several pieces, call parse_headers(). Then call udp_checksum_holds() with the
// partial sum of the payload, which join() computes from the sums of its pieces.

/// Position of a frame's payload.
struct Layout {
  Headers headers;
  std::size_t payload_offset = 0;  ///< offset from the start of the Ethernet header
  std::size_t payload_bytes = 0;
};

/// Parses the headers of a frame of `frame_bytes` bytes, without verifying the UDP checksum. `first` has the first
/// bytes of the frame. If `first` does not contain all headers, the frame is rejected as truncated. kMaxHeaderBytes
/// bytes are always enough.
Reject parse_headers(std::span<const std::byte> first, std::size_t frame_bytes, Layout& out,
                     VerifyIp verify_ip = VerifyIp::yes, const DscpMap& dscp = kClassSelectors);

/// Returns whether the UDP checksum is correct, or is absent, which only IPv4 allows. `first` contains the headers,
/// `layout` is the result of parse_headers(), and `payload_sum` is the partial sum of the payload.
bool udp_checksum_holds(std::span<const std::byte> first, const Layout& layout, std::uint16_t payload_sum);

/// The properties that a switch needs to know of a frame of any kind.
struct Glance {
  MacAddress source_mac{};
  MacAddress destination_mac{};
  /// Priority of the outer tag (802.1Q or 802.1ad). Without a tag, the upper three bits of the IP packet's DSCP. 0 if
  /// there is neither.
  std::uint8_t priority = 0;
  Ecn ecn = Ecn::not_ect;     ///< ECN codepoint of the IP packet, which may follow up to two tags
  std::size_t ip_offset = 0;  ///< offset of the IP packet; 0 if there is none
};

enum class FrameFault : std::uint8_t {
  none,
  runt,        ///< the frame ends within the Ethernet header or a tag
  bad_source,  ///< the source address is invalid: all zeros, or a group address
  /// The frame is shorter than its IP packet, for example because it did not fit into the receiver's buffer.
  cut_short,
};

/// Examines a frame of `frame_bytes` bytes. `bytes` has the first bytes of the frame: all of them, or at least 64. An
/// invalid IP packet is treated as if there were no IP packet. `out` is valid only if the result is FrameFault::none.
FrameFault glance(std::span<const std::byte> bytes, std::size_t frame_bytes, Glance& out);

/// Returns whether the frame has a complete TCP segment or UDP datagram with a wrong checksum. A local kernel sends
/// frames with wrong checksums if it leaves checksums to the NIC. `seen` is the result of glance() for `frame`.
bool transport_checksum_is_wrong(std::span<const std::byte> frame, const Glance& seen);

/// Sets the ECN codepoint of the IP packet in `frame` to CE and updates the IPv4 header checksum. If glance() would
/// find no ECN-capable IP packet in `frame`, returns false and changes nothing.
bool mark_congestion(std::span<std::byte> frame);

}  // namespace mltcp::encap
