// The software switch as the bottleneck of a testbed: opens its ports, and reports its counters as a series, as JSON
// (mltcp.switch/1), and as warnings of problems that are visible nowhere else.
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
  std::string cores;                               ///< empty: the first that may be used
  std::optional<std::uint32_t> memory_mb;          ///< of DPDK; empty: what the ports need
  std::optional<capture::CaptureOptions> capture;  ///< of the frames of all ports
  bool claims = false;                             ///< sum the jobs' claims about their iterations
};

struct OpenedSwitch {
  experiment::SwitchSettings settings;
  std::unique_ptr<dpdk::Eal> eal;
  std::vector<std::unique_ptr<dpdk::Port>> ports;
  std::unique_ptr<capture::Capture> capture;
  std::unique_ptr<JobClaims> claims;                     ///< null: not summed
  std::vector<std::unique_ptr<encap::ClaimsTap>> looks;  ///< by port: reads its claims
  std::unique_ptr<realtime::SoftSwitch> bridge;          ///< destroyed before all of these

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(ports.size()); }
};

/// Throws InputError or RunError that names the port.
OpenedSwitch open_switch(experiment::SwitchSettings settings, const SwitchOptions& options);

/// 0: as fast as the port takes it.
Rate rate_of(const fabric::SwitchPortConfig& config);
/// Bytes in the queues of a port's output.
Bytes queue_of(const OpenedSwitch& opened, std::uint32_t port);

/// For `mltcp top` and Prometheus.
live::Snapshot snapshot_of(const OpenedSwitch& opened);

/// The counters of outputs at regular times. When there are too many entries, the interval doubles.
class SwitchSeries {
 public:
  SwitchSeries(OpenedSwitch& opened, Nanos every);

  /// Adds an entry if one is due.
  void look(Nanos now);
  /// Adds an entry now.
  void add(Nanos now);
  [[nodiscard]] nlohmann::ordered_json to_json() const;
  /// The same as series of links, from the first entry on.
  [[nodiscard]] experiment::RunSeries links() const;

 private:
  struct Counts {
    std::uint64_t sent_frames = 0;
    Bytes sent_bytes = 0;
    std::uint64_t dropped_frames = 0;
    std::uint64_t marked_frames = 0;
    std::uint64_t bad_checksums = 0;  ///< of frames received
    Bytes longest_queue = 0;          ///< since the previous entry
    Bytes queue = 0;
  };

  void thin();

  OpenedSwitch& opened_;
  const std::size_t max_;  ///< odd; smaller for many ports, since thinning must not delay the switch
  Nanos every_;
  Nanos next_;
  Nanos begun_;  ///< time of the first entry
  std::vector<Nanos> times_;
  std::vector<Counts> counts_;  ///< by entry and port
};

/// Warns once per port during the run if wrong checksums arrive there. Otherwise a user who waits for a connection
/// would learn of them only after giving up.
class ChecksumWatch {
 public:
  explicit ChecksumWatch(const OpenedSwitch& opened) : opened_(opened), told_(opened.size()) {}

  void look(const std::function<void(const std::string& warning)>& tell);

 private:
  const OpenedSwitch& opened_;
  std::vector<bool> told_;
};

/// Problems of the traffic that only counters show, each with its cure.
std::vector<std::string> warnings_of(const OpenedSwitch& opened, Nanos duration);

/// All counters, of mltcp.switch/1.
nlohmann::ordered_json to_json(const OpenedSwitch& opened, Nanos duration);
nlohmann::ordered_json to_json(const std::vector<JobClaim>& claims);

}  // namespace mltcp::testbed
