// One testbed from its making to its results: what its processes are told, what they found, and what is kept when they
// fail or their user has had enough.
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

/// All that is known before anything is made.
struct TestbedPlan {
  TestbedLayout layout;
  std::uint32_t mtu = 1500;
  std::string host_device;    ///< kind of port
  std::string switch_device;  ///< the same
  std::string idle;
  std::vector<unsigned> switch_cpus;  ///< by switch
  std::vector<unsigned> host_cpus;    ///< by host in the layout; empty: there are not enough for one each
  std::uint64_t seed = 1;
  std::optional<security::JobKey> key;  ///< of coordinator and hosts
  security::Protection protection = security::Protection::encrypt;
  std::string experiment;                                          ///< its file; empty: none
  Words gen;                                                       ///< options of `mltcp gen`
  std::vector<std::pair<std::string, std::string>> switch_values;  ///< options of `mltcp switch`
  std::optional<std::string> pcap;                                 ///< FILE and words, see capture_options.h
  bool results = false;                                            ///< of the experiment are wanted
  bool series = false;                                             ///< likewise
  std::optional<std::string> series_interval;                      ///< as `mltcp gen` takes it
  Nanos counted_every{100'000'000};                                ///< how often switches note their counters
  std::optional<std::string> command;                              ///< to be run without an experiment
  bool shell = false;                                              ///< of the user's, in the end
  bool keep = false;                                               ///< or it stays up
};

// ---- What is run ----

/// The file in which one of a testbed's processes, "switch-0" or "host-3", captures. The plan has `pcap`.
std::string capture_file(const TestbedPlan& plan, const std::string& who);
/// A kernel socket has the kernel's; any other port must have one of its own.
std::string address_of_port(const TestbedPlan& plan, std::uint32_t host);
/// `self` is the program, `json` the file of the switch's counters.
Words switch_command(const TestbedPlan& plan, std::size_t number, const std::string& self,
                     const std::filesystem::path& json);
/// `index` is in the layout, `server` the address of the coordinator.
Words host_command(const TestbedPlan& plan, std::size_t index, const std::string& self, const std::string& server);
/// Files that the coordinator writes; a name that is empty is none.
struct CoordinatorFiles {
  std::string json;
  std::string series;
};
/// In the sandbox's folder: what the testbed adds to comes first. Series take the results' times of runs.
CoordinatorFiles files_in(const std::filesystem::path& folder, const TestbedPlan& plan);
Words coordinator_command(const TestbedPlan& plan, const std::string& self, const std::string& server,
                          const CoordinatorFiles& files);

// ---- The run ----

/// What the switches counted.
struct TestbedCounters {
  nlohmann::ordered_json switches = nlohmann::ordered_json::array();  ///< mltcp.switch/1, with `name` and `number`
  std::vector<std::string> missing;                                   ///< names of switches that left none
  std::vector<std::string> warnings;
  double stolen = 0;  ///< share of all CPUs' time that the hypervisor gave to others
};

/// Shows and keeps what a testbed comes to.
class TestbedObserver {
 public:
  virtual ~TestbedObserver() = default;
  /// The switches are ready.
  virtual void begun() = 0;
  /// What was to be run has been, and it stays; hosts are entered by `script`.
  virtual void staying(const std::filesystem::path& script) = 0;
  virtual void counted(const TestbedCounters& counters) = 0;
  /// The results, with links and counters.
  virtual void write(const nlohmann::ordered_json& results) = 0;
  virtual void write(const experiment::SeriesFile& series, const std::filesystem::path& results) = 0;
  /// It failed, and what had been found until then could not be kept.
  virtual void lost(const std::string& why) = 0;
};

/// Within the sandbox, whose folder is in `options`. Returns an exit status. Throws like Testbed.
int run_testbed(const TestbedPlan& plan, const std::string& self, const TestbedOptions& options,
                TestbedObserver& observer);

}  // namespace mltcp::testbed
