// What the packets in a capture claim of their jobs (transport/job_claims.h): pcapng files of this program and others',
// with frames of Ethernet or IP packets.
#pragma once

#include <cstdint>
#include <istream>
#include <string>

#include "mltcp/transport/job_claims.h"

namespace mltcp::capture {

struct CaptureClaims {
  JobClaims received;  ///< of packets that an interface received, or of which the file doesn't say
  JobClaims sent;
  std::uint64_t packets = 0;        ///< of any kind
  std::uint64_t cut_packets = 0;    ///< cut where what they claim may stand behind
  std::uint64_t other_packets = 0;  ///< of links that are not read, as "any" has them
  std::uint16_t other_link = 0;     ///< the type of one of those
  std::uint64_t deep_packets = 0;   ///< behind more tags and labels than are looked through
  std::uint64_t fragments = 0;      ///< of IP packets
  std::uint64_t extended = 0;       ///< IPv6 packets with extension headers
  bool is_cut = false;              ///< the file ends within a block: it is still written, or its disk was full
};

/// Captured bytes with which nothing is cut that is looked at: Ethernet and a VLAN tag, IPv6 and UDP, MLTCP's header.
/// Each further tag or label takes four more.
constexpr std::size_t kMinCaptured = 102;
/// Tags of 802.1Q and 802.1ad, labels of MPLS and PPPoE headers before an IP packet that are looked through.
constexpr std::size_t kMaxTags = 8;

/// Whether a file begins as a pcapng file does. Pipes and folders don't.
bool is_capture(const std::string& file);
/// Whether it begins as the older pcap files do, which are not read.
bool is_classic_capture(const std::string& file);

/// Reads a pcapng file (draft-ietf-opsawg-pcapng) of this machine's byte order, block by block. Throws InputError
/// "`name`: cause; cure" if it is none, or a block of it contradicts itself.
CaptureClaims read_claims(std::istream& in, const std::string& name);

}  // namespace mltcp::capture
