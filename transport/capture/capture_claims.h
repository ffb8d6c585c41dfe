// Reads the claims about jobs (transport/job_claims.h) in the packets of a capture. The capture is a pcapng file,
// written by this or another program, with Ethernet frames or IP packets.
#pragma once

#include <cstdint>
#include <istream>
#include <string>

#include "mltcp/transport/job_claims.h"

namespace mltcp::capture {

struct CaptureClaims {
  JobClaims received;  ///< claims in packets that were received, or whose direction is not in the file
  JobClaims sent;
  std::uint64_t packets = 0;      ///< packets of any kind
  std::uint64_t cut_packets = 0;  ///< packets whose captured bytes end before a possible claim
  /// Packets whose link type is not supported, for example packets of Linux's interface "any".
  std::uint64_t other_packets = 0;
  std::uint16_t other_link = 0;    ///< link type of one of the packets in `other_packets`
  std::uint64_t deep_packets = 0;  ///< packets with more than kMaxTags tags and labels
  std::uint64_t fragments = 0;     ///< fragments of IP packets
  std::uint64_t extended = 0;      ///< IPv6 packets with extension headers
  bool is_cut = false;  ///< whether the file ends within a block: it is still being written, or its disk was full
};

/// Captured bytes per packet that are enough to read claims: Ethernet header and a VLAN tag, IPv6 and UDP headers,
/// MLTCP header. Each further tag or label needs four more bytes.
constexpr std::size_t kMinCaptured = 102;
/// Maximum number of 802.1Q and 802.1ad tags, MPLS labels and PPPoE headers before an IP packet.
constexpr std::size_t kMaxTags = 8;

/// Returns whether a file begins like a pcapng file; false for pipes and folders.
bool is_capture(const std::string& file);
/// Returns whether a file begins like a file in the older pcap format, which is not supported.
bool is_classic_capture(const std::string& file);

/// Reads a pcapng file (draft-ietf-opsawg-pcapng) in this machine's byte order, block by block. Throws InputError
/// "`name`: cause; cure" if `in` is not a pcapng file, or if a block is inconsistent.
CaptureClaims read_claims(std::istream& in, const std::string& name);

}  // namespace mltcp::capture
