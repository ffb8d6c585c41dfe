// Soak tests: rounds of random traffic (lab/experiment/traffic), each over a network of its own, until the time is
// over. A round is drawn from the seed and its number, so any round can be run alone: in virtual time it is identical,
// in real time it has the same settings.
//
// A broken promise, or a message without progress, is reported with the state of all connections and the command that
// runs the round again. A watchdog thread notices a call that never returns.
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
  std::string device;  ///< as in "af_packet:v0" or "verbs:rx0"
  std::string ip;      ///< its address and prefix length, as in "10.0.0.1/24"
};

struct SoakSettings {
  /// "sim" (virtual time, packets over links and a switch), "ring" (DPDK's rings and the software switch), "udp" (the
  /// kernel's sockets, over the loopback) or "ports".
  std::string datapath = "sim";
  std::vector<SoakPort> ports{};  ///< for "ports": two or more
  std::uint64_t seed = 1;
  std::uint64_t first_round = 1;
  std::optional<std::uint64_t> rounds{};  ///< empty: as many as the time allows
  Nanos duration{20'000'000'000};         ///< wall-clock time, also on "sim"
  std::string cores{};                    ///< for "ring"; empty: any
};

struct SoakFailure {
  std::uint64_t round = 0;
  std::string what;
  std::string state;   ///< of all hosts and connections, several lines
  std::string replay;  ///< command that runs the round again
};

struct SoakResults {
  std::uint64_t rounds = 0;
  Nanos time;          ///< wall-clock time
  Nanos traffic_time;  ///< sum over the rounds, on their hosts' clocks
  TrafficCounts counts;
  /// At most one, since a failed round is the last.
  std::vector<SoakFailure> failures;
  std::string ended_by;  ///< reason of an early end; empty: none
};

struct SoakCallbacks {
  /// Returns the reason to stop; empty: go on. Called often.
  std::function<std::string()> interrupted;
  /// Called from time to time, after a round.
  std::function<void(const SoakResults&)> progress;
};

/// Names of all datapaths, whether or not this build has them.
const std::vector<std::string>& soak_datapaths();

/// Throws InputError for invalid settings, RunError if the datapath is not available.
SoakResults run_soak(const SoakSettings& settings, const SoakCallbacks& callbacks = {});

/// The command "mltcp soak ..." that runs one round.
std::string replay_command(const SoakSettings& settings, std::uint64_t round);

/// The JSON object "mltcp.soak/1" (docs/schema), without provenance.
nlohmann::ordered_json to_json(const SoakSettings& settings, const SoakResults& results);

}  // namespace mltcp::experiment
