// Runs one testbed: makes the commands of its processes, collects their results, and writes complete results even if
// processes fail or the user stops them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/series/series_file.h"
#include "mltcp/lab/testbed/layout.h"
#include "mltcp/lab/testbed/testbed.h"
#include "mltcp/transport/security/job_key.h"
#include "mltcp/transport/security/key_schedule.h"

namespace mltcp::testbed {

using Words = Testbed::Words;

/// All settings of a testbed.
struct TestbedPlan {
  TestbedLayout layout;
  std::uint32_t mtu = 1500;
  std::string host_device;    ///< kind of the hosts' ports
  std::string switch_device;  ///< kind of the switches' ports
  std::string idle;
  std::vector<unsigned> switch_cpus;  ///< CPU of each switch
  std::vector<unsigned> host_cpus;    ///< CPU of each host in the layout; empty if there are too few CPUs
  std::uint64_t seed = 1;
  std::optional<security::JobKey> key;  ///< key of the coordinator and the hosts
  security::Protection protection = security::Protection::encrypt;
  std::string experiment;                                          ///< path of the experiment's file; empty: none
  Words gen;                                                       ///< options of `mltcp gen`
  std::vector<std::pair<std::string, std::string>> switch_values;  ///< options of `mltcp switch`
  std::optional<std::string> pcap;             ///< value of --pcap: FILE and further words, see capture_options.h
  bool results = false;                        ///< whether the experiment's results are requested
  bool series = false;                         ///< whether the experiment's series are requested
  std::optional<std::string> series_interval;  ///< value of `mltcp gen --series-interval`
  Nanos counted_every{100'000'000};            ///< interval of the switches' series of counters
  std::optional<std::string> command;          ///< command to run if there is no experiment
  bool shell = false;                          ///< whether to run a shell for the user at the end
  bool keep = false;                           ///< whether to stay up at the end, even without a shell
};

// ---- Commands ----

/// Returns the capture file of one of the testbed's processes. `who` is "switch-0" or "host-3". The plan must have
/// `pcap`.
std::string capture_file(const TestbedPlan& plan, const std::string& who);
/// Returns the address of a host's port. A kernel socket has the kernel's address. Any other port must have its own
/// address.
std::string address_of_port(const TestbedPlan& plan, std::uint32_t host);
/// Returns the command of a switch. `self` is the path of this program. `json` is the file for the switch's counters.
Words switch_command(const TestbedPlan& plan, std::size_t number, const std::string& self,
                     const std::filesystem::path& json);
/// Returns the command of a host. `index` is its index in the layout. `server` is the address of the coordinator.
Words host_command(const TestbedPlan& plan, std::size_t index, const std::string& self, const std::string& server);
/// Files that the coordinator writes. An empty name means that the file is not written.
struct CoordinatorFiles {
  std::string json;
  std::string series;
};
/// Returns files in the sandbox's folder, for output that the testbed completes. Series require results, because the
/// results contain the times of the runs.
CoordinatorFiles files_in(const std::filesystem::path& folder, const TestbedPlan& plan);
Words coordinator_command(const TestbedPlan& plan, const std::string& self, const std::string& server,
                          const CoordinatorFiles& files);

// ---- The run ----

/// Counters of the switches.
struct TestbedCounters {
  /// One mltcp.switch/1 per switch, with `name` and `number`.
  nlohmann::ordered_json switches = nlohmann::ordered_json::array();
  std::vector<std::string> missing;  ///< names of switches without counters
  std::vector<std::string> warnings;
  double stolen = 0;  ///< share of the time of all CPUs that the hypervisor withheld
};

/// Shows and stores the outcome of a testbed.
class TestbedObserver {
 public:
  virtual ~TestbedObserver() = default;
  /// Called when the switches are ready.
  virtual void begun() = 0;
  /// Called when all that was requested has run and the testbed stays up. `script` is the script that enters hosts.
  virtual void staying(const std::filesystem::path& script) = 0;
  virtual void counted(const TestbedCounters& counters) = 0;
  /// Called with the results, which include links and counters.
  virtual void write(const nlohmann::ordered_json& results) = 0;
  virtual void write(const experiment::SeriesFile& series, const std::filesystem::path& results) = 0;
  /// Called if the run failed and its results so far could not be written.
  virtual void lost(const std::string& why) = 0;
};

/// Runs the testbed. Must be called within a sandbox, whose folder is in `options`. Returns an exit status. Throws
/// RunError and Stopped like Testbed.
int run_testbed(const TestbedPlan& plan, const std::string& self, const TestbedOptions& options,
                TestbedObserver& observer);

}  // namespace mltcp::testbed
