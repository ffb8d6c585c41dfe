// Members of a snapshot, with their names in JSON and their metrics in Prometheus (base/metric.h). Member "transport"
// is replaced by its own members, with the names that the transport gives them.
#pragma once

#include "mltcp/base/metric.h"
#include "mltcp/endpoint/live/snapshot.h"
#include "mltcp/transport/counters.h"

namespace mltcp::live {

constexpr auto fields_of(const JobView* /*type*/) {
  return list_of<JobView>(
      field("name", &JobView::name), field("rank", &JobView::rank),
      field("iteration", &JobView::iteration, Metric{"iterations_total", "Iterations of the job."}),
      field("iterations", &JobView::iterations),
      field("last_seconds", &JobView::last_seconds,
            Metric{"last_iteration_seconds", "Duration of the latest iteration."}),
      field("mean_seconds", &JobView::mean_seconds,
            Metric{"mean_iteration_seconds", "Mean duration of the iterations so far."}),
      field("bytes_ratio", &JobView::bytes_ratio,
            Metric{"bytes_ratio", "Part of the iteration's bytes that has been delivered."}),
      field("gain", &JobView::gain, Metric{"gain", "Gain of the increase step of congestion control."}),
      field("sent_bytes", &JobView::sent_bytes,
            Metric{"sent_bytes_total", "Bytes of the application that were delivered."}),
      field("received_bytes", &JobView::received_bytes,
            Metric{"received_bytes_total", "Bytes of the application that arrived."}),
      field("connections", &JobView::connections, Metric{"connections", "Connections of the job in this process."}),
      field("is_done", &JobView::is_done));
}

constexpr auto fields_of(const ConnectionView* /*type*/) {
  return list_of<ConnectionView>(field("peer", &ConnectionView::peer), field("job", &ConnectionView::job),
                                 field("transport", &ConnectionView::transport));
}

/// Sums over the connections of a job. Prometheus gets no values of single connections, because a process may have
/// thousands of connections, which change often.
struct ConnectionSums {
  std::uint64_t open = 0;
  ConnectionStats transport;
  std::uint64_t shortened = 0;
};
constexpr auto fields_of(const ConnectionSums* /*type*/) {
  return list_of<ConnectionSums>(
      field("open", &ConnectionSums::open, Metric{"open", "Connections of this process."}),
      field("transport", &ConnectionSums::transport),
      field("shortened", &ConnectionSums::shortened,
            Metric{"shortened", "Connections whose path carries shorter packets only than their ends do."}));
}

constexpr auto fields_of(const PortView* /*type*/) {
  return list_of<PortView>(
      field("name", &PortView::name), field("is_up", &PortView::is_up, Metric{"up", "1 while the port has a link."}),
      field("received_packets", &PortView::received_packets,
            Metric{"received_packets_total", "Packets that the port received."}),
      field("received_bytes", &PortView::received_bytes,
            Metric{"received_bytes_total", "Bytes that the port received; 0 where not counted."}),
      field("sent_packets", &PortView::sent_packets, Metric{"sent_packets_total", "Packets that the port sent."}),
      field("sent_bytes", &PortView::sent_bytes,
            Metric{"sent_bytes_total", "Bytes that the port sent; 0 where not counted."}),
      field("queue_bytes", &PortView::queue_bytes, Metric{"queue_bytes", "Bytes that wait to be sent; of switches."}),
      field("dropped_packets", &PortView::dropped_packets,
            Metric{"dropped_packets_total", "Packets that found a full queue."}),
      field("marked_packets", &PortView::marked_packets,
            Metric{"marked_packets_total", "Packets that the port marked with CE; of switches."}),
      field("bad_packets", &PortView::bad_packets,
            Metric{"bad_packets_total", "Packets that were damaged, foreign, malformed, forged or replayed."}),
      field("transport", &PortView::transport));
}

constexpr auto fields_of(const ClaimView* /*type*/) {
  return list_of<ClaimView>(
      field("job", &ClaimView::job),
      field("iterations", &ClaimView::iterations,
            Metric{"iterations_total", "Iterations of the job that were seen to begin."}),
      field("packets", &ClaimView::packets),
      field("bytes", &ClaimView::bytes, Metric{"bytes_total", "Bytes of packets with data of the job."}),
      field("bytes_at_end", &ClaimView::bytes_at_end,
            Metric{"bytes_at_end_total", "Of those, bytes of packets that claim full progress."}),
      field("progress_bytes", &ClaimView::progress_bytes,
            Metric{"progress_bytes_total",
                   "Sum over packets of the progress that they claim, 0 to 1, times their bytes."}),
      field("mean_progress", &ClaimView::mean_progress), field("verdict", &ClaimView::verdict),
      field("is_overstated", &ClaimView::is_overstated,
            Metric{"overstated", "1 if the job claims more progress than its bytes account for."}));
}

constexpr auto fields_of(const Snapshot* /*type*/) {
  return list_of<Snapshot>(
      field("kind", &Snapshot::kind), field("name", &Snapshot::name), field("pid", &Snapshot::pid),
      field("up_seconds", &Snapshot::up_seconds, Metric{"up_seconds", "For how long it has been running."}),
      field("policy", &Snapshot::policy), field("jobs", &Snapshot::jobs), field("connections", &Snapshot::connections),
      field("ports", &Snapshot::ports), field("claims", &Snapshot::claims),
      field("left_out", &Snapshot::left_out,
            Metric{"rows_left_out", "Jobs, connections, ports and claims beyond those that are shown."}));
}

}  // namespace mltcp::live
