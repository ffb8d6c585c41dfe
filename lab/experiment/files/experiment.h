// An experiment as a value: jobs, network, policies and settings. Independent of files; see experiment_file.h.
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
  bool scale_decrease = false;    ///< see cc::Augmentation
  bool learn_iterations = false;  ///< the transport learns iterations from the traffic; jobs do not report them
};

/// Settings of the policies with a schedule.
struct ScheduleSettings {
  double tolerance = 0.05;  ///< this and the members up to gradual_step: see PhasePlan
  PhasePlan::Correction correction = PhasePlan::Correction::at_once;
  double gradual_step = 0.1;
  Nanos clock_bound;
  double max_stretch = 0.02;    ///< maximum stretch of slots to a common perimeter, see scheduler::SolveOptions
  bool replan = true;           ///< recompute the slots when a job's iterations have become longer than its slots
  std::optional<double> slack;  ///< room to catch up, as a share of the slot; empty: derived from the jobs' jitter
};

struct Experiment {
  std::string name;
  std::string file;  ///< path as given; relative paths in the file are relative to its folder
  std::string datapath = "sim";
  std::uint32_t iterations = 50;  ///< per job, 1 to 1000000
  std::uint64_t seed = 1;
  std::string cc = "reno";                             ///< the name of a registered algorithm (cc/registry.h)
  std::vector<std::string> policies{"fair", "mltcp"};  ///< in the file's order, without duplicates, at least one
  MltcpSettings mltcp;
  ScheduleSettings schedule;
  cc::Parameters parameters;  ///< of all algorithms; those of `cc` are validated
  /// Its seed is the experiment's. With a topology, it holds the rate of the fastest host, the delay of host 0's link,
  /// and the topology's buffer and ECN settings.
  fabric::LinkConfig bottleneck;
  fabric::MachineModel machines;                          ///< for datapath sim; off by default
  std::uint32_t mtu = 1500;                               ///< IP packet size on the bottleneck, 576 to 9000
  std::optional<fabric::SwitchedNetworkConfig> topology;  ///< in place of the dumbbell; its seed is the experiment's
  /// At least one; each sends something; names are unique. Job::rate is 0 if the file omits it, unless a host of the
  /// job is slower than others. All iterations of a job fit into kLongestRun when it runs alone.
  std::vector<workload::Job> jobs;
  /// By job: "FILE:LINE: job[N]" for messages; empty if the experiment is not from a file.
  std::vector<std::string> places;
  /// A hash of everything in the file except name and seed, of its traces and of the command line's settings, so that
  /// it is equal for experiments that differ only in name or seed. 32 hexadecimal digits.
  std::string fingerprint;
  /// Warnings about traces, each one line that begins with file and line.
  std::vector<std::string> warnings;
};

/// Upper limit of the minimum time that all iterations of a job need: 2^53 ns, 104 days.
inline constexpr Nanos kLongestRun(std::int64_t{1} << 53);

}  // namespace mltcp::experiment
