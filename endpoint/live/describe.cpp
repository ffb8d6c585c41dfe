// Conversion of counters and claims to rows of a snapshot (see describe.h).
#include "mltcp/endpoint/live/describe.h"

#include "mltcp/transport/counters.h"

namespace mltcp::live {

void add_claims(const std::vector<JobClaim>& claims, Snapshot& shown) {
  for (const JobClaim& claim : claims) {
    if (!has_space(shown.claims, shown)) continue;
    ClaimView& view = shown.claims.emplace_back();
    view.job = name_of(claim);
    view.iterations = claim.iterations;
    view.packets = claim.packets;
    view.bytes = claim.bytes;
    view.bytes_at_end = claim.bytes_at_end;
    view.progress_bytes = claim.progress_bytes;
    view.mean_progress = claim.mean_progress();
    view.verdict = to_text(claim.verdict());
    view.is_overstated = claim.is_overstated();
  }
}

void add_packets(const ShardStats& stats, PortView& port) {
  add_up(port.transport, stats);
  port.received_packets += stats.packets_received;
  port.sent_packets += stats.packets_sent;
  port.bad_packets += stats.rejected_packets() + stats.forged_packets + stats.forged_resets + stats.replayed_packets;
}

}  // namespace mltcp::live
