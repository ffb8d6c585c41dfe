// Measures what a network and this machine carry between two endpoints, by message length: one-way latency, bandwidth
// and message rate, in each direction and in both at once. The server process listens. The client process decides what
// is measured. Control messages go over TCP, measured messages between two endpoints (endpoint/endpoint.h).
//
// Messages are sent in batches. Both processes know in advance how many messages a batch has. The number grows by a
// factor of 2 to 16 until a batch takes at least half of PerfSettings::time. The last batch is the result; the earlier
// batches are its warm-up.
//
//   latency    half of the round-trip time of a message, one message at a time; the server answers each message from a
//              callback with a message of the same length
//   out        from the client to the server, with `depth` messages under way on each connection; the time begins when
//              the first message is posted, and ends when the receiver has the last message
//   in         like out, but from the server to the client
//   both       both directions at once; the result is the sum of both
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

/// Network address, device and resources of one of the two processes.
struct PerfPlace {
  std::string device = "udp:";
  /// IP address, such as "10.0.0.1". If the kernel does not have the address of the port, the prefix length is
  /// required: "10.0.0.1/24". If empty, the local address of the TCP connection to the other process is used.
  std::string ip;
  std::string gateway;         ///< IP address of the gateway; empty if there is none
  std::uint16_t udp_port = 0;  ///< UDP port; 0 for any free port
  Idle idle = Idle::sleep;
  std::string cores;
  std::optional<std::uint32_t> memory_mb;
  std::uint32_t mtu = 0;  ///< MTU in bytes; 0 for the MTU of the interface
  /// Key that seals control messages and measured messages. Give the same key to both processes, or to neither (null).
  std::shared_ptr<const security::JobKey> key;
  /// How measured messages are sealed. Must be the same in both processes.
  security::Protection protection = security::Protection::encrypt;
};

enum class PerfTest : std::uint8_t { latency, out, in, both };
/// Returns the name of the test: "latency", "out", "in" or "both".
std::string to_text(PerfTest test);
/// Returns the test with the name `text`. If there is no such test, throws InputError that lists the tests.
PerfTest perf_test_of(const std::string& text);

struct PerfSettings {
  std::vector<PerfTest> tests{PerfTest::latency, PerfTest::out, PerfTest::both};
  Bytes min_bytes = 1;
  Bytes max_bytes = Bytes{1} << 30;
  std::uint32_t factor = 4;       ///< ratio of successive message lengths, 2 to 1024
  Nanos time{1'000'000'000};      ///< approximate duration of a point's last batch; 10 ms to 1 h
  Nanos limit{60'000'000'000};    ///< maximum duration of a batch, after which the run fails; 10 ms to 1 h
  std::uint32_t connections = 1;  ///< number of connections, 1 to 64
  /// Maximum number of messages under way on each connection, 1 to 1024, and at most 4096 on all connections together.
  /// For long messages, the number is reduced so that at most 64 MB are under way on a connection, but not below two
  /// messages.
  std::uint32_t depth = 64;
  std::string congestion_control = "reno";
  Nanos every;  ///< length of reported intervals, 1 ms to 1 h; 0 to report none
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
  Nanos begun;  ///< time from the beginning of the batch to the beginning of the interval
  Nanos ended;
  Bytes bytes = 0;  ///< bytes of the operations completed in the interval, in both directions
};

struct PerfTransfer {
  std::uint64_t messages = 0;  ///< number of messages in both directions together
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
  Bytes bytes = 0;  ///< length of each message
  std::optional<PerfLatency> latency;
  std::optional<PerfTransfer> out;
  std::optional<PerfTransfer> in;
  std::optional<PerfTransfer> both;
};

struct PerfResults {
  PerfSettings settings;
  std::string client;  ///< description of the client's datapath, for people
  std::string server;
  std::string server_version;
  bool sealed = false;       ///< true if a key was used
  std::uint64_t key_id = 0;  ///< id of the key; 0 without a key
  bool encrypted = false;    ///< true if messages were encrypted, false if only authenticated or without a key
  std::vector<PerfPoint> points;
  /// Message lengths that were not measured, because their shortest batch would have taken more than half of
  /// PerfSettings::limit.
  std::vector<Bytes> left_out;
  std::uint64_t packets_sent = 0;           ///< packets sent on the client's connections
  std::uint64_t retransmitted_packets = 0;  ///< number of sent packets that contain data sent before
  /// UDP payload of a full packet at the end of the run, in bytes. If connections differ, the smallest value.
  std::uint32_t packet_bytes = 0;
  /// Maximum UDP payload that both ends accept, in bytes. Greater than packet_bytes if the path carries only smaller
  /// packets.
  std::uint32_t agreed_packet_bytes = 0;
  ShardStats packets;  ///< packet counters of the client's endpoint
};

struct PerfCallbacks {
  /// Prints a line for people about an event.
  std::function<void(const std::string& line)> tell;
  /// Called after each measured length.
  std::function<void(const PerfPoint& point)> measured;
  /// Returns the reason to stop, or an empty text to continue.
  std::function<std::string()> interrupted;
};

/// Returns the message lengths to measure, in ascending order.
std::vector<Bytes> lengths_of(const PerfSettings& settings);
/// Throws InputError if a setting is out of range.
void check(const PerfSettings& settings);
/// Checks the settings that can be checked before the other process connects: the device, and all other settings if
/// `ip` is given. Call register_datapaths_once() before. Throws InputError or RunError.
void check(const PerfPlace& place);
/// Checks `place` like check(). Then opens and closes the datapath, which checks buffers, device and permissions.
/// Throws InputError or RunError.
void try_out(const PerfPlace& place);

inline constexpr std::uint16_t kPerfPort = 62400;
/// Returns the address `text`, and adds kPerfPort if `text` has no port. Forms: "HOST", "HOST:PORT", "[::1]:PORT",
/// "unix:/path".
std::string perf_address(const std::string& text);

/// Runs a measurement with the server at `address`. Waits up to `patience` until the server listens. Throws InputError
/// if a setting is invalid, RunError if the measurement fails.
PerfResults run_perf(const std::string& address, Nanos patience, const PerfPlace& place, const PerfSettings& settings,
                     const PerfCallbacks& callbacks, const std::string& version);

/// Serves clients one after the other until interrupted, or a single client if `once`. A client that has not sent a
/// valid first message does not block others. Throws RunError if it cannot listen, or, with `once`, if serving the
/// client fails.
void serve_perf(const std::string& address, const PerfPlace& place, bool once, const PerfCallbacks& callbacks,
                const std::string& version);

/// Returns the JSON object "mltcp.perf/1" (docs/schema), without provenance.
nlohmann::ordered_json to_json(const PerfResults& results);

}  // namespace mltcp::experiment
