// Reader of experiment files: the TOML that says which jobs share which link under which policies. Every key, its
// unit, default and range: docs/experiment-file.md.
//
// Whatever can't be used is refused by an InputError in one line, "FILE:LINE: KEY: cause; cure". KEY is written with
// dots; a job's keys begin with job[N], the N-th of the file from 1 on. An unknown key is an error that names the
// nearest known one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
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

/// A value that is taken instead of the file's, whether it has one or not.
struct Override {
  std::string key;                 ///< its path in the file: "cc", "bottleneck.buffer", "job[2].start", "job[*].jitter"
  std::string value;               ///< as TOML, of one line: "\"75 kB\"", "2", "{ kmin = \"60 kB\" }"
  std::string origin;              ///< stands in messages for file and line: "sweep.toml:7", "--vary"
  std::filesystem::path folder{};  ///< to which a shared object that it names is relative; empty: the current one
};

/// What the caller can run, and what the command line sets in place of the file.
struct FileOptions {
  /// What this version has. A known value that isn't among these is refused with a line that lists them. Empty:
  /// everything the format knows.
  std::vector<std::string> datapaths{"sim"};
  std::vector<std::string> policies{"fair", "static", "priority", "mltcp", "schedule", "mltcp+schedule"};
  /// Most jobs of datapath ring, which needs ports for each. Empty: as many as the format knows.
  std::optional<std::size_t> most_ring_jobs;

  /// Refuses datapaths that take the machine's time.
  bool virtual_time_only = false;

  /// Applied in this order to what was read, before anything is looked at.
  std::vector<Override> overrides;
  /// Taken instead of the file's key; messages name the option (--datapath and so on) instead of file and line.
  std::optional<std::string> datapath;
  std::optional<std::string> cc;
  std::vector<std::string> policy;  ///< empty: the file's
  std::optional<std::uint32_t> iterations;
  std::optional<std::uint64_t> seed;
};

/// What the format knows, available in this version or not.
const std::vector<std::string>& known_datapaths();
const std::vector<std::string>& known_policies();

/// What is wrong with the name of an experiment or a job, as "cause; cure"; empty when it will do.
std::string objection_to_name(std::string_view name);

/// Reads an experiment file and the traces it names. Throws InputError.
Experiment load_experiment(const std::filesystem::path& path, const FileOptions& options = {});
/// The same from memory; `file` stands in messages, and traces are looked for in its folder.
Experiment parse_experiment(std::string_view text, const std::string& file, const FileOptions& options = {});

}  // namespace mltcp::experiment
