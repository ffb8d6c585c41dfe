// Reads the state of a shard's connection for time series. Not installed.
#pragma once

#include "mltcp/lab/experiment/series/series.h"
#include "mltcp/transport/shard.h"

namespace mltcp::experiment {

/// Fills in `state`, or leaves it unchanged if the connection has ended.
inline void read_state(const Shard& shard, ConnectionId connection, JobId job, ConnectionState& state) {
  const auto stats = shard.stats(connection);
  if (!stats) return;
  state.cwnd_bytes = stats->cwnd_bytes;
  state.in_flight_bytes = stats->in_flight;
  state.pacing = stats->pacing_rate;
  state.rtt = stats->smoothed_rtt;
  state.sent_bytes = stats->bytes_sent;
  state.retransmitted_packets = stats->retransmitted_packets;
  state.lost_packets = stats->lost_packets;
  state.marked_packets = stats->ce_packets;
  const cc::Augmentation* progress = shard.job_progress(job);
  if (progress == nullptr) return;
  state.gain = shard.job_gain(job);
  state.bytes_ratio = progress->tracker.bytes_ratio();
  state.iteration = static_cast<std::int64_t>(progress->tracker.iteration()) - 1;
}

}  // namespace mltcp::experiment
