// State that a running MLTCP process shows: its jobs, connections and ports. `mltcp top` displays it, and Prometheus
// collects it. The size of a snapshot is bounded. Counters begin when the process starts, so rates follow from the
// difference of two snapshots.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/transport/types.h"

namespace mltcp::live {

/// Maximum number of rows in each list of a snapshot. `left_out` counts the rows beyond this number.
inline constexpr std::size_t kMaxRows = 256;

struct JobView {
  std::string name;              ///< name of the job, or its number if the name is not known
  std::uint32_t rank = 0;        ///< rank of this process in the job; 0 if the job has only one process
  std::uint64_t iteration = 0;   ///< number of completed iterations (gen) or of begun iterations (endpoint)
  std::uint64_t iterations = 0;  ///< planned iterations; 0 if not known
  double last_seconds = 0;       ///< duration of the latest iteration; 0 if there is none or it is not known
  double mean_seconds = 0;       ///< mean duration of all completed iterations
  double bytes_ratio = 0;
  double gain = 1;
  Bytes sent_bytes = 0;  ///< delivered bytes of the application
  Bytes received_bytes = 0;
  std::uint32_t connections = 0;
  bool is_done = false;
};

struct ConnectionView {
  std::string peer;
  std::string job;  ///< name or number of the connection's job; empty if there is none
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
  std::uint64_t dropped_packets = 0;  ///< packets that were dropped because a queue or the device was full
  std::uint64_t marked_packets = 0;
  std::uint64_t bad_packets = 0;  ///< packets that were damaged, not for this host, malformed, forged or replayed
  ShardStats transport;           ///< sum over all shards; all zero for switches
};

/// The progress that packets claim for their jobs (transport/job_claims.h). Includes only packets that pass
/// through this process.
struct ClaimView {
  std::string job;               ///< number of the job, or "others" for all jobs that are not counted separately
  std::uint64_t iterations = 0;  ///< number of iterations whose beginning was seen
  std::uint64_t packets = 0;
  Bytes bytes = 0;
  Bytes bytes_at_end = 0;     ///< bytes of packets that claim full progress
  double progress_bytes = 0;  ///< sum over packets of the claimed progress (0 to 1) times the packet's bytes
  double mean_progress = 0;   ///< mean of the claimed progress, weighted by bytes, 0 to 1
  std::string verdict;        ///< verdict about the claims: "consistent", "understated", ...
  bool is_overstated = false;
};

struct Snapshot {
  std::string kind;  ///< kind of process: "gen", "switch" or "endpoint"
  std::string name;  ///< name for people, in one line, such as "host 1 of unix:/run/x" or "udp:eth0 at 10.0.0.1:62400"
  std::uint32_t pid = 0;
  double up_seconds = 0;
  std::string policy;  ///< policy of the current run; empty if there is none
  std::vector<JobView> jobs;
  std::vector<ConnectionView> connections;
  std::vector<PortView> ports;
  std::vector<ClaimView> claims;  ///< claims that switches and endpoints saw; jobs with the most bytes first
  std::uint64_t left_out = 0;     ///< number of rows that were left out because of kMaxRows
};

/// Returns whether `rows` has room for one more row. If not, adds one to `left_out`.
template <typename Row>
bool has_space(std::vector<Row>& rows, Snapshot& snapshot) {
  if (rows.size() < kMaxRows) return true;
  ++snapshot.left_out;
  return false;
}

/// Returns the snapshot as one line of JSON, {"schema": "mltcp.live/1", ...}.
std::string to_json(const Snapshot& snapshot);
/// Reads a line that to_json() returned. Throws InputError if the text is anything else.
Snapshot snapshot_from(std::string_view text);

}  // namespace mltcp::live
