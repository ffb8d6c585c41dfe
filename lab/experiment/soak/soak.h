// Soak tests: rounds of random traffic (lab/experiment/traffic), each over its own network, until the time is over. A
// round is drawn from the seed and the round's number, so that any round can be run alone. In virtual time the repeated
// round is identical. In real time it has the same settings.
//
// If the transport violates a guarantee, or a message makes no progress, the test reports the state of all connections
// and the command that runs the round again. A watchdog thread detects a call that never returns.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/traffic/traffic.h"

namespace mltcp::experiment {

/// A host on a port of this machine (transport/host_datapath.h), which is connected to the ports of the other hosts.
struct SoakPort {
  std::string device;  ///< such as "af_packet:v0" or "verbs:rx0"
  std::string ip;      ///< IP address and prefix length of the host, such as "10.0.0.1/24"
};

struct SoakSettings {
  /// "sim" (virtual time, packets over links and a switch), "ring" (DPDK's rings and the software switch), "udp" (the
  /// kernel's sockets, over the loopback) or "ports".
  std::string datapath = "sim";
  std::vector<SoakPort> ports{};  ///< ports for datapath "ports": two or more
  std::uint64_t seed = 1;
  std::uint64_t first_round = 1;
  std::optional<std::uint64_t> rounds{};  ///< number of rounds; empty: as many as the time allows
  Nanos duration{20'000'000'000};         ///< wall-clock time, also for datapath "sim"
  std::string cores{};                    ///< CPU cores for datapath "ring"; empty: any cores
};

struct SoakFailure {
  std::uint64_t round = 0;
  std::string what;
  std::string state;   ///< state of all hosts and connections, several lines
  std::string replay;  ///< command that runs the round again
};

struct SoakResults {
  std::uint64_t rounds = 0;
  Nanos time;          ///< duration of the test in wall-clock time
  Nanos traffic_time;  ///< sum of the durations of all rounds, on the clocks of their hosts
  TrafficCounts counts;
  /// Contains at most one failure, since a failed round is the last.
  std::vector<SoakFailure> failures;
  std::string ended_by;  ///< reason of an early end; empty if there was none
};

struct SoakCallbacks {
  /// Returns the reason to stop, or an empty text to continue. Called often.
  std::function<std::string()> interrupted;
  /// Called from time to time, after a round.
  std::function<void(const SoakResults&)> progress;
};

/// Returns the names of all datapaths, including those that this build does not have.
const std::vector<std::string>& soak_datapaths();

/// Runs rounds until the time is over, all rounds are done, or a round fails. Throws InputError for invalid settings,
/// RunError if the datapath is not available.
SoakResults run_soak(const SoakSettings& settings, const SoakCallbacks& callbacks = {});

/// Returns the command "mltcp soak ..." that runs one round.
std::string replay_command(const SoakSettings& settings, std::uint64_t round);

/// Returns the JSON object "mltcp.soak/1" (docs/schema), without provenance.
nlohmann::ordered_json to_json(const SoakSettings& settings, const SoakResults& results);

}  // namespace mltcp::experiment
