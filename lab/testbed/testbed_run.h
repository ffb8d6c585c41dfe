// Runs one testbed: the commands of its processes, their results, and what is kept if they fail or the user stops them.
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
  std::vector<unsigned> switch_cpus;  ///< by switch
  std::vector<unsigned> host_cpus;    ///< by host in the layout; empty: too few for one each
  std::uint64_t seed = 1;
  std::optional<security::JobKey> key;  ///< of coordinator and hosts
  security::Protection protection = security::Protection::encrypt;
  std::string experiment;                                          ///< path of its file; empty: none
  Words gen;                                                       ///< options of `mltcp gen`
  std::vector<std::pair<std::string, std::string>> switch_values;  ///< options of `mltcp switch`
  std::optional<std::string> pcap;                                 ///< FILE and words, see capture_options.h
  bool results = false;                                            ///< the experiment's results are requested
  bool series = false;                                             ///< the experiment's series are requested
  std::optional<std::string> series_interval;                      ///< as `mltcp gen` takes it
  Nanos counted_every{100'000'000};                                ///< interval of the switches' series of counters
  std::optional<std::string> command;                              ///< run if there is no experiment
  bool shell = false;                                              ///< run a shell for the user at the end
  bool keep = false;                                               ///< or stay up
};

// ---- Commands ----

/// The capture file of one of a testbed's processes, "switch-0" or "host-3". The plan must have `pcap`.
std::string capture_file(const TestbedPlan& plan, const std::string& who);
/// The address of a host's port: the kernel's for a kernel socket; any other port must have one of its own.
std::string address_of_port(const TestbedPlan& plan, std::uint32_t host);
/// `self` is the path of this program, `json` the file for the switch's counters.
Words switch_command(const TestbedPlan& plan, std::size_t number, const std::string& self,
                     const std::filesystem::path& json);
/// `index` is the host's in the layout, `server` the address of the coordinator.
Words host_command(const TestbedPlan& plan, std::size_t index, const std::string& self, const std::string& server);
/// Files that the coordinator writes; empty: none.
struct CoordinatorFiles {
  std::string json;
  std::string series;
};
/// Files in the sandbox's folder for output to which the testbed adds. Series require results, for the times of runs.
CoordinatorFiles files_in(const std::filesystem::path& folder, const TestbedPlan& plan);
Words coordinator_command(const TestbedPlan& plan, const std::string& self, const std::string& server,
                          const CoordinatorFiles& files);

// ---- The run ----

/// Counters of the switches.
struct TestbedCounters {
  nlohmann::ordered_json switches = nlohmann::ordered_json::array();  ///< mltcp.switch/1, with `name` and `number`
  std::vector<std::string> missing;                                   ///< names of switches without counters
  std::vector<std::string> warnings;
  double stolen = 0;  ///< share of all CPUs' time that the hypervisor withheld
};

/// Shows and stores the outcome of a testbed.
class TestbedObserver {
 public:
  virtual ~TestbedObserver() = default;
  /// The switches are ready.
  virtual void begun() = 0;
  /// All that was requested has run, and the testbed stays up. `script` enters hosts.
  virtual void staying(const std::filesystem::path& script) = 0;
  virtual void counted(const TestbedCounters& counters) = 0;
  /// The results, with links and counters.
  virtual void write(const nlohmann::ordered_json& results) = 0;
  virtual void write(const experiment::SeriesFile& series, const std::filesystem::path& results) = 0;
  /// The run failed, and its results so far could not be kept.
  virtual void lost(const std::string& why) = 0;
};

/// Runs the testbed. Call it within a sandbox, whose folder is in `options`. Returns an exit status. Throws like
/// Testbed.
int run_testbed(const TestbedPlan& plan, const std::string& self, const TestbedOptions& options,
                TestbedObserver& observer);

}  // namespace mltcp::testbed
