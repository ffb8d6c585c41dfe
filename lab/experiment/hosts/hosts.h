// Experiments across hosts: datapath "hosts". A process on each host drives the ranks of that host (host_layout.h) over
// a host datapath, in real time. The coordinator waits for the hosts to join. It then sets up one run after the other,
// starts each run at a common time, monitors it, and merges the results of the ranks.
//
// The clocks of hosts differ. The coordinator therefore estimates each clock's offset before and after each run
// (clock_offset.h); the results contain the uncertainty. An iteration's duration is measured on one host and does not
// depend on offsets.
//
// If any process fails or ends, the experiment ends on all hosts within seconds, and each process reports the cause in
// one line.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/endpoint/live/exchange.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/files/experiment.h"
#include "mltcp/lab/experiment/hosts/message_stream.h"
#include "mltcp/transport/capture/capture_options.h"
#include "mltcp/transport/security/key_schedule.h"
#include "mltcp/transport/udp_port.h"

namespace mltcp::experiment {

/// The progress of a run, for displays.
struct HostsView {
  struct Rank {
    std::uint32_t host = 0;
    std::uint64_t recorded = 0;  ///< number of recorded iterations
    double bits_per_second = 0;  ///< recent rate of delivered application bytes
    Nanos last;                  ///< duration of the latest iteration; 0 if none is recorded
  };
  struct JobProgress {
    std::string name;
    std::uint64_t iterations = 0;  ///< number of iterations to record
    std::vector<Rank> ranks;
  };
  std::string policy;
  std::vector<JobProgress> jobs;
};

struct CoordinatorOptions {
  std::string address;               ///< address on which the coordinator listens, see StreamAddress
  Nanos join_limit{60'000'000'000};  ///< time limit for all hosts to join
  /// Called about every 50 ms. If the function returns a non-empty text, which is the reason for people ("interrupted
  /// by the user"), the experiment ends. May be empty.
  std::function<std::string()> interrupted;
  std::function<void(const std::string&)> tell{};  ///< called with a message for people, one line
  /// Called with a warning about a problem that spoils the results, one line.
  std::function<void(const std::string&)> warn{};
  std::function<void(const HostsView&)> view{};  ///< called twice a second while jobs run
  Nanos alive_every{5'000'000'000};              ///< interval of messages that tell hosts that the coordinator is alive
  StreamKey key{};                   ///< only hosts with this key can join; if null, only hosts without a key
  Nanos stop_limit{20'000'000'000};  ///< time limit for hosts to stop; restarts with each piece of series
};

class Coordinator : public Datapath {
 public:
  /// Returns the address on which the coordinator listens. If the requested port was 0, contains the actual port.
  [[nodiscard]] virtual std::string address() const = 0;
  /// Waits until all hosts have joined and opened their ports. Throws RunError that names missing hosts.
  virtual void join() = 0;
  /// Informs the hosts that the experiment has succeeded. Without this call, the destructor informs them of a failure.
  virtual void finish() = 0;
  /// Informs the hosts that the experiment has failed. `why` is the reason for their users.
  virtual void fail(const std::string& why) = 0;
};

/// Creates a coordinator that listens for hosts. `experiment` must outlive it. Throws InputError for an invalid
/// address, RunError if listening fails.
std::unique_ptr<Coordinator> make_coordinator(const Experiment& experiment, const CoordinatorOptions& options);

struct HostOptions {
  std::string coordinator;  ///< the coordinator's address
  StreamKey key{};          ///< the coordinator's key, which also protects the packets of jobs; null if there is no key
  /// Protection of the packets of jobs; must be equal on all hosts.
  security::Protection protection = security::Protection::encrypt;
  Nanos connect_limit{30'000'000'000};
  std::string device;   ///< name of the port in the syntax of its datapath (host_datapaths.h), such as "af_packet:eth0"
  std::string ip;       ///< address of this host, such as "10.0.0.1/24" or "fd00::1/64"
  std::string gateway;  ///< address of the gateway; empty if there is none
  std::optional<std::uint32_t> host;         ///< number of this host; empty if the coordinator assigns it
  std::uint16_t udp_port = kDefaultUdpPort;  ///< port of the first rank; the other ranks use the next ports
  std::string idle = "pause";                ///< how the thread waits: "spin", "pause" or "sleep"
  std::string cores;                         ///< number of the CPU to use; empty for the first usable CPU
  std::optional<std::uint32_t> memory_mb;
  std::uint32_t mtu = 0;                         ///< maximum IP packet size in bytes; 0 for the interface's MTU
  std::uint16_t queues = 1;                      ///< number of queues of the port
  std::function<std::string()> interrupted;      ///< see CoordinatorOptions::interrupted
  std::function<void(const std::string&)> tell;  ///< called with a message for people, one line
  /// Called with a warning about a problem that may spoil the results, one line.
  std::function<void(const std::string&)> warn;
  /// Time without a message from the coordinator after which run_host() fails. The coordinator sends a message every
  /// few seconds (CoordinatorOptions::alive_every), except while it computes a plan.
  Nanos silence_limit{120'000'000'000};
  /// Options of a capture of the port's packets; empty if packets are not captured.
  std::optional<capture::CaptureOptions> capture{};
  live::Exchange* exchange = nullptr;  ///< serves live views of this host; null if unused; must outlive the call
};

/// Takes part in an experiment until the experiment ends. Opens the port before joining, so that problems with the port
/// are reported at once on this host. Throws InputError for options that cannot be used on this host, RunError if this
/// host or another host fails.
void run_host(const HostOptions& options);

}  // namespace mltcp::experiment
