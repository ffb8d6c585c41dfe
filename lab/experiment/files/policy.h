// The policies: how each configures a job's congestion control, and what it needs from a datapath. Files, commands,
// hosts and help use only the entries of this table.
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
  std::string_view name;     ///< as in files and results
  std::string_view summary;  ///< one line, for help texts
  /// The augmentation of a job's congestion control, given the settings of MLTCP. Not applied to unaware jobs.
  cc::Augmentation (*augmentation)(const MltcpSettings& mltcp, const workload::Job& job) = nullptr;
  /// Jobs compete with MLTCP's aggressiveness function, which their schedule must take into account.
  bool interleaves = false;
  /// Communication phases begin in slots derived from each job's isolated run; iterations must be reported by the job,
  /// not learned.
  bool slots = false;
  /// Packets of jobs with higher priority go first: queues need priority classes.
  bool priorities = false;
};

/// All policies, the baseline first.
std::span<const Policy> policies();
/// Null if no policy has that name.
const Policy* find_policy(std::string_view name);
/// If no policy has that name, throws InputError that names the nearest one.
const Policy& policy_named(std::string_view name);
/// In the order of policies().
const std::vector<std::string>& policy_names();

/// The augmentation of a job under `policy`; none for an unaware job.
cc::Augmentation augmentation_of(const Policy& policy, const MltcpSettings& mltcp, const workload::Job& job);

}  // namespace mltcp::experiment
