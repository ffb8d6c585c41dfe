// The run of one testbed (see testbed_run.h).
#include "mltcp/lab/testbed/testbed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <fstream>

#include "mltcp/base/error.h"
#include "mltcp/cc/registry.h"
#include "mltcp/lab/testbed/cpu_time.h"
#include "mltcp/lab/testbed/links.h"
#include "mltcp/lab/testbed/network.h"
#include "mltcp/lab/testbed/sandbox.h"
#include "mltcp/transport/capture/capture_options.h"

namespace mltcp::testbed {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void add_capture(Words& words, const TestbedPlan& plan, const std::string& who) {
  if (!plan.pcap) return;
  words.emplace_back("--pcap");
  words.push_back(capture_file(plan, who) + plan.pcap->substr(std::min(plan.pcap->find(','), plan.pcap->size())));
}

/// Makes a program read its key from descriptor kSecretFile (sandbox.h). The key can be read only once.
void add_key(Words& words, const TestbedPlan& plan) {
  if (!plan.key) return;
  words.emplace_back("--key");
  words.push_back(fmt::format("fd:{}", kSecretFile));
}

Json read_json(const fs::path& file) {
  std::ifstream in(file);
  return Json::parse(in, nullptr, false);
}

class TestbedRun {
 public:
  TestbedRun(const TestbedPlan& plan, const std::string& self, const TestbedOptions& options, TestbedObserver& observer)
      : plan_(plan), self_(self), folder_(options.folder), observer_(observer), testbed_(plan.layout, options) {}

  int run() {
    std::vector<Words> switches;
    for (std::size_t i = 0; i < plan_.layout.switches.size(); ++i)
      switches.push_back(switch_command(plan_, i, self_, counters_of(i)));
    testbed_.start_switches(switches);
    observer_.begun();
    int status = 0;
    int shell_status = 0;
    bool staying = false;
    try {
      if (!plan_.experiment.empty())
        status = run_experiment();
      else if (plan_.command)
        testbed_.run_command(*plan_.command);
      staying = status == 0 && (plan_.shell || plan_.keep);
      if (staying) {
        observer_.staying(testbed_.script());
        shell_status = testbed_.stay(plan_.shell);
      }
    } catch (const Stopped&) {
      if (!staying) {
        rescue();
        throw;
      }
    } catch (const RunError&) {
      rescue();
      throw;
    }
    testbed_.end_all();
    if (status != 2) finish(status == 0);  // status 2 means wrong usage, so there are no results
    return status != 0 ? status : shell_status;
  }

 private:
  [[nodiscard]] fs::path counters_of(std::size_t number) const {
    return folder_ / fmt::format("switch-{}.json", number);
  }

  int run_experiment() {
    const std::string server = "unix:" + (folder_ / "gen").string();
    std::vector<Words> hosts;
    for (std::size_t i = 0; i < plan_.layout.hosts.size(); ++i) hosts.push_back(host_command(plan_, i, self_, server));
    return testbed_.run_jobs(coordinator_command(plan_, self_, server, files_in(folder_, plan_)), hosts);
  }

  /// Returns whether there are results to write. If `needed` is true, the coordinator has succeeded, so it must have
  /// written results. If `needed` is false, checks whether results exist.
  [[nodiscard]] bool has_results(bool needed) const {
    return (plan_.results || plan_.series) && !plan_.experiment.empty() &&
           (needed || read_json(folder_ / "results.json").is_object());
  }

  void finish(bool needed) {
    count();
    if (has_results(needed)) write_results();
  }

  /// Called after a failure or a stop. Writes the results of the policies that had completed by then.
  void rescue() {
    try {
      testbed_.end_all();
      if (has_results(false)) finish(false);
    } catch (const std::exception& error) {
      observer_.lost(error.what());
    }
  }

  void count() {
    for (std::size_t i = 0; i < plan_.layout.switches.size(); ++i) {
      Json counted = read_json(counters_of(i));
      const auto& made = plan_.layout.switches[i];
      if (!counted.is_object() || !counted.contains("ports") || counted["ports"].size() != made.ports.size()) {
        counters_.missing.push_back(made.name);
        continue;
      }
      for (const Json& warning : counted.value("warnings", Json::array())) counters_.warnings.push_back(warning);
      counted["name"] = made.name;
      counted["number"] = i;
      counters_.switches.push_back(std::move(counted));
    }
    counters_.stolen = CpuTime::now().stolen_since(begun_cpu_);
    observer_.counted(counters_);
  }

  void write_results() {
    Json results = read_json(folder_ / "results.json");
    if (!results.is_object()) throw RunError("mltcp gen wrote no results");
    results["testbed"] = {{"device", plan_.host_device},  {"mtu", plan_.mtu},
                          {"idle", plan_.idle},           {"hosts", plan_.layout.hosts},
                          {"host_cpus", plan_.host_cpus}, {"switch_cpus", plan_.switch_cpus},
                          {"stolen", counters_.stolen}};
    std::exception_ptr wrong;  // thrown again below, after all valid results have been written
    if (plan_.results) wrong = write_json(results);
    if (plan_.series && fs::exists(folder_ / "series.json")) write_series(results);
    if (wrong) std::rethrow_exception(wrong);
  }

  /// Writes the results. If the counters of a switch are invalid, returns this error, and some runs in the written
  /// results lack links. If not, returns null.
  std::exception_ptr write_json(Json results) {
    std::exception_ptr wrong;
    try {
      for (Json& run : results["runs"]) add_links(run, plan_.layout, counters_.switches);
    } catch (const RunError&) {
      wrong = std::current_exception();
    }
    Json& switches = results["switches"] = counters_.switches;
    for (Json& one : switches)
      for (const char* key : {"series", "number", "provenance"})
        one.erase(key);  // not needed: the results contain a provenance for all programs
    observer_.write(results);
    return wrong;
  }

  /// Adds the links of the switches to the series that the coordinator wrote, and writes the complete series.
  void write_series(const Json& results) {
    experiment::SeriesFile series = experiment::read_series(folder_ / "series.json");
    const Json& runs = results.at("runs");
    for (std::size_t i = 0; i < std::min(series.runs.size(), runs.size()); ++i)
      add_links(series.runs[i], runs[i], plan_.layout, counters_.switches);
    observer_.write(series, folder_ / "results.json");
  }

  const TestbedPlan& plan_;
  const std::string& self_;
  const fs::path folder_;
  TestbedObserver& observer_;
  TestbedCounters counters_;
  CpuTime begun_cpu_ = CpuTime::now();
  Testbed testbed_;
};

}  // namespace

std::string capture_file(const TestbedPlan& plan, const std::string& who) {
  return capture::with_suffix(capture::parse_capture("--pcap", *plan.pcap), who).file;
}

Words switch_command(const TestbedPlan& plan, std::size_t number, const std::string& self, const fs::path& json) {
  Words words{self, "switch"};
  for (const auto& port : plan.layout.switches[number].ports) {
    words.emplace_back("--port");
    words.push_back(switch_words(port, plan.switch_device));
  }
  for (const auto& [name, value] : plan.switch_values) {
    words.push_back("--" + name);
    words.push_back(value);
  }
  const Words rest{"--seed",  std::to_string(plan.seed),
                   "--idle",  plan.idle,
                   "--cores", std::to_string(plan.switch_cpus[number]),
                   "--json",  json.string(),
                   "--every", fmt::format("{}ns", plan.counted_every.count)};
  words.insert(words.end(), rest.begin(), rest.end());
  add_capture(words, plan, fmt::format("switch-{}", number));
  return words;
}

std::string address_of_port(const TestbedPlan& plan, std::uint32_t host) {
  return plan.host_device == "udp" ? TestbedNetwork::kernel_address(host) : TestbedNetwork::port_address(host);
}

Words host_command(const TestbedPlan& plan, std::size_t index, const std::string& self, const std::string& server) {
  const std::uint32_t host = plan.layout.hosts[index];
  Words words{self,     "gen",
              "--join", server,
              "--port", plan.host_device + ":eth0",
              "--ip",   fmt::format("{}/{}", address_of_port(plan, host), TestbedNetwork::kPrefix),
              "--host", std::to_string(host),
              "--mtu",  std::to_string(plan.mtu),
              "--idle", plan.idle};
  if (!plan.host_cpus.empty()) {
    words.emplace_back("--cores");
    words.push_back(std::to_string(plan.host_cpus[index]));
  }
  add_key(words, plan);
  if (plan.protection == security::Protection::authenticate) words.emplace_back("--authenticate");
  add_capture(words, plan, fmt::format("host-{}", host));
  // Hosts must load the same congestion-control libraries as this process has loaded for the experiment.
  for (const cc::AlgorithmTable* algorithm : cc::algorithms()) {
    const std::string library = cc::library_file(*algorithm).string();
    if (library.empty()) continue;
    words.emplace_back("--load");
    words.push_back(fmt::format("{}:{}", library, algorithm->name));
  }
  return words;
}

CoordinatorFiles files_in(const fs::path& folder, const TestbedPlan& plan) {
  return {plan.results || plan.series ? (folder / "results.json").string() : "",
          plan.series ? (folder / "series.json").string() : ""};
}

Words coordinator_command(const TestbedPlan& plan, const std::string& self, const std::string& server,
                          const CoordinatorFiles& files) {
  Words words{self, "gen", plan.experiment, "--serve", server};
  const auto add = [&](const char* option, const std::string& value) {
    words.emplace_back(option);
    words.push_back(value);
  };
  if (!files.json.empty()) add("--json", files.json);
  if (!files.series.empty()) add("--series", files.series);
  if (plan.series_interval) add("--series-interval", *plan.series_interval);
  add_key(words, plan);
  words.insert(words.end(), plan.gen.begin(), plan.gen.end());
  return words;
}

int run_testbed(const TestbedPlan& plan, const std::string& self, const TestbedOptions& options,
                TestbedObserver& observer) {
  return TestbedRun(plan, self, options, observer).run();
}

}  // namespace mltcp::testbed
