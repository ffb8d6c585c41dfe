// Experiments across hosts: datapath "hosts". A process on each host drives the ranks that live there
// (host_layout.h) over a DPDK port, in real time; the coordinator has them join, sets up one run after the other,
// starts each at a common time, watches it, and merges what the ranks have recorded.
//
// Clocks of hosts differ, so the coordinator estimates each one's offset before and after each run (clock_offset.h).
// How good that is stands in the results; how long an iteration takes is measured on one host and needs none of it.
//
// Whatever fails on one host, and whoever ends, ends all: within seconds, each with one line.
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

/// What a run looks like from outside while it goes on.
struct HostsView {
  struct Rank {
    std::uint32_t host = 0;
    std::uint64_t recorded = 0;  ///< iterations
    double bits_per_second = 0;  ///< of application bytes that were delivered, lately
    Nanos last;                  ///< latest iteration; 0 before the first
  };
  struct JobProgress {
    std::string name;
    std::uint64_t iterations = 0;  ///< to record
    std::vector<Rank> ranks;
  };
  std::string policy;
  std::vector<JobProgress> jobs;
};

struct CoordinatorOptions {
  std::string address;               ///< to listen on, see StreamAddress
  Nanos join_limit{60'000'000'000};  ///< hosts that have not joined by then are missing
  /// Asked every 50 ms or so, what has ended it, for people ("interrupted by its user"), or an empty text; without it
  /// nothing ends it.
  std::function<std::string()> interrupted;
  std::function<void(const std::string&)> tell{};  ///< a line for people
  std::function<void(const std::string&)> warn{};  ///< the same, of what spoils the results
  std::function<void(const HostsView&)> view{};    ///< twice a second while jobs run
  Nanos alive_every{5'000'000'000};                ///< hosts hear something so often, whatever goes on
  StreamKey key{};                                 ///< only hosts that have it can join; null: those without one
  Nanos stop_limit{20'000'000'000};  ///< that hosts have to stop, and after each piece of their series again
};

class Coordinator : public Datapath {
 public:
  /// Where it listens, with the port in place of 0.
  [[nodiscard]] virtual std::string address() const = 0;
  /// Waits until all hosts of the experiment have joined and opened their ports. Throws RunError that names those that
  /// are missing.
  virtual void join() = 0;
  /// Tells the hosts that all is done. Without it they are told that it failed.
  virtual void finish() = 0;
  /// The same with a reason for their users.
  virtual void fail(const std::string& why) = 0;
};

/// Listens at once. `experiment` outlives it. Throws InputError, or RunError if it can't listen.
std::unique_ptr<Coordinator> make_coordinator(const Experiment& experiment, const CoordinatorOptions& options);

struct HostOptions {
  std::string coordinator;  ///< its address
  StreamKey key{};          ///< the coordinator's, with which connections of jobs are sealed, too; null: it has none
  /// Of connections of jobs, the same on all hosts.
  security::Protection protection = security::Protection::encrypt;
  Nanos connect_limit{30'000'000'000};
  std::string device;                        ///< as its datapath reads it (host_datapaths.h): "af_packet:eth0"
  std::string ip;                            ///< "10.0.0.1/24", "fd00::1/64"
  std::string gateway;                       ///< empty: none
  std::optional<std::uint32_t> host;         ///< its number; empty: the coordinator gives one
  std::uint16_t udp_port = kDefaultUdpPort;  ///< of the first rank; the others have the next ones
  std::string idle = "pause";                ///< spin, pause or sleep
  std::string cores;                         ///< the CPU to use; empty: the first usable one
  std::optional<std::uint32_t> memory_mb;
  std::uint32_t mtu = 0;                         ///< 0: the interface's
  std::uint16_t queues = 1;                      ///< of the port
  std::function<std::string()> interrupted;      ///< as of the coordinator
  std::function<void(const std::string&)> tell;  ///< a line for people
  std::function<void(const std::string&)> warn;  ///< the same, of what may spoil the results
  /// A coordinator that has said nothing for so long hangs, or can't be reached: it says something every few seconds
  /// (CoordinatorOptions::alive_every), but while it plans.
  Nanos silence_limit{120'000'000'000};
  std::optional<capture::CaptureOptions> capture{};  ///< of the port's packets
  live::Exchange* exchange = nullptr;                ///< who asks there is shown what goes on; outlives the call
};

/// Takes part in an experiment until its end: opens the port first, so that what is wrong with it is told at once and
/// here, and joins then. Throws InputError for options that can't be used here, RunError for what
/// failed, here or elsewhere.
void run_host(const HostOptions& options);

}  // namespace mltcp::experiment
