// Soak tests: rounds of random traffic (lab/experiment/traffic) over a network of its own each, until the time is over.
// A round is drawn from the seed and its number, so any of them can be run alone: in virtual time it is the very same,
// in real time it has the same settings.
//
// What does not hold, and a message that makes no progress, is told with the state of all connections and the command
// that runs the round again. A processor that never comes back from one call is noticed by a thread that watches.
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

/// A host on a port of this machine (transport/host_datapath.h), which reaches the other hosts from there.
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
  std::optional<std::uint64_t> rounds{};  ///< none: as many as the time allows
  Nanos duration{20'000'000'000};         ///< as the clock on the wall has it, on `sim`, too
  std::string cores{};                    ///< for "ring"; empty: any
};

struct SoakFailure {
  std::uint64_t round = 0;
  std::string what;
  std::string state;   ///< of all hosts and connections, in lines
  std::string replay;  ///< a command
};

struct SoakResults {
  std::uint64_t rounds = 0;
  Nanos time;          ///< on the wall
  Nanos traffic_time;  ///< of the rounds, as their hosts had it
  TrafficCounts counts;
  /// A round that does not hold is the last. There is one at most.
  std::vector<SoakFailure> failures;
  std::string ended_by;  ///< why before its time; empty: it was not
};

struct SoakCallbacks {
  /// Why this is to end, or nothing. Asked often.
  std::function<std::string()> interrupted;
  /// Now and then, after a round.
  std::function<void(const SoakResults&)> progress;
};

/// Names of datapaths that it knows, whether or not this build has them.
const std::vector<std::string>& soak_datapaths();

/// Throws InputError for settings that make no sense, RunError if the datapath can't be had.
SoakResults run_soak(const SoakSettings& settings, const SoakCallbacks& callbacks = {});

/// "mltcp soak ...", which runs one round of them.
std::string replay_command(const SoakSettings& settings, std::uint64_t round);

/// As mltcp.soak/1 (docs/schema), without provenance; text of a JSON object.
nlohmann::ordered_json to_json(const SoakSettings& settings, const SoakResults& results);

}  // namespace mltcp::experiment
