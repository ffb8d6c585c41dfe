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
  std::string host_device;    ///< kind of device of the hosts' ports, e.g. "udp"
  std::string switch_device;  ///< kind of device of the switches' ports, e.g. "af_xdp"
  std::string idle;
  std::vector<unsigned> switch_cpus;  ///< CPU of each switch, in the order of layout.switches
  /// CPU of each host, in the order of layout.hosts; empty if there are too few CPUs.
  std::vector<unsigned> host_cpus;
  std::uint64_t seed = 1;
  std::optional<security::JobKey> key;  ///< key of the coordinator and the hosts
  security::Protection protection = security::Protection::encrypt;
  std::string experiment;                                          ///< path of the experiment's file; empty: none
  Words gen;                                                       ///< options of `mltcp gen`
  std::vector<std::pair<std::string, std::string>> switch_values;  ///< options of `mltcp switch`
  /// Value of option --pcap: FILE and further words (see capture_options.h); empty: no capture.
  std::optional<std::string> pcap;
  bool results = false;                        ///< whether the experiment's results are requested
  bool series = false;                         ///< whether the experiment's series are requested
  std::optional<std::string> series_interval;  ///< value of `mltcp gen --series-interval`
  Nanos counted_every{100'000'000};            ///< interval at which switches record their counters
  std::optional<std::string> command;          ///< shell command to run if there is no experiment; empty: none
  bool shell = false;                          ///< whether to run a shell for the user at the end
  bool keep = false;                           ///< whether the testbed stays up at the end, even without a shell
};

// ---- Commands ----

/// Returns the name of the capture file of process `who` of the testbed, e.g. "switch-0" or "host-3". plan.pcap must
/// not be empty.
std::string capture_file(const TestbedPlan& plan, const std::string& who);
/// Returns the IP address of a host's port. A port that is a kernel socket has the kernel's address. Any other port
/// must have a separate address.
std::string address_of_port(const TestbedPlan& plan, std::uint32_t host);
/// Returns the command of a switch. `self` is the path of this program. `json` is the file for the switch's counters.
Words switch_command(const TestbedPlan& plan, std::size_t number, const std::string& self,
                     const std::filesystem::path& json);
/// Returns the command of host layout.hosts[index]. `server` is the address of the coordinator.
Words host_command(const TestbedPlan& plan, std::size_t index, const std::string& self, const std::string& server);
/// Files that the coordinator writes. An empty name means that the file is not written.
struct CoordinatorFiles {
  std::string json;
  std::string series;
};
/// Returns the files in the sandbox's folder from which the testbed makes the complete output. If series are requested,
/// results are written as well, because only the results contain the times of the runs.
CoordinatorFiles files_in(const std::filesystem::path& folder, const TestbedPlan& plan);
Words coordinator_command(const TestbedPlan& plan, const std::string& self, const std::string& server,
                          const CoordinatorFiles& files);

// ---- The run ----

/// Counters of the switches.
struct TestbedCounters {
  /// One mltcp.switch/1 per switch, to which the keys `name` and `number` are added.
  nlohmann::ordered_json switches = nlohmann::ordered_json::array();
  std::vector<std::string> missing;  ///< names of switches without counters
  std::vector<std::string> warnings;
  double stolen = 0;  ///< share, 0 to 1, of the time of all CPUs that the hypervisor withheld
};

/// Shows and stores the outcome of a testbed.
class TestbedObserver {
 public:
  virtual ~TestbedObserver() = default;
  /// Called when the switches are ready.
  virtual void begun() = 0;
  /// Called when the experiment or command has run and the testbed stays up. `script` is the script with which a user
  /// enters hosts.
  virtual void staying(const std::filesystem::path& script) = 0;
  virtual void counted(const TestbedCounters& counters) = 0;
  /// Called with the complete results, which include links and counters of the switches.
  virtual void write(const nlohmann::ordered_json& results) = 0;
  virtual void write(const experiment::SeriesFile& series, const std::filesystem::path& results) = 0;
  /// Called if the run failed and its incomplete results could not be written, for the reason `why`.
  virtual void lost(const std::string& why) = 0;
};

/// Runs the testbed. Must be called within a sandbox, whose folder is in `options`. Returns an exit status. Throws
/// RunError and Stopped like Testbed.
int run_testbed(const TestbedPlan& plan, const std::string& self, const TestbedOptions& options,
                TestbedObserver& observer);

}  // namespace mltcp::testbed
