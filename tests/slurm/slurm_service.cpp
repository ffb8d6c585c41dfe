// The scheduler's service with Slurm and nothing else: what `mltcp scheduler TOPOLOGY --state DIR --slurm ...` is
// without its HTTP, for tests of the two together.
//
//   slurm_service TOPOLOGY.toml STATE SLOTS-PER-HOST INTERVAL HEARTBEAT
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/experiment/files/topology_file.h"
#include "mltcp/service/scheduler_service.h"
#include "mltcp/service/slurm_client.h"
#include "mltcp/service/slurm_driver.h"

int main(int argc, char** argv) try {
  using namespace mltcp;
  if (argc != 6) return 2;
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const experiment::TopologyFile topology = experiment::load_topology(argv[1]);
  const auto log = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  service::ServiceOptions options;
  options.state = argv[2];
  options.slots_per_host = static_cast<std::uint32_t>(std::stoul(argv[3]));
  options.host_names = topology.host_names;
  options.log = log;
  options.epoch_unix_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  service::SchedulerService scheduler(*topology.topology, options);
  service::SlurmPrograms programs({});
  service::SlurmDriverOptions driving;
  driving.interval = parse_duration(argv[4]);
  driving.heartbeat = argv[5];
  driving.log = log;
  service::SlurmDriver driver(scheduler, programs, driving);
  driver.start();
  int signal = 0;
  sigwait(&ends, &signal);
  driver.stop();
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "slurm_service: {}\n", error.what());
  return 1;
}
