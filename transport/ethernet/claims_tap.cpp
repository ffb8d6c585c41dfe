// Finds claims in frames (see claims_tap.h).
#include "mltcp/transport/ethernet/claims_tap.h"

#include <algorithm>

#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/wire.h"

namespace mltcp::encap {
namespace {

/// Returns whether a UDP payload is a packet of the transport. The magic number alone is no proof, because any payload
/// may begin with it by chance. If the capture has cut off bytes that the checksum covers, the checksum is not
/// verified.
bool is_packet(std::span<const std::byte> payload, bool is_cut) {
  wire::Header header;
  const wire::ParseError error = wire::is_sealed(payload) ? wire::Reader::sealed_header(payload, header)
                                                          : wire::Reader().begin(payload, 0, header);
  if (error == wire::ParseError::none) return true;
  const bool covers_all = (payload[1] & std::byte{wire::full_integrity}) != std::byte{};
  return is_cut && (error == wire::ParseError::truncated || (error == wire::ParseError::checksum && covers_all));
}

}  // namespace

ClaimsTap::Found ClaimsTap::count_claims(std::span<const std::byte> first, std::size_t frame_bytes,
                                         JobClaims& claims) noexcept {
  Layout layout;
  const Reject reject = parse_headers(first, frame_bytes, layout, VerifyIp::no);
  if (reject == Reject::truncated && first.size() < frame_bytes) return Found::cut;
  if (reject != Reject::none || layout.payload_bytes <= wire::kHeaderBytes) return Found::none;
  const std::span<const std::byte> payload =
      first.subspan(layout.payload_offset).first(std::min(layout.payload_bytes, first.size() - layout.payload_offset));
  if (payload.size() < wire::kHeaderBytes) return Found::cut;
  const auto tag = wire::peek_job_tag(payload);
  if (!tag || !is_packet(payload, payload.size() < layout.payload_bytes)) return Found::none;
  claims.add(*tag, layout.payload_bytes - wire::kHeaderBytes);
  return Found::claim;
}

}  // namespace mltcp::encap
