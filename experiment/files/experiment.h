// An experiment as a value: which jobs share which network under which policies, and with what settings. Nothing here
// knows of files; experiment_file.h reads one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/aggressiveness.h"
#include "mltcp/cc/parameters.h"
#include "mltcp/fabric/link.h"
#include "mltcp/sim/loop_model.h"
#include "mltcp/sim/switched_network.h"
#include "mltcp/transport/phase_gate.h"
#include "mltcp/workload/job.h"

namespace mltcp::experiment {

/// How policy mltcp goes about it.
struct MltcpSettings {
  cc::Aggressiveness function;
  bool scale_decrease = false;    ///< see cc::Augmentation
  bool learn_iterations = false;  ///< the transport learns them from the traffic; the jobs don't tell
};

/// How the policies with a schedule go about it.
struct ScheduleSettings {
  double tolerance = 0.05;  ///< see PhasePlan, like the next three
  PhasePlan::Correction correction = PhasePlan::Correction::at_once;
  double gradual_step = 0.1;
  Nanos clock_bound;
  double max_stretch = 0.02;    ///< of slots so that they repeat together, see scheduler::SolveOptions
  bool replan = true;           ///< when a job's iterations have become longer than its slots
  std::optional<double> slack;  ///< room to catch up, as a share of the slot; empty: from the jobs' jitter
};

struct Experiment {
  std::string name;
  std::string file;  ///< as it was given; relative paths in it are relative to its folder
  std::string datapath = "sim";
  std::uint32_t iterations = 50;  ///< of each job, 1 to 1000000
  std::uint64_t seed = 1;
  std::string cc = "reno";                             ///< the name of a registered algorithm (cc/registry.h)
  std::vector<std::string> policies{"fair", "mltcp"};  ///< in the order of the file, each once, at least one
  MltcpSettings mltcp;
  ScheduleSettings schedule;
  cc::Parameters parameters;  ///< of the algorithms; those of `cc` are in range
  /// The seed in it is the experiment's. With a topology: the fastest link of a host, for what is alike in both.
  fabric::LinkConfig bottleneck;
  sim::MachineModel machines;                          ///< of hosts and switch, for datapath sim; off by default
  std::uint32_t mtu = 1500;                            ///< IP packet size on the bottleneck, 576 to 9000
  std::optional<sim::SwitchedNetworkConfig> topology;  ///< instead of the dumbbell; its seed is the experiment's
  /// At least one, each sends something; names differ. Job::rate is 0 where the file leaves it out, unless a host of
  /// the job is slower than others. All iterations of a job fit into kLongestRun even if it has the network to itself.
  std::vector<workload::Job> jobs;
  /// By job: "FILE:LINE: job[N]", which stands in messages; empty for an experiment that comes from no file.
  std::vector<std::string> places;
  /// The same for experiments that run alike, but for the seed: of everything in the file (and its traces, and what the
  /// command line set) except name and seed. 32 hexadecimal digits.
  std::string fingerprint;
  /// What was read with a grain of salt (of traces), each one line that begins with file and line.
  std::vector<std::string> warnings;
};

/// Of the time that all iterations of a job need at least: 2^53 ns, 104 days.
inline constexpr Nanos kLongestRun(std::int64_t{1} << 53);

}  // namespace mltcp::experiment
