// What a network and this machine carry between two endpoints, by the length of messages: one-way latency, bandwidth
// and messages a second, each way and both at once. One process listens, the other says what is measured; what they
// tell each other goes over TCP, what is measured over an endpoint on either side (endpoint/endpoint.h).
//
// Everything is measured in batches of a number of messages that both know before. The number doubles, or grows by what
// the batch before took, until a batch takes half of the time that a point is given; the last batch counts, and the
// ones before it were its warming up.
//
//   latency    the client's message and the server's answer of the same length, one at a time, from callbacks; half
//              of the round trip
//   out, in    from the client to the server, or back: a number of messages is always under way (depth) on each of the
//              connections; from the first one posted to the last one that the receiver has
//   both       the same both ways at once; what comes and goes together
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

/// Where a process of the two is on the network, and how it works.
struct PerfPlace {
  std::string device = "udp:";
  /// "10.0.0.1" or "10.0.0.1/24"; the latter for a port whose address no kernel has. Empty: the address that the other
  /// process is reached from.
  std::string ip;
  std::string gateway;         ///< empty: none
  std::uint16_t udp_port = 0;  ///< 0: a free one
  Idle idle = Idle::sleep;
  std::string cores;
  std::optional<std::uint32_t> memory_mb;
  std::uint32_t mtu = 0;  ///< 0: the interface's
  /// Both processes have it, or neither: what they tell each other and what is measured is sealed with it.
  std::shared_ptr<const security::JobKey> key;
  security::Protection protection = security::Protection::encrypt;  ///< of what is measured; the same at both
};

/// What is measured.
enum class PerfTest : std::uint8_t { latency, out, in, both };
/// "latency", "out", ...
std::string to_text(PerfTest test);
/// Throws InputError that lists them.
PerfTest perf_test_of(const std::string& text);

struct PerfSettings {
  std::vector<PerfTest> tests{PerfTest::latency, PerfTest::out, PerfTest::both};
  Bytes least = 1;
  Bytes most = Bytes{1} << 30;
  std::uint32_t factor = 4;       ///< from length to length, 2 to 1024
  Nanos time{1'000'000'000};      ///< of a point's last batch, about; 10 ms to 1 h
  Nanos limit{60'000'000'000};    ///< of each batch: beyond, the run ends
  std::uint32_t connections = 1;  ///< 1 to 64
  std::uint32_t depth =
      64;  ///< messages under way on each, 1 to 1024, 4096 in all; no more than 64 MB, but two at least
  std::string congestion_control = "reno";
  Nanos every;  ///< of intervals; 0: none
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
  Bytes bytes = 0;  ///< that have ended in it, both ways
};

struct PerfTransfer {
  std::uint64_t messages = 0;  ///< both ways
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
  std::uint64_t key_id = 0;  ///< its id, if so
  bool encrypted = false;    ///< and not authenticated alone
  std::vector<PerfPoint> points;
  /// Lengths that were left out, since a message of theirs would have taken longer than the limit.
  std::vector<Bytes> left_out;
  std::uint64_t packets_sent = 0;           ///< on the client's connections
  std::uint64_t retransmitted_packets = 0;  ///< of them, with data that was sent before
  /// Of a full packet's UDP payload in the end, on the connection with the shortest.
  std::uint32_t packet_bytes = 0;
  std::uint32_t agreed_packet_bytes = 0;  ///< what both ends accept; above packet_bytes where the path carries less
  ShardStats packets;                     ///< of the client's endpoint
};

struct PerfCallbacks {
  /// A line for people, as something happens.
  std::function<void(const std::string& line)> tell;
  /// A length has been measured.
  std::function<void(const PerfPoint& point)> measured;
  /// Why this is to end, or nothing.
  std::function<std::string()> interrupted;
};

/// The lengths that are measured, in their order.
std::vector<Bytes> lengths_of(const PerfSettings& settings);
/// Throws InputError for what is out of range.
void check(const PerfSettings& settings);
/// Throws InputError or RunError for what can be told of a place before the other process is there: the device, and all
/// else if `ip` is given. After register_datapaths_once().
void check(const PerfPlace& place);
/// The same, and opens it for a moment: its buffers, its device, its rights.
void try_out(const PerfPlace& place);

inline constexpr std::uint16_t kPerfPort = 62400;
/// "HOST", "HOST:PORT", "[::1]:PORT", "unix:/path", with kPerfPort where there is none. Throws InputError.
std::string perf_address(const std::string& text);

/// Measures with the server at `address`, which may take `patience` to come. Throws InputError, RunError.
PerfResults run_perf(const std::string& address, Nanos patience, const PerfPlace& place, const PerfSettings& settings,
                     const PerfCallbacks& callbacks, const std::string& version);

/// Serves clients, one after the other, until interrupted, or one if `once`. A client that has not sent a message, with
/// the key if there is one, keeps no client out. Throws RunError where it can't listen, or, with `once`, where that
/// client failed.
void serve_perf(const std::string& address, const PerfPlace& place, bool once, const PerfCallbacks& callbacks,
                const std::string& version);

/// As mltcp.perf/1 (docs/schema), without provenance; text of a JSON object.
nlohmann::ordered_json to_json(const PerfResults& results);

}  // namespace mltcp::experiment
