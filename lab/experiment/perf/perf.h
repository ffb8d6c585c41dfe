// Measures what a network and this machine carry between two endpoints, by message length: one-way latency, bandwidth
// and message rate, in each direction and in both at once. The server process listens; the client process decides what
// is measured. Control messages go over TCP, measured messages between two endpoints (endpoint/endpoint.h).
//
// Everything is measured in batches, whose number of messages both processes know in advance. The number grows by a
// factor of 2 to 16 until a batch takes half of the time of a point. The last batch is the result; the earlier ones are
// its warm-up.
//
//   latency    half of the round trip of one message at a time: the server answers it from a callback with a message
//              of the same length
//   out, in    from the client to the server, or back, with `depth` messages under way on each connection; the time
//              from posting the first message until the receiver has the last one
//   both       both directions at once; the sum of both
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/transport/poll_loop.h"
#include "mltcp/transport/security/job_key.h"
#include "mltcp/transport/security/key_schedule.h"
#include "mltcp/transport/types.h"

namespace mltcp::experiment {

/// Network place and resources of one of the two processes.
struct PerfPlace {
  std::string device = "udp:";
  /// "10.0.0.1", or "10.0.0.1/24" for a port whose address no kernel has. Empty: the local address of the TCP
  /// connection to the other process.
  std::string ip;
  std::string gateway;         ///< empty: none
  std::uint16_t udp_port = 0;  ///< 0: a free one
  Idle idle = Idle::sleep;
  std::string cores;
  std::optional<std::uint32_t> memory_mb;
  std::uint32_t mtu = 0;  ///< 0: the interface's
  /// Given to both processes or to neither; seals control messages and measured messages.
  std::shared_ptr<const security::JobKey> key;
  security::Protection protection = security::Protection::encrypt;  ///< of measured messages; the same at both
};

enum class PerfTest : std::uint8_t { latency, out, in, both };
/// "latency", "out", ...
std::string to_text(PerfTest test);
/// Throws InputError that lists the tests.
PerfTest perf_test_of(const std::string& text);

struct PerfSettings {
  std::vector<PerfTest> tests{PerfTest::latency, PerfTest::out, PerfTest::both};
  Bytes least = 1;
  Bytes most = Bytes{1} << 30;
  std::uint32_t factor = 4;       ///< between successive lengths, 2 to 1024
  Nanos time{1'000'000'000};      ///< approximate duration of a point's last batch; 10 ms to 1 h
  Nanos limit{60'000'000'000};    ///< maximum duration of a batch, after which the run fails; 10 ms to 1 h
  std::uint32_t connections = 1;  ///< 1 to 64
  /// Maximum messages under way on each, 1 to 1024, 4096 in all; reduced to 64 MB, but not below two.
  std::uint32_t depth = 64;
  std::string congestion_control = "reno";
  Nanos every;  ///< length of reported intervals, 1 ms to 1 h; 0: none
};

struct PerfLatency {
  std::uint64_t rounds = 0;
  Nanos min;
  Nanos mean;
  Nanos p50;
  Nanos p99;
  Nanos p999;
  Nanos max;
};

struct PerfInterval {
  Nanos begun;  ///< since the batch began
  Nanos ended;
  Bytes bytes = 0;  ///< of operations that ended in it, both directions
};

struct PerfTransfer {
  std::uint64_t messages = 0;  ///< both directions
  Bytes bytes = 0;
  Nanos time;
  std::vector<PerfInterval> intervals;

  [[nodiscard]] double bits_per_second() const {
    return time.count > 0 ? static_cast<double>(bytes) * 8 / time.seconds() : 0;
  }
  [[nodiscard]] double messages_per_second() const {
    return time.count > 0 ? static_cast<double>(messages) / time.seconds() : 0;
  }
};

struct PerfPoint {
  Bytes bytes = 0;  ///< of a message
  std::optional<PerfLatency> latency;
  std::optional<PerfTransfer> out;
  std::optional<PerfTransfer> in;
  std::optional<PerfTransfer> both;
};

struct PerfResults {
  PerfSettings settings;
  std::string client;  ///< its datapath, for people
  std::string server;
  std::string server_version;
  bool sealed = false;       ///< with a key
  std::uint64_t key_id = 0;  ///< the key's id, if sealed
  bool encrypted = false;    ///< sealed, and not only authenticated
  std::vector<PerfPoint> points;
  /// Lengths that were not measured, since the shortest batch would have taken more than half of the limit.
  std::vector<Bytes> left_out;
  std::uint64_t packets_sent = 0;           ///< on the client's connections
  std::uint64_t retransmitted_packets = 0;  ///< of these, packets with data that was sent before
  /// UDP payload of a full packet at the end, on the connection where it is shortest.
  std::uint32_t packet_bytes = 0;
  std::uint32_t agreed_packet_bytes = 0;  ///< what both ends accept; above packet_bytes if the path carries less
  ShardStats packets;                     ///< of the client's endpoint
};

struct PerfCallbacks {
  /// Prints a line for people about an event.
  std::function<void(const std::string& line)> tell;
  /// Called after each measured length.
  std::function<void(const PerfPoint& point)> measured;
  /// Returns the reason to stop; empty: go on.
  std::function<std::string()> interrupted;
};

/// The lengths to measure, ascending.
std::vector<Bytes> lengths_of(const PerfSettings& settings);
/// Throws InputError if a setting is out of range.
void check(const PerfSettings& settings);
/// Checks what can be checked before the other process connects: the device, and everything else if `ip` is given. Call
/// register_datapaths_once() before. Throws InputError or RunError.
void check(const PerfPlace& place);
/// The same, and opens the datapath for a moment, which checks buffers, device and permissions.
void try_out(const PerfPlace& place);

inline constexpr std::uint16_t kPerfPort = 62400;
/// Adds kPerfPort if the port is missing: "HOST", "HOST:PORT", "[::1]:PORT", "unix:/path".
std::string perf_address(const std::string& text);

/// Measures with the server at `address`; waits up to `patience` for it to listen. Throws InputError, RunError.
PerfResults run_perf(const std::string& address, Nanos patience, const PerfPlace& place, const PerfSettings& settings,
                     const PerfCallbacks& callbacks, const std::string& version);

/// Serves clients one after the other until interrupted; only one if `once`. A client that has not sent a valid first
/// message does not block others. Throws RunError if it cannot listen, or, with `once`, if that client failed.
void serve_perf(const std::string& address, const PerfPlace& place, bool once, const PerfCallbacks& callbacks,
                const std::string& version);

/// The JSON object "mltcp.perf/1" (docs/schema), without provenance.
nlohmann::ordered_json to_json(const PerfResults& results);

}  // namespace mltcp::experiment
