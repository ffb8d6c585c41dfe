// An experiment as a value: jobs, network, policies and settings. Does not depend on files; experiment_file.h reads
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/aggressiveness.h"
#include "mltcp/cc/parameters.h"
#include "mltcp/lab/fabric/link.h"
#include "mltcp/lab/fabric/network_config.h"
#include "mltcp/lab/workload/job.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp::experiment {

/// Settings of policy mltcp.
struct MltcpSettings {
  cc::Aggressiveness function;
  bool scale_decrease = false;  ///< see cc::Augmentation::scale_decrease
  /// Whether the transport detects iterations from the traffic; jobs then do not report them.
  bool learn_iterations = false;
};

/// Settings of the policies that assign slots.
struct ScheduleSettings {
  double tolerance = 0.05;  ///< this field and those up to clock_bound: see PhasePlan
  PhasePlan::Correction correction = PhasePlan::Correction::at_once;
  double gradual_step = 0.1;
  Nanos clock_bound;
  double max_stretch = 0.02;  ///< maximum stretch of slots for a common period, see scheduler::SolveOptions
  bool replan = true;  ///< whether to compute new slots when a job's iterations have become longer than its slots
  /// Spare time in a slot for late iterations, as a fraction of the slot; empty to derive it from the jobs' jitter.
  std::optional<double> slack;
};

struct Experiment {
  std::string name;
  std::string file;  ///< path as the user gave it; relative paths in the file start from its folder
  std::string datapath = "sim";
  std::uint32_t iterations = 50;  ///< number of iterations per job, 1 to 1000000
  std::uint64_t seed = 1;
  std::string cc = "reno";      ///< name of a registered algorithm (cc/registry.h)
  std::string balance = "one";  ///< name of a balancer (transport/balancers.h)
  std::uint32_t paths = 0;      ///< ConnectionConfig::paths
  /// Names of policies in the file's order; at least one, no duplicates.
  std::vector<std::string> policies{"fair", "mltcp"};
  MltcpSettings mltcp;
  ScheduleSettings schedule;
  cc::Parameters parameters;  ///< parameters of all algorithms; validated only for the algorithm `cc`
  /// The shared link; its seed is the experiment's seed. If there is a topology: rate of the fastest host, delay of the
  /// link of host 0, and the topology's buffer and ECN settings.
  fabric::LinkConfig bottleneck;
  fabric::MachineModel machines;  ///< models of hosts and switch for datapath sim; disabled by default
  std::uint32_t mtu = 1500;       ///< maximum IP packet size on the bottleneck in bytes, 576 to 9000
  /// Replaces the dumbbell if set; its seed is the experiment's seed.
  std::optional<fabric::SwitchedNetworkConfig> topology;
  /// At least one job. Each job sends data and has a unique name. Job::rate is 0 if the file omits it, unless a host of
  /// the job is slower than other hosts. Without competing jobs, all iterations of a job take at most kLongestRun.
  std::vector<workload::Job> jobs;
  /// Position of each job as "FILE:LINE: job[N]", for messages. Empty if the experiment is not from a file.
  std::vector<std::string> places;
  /// A hash of the experiment, 32 hexadecimal digits. Covers the file without its name and seed, the traces that the
  /// file names, and the settings on the command line. Experiments that differ only in name or seed have equal hashes.
  std::string fingerprint;
  /// Warnings about traces, one line each, which begins with file and line.
  std::vector<std::string> warnings;
};

/// Limit for the minimum duration of all iterations of a job: 2^53 ns, about 104 days.
inline constexpr Nanos kLongestRun(std::int64_t{1} << 53);

}  // namespace mltcp::experiment
