// Whether ECN works on the path, and which of our packets arrived marked, by the counts that the peer sends back
// (RFC 9000 section 13.4.2).
#pragma once

#include <algorithm>
#include <cstdint>

#include "mltcp/cc/algorithm.h"
#include "mltcp/transport/wire.h"

namespace mltcp {

class EcnFeedback {
 public:
  /// As far as is known. Once it does not, ECN is not used any more.
  [[nodiscard]] bool works() const { return works_; }

  /// Counts that came with the acknowledgement of `newly_acked` packets, the latest among them, all sent ECN-capable.
  /// Adds to `sample` what was marked and returns how many packets that were.
  std::uint32_t on_counts(const wire::EcnCounts& counts, std::uint32_t newly_acked, cc::AckSample& sample) {
    if (!works_) return 0;
    const std::uint32_t ect0 = counts.ect0_packets - last_.ect0_packets;
    const std::uint32_t ce = counts.ce_packets - last_.ce_packets;
    // Counts that fell, or that miss packets which were sent ECN-capable, mean that something on the path rewrites the
    // field (RFC 9000 section 13.4.2.1). Reordered acknowledgements never get here.
    if (ect0 > (1U << 31) || ce > (1U << 31) || counts.ect1_packets != 0 || ect0 + ce < newly_acked) {
      works_ = false;
      return 0;
    }
    const Bytes ce_bytes = ce == 0 ? 0 : counts.ce_bytes - last_.ce_bytes;
    sample.ce_packets += ce;
    sample.ce_bytes = std::min(sample.ce_bytes + ce_bytes, sample.acked_bytes);  // what the peer says has no bound
    last_ = counts;
    return ce;
  }

 private:
  wire::EcnCounts last_;
  bool works_ = true;
};

}  // namespace mltcp
