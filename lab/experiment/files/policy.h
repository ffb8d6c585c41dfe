// The table of policies: how each policy configures a job's congestion control, and what it needs from a datapath.
// Files, commands, hosts and help texts use only this table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/cc/augmentation.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/workload/job.h"

namespace mltcp::experiment {

struct MltcpSettings;

struct Policy {
  std::string_view name;     ///< name in files and results
  std::string_view summary;  ///< description for help texts, one line
  /// Returns the augmentation of a job's congestion control for these settings of MLTCP. Not called for unaware jobs.
  cc::Augmentation (*augmentation)(const MltcpSettings& mltcp, const workload::Job& job) = nullptr;
  /// Whether jobs use MLTCP's aggressiveness function when they compete. A schedule for such jobs must take the
  /// function into account.
  bool interleaves = false;
  /// Whether communication phases begin in slots derived from the run of each job in isolation. Jobs must report their
  /// iterations; learned iterations are not sufficient.
  bool slots = false;
  /// Whether bursts wait for other bursts and overtake them (cc/turns.h). The datapath must model packets.
  bool turns = false;
  /// Whether packets of jobs with higher priority are sent first. Queues must support priority classes.
  bool priorities = false;
};

/// What a datapath without packets lacks for Policy::turns, for messages.
inline constexpr std::string_view kWhatTurnsNeed = "packets whose delays show a queue";

/// Returns all policies; the baseline comes first.
std::span<const Policy> policies();
/// Returns the policy named `name`; null if there is no such policy.
const Policy* find_policy(std::string_view name);
/// Returns the policy named `name`. If there is no such policy, throws InputError that suggests the most similar name.
const Policy& policy_named(std::string_view name);
/// Returns the names of all policies, in the order of policies().
const std::vector<std::string>& policy_names();

/// Returns the augmentation of a job under `policy`, which has no effect if the job is unaware.
cc::Augmentation augmentation_of(const Policy& policy, const MltcpSettings& mltcp, const workload::Job& job);

}  // namespace mltcp::experiment
