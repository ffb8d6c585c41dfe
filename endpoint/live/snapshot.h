// The state that a running process of MLTCP shows: jobs, connections, ports. `mltcp top` draws it, Prometheus collects
// it. A snapshot is bounded. Its counters begin at the process's start, so that rates follow from two snapshots.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/transport/types.h"

namespace mltcp::live {

/// Maximum rows of each list in a snapshot; further rows are counted in `left_out`.
inline constexpr std::size_t kMaxRows = 256;

struct JobView {
  std::string name;              ///< or its number, if the name is not known
  std::uint32_t rank = 0;        ///< of this process; 0 if there is only one
  std::uint64_t iteration = 0;   ///< completed (gen), or begun (endpoint)
  std::uint64_t iterations = 0;  ///< planned; 0: not known
  double last_seconds = 0;       ///< of the latest iteration; 0: none, or not known
  double mean_seconds = 0;       ///< of all completed iterations
  double bytes_ratio = 0;
  double gain = 1;
  Bytes sent_bytes = 0;  ///< of the application, delivered
  Bytes received_bytes = 0;
  std::uint32_t connections = 0;
  bool is_done = false;
};

struct ConnectionView {
  std::string peer;
  std::string job;  ///< empty: none
  ConnectionStats transport;
};

struct PortView {
  std::string name;
  bool is_up = true;
  std::uint64_t received_packets = 0;
  Bytes received_bytes = 0;
  std::uint64_t sent_packets = 0;
  Bytes sent_bytes = 0;
  Bytes queue_bytes = 0;
  std::uint64_t dropped_packets = 0;  ///< because a queue or the device was full
  std::uint64_t marked_packets = 0;
  std::uint64_t bad_packets = 0;  ///< damaged, not for this host, malformed, forged, replayed
  ShardStats transport;           ///< of all shards; 0 for switches
};

/// What other jobs' packets claim of their progress (transport/job_claims.h), as far as they pass here.
struct ClaimView {
  std::string job;               ///< its number, or "others"
  std::uint64_t iterations = 0;  ///< beginnings seen
  std::uint64_t packets = 0;
  Bytes bytes = 0;
  Bytes bytes_at_end = 0;     ///< of packets that claim full progress
  double progress_bytes = 0;  ///< sum over packets of progress (0 to 1) times bytes
  double mean_progress = 0;   ///< weighted by bytes, 0 to 1
  std::string verdict;        ///< "consistent", "understated", ...
  bool is_overstated = false;
};

struct Snapshot {
  std::string kind;  ///< "gen", "switch", "endpoint"
  std::string name;  ///< for people, in one line: "host 1 of unix:/run/x", "udp:eth0 at 10.0.0.1:62400"
  std::uint32_t pid = 0;
  double up_seconds = 0;
  std::string policy;  ///< of the current run; empty: none
  std::vector<JobView> jobs;
  std::vector<ConnectionView> connections;
  std::vector<PortView> ports;
  std::vector<ClaimView> claims;  ///< of switches and endpoints; those with the most bytes first
  std::uint64_t left_out = 0;     ///< rows beyond kMaxRows
};

/// Whether there is room for another row. Counts it as left out if not.
template <typename Row>
bool has_room(std::vector<Row>& rows, Snapshot& snapshot) {
  if (rows.size() < kMaxRows) return true;
  ++snapshot.left_out;
  return false;
}

/// One line of JSON, {"schema": "mltcp.live/1", ...}.
std::string to_json(const Snapshot& snapshot);
/// Throws InputError for anything but such a line.
Snapshot snapshot_from(std::string_view text);

}  // namespace mltcp::live
