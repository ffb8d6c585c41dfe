// MLTCP for the kernel's TCP. Loads the congestion controls mltcp_reno, mltcp_cubic and mltcp_dctcp, which are BPF
// programs of struct_ops (bpf/), configures their jobs, and reads their state. Needs Linux 6.1 with BTF, and root's
// rights. Loaded algorithms stay in the kernel when the process ends; they are pinned below /sys/fs/bpf/mltcp.
//
// All functions throw RunError if the machine or the kernel refuses the request, and InputError if the request is
// wrong. Each message contains cause and cure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/plugins/kernel/settings.h"

namespace mltcp::kernel {

/// Returns the names of the algorithms: "reno", "cubic", "dctcp". In the kernel their names are mltcp_reno and so on.
const std::vector<std::string>& algorithm_names();

/// Identifies a job.
struct JobName {
  std::uint32_t kind = MLTCP_JOB_NONE;
  std::uint64_t id = 0;

  static JobName mark(std::uint32_t number) { return {MLTCP_JOB_MARK, number}; }
  /// Names the job of a cgroup v2 by the cgroup's folder. The job includes all cgroups below it.
  static JobName cgroup(const std::string& folder);
  /// Names the job of a cgroup by the number that `status` shows. The cgroup may be gone.
  static JobName cgroup_with_number(std::uint64_t number);
};

struct LeftOut {
  std::string algorithm;
  std::string reason;
};

/// Loads those of `names` that are not loaded yet. If `names` is empty, loads all algorithms that the kernel can load,
/// and returns those that it cannot load. If one of `names` cannot be loaded, or no algorithm can be loaded, changes
/// nothing and throws. `change` applies to the defaults, which jobs without settings of their own use. Without
/// `mark_mask`, all bits of a mark form the number of a job. If some algorithms are loaded already, the new algorithms
/// share the settings and jobs of the loaded ones. In this case `change` must be empty and `mark_mask` absent.
std::vector<LeftOut> load(const std::vector<std::string>& names, const SettingsChange& change,
                          std::optional<std::uint32_t> mark_mask);

/// Changes the settings of jobs that have none of their own.
void set_common(const SettingsChange& change);
/// Changes the settings of one job. They begin as a copy of the common settings.
void set_job(const JobName& job, const SettingsChange& change);
/// Removes the settings of one job, which then uses the common settings again.
void forget_job(const JobName& job);

/// Removes algorithms from the kernel; if `names` is empty, all that are loaded. New connections can no longer choose
/// these algorithms. Existing connections continue to use them. Throws RunError if one of the algorithms is the default
/// for new connections in this network namespace. Returns the number of connections that still use a removed algorithm.
std::uint64_t unload(const std::vector<std::string>& names);

struct AlgorithmStatus {
  std::string name;
  bool loaded = false;
  bool lost = false;  ///< true if the algorithm is registered, but none of its parts is pinned; unload() removes it
  std::uint64_t connections = 0;
};
struct JobStatus {
  std::string name;           ///< for example "mark 7" or "/system.slice/train.service"
  mltcp_settings settings{};  ///< settings that apply to the job
  bool own_settings = false;
  bool seen = false;  ///< true if the job had connections; if false, the members below are 0
  std::uint32_t connections = 0;
  std::uint32_t in_flight = 0;  ///< connections with data in flight; no iteration ends while there are any
  std::uint64_t iterations = 0;
  Bytes iteration_bytes = 0;  ///< 0 if not known
  Bytes sent_bytes = 0;       ///< bytes sent in this iteration
  Nanos gap;                  ///< usual silence between iterations; 0 if not known
  double bytes_ratio = 0;
  double gain = 1;
};
struct Status {
  std::vector<AlgorithmStatus> algorithms;
  bool loaded = false;            ///< whether any algorithm is loaded
  std::string default_algorithm;  ///< default for new connections in this network namespace
  std::uint32_t mark_mask = 0;
  mltcp_settings settings{};    ///< settings of jobs that have none of their own
  std::vector<JobStatus> jobs;  ///< jobs named by marks first, then those named by cgroups
};
/// Returns the state of all algorithms and jobs. Throws RunError if an algorithm is loaded but the process may not read
/// its state, which needs root's rights.
Status status();

}  // namespace mltcp::kernel
