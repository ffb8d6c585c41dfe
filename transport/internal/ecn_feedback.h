// Validates ECN on the path and finds how many sent packets arrived marked, from the counts that the peer sends back
// (RFC 9000 section 13.4.2).
#pragma once

#include <algorithm>
#include <cstdint>

#include "mltcp/cc/algorithm.h"
#include "mltcp/transport/wire.h"

namespace mltcp {

class EcnFeedback {
 public:
  /// Whether ECN works, as far as known. Once it fails validation, ECN stays off.
  [[nodiscard]] bool works() const { return works_; }

  /// Takes the counts of an acknowledgement of `newly_acked` packets, all sent ECN-capable. Adds the marks to `sample`
  /// and returns the number of marked packets.
  std::uint32_t on_counts(const wire::EcnCounts& counts, std::uint32_t newly_acked, cc::AckSample& sample) {
    if (!works_) return 0;
    const std::uint32_t ect0 = counts.ect0_packets - last_.ect0_packets;
    const std::uint32_t ce = counts.ce_packets - last_.ce_packets;
    // Counts that decrease, or do not cover all ECN-capable packets, mean that the path rewrites the field (RFC 9000
    // section 13.4.2.1). Reordered acknowledgements are filtered out by the caller.
    if (ect0 > (1U << 31) || ce > (1U << 31) || counts.ect1_packets != 0 || ect0 + ce < newly_acked) {
      works_ = false;
      return 0;
    }
    const Bytes ce_bytes = ce == 0 ? 0 : counts.ce_bytes - last_.ce_bytes;
    sample.ce_packets += ce;
    sample.ce_bytes = std::min(sample.ce_bytes + ce_bytes, sample.acked_bytes);  // the peer's count is not trusted
    last_ = counts;
    return ce;
  }

 private:
  wire::EcnCounts last_;
  bool works_ = true;
};

}  // namespace mltcp
