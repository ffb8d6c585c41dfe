// Fuzzes the code that reads Ethernet, IP and UDP headers. The target reads headers, writes them with checksums, and
// reads them again. Both readings must give the same headers.
//
// Input: a byte of options, a length (2 bytes), then a frame. The target also reads the first part of the frame alone,
// up to this length.
#include <algorithm>

#include "mltcp/transport/ethernet/encapsulation.h"
#include "target.h"

namespace mltcp::fuzz {
namespace {

bool same(const encap::Headers& a, const encap::Headers& b) {
  return a.source_mac == b.source_mac && a.destination_mac == b.destination_mac && a.source == b.source &&
         a.destination == b.destination && a.ecn == b.ecn && a.priority == b.priority &&
         a.time_to_live == b.time_to_live && a.vlan == b.vlan;
}

}  // namespace

void fuzz_encapsulation(Input input) {
  Program program(input);
  const std::uint8_t choices = program.byte();
  const std::size_t piece = program.number(2);
  std::vector<std::byte> bytes = program.rest();
  const auto verify = (choices & 1) != 0 ? encap::VerifyUdp::yes : encap::VerifyUdp::no;
  const auto verify_ip = (choices & 2) != 0 ? encap::VerifyIp::yes : encap::VerifyIp::no;
  encap::Frame frame;
  const encap::Reject verdict = encap::parse(bytes, verify, frame, verify_ip);
  require(!encap::to_text(verdict).empty(), "a rejection without a name");

  const std::vector<std::byte> first(bytes.begin(),
                                     bytes.begin() + static_cast<std::ptrdiff_t>(std::min(piece, bytes.size())));
  encap::Layout layout;
  if (encap::parse_headers(first, bytes.size(), layout, verify_ip) == encap::Reject::none) {
    require(layout.payload_offset <= first.size(), "headers behind the first piece");
    require(layout.payload_offset + layout.payload_bytes <= bytes.size(), "a payload behind the frame");
    const bool holds = encap::udp_checksum_holds(
        first, layout, encap::sum(bytes.data() + layout.payload_offset, layout.payload_bytes));
    require((verdict == encap::Reject::none) == (verify == encap::VerifyUdp::no || holds),
            "another verdict of the frame in pieces");
  }

  if (verdict == encap::Reject::none) {
    require(frame.payload.data() >= bytes.data() + encap::kIpv4OverheadBytes &&
                frame.payload.data() + frame.payload.size() <= bytes.data() + bytes.size(),
            "a payload outside of the frame");
    if (frame.payload.size() <= encap::kMaxPayloadBytes) {
      std::vector<std::byte> out(encap::header_bytes(frame.headers.destination, frame.headers.vlan));
      const std::size_t size = encap::write_headers(frame.headers, frame.payload.size(),
                                                    encap::sum(frame.payload.data(), frame.payload.size()), out.data());
      require(size == out.size(), "headers of another length than header_bytes() tells");
      out.insert(out.end(), frame.payload.begin(), frame.payload.end());
      encap::Frame again;
      require(encap::parse(out, encap::VerifyUdp::yes, again) == encap::Reject::none, "own headers are rejected");
      require(same(frame.headers, again.headers), "headers are not read as they were written");
      require(std::equal(frame.payload.begin(), frame.payload.end(), again.payload.begin(), again.payload.end()),
              "another payload");
    }
  }

  // Checks the functions that a switch uses: glance() and mark_congestion().
  encap::Glance seen;
  if (encap::glance(bytes, bytes.size(), seen) == encap::FrameFault::none) {
    require(seen.ip_offset <= bytes.size(), "an IP packet behind the frame");
    static_cast<void>(encap::transport_checksum_is_wrong(bytes, seen));
    std::vector<std::byte> marked(bytes);
    const bool is_marked = encap::mark_congestion(marked);
    require(is_marked || marked == bytes, "a frame without a mark was changed");
    encap::Glance after;
    if (is_marked)
      require(encap::glance(marked, marked.size(), after) == encap::FrameFault::none && after.ecn == Ecn::ce,
              "a mark that nobody sees");
    encap::Frame still;
    if (is_marked && verdict == encap::Reject::none)
      require(encap::parse(marked, verify, still, verify_ip) == encap::Reject::none, "a mark that breaks the frame");
  }
}

}  // namespace mltcp::fuzz
