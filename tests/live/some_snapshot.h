// A snapshot in which no list is empty.
#pragma once

#include "mltcp/endpoint/live/snapshot.h"

namespace mltcp::live::test {

inline Snapshot some_snapshot() {
  Snapshot shown;
  shown.kind = "gen";
  shown.name = "host 1 at 10.0.0.2/24";
  shown.pid = 4242;
  shown.up_seconds = 12.5;
  shown.policy = "mltcp";
  JobView& job = shown.jobs.emplace_back();
  job.name = "vgg19-a";
  job.rank = 3;
  job.iteration = 17;
  job.iterations = 60;
  job.last_seconds = 0.25;
  job.mean_seconds = 0.26;
  job.bytes_ratio = 0.5;
  job.gain = 1.125;
  job.sent_bytes = 1'000'000;
  job.received_bytes = 2'000'000;
  job.connections = 2;
  for (int i = 0; i < 2; ++i) {
    ConnectionView& connection = shown.connections.emplace_back();
    connection.peer = i == 0 ? "10.0.0.1:62400" : "10.0.0.3:62400";
    connection.job = "vgg19-a";
    ConnectionStats& stats = connection.transport;
    stats.cwnd_bytes = 40'000;
    stats.in_flight = 30'000;
    stats.smoothed_rtt = Nanos(i == 0 ? 100'000 : 400'000);
    stats.min_rtt = Nanos(50'000);
    stats.delivery_rate = Rate(8'000'000);
    stats.bytes_sent = 5'000;
    stats.packets_sent = 5;
    stats.packets_received = 4;
    stats.retransmitted_packets = 2;
    stats.lost_packets = 1;
    stats.ce_packets = 3;
    stats.packet_bytes = i == 0 ? 1472 : 1200;
    stats.agreed_packet_bytes = 1472;
  }
  PortView& port = shown.ports.emplace_back();
  port.name = "udp:eth0";
  port.is_up = false;
  port.received_packets = 100;
  port.sent_packets = 200;
  port.queue_bytes = 1500;
  port.dropped_packets = 7;
  port.transport.refused_connects = 3;
  port.transport.violations = 2;
  port.transport.black_holes = 1;
  port.transport.size_probes_sent = 9;
  port.transport.size_probes_lost = 6;
  ClaimView& claim = shown.claims.emplace_back();
  claim.job = "7";
  claim.iterations = 60;
  claim.packets = 90'000;
  claim.bytes = 120'000'000;
  claim.bytes_at_end = 60'000'000;
  claim.progress_bytes = 90'000'000.5;
  claim.mean_progress = 0.75;
  claim.verdict = "understated";
  claim.is_overstated = true;
  return shown;
}

}  // namespace mltcp::live::test
