// Lists of the transport's counters and gauges by name. The statistics in C and Python contain the fields that mltcp.h
// names. Snapshots and metrics contain the fields with a Metric. The comments of the structs explain the fields.
#pragma once

#include "mltcp/base/metric.h"
#include "mltcp/transport/types.h"

namespace mltcp {

constexpr auto fields_of(const ConnectionStats* /*type*/) {
  using T = ConnectionStats;
  return list_of<T, ConnectionCounters>(
      field("cwnd_bytes", &T::cwnd_bytes,
            Metric{"congestion_window_bytes", "Sum of the congestion windows of all connections."}),
      field("in_flight_bytes", &T::in_flight,
            Metric{"in_flight_bytes", "Sum of the bytes in flight of all connections."}),
      field("smoothed_rtt_ns", &T::smoothed_rtt,
            Metric{"longest_round_trip_seconds", "The longest smoothed round-trip time.", "rtt_seconds"}),
      field("min_rtt_ns", &T::min_rtt, Metric{.shown = "min_rtt_seconds"}),
      field(
          "delivery_rate_bps", &T::delivery_rate,
          Metric{"delivery_bytes_per_second", "Sum of the latest delivery rates of all connections.", "delivery_bps"}),
      field("pacing_rate_bps", &T::pacing_rate, Metric{.shown = "pacing_bps"}),
      field("bytes_sent", &T::bytes_sent,
            Metric{"sent_bytes_total", "Bytes of UDP payloads that were sent.", "sent_bytes"}),
      field("packets_sent", &T::packets_sent, Metric{"sent_packets_total", "Packets that were sent.", "sent_packets"}),
      field("packets_received", &T::packets_received,
            Metric{"received_packets_total", "Packets that were received.", "received_packets"}),
      field("retransmitted_packets", &T::retransmitted_packets,
            Metric{"retransmitted_packets_total", "Packets that carried retransmitted data."}),
      field("lost_packets", &T::lost_packets, Metric{"lost_packets_total", "Packets that were declared lost."}),
      field("marked_packets", &T::ce_packets, Metric{"marked_packets_total", "Packets that arrived with a CE mark."}),
      field("packet_bytes", &T::packet_bytes, Metric()),
      field("agreed_packet_bytes", &T::agreed_packet_bytes, Metric()), field("spurious_losses", &T::spurious_losses),
      field("duplicate_packets", &T::duplicate_packets), field("congestion_events", &T::congestion_events),
      left_out(&T::messages_received), left_out(&T::end_of_next), left_out(&T::conflicting_packets),
      left_out(&T::repaired_messages), left_out(&T::persistent_congestions), left_out(&T::app_limited),
      left_out(&T::held_until), left_out(&T::due));
}

constexpr auto fields_of(const ShardStats* /*type*/) {
  using T = ShardStats;
  return list_of<T>(
      field("refused_connects", &T::refused_connects,
            Metric{"refused_connects_total",
                   "CONNECTs that were refused, including repeated ones: no listener, no room, no key or version in "
                   "common."}),
      field("violations", &T::violations,
            Metric{"violations_total", "Connections ended because their peer acknowledged data that was never sent."}),
      field("black_holes", &T::black_holes,
            Metric{"black_holes_total",
                   "Paths that dropped long packets; their connections continued with shorter ones."}),
      field("size_probes_sent", &T::size_probes_sent,
            Metric{"sent_size_probes_total", "Packets sent to probe the path MTU."}),
      field("size_probes_lost", &T::size_probes_lost,
            Metric{"lost_size_probes_total", "Probes of the path MTU that were lost."}),
      field("packets_received", &T::packets_received), field("packets_sent", &T::packets_sent),
      field("truncated_packets", &T::truncated_packets), field("foreign_packets", &T::foreign_packets),
      field("corrupted_packets", &T::corrupted_packets), field("trimmed_packets", &T::trimmed_packets),
      field("malformed_packets", &T::malformed_packets), field("unknown_connection", &T::unknown_connection),
      field("beyond_credit", &T::beyond_credit), field("beyond_holes", &T::beyond_holes),
      field("forged_packets", &T::forged_packets), field("replayed_packets", &T::replayed_packets),
      field("forged_resets", &T::forged_resets), field("retries_sent", &T::retries_sent),
      field("cookies_accepted", &T::cookies_accepted), field("unproven_ended", &T::unproven_ended),
      field("resets_sent", &T::resets_sent), field("resets_withheld", &T::resets_withheld),
      field("resets_taken", &T::resets_taken), field("downgrades", &T::downgrades), field("held_off", &T::held_off),
      field("connections", &T::connections), field("ends_held", &T::ends_held), field("half_open", &T::half_open),
      field("hole_bytes", &T::hole_bytes));
}

}  // namespace mltcp
