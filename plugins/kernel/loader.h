// MLTCP for the kernel's TCP: loads the congestion controls mltcp_reno, mltcp_cubic and mltcp_dctcp, which are BPF
// programs of struct_ops (bpf/), configures their jobs, and reads their state. Needs Linux 6.1 with BTF and root's
// rights. Loaded algorithms stay when the process ends, pinned below /sys/fs/bpf/mltcp.
//
// All functions throw RunError if the machine or the kernel refuses, and InputError for a wrong request, each with
// cause and cure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/plugins/kernel/settings.h"

namespace mltcp::kernel {

/// "reno", "cubic", "dctcp"; their names in the kernel are mltcp_reno, ...
const std::vector<std::string>& algorithm_names();

/// What identifies a job.
struct JobName {
  std::uint32_t kind = MLTCP_JOB_NONE;
  std::uint64_t id = 0;

  static JobName mark(std::uint32_t number) { return {MLTCP_JOB_MARK, number}; }
  /// A folder of cgroup v2, including all cgroups below it.
  static JobName cgroup(const std::string& folder);
  /// A cgroup that may be gone, as `status` shows it.
  static JobName cgroup_with_number(std::uint64_t number);
};

struct LeftOut {
  std::string algorithm;
  std::string reason;
};

/// Loads those of `names` that are not loaded yet; empty: all that the kernel can load, and the others are returned. If
/// one of `names` cannot be loaded, or none can, it changes nothing and throws. Jobs without settings of their own use
/// the defaults with `change`; without a mask, all bits of marks number jobs. If other algorithms are loaded, it shares
/// their settings and jobs, and refuses any `change`.
std::vector<LeftOut> load(const std::vector<std::string>& names, const SettingsChange& change,
                          std::optional<std::uint32_t> mark_mask);

/// Changes the settings of jobs that have none of their own.
void set_common(const SettingsChange& change);
/// Changes a job's own settings, which begin as a copy of the common ones.
void set_job(const JobName& job, const SettingsChange& change);
/// The job uses the common settings again.
void forget_job(const JobName& job);

/// Removes algorithms from the kernel; empty: all that are loaded. New connections can no longer choose them; existing
/// ones keep them until they end. Refuses if one is the default of new connections here. Returns the number of
/// connections that still use one.
std::uint64_t unload(const std::vector<std::string>& names);

struct AlgorithmStatus {
  std::string name;
  bool loaded = false;
  bool lost = false;  ///< registered, but nothing of it is pinned: unload() removes it
  std::uint64_t connections = 0;
};
struct JobStatus {
  std::string name;           ///< "mark 7", "/system.slice/train.service"
  mltcp_settings settings{};  ///< that apply to it
  bool own_settings = false;
  bool seen = false;  ///< it had connections; otherwise the members below are 0
  std::uint32_t connections = 0;
  std::uint32_t in_flight = 0;  ///< connections with data in flight: no iteration ends while there are any
  std::uint64_t iterations = 0;
  Bytes iteration_bytes = 0;  ///< 0: not known
  Bytes sent_bytes = 0;       ///< in this iteration
  Nanos gap;                  ///< usual silence between iterations; 0: not known
  double bytes_ratio = 0;
  double gain = 1;
};
struct Status {
  std::vector<AlgorithmStatus> algorithms;
  bool loaded = false;            ///< any of them
  std::string default_algorithm;  ///< for new connections in this network namespace
  std::uint32_t mark_mask = 0;
  mltcp_settings settings{};    ///< for jobs without their own
  std::vector<JobStatus> jobs;  ///< marks, then cgroups
};
/// Refuses if the kernel does not show all of this: while something is loaded, only root can read it.
Status status();

}  // namespace mltcp::kernel
