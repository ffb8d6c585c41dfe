// Time series of a run: the state of each connection and each link at equally spaced times. Recorded by
// series_recorder.h, written and read by series_file.h, drawn by the report.
//
// A row contains the state at its time. Counters count from the run's time 0, so that no counts are lost if rows are
// left out. If rows have been left out, columns named least, most or max cover all samples since the previous row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::experiment {

inline constexpr std::string_view kSeriesSchema = "mltcp.series/1";

/// The connection of a series. At flow level, it stands for all connections of the worker on one path.
struct SeriesConnection {
  std::string job;
  std::uint32_t worker = 0;  ///< the sending worker or rank
  std::uint32_t peer = 0;    ///< the receiving rank; the worker itself if the job has no ranks
  std::uint32_t flow = 0;    ///< number among the connections between `worker` and `peer`
  bool operator==(const SeriesConnection&) const = default;
};

/// The sending end of a connection.
struct ConnectionState {
  double cwnd_bytes = 0;
  double cwnd_least_bytes = 0;
  double cwnd_most_bytes = 0;
  Bytes in_flight_bytes = 0;
  Rate pacing;  ///< pacing rate; 0 if not paced
  Nanos rtt;    ///< smoothed round-trip time; 0 if not measured yet
  Nanos rtt_max;
  double gain = 1;              ///< gain of the increase step
  double bytes_ratio = 0;       ///< share of the job's bytes per iteration that was sent, 0 to 1
  std::int64_t iteration = -1;  ///< number of the job's iteration, from 0; -1 before the first iteration
  // The following numbers count since the connection was opened.
  Bytes sent_bytes = 0;  ///< UDP payload including retransmissions; at flow level, application bytes
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t lost_packets = 0;
  std::uint64_t marked_packets = 0;  ///< packets that arrived with a CE mark
  bool operator==(const ConnectionState&) const = default;
};

/// A link and the queue before it.
struct LinkState {
  Bytes queue_bytes = 0;
  Bytes queue_most_bytes = 0;
  // The following numbers count since the network was created.
  Bytes sent_bytes = 0;  ///< bytes on the wire
  std::uint64_t sent_packets = 0;
  std::uint64_t marked_packets = 0;
  std::uint64_t dropped_packets = 0;  ///< packets dropped because the buffer was full
  std::uint64_t pauses = 0;           ///< number of times that a priority class was paused (PFC)
  bool operator==(const LinkState&) const = default;
};

struct SeriesLink {
  std::string name;
  Rate rate;
  bool operator==(const SeriesLink&) const = default;
};

/// The series of one run.
struct RunSeries {
  std::string policy;
  std::string cc;
  std::string datapath;
  std::uint64_t seed = 0;
  Nanos duration;  ///< duration of the run
  Nanos interval;  ///< time between rows, except that the last row is at the run's end
  /// Time between samples, from which least and most values are computed; at most `interval`.
  Nanos sampled_every;
  bool packets = true;       ///< false if columns that describe packets are unknown (datapath flow)
  std::vector<Nanos> times;  ///< times of the rows, ascending, relative to the run's time 0
  std::vector<SeriesConnection> connections;
  std::vector<SeriesLink> links;
  std::vector<ConnectionState> connection_states;  ///< row by row: [row * connections.size() + connection]
  std::vector<LinkState> link_states;              ///< row by row, like connection_states

  [[nodiscard]] const ConnectionState& connection(std::size_t row, std::size_t number) const {
    return connection_states[row * connections.size() + number];
  }
  [[nodiscard]] const LinkState& link(std::size_t row, std::size_t number) const {
    return link_states[row * links.size() + number];
  }
  bool operator==(const RunSeries&) const = default;
};

/// Returns the mean rate between the previous row and this row, in bits per second. Returns 0 for the first row, whose
/// time is 0.
template <typename State>
double rate_in_row(const std::vector<State>& states, std::size_t entities, std::size_t number,
                   const std::vector<Nanos>& times, std::size_t row) {
  const Nanos before = row > 0 ? times[row - 1] : Nanos(0);
  if (times[row] <= before) return 0;
  const Bytes sent = states[row * entities + number].sent_bytes;
  const Bytes sent_before = row > 0 ? states[(row - 1) * entities + number].sent_bytes : Bytes{0};
  if (sent < sent_before) return 0;  // possible in a file that another program wrote
  return static_cast<double>(sent - sent_before) * 8e9 / static_cast<double>((times[row] - before).count);
}

}  // namespace mltcp::experiment
