// Experiments across hosts: datapath "hosts". A process on each host drives the ranks of that host (host_layout.h) over
// a host datapath, in real time. The coordinator waits for the hosts to join, sets up one run after the other, starts
// each at a common time, watches it, and merges the results of the ranks.
//
// Clocks of hosts differ, so the coordinator estimates each clock's offset before and after each run (clock_offset.h);
// the results contain the uncertainty. An iteration's duration is measured on one host and does not depend on offsets.
//
// A failure or the end of any process ends the experiment on all hosts within seconds, with one line on each.
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
    Nanos last;                  ///< latest iteration; 0 before the first
  };
  struct JobProgress {
    std::string name;
    std::uint64_t iterations = 0;  ///< number to record
    std::vector<Rank> ranks;
  };
  std::string policy;
  std::vector<JobProgress> jobs;
};

struct CoordinatorOptions {
  std::string address;               ///< to listen on, see StreamAddress
  Nanos join_limit{60'000'000'000};  ///< time for all hosts to join
  /// Called about every 50 ms. A non-empty text, the reason for people ("interrupted by the user"), ends the
  /// experiment. May be empty.
  std::function<std::string()> interrupted;
  std::function<void(const std::string&)> tell{};  ///< a line for people
  std::function<void(const std::string&)> warn{};  ///< the same, for problems that spoil the results
  std::function<void(const HostsView&)> view{};    ///< called twice a second while jobs run
  Nanos alive_every{5'000'000'000};  ///< interval of messages that show hosts that the coordinator is alive
  StreamKey key{};                   ///< only hosts with the same key can join; null: only hosts without a key
  Nanos stop_limit{20'000'000'000};  ///< time for hosts to stop; restarts with each piece of series
};

class Coordinator : public Datapath {
 public:
  /// The address on which it listens, with the actual port in place of 0.
  [[nodiscard]] virtual std::string address() const = 0;
  /// Waits until all hosts have joined and opened their ports. Throws RunError that names missing hosts.
  virtual void join() = 0;
  /// Informs the hosts that the experiment has succeeded. Without this call, the destructor informs them of a failure.
  virtual void finish() = 0;
  /// Informs the hosts that the experiment has failed; `why` is for their users.
  virtual void fail(const std::string& why) = 0;
};

/// Listens at once. `experiment` must outlive it. Throws InputError for an invalid address, else RunError.
std::unique_ptr<Coordinator> make_coordinator(const Experiment& experiment, const CoordinatorOptions& options);

struct HostOptions {
  std::string coordinator;  ///< the coordinator's address
  StreamKey key{};          ///< the coordinator's key, also used for the packets of jobs; null: no key
  /// Protection of the packets of jobs; must be equal on all hosts.
  security::Protection protection = security::Protection::encrypt;
  Nanos connect_limit{30'000'000'000};
  std::string device;                        ///< in the syntax of its datapath (host_datapaths.h): "af_packet:eth0"
  std::string ip;                            ///< "10.0.0.1/24", "fd00::1/64"
  std::string gateway;                       ///< empty: none
  std::optional<std::uint32_t> host;         ///< this host's number; empty: the coordinator assigns one
  std::uint16_t udp_port = kDefaultUdpPort;  ///< port of the first rank; the other ranks use the next ports
  std::string idle = "pause";                ///< spin, pause or sleep
  std::string cores;                         ///< the CPU to use; empty: the first usable one
  std::optional<std::uint32_t> memory_mb;
  std::uint32_t mtu = 0;                         ///< 0: the interface's
  std::uint16_t queues = 1;                      ///< number of queues of the port
  std::function<std::string()> interrupted;      ///< see CoordinatorOptions
  std::function<void(const std::string&)> tell;  ///< a line for people
  std::function<void(const std::string&)> warn;  ///< the same, for problems that may spoil the results
  /// Fails if no message arrives from the coordinator for this long: it hangs or is unreachable. Normally it sends one
  /// every few seconds (CoordinatorOptions::alive_every), except while it computes a plan.
  Nanos silence_limit{120'000'000'000};
  std::optional<capture::CaptureOptions> capture{};  ///< captures the port's packets
  live::Exchange* exchange = nullptr;                ///< for live views of this host; must outlive the call
};

/// Takes part in an experiment until its end. Opens the port before it joins, so that problems with the port are
/// reported at once on this host. Throws InputError for options that can't be used here, RunError if anything fails, on
/// this host or on another one.
void run_host(const HostOptions& options);

}  // namespace mltcp::experiment
