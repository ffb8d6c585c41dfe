// The members of a snapshot: their names in JSON, and what Prometheus is told of them (base/fields.h).
#pragma once

#include "mltcp/base/fields.h"
#include "mltcp/endpoint/live/snapshot.h"

namespace mltcp::live {

enum class MetricType : std::uint8_t { counter, gauge };

/// A metric "mltcp_FAMILY_NAME" of each row, by the conventions of Prometheus: base units, and counters end in _total.
struct Metric {
  const char* name;
  MetricType type;
  const char* help;
};

constexpr auto fields_of(const JobView* /*type*/) {
  return list_of<JobView>(
      field("name", &JobView::name), field("rank", &JobView::rank),
      field("iteration", &JobView::iteration,
            Metric{"iterations_total", MetricType::counter, "Iterations of the job."}),
      field("iterations", &JobView::iterations),
      field("last_seconds", &JobView::last_seconds,
            Metric{"last_iteration_seconds", MetricType::gauge, "Duration of the latest iteration."}),
      field("mean_seconds", &JobView::mean_seconds,
            Metric{"mean_iteration_seconds", MetricType::gauge, "Mean duration of the iterations so far."}),
      field("bytes_ratio", &JobView::bytes_ratio,
            Metric{"bytes_ratio", MetricType::gauge, "Part of the iteration's bytes that has been delivered."}),
      field("gain", &JobView::gain,
            Metric{"gain", MetricType::gauge, "Gain of the increase step of congestion control."}),
      field("sent_bytes", &JobView::sent_bytes,
            Metric{"sent_bytes_total", MetricType::counter, "Bytes of the application that were delivered."}),
      field("received_bytes", &JobView::received_bytes,
            Metric{"received_bytes_total", MetricType::counter, "Bytes of the application that arrived."}),
      field("connections", &JobView::connections,
            Metric{"connections", MetricType::gauge, "Connections of the job in this process."}),
      field("is_done", &JobView::is_done));
}

constexpr auto fields_of(const ConnectionView* /*type*/) {
  return list_of<ConnectionView>(
      field("peer", &ConnectionView::peer), field("job", &ConnectionView::job),
      field("cwnd_bytes", &ConnectionView::cwnd_bytes), field("in_flight_bytes", &ConnectionView::in_flight_bytes),
      field("rtt_seconds", &ConnectionView::rtt_seconds), field("min_rtt_seconds", &ConnectionView::min_rtt_seconds),
      field("delivery_bps", &ConnectionView::delivery_bps), field("pacing_bps", &ConnectionView::pacing_bps),
      field("sent_bytes", &ConnectionView::sent_bytes), field("sent_packets", &ConnectionView::sent_packets),
      field("received_packets", &ConnectionView::received_packets),
      field("retransmitted_packets", &ConnectionView::retransmitted_packets),
      field("lost_packets", &ConnectionView::lost_packets), field("marked_packets", &ConnectionView::marked_packets),
      field("packet_bytes", &ConnectionView::packet_bytes),
      field("agreed_packet_bytes", &ConnectionView::agreed_packet_bytes));
}

constexpr auto fields_of(const PortView* /*type*/) {
  return list_of<PortView>(
      field("name", &PortView::name),
      field("is_up", &PortView::is_up, Metric{"up", MetricType::gauge, "1 while the port has a link."}),
      field("received_packets", &PortView::received_packets,
            Metric{"received_packets_total", MetricType::counter, "Packets that the port received."}),
      field("received_bytes", &PortView::received_bytes,
            Metric{"received_bytes_total", MetricType::counter, "Bytes that the port received; 0 where not counted."}),
      field("sent_packets", &PortView::sent_packets,
            Metric{"sent_packets_total", MetricType::counter, "Packets that the port sent."}),
      field("sent_bytes", &PortView::sent_bytes,
            Metric{"sent_bytes_total", MetricType::counter, "Bytes that the port sent; 0 where not counted."}),
      field("queue_bytes", &PortView::queue_bytes,
            Metric{"queue_bytes", MetricType::gauge, "Bytes that wait to be sent; of switches."}),
      field("dropped_packets", &PortView::dropped_packets,
            Metric{"dropped_packets_total", MetricType::counter, "Packets that found a full queue."}),
      field("marked_packets", &PortView::marked_packets,
            Metric{"marked_packets_total", MetricType::counter, "Packets that the port marked with CE; of switches."}),
      field("bad_packets", &PortView::bad_packets,
            Metric{"bad_packets_total", MetricType::counter,
                   "Packets that were damaged, foreign, malformed, forged or replayed."}),
      field("refused_connects", &PortView::refused_connects,
            Metric{"refused_connects_total", MetricType::counter,
                   "CONNECTs answered with a refusal, repeated ones, too: nobody listens, no room, no key or version "
                   "in common."}),
      field("violations", &PortView::violations,
            Metric{"violations_total", MetricType::counter,
                   "Connections that ended as their peer acknowledged what was never sent."}),
      field("black_holes", &PortView::black_holes,
            Metric{"black_holes_total", MetricType::counter,
                   "Paths that dropped long packets, whose connections went on with shorter ones."}),
      field(
          "size_probes_sent", &PortView::size_probes_sent,
          Metric{"sent_size_probes_total", MetricType::counter, "Packets that tried how long packets a path carries."}),
      field("size_probes_lost", &PortView::size_probes_lost,
            Metric{"lost_size_probes_total", MetricType::counter, "Of those, the ones that were lost."}));
}

constexpr auto fields_of(const ClaimView* /*type*/) {
  return list_of<ClaimView>(
      field("job", &ClaimView::job),
      field("iterations", &ClaimView::iterations,
            Metric{"iterations_total", MetricType::counter, "Iterations of the job that were seen to begin."}),
      field("packets", &ClaimView::packets),
      field("bytes", &ClaimView::bytes,
            Metric{"bytes_total", MetricType::counter, "Bytes of packets with data of the job."}),
      field("bytes_at_end", &ClaimView::bytes_at_end,
            Metric{"bytes_at_end_total", MetricType::counter, "Of those, bytes of packets that claim full progress."}),
      field("progress_bytes", &ClaimView::progress_bytes,
            Metric{"progress_bytes_total", MetricType::counter,
                   "Sum over packets of the progress that they claim, 0 to 1, times their bytes."}),
      field("mean_progress", &ClaimView::mean_progress), field("verdict", &ClaimView::verdict),
      field("is_doubtful", &ClaimView::is_doubtful,
            Metric{"doubtful", MetricType::gauge, "1 if the job claims more progress than its bytes account for."}));
}

constexpr auto fields_of(const Snapshot* /*type*/) {
  return list_of<Snapshot>(field("kind", &Snapshot::kind), field("name", &Snapshot::name), field("pid", &Snapshot::pid),
                           field("up_seconds", &Snapshot::up_seconds), field("policy", &Snapshot::policy),
                           field("jobs", &Snapshot::jobs), field("connections", &Snapshot::connections),
                           field("ports", &Snapshot::ports), field("claims", &Snapshot::claims),
                           field("left_out", &Snapshot::left_out));
}

}  // namespace mltcp::live
