// How the transport's counters become rows of a snapshot, for whoever sees both: this library itself does not.
#pragma once

#include "mltcp/endpoint/live/snapshot.h"

namespace mltcp::live {

/// `Stats` is the transport's ConnectionStats. Peer and job are left alone.
template <typename Stats>
void describe(const Stats& stats, ConnectionView& view) {
  view.cwnd_bytes = stats.cwnd_bytes;
  view.in_flight_bytes = stats.in_flight;
  view.rtt_seconds = stats.smoothed_rtt.seconds();
  view.min_rtt_seconds = stats.min_rtt.seconds();
  view.delivery_bps = static_cast<double>(stats.delivery_rate.bits_per_second);
  view.pacing_bps = static_cast<double>(stats.pacing_rate.bits_per_second);
  view.sent_bytes = stats.bytes_sent;
  view.sent_packets = stats.packets_sent;
  view.received_packets = stats.packets_received;
  view.retransmitted_packets = stats.retransmitted_packets;
  view.lost_packets = stats.lost_packets;
  view.marked_packets = stats.ce_packets;
  view.packet_bytes = stats.packet_bytes;
  view.agreed_packet_bytes = stats.agreed_packet_bytes;
}

/// `Claim` is the transport's JobClaim. The job is left alone.
template <typename Claim>
void describe(const Claim& claim, ClaimView& view) {
  view.iterations = claim.iterations;
  view.packets = claim.packets;
  view.bytes = claim.bytes;
  view.bytes_at_end = claim.bytes_at_end;
  view.progress_bytes = claim.progress_bytes;
  view.mean_progress = claim.mean_progress();
  view.verdict = to_text(claim.verdict());
  view.is_doubtful = claim.is_doubtful();
}

/// `Claims` are the transport's JobClaim, in the order in which they are to be shown.
template <typename Claims>
void add_claims(const Claims& claims, Snapshot& shown) {
  for (const auto& claim : claims) {
    if (!has_room(shown.claims, shown)) continue;
    ClaimView& view = shown.claims.emplace_back();
    view.job = name_of(claim);
    describe(claim, view);
  }
}

/// `Stats` is the transport's ShardStats: its packets, what it has refused, and what its connections have found out of
/// paths, added.
template <typename Stats>
void add_packets(const Stats& stats, PortView& port) {
  port.received_packets += stats.packets_received;
  port.sent_packets += stats.packets_sent;
  port.bad_packets += stats.truncated_packets + stats.foreign_packets + stats.corrupted_packets +
                      stats.malformed_packets + stats.forged_packets + stats.forged_resets + stats.replayed_packets;
  port.refused_connects += stats.refused_connects;
  port.violations += stats.violations;
  port.black_holes += stats.black_holes;
  port.size_probes_sent += stats.size_probes_sent;
  port.size_probes_lost += stats.size_probes_lost;
}

}  // namespace mltcp::live
