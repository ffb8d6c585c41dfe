// What a running process of MLTCP shows of itself: jobs, connections, ports. `mltcp top` draws it, Prometheus collects
// it. A snapshot is bounded, and holds counters since the start, so that who looks twice knows rates.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/transport/types.h"

namespace mltcp::live {

/// Of each list in a snapshot; what is beyond it is counted in `left_out`.
inline constexpr std::size_t kMaxRows = 256;

struct JobView {
  std::string name;              ///< or its number, where nobody knows the name
  std::uint32_t rank = 0;        ///< here; 0 where there is one
  std::uint64_t iteration = 0;   ///< that are done (gen), or begun (endpoint)
  std::uint64_t iterations = 0;  ///< to do; 0: not known
  double last_seconds = 0;       ///< the latest; 0: none, or not known
  double mean_seconds = 0;       ///< of all that were done
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
  std::uint64_t dropped_packets = 0;  ///< the queue was full, or the device was
  std::uint64_t marked_packets = 0;
  std::uint64_t bad_packets = 0;  ///< damaged, foreign, malformed, forged, replayed
  ShardStats transport;           ///< of all shards; 0 of switches
};

/// What packets of others' jobs claim of these (transport/job_claims.h), as far as they come here.
struct ClaimView {
  std::string job;               ///< its number, or "others"
  std::uint64_t iterations = 0;  ///< seen to begin
  std::uint64_t packets = 0;
  Bytes bytes = 0;
  Bytes bytes_at_end = 0;     ///< of packets that claim full progress
  double progress_bytes = 0;  ///< sum of progress, 0 to 1, times bytes
  double mean_progress = 0;   ///< over bytes, 0 to 1
  std::string verdict;        ///< "consistent", "understated", ...
  bool is_doubtful = false;
};

struct Snapshot {
  std::string kind;  ///< "gen", "switch", "endpoint"
  std::string name;  ///< for people, in one line: "host 1 of unix:/run/x", "udp:eth0 at 10.0.0.1:62400"
  std::uint32_t pid = 0;
  double up_seconds = 0;
  std::string policy;  ///< of the run that is on; empty: none
  std::vector<JobView> jobs;
  std::vector<ConnectionView> connections;
  std::vector<PortView> ports;
  std::vector<ClaimView> claims;  ///< of switches and endpoints; those with the most bytes first
  std::uint64_t left_out = 0;     ///< rows beyond kMaxRows
};

/// Room for another row? Counts it as left out if not.
template <typename Row>
bool has_room(std::vector<Row>& rows, Snapshot& snapshot) {
  if (rows.size() < kMaxRows) return true;
  ++snapshot.left_out;
  return false;
}

/// One line of JSON, {"schema": "mltcp.live/1", ...}.
std::string to_json(const Snapshot& snapshot);
/// Throws InputError for anything else than such a line.
Snapshot snapshot_from(std::string_view text);

}  // namespace mltcp::live
