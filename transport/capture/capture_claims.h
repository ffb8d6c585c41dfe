// The claims about jobs in the packets of a capture (transport/job_claims.h): a pcapng file of this or another program,
// with Ethernet frames or IP packets.
#pragma once

#include <cstdint>
#include <istream>
#include <string>

#include "mltcp/transport/job_claims.h"

namespace mltcp::capture {

struct CaptureClaims {
  JobClaims received;  ///< of packets that an interface received, or whose direction the file does not state
  JobClaims sent;
  std::uint64_t packets = 0;        ///< packets of any kind
  std::uint64_t cut_packets = 0;    ///< cut before the place where a claim may be
  std::uint64_t other_packets = 0;  ///< packets of link types that are not read, such as those of the interface "any"
  std::uint16_t other_link = 0;     ///< the link type of one of those
  std::uint64_t deep_packets = 0;   ///< after more than kMaxTags tags and labels
  std::uint64_t fragments = 0;      ///< fragments of IP packets
  std::uint64_t extended = 0;       ///< IPv6 packets with extension headers
  bool is_cut = false;              ///< the file ends within a block: it is still being written, or its disk was full
};

/// Captured bytes per packet that are enough to read claims: Ethernet and a VLAN tag, IPv6 and UDP, MLTCP's header.
/// Each further tag or label needs four more.
constexpr std::size_t kMinCaptured = 102;
/// Maximum number of 802.1Q and 802.1ad tags, MPLS labels and PPPoE headers before an IP packet.
constexpr std::size_t kMaxTags = 8;

/// Whether a file begins like a pcapng file. False for pipes and folders.
bool is_capture(const std::string& file);
/// Whether a file begins like an older pcap file; these are not supported.
bool is_classic_capture(const std::string& file);

/// Reads a pcapng file (draft-ietf-opsawg-pcapng) of this machine's byte order, block by block. Throws InputError
/// "`name`: cause; cure" if it is no such file, or if a block contradicts itself.
CaptureClaims read_claims(std::istream& in, const std::string& name);

}  // namespace mltcp::capture
