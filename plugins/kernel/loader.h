// MLTCP for the kernel's own TCP: loads the congestion controls mltcp_reno, mltcp_cubic and mltcp_dctcp, BPF programs
// of struct_ops (bpf/), tells them what jobs there are, and says what they see. Needs Linux 6.1 with BTF and the rights
// of root. What is loaded stays when the process ends, pinned below /sys/fs/bpf/mltcp.
//
// All functions throw RunError for what the machine or the kernel refuses, and InputError for what was asked wrongly,
// each with cause and cure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/plugins/kernel/settings.h"

namespace mltcp::kernel {

/// "reno", "cubic", "dctcp": the kernel knows them as mltcp_reno, ...
const std::vector<std::string>& algorithm_names();

/// What a job is recognised by.
struct JobName {
  std::uint32_t kind = MLTCP_JOB_NONE;
  std::uint64_t id = 0;

  static JobName mark(std::uint32_t number) { return {MLTCP_JOB_MARK, number}; }
  /// A folder of cgroup v2, which stands for all below it, too.
  static JobName cgroup(const std::string& folder);
  /// One that may be gone, as `status` shows it.
  static JobName cgroup_with_number(std::uint64_t number);
};

struct LeftOut {
  std::string algorithm;
  std::string reason;
};

/// Loads the algorithms of `names` that are not loaded yet; empty: those that the kernel is able to have, and the
/// others are returned. Fails without a trace if one of `names` can't be loaded, or if none can. Settings of jobs that
/// have none of their own are the default ones with `change`, and all bits of marks number jobs where no mask is given.
/// Beside others that are loaded it shares their settings and jobs, and refuses to be given any.
std::vector<LeftOut> load(const std::vector<std::string>& names, const SettingsChange& change,
                          std::optional<std::uint32_t> mark_mask);

/// Changes what jobs without settings of their own go by.
void set_common(const SettingsChange& change);
/// Changes a job's own settings, which begin as a copy of the common ones.
void set_job(const JobName& job, const SettingsChange& change);
/// The job goes by the common settings again.
void forget_job(const JobName& job);

/// Takes algorithms out of the kernel; empty: all that are loaded. New connections can't choose them any more, those
/// that have one keep it till they end. Refuses if one is the default of new connections here. Returns how many still
/// have one.
std::uint64_t unload(const std::vector<std::string>& names);

struct AlgorithmStatus {
  std::string name;
  bool loaded = false;
  bool lost = false;  ///< registered, but nothing of it is pinned: unload takes it away
  std::uint64_t connections = 0;
};
struct JobStatus {
  std::string name;           ///< "mark 7", "/system.slice/train.service"
  mltcp_settings settings{};  ///< by which it goes
  bool own_settings = false;
  bool seen = false;  ///< it had connections; else what follows is 0
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
  std::string default_algorithm;  ///< of new connections in this network namespace
  std::uint32_t mark_mask = 0;
  mltcp_settings settings{};    ///< of jobs without their own
  std::vector<JobStatus> jobs;  ///< marks, then cgroups
};
/// Refuses to whom the kernel doesn't show all of that: root alone sees it while something is loaded.
Status status();

}  // namespace mltcp::kernel
