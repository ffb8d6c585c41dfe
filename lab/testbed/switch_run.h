// Runs the software switch as the bottleneck of a testbed. Opens its ports. Reports its counters as a series and as
// JSON (mltcp.switch/1). Warns of problems that only these counters show.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/dpdk/port.h"
#include "mltcp/endpoint/live/snapshot.h"
#include "mltcp/lab/experiment/files/switch_file.h"
#include "mltcp/lab/experiment/series/series.h"
#include "mltcp/lab/realtime/soft_switch.h"
#include "mltcp/transport/capture/capture.h"
#include "mltcp/transport/ethernet/claims_tap.h"
#include "mltcp/transport/job_claims.h"

namespace mltcp::testbed {

struct SwitchOptions {
  std::string cores;                               ///< cores that the switch may use; empty: the first available core
  std::optional<std::uint32_t> memory_mb;          ///< memory of DPDK in MiB; empty: what the ports need
  std::optional<capture::CaptureOptions> capture;  ///< how to capture the frames of all ports; empty: no capture
  bool claims = false;                             ///< whether to sum the jobs' claims about their iterations
};

struct OpenedSwitch {
  experiment::SwitchSettings settings;
  std::unique_ptr<dpdk::Eal> eal;
  std::vector<std::unique_ptr<dpdk::Port>> ports;
  std::unique_ptr<capture::Capture> capture;
  std::unique_ptr<JobClaims> claims;  ///< null if claims are not summed
  /// For each port, a tap that reads the jobs' claims in the port's frames.
  std::vector<std::unique_ptr<encap::ClaimsTap>> looks;
  std::unique_ptr<realtime::SoftSwitch> bridge;  ///< declared last, so that it is destroyed first

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(ports.size()); }
};

/// Opens a switch. Throws InputError or RunError that names the port.
OpenedSwitch open_switch(experiment::SwitchSettings settings, const SwitchOptions& options);

/// Returns the rate of a port's output; 0 if the port itself is the only limit.
Rate rate_of(const fabric::SwitchPortConfig& config);
/// Returns the number of bytes in the queues of a port's output.
Bytes queue_of(const OpenedSwitch& opened, std::uint32_t port);

/// Returns the state of a switch for `mltcp top` and Prometheus.
live::Snapshot snapshot_of(const OpenedSwitch& opened);

/// Records the counters of outputs at regular times. If there are too many entries, removes every second entry and
/// doubles the interval.
class SwitchSeries {
 public:
  SwitchSeries(OpenedSwitch& opened, Nanos every);

  /// Adds an entry if one is due at `now`.
  void look(Nanos now);
  /// Adds an entry at `now`, even if none is due.
  void add(Nanos now);
  [[nodiscard]] nlohmann::ordered_json to_json() const;
  /// Returns the entries as a series of links, one link per port. Times count from the first entry.
  [[nodiscard]] experiment::RunSeries links() const;

 private:
  struct Counts {
    std::uint64_t sent_frames = 0;
    Bytes sent_bytes = 0;
    std::uint64_t dropped_frames = 0;
    std::uint64_t marked_frames = 0;
    std::uint64_t bad_checksums = 0;  ///< number of received frames with wrong checksums
    Bytes longest_queue = 0;          ///< longest queue since the previous entry
    Bytes queue = 0;
  };

  void thin();

  OpenedSwitch& opened_;
  /// Maximum number of entries, an odd number. The maximum is smaller for more ports, because the removal of entries
  /// must not delay the switch.
  const std::size_t max_;
  Nanos every_;
  Nanos next_;
  Nanos begun_;  ///< time of the first entry
  std::vector<Nanos> times_;
  std::vector<Counts> counts_;  ///< for each entry, one element per port
};

/// Warns during the run, once per port, if frames with wrong checksums arrive at the port. Receivers drop such frames.
/// Without the warning, a user who waits for a connection would learn of this only after the run.
class ChecksumWatch {
 public:
  explicit ChecksumWatch(const OpenedSwitch& opened) : opened_(opened), reported_(opened.size()) {}

  void look(const std::function<void(const std::string& warning)>& tell);

 private:
  const OpenedSwitch& opened_;
  std::vector<bool> reported_;
};

/// Returns warnings about problems of the traffic that only the switch's counters show. Each warning contains a cure.
std::vector<std::string> warnings_of(const OpenedSwitch& opened, Nanos duration);

/// Returns all counters as mltcp.switch/1.
nlohmann::ordered_json to_json(const OpenedSwitch& opened, Nanos duration);
nlohmann::ordered_json to_json(const std::vector<JobClaim>& claims);

}  // namespace mltcp::testbed
