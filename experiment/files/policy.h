// The policies: what each makes of a job's congestion control, and what it asks of a datapath. One entry of the table
// is all that there is to a policy; files, commands, hosts and help take it from there.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/cc/augmentation.h"
#include "mltcp/experiment/results/results.h"
#include "mltcp/workload/job.h"

namespace mltcp::experiment {

struct MltcpSettings;

struct Policy {
  std::string_view name;     ///< as files and results have it
  std::string_view summary;  ///< for help, in a line
  /// Of the increase step of a job's flows, as MLTCP is set up; jobs that are unaware get none.
  cc::Augmentation (*augmentation)(const MltcpSettings& mltcp, const workload::Job& job) = nullptr;
  /// Jobs share links by MLTCP's function where they meet: what is planned for them reckons with it.
  bool interleaves = false;
  /// Up phases begin in slots, which follow from what each job does alone: iterations have to be told, not learned.
  bool slots = false;
  /// Packets of a job with a higher priority go first: queues have a class for each.
  bool priorities = false;
};

/// All of them, the baseline first.
std::span<const Policy> policies();
/// Null if there is none of that name.
const Policy* find_policy(std::string_view name);
/// Throws InputError, which names the nearest one, if there is none.
const Policy& policy_named(std::string_view name);
/// In the order of policies().
const std::vector<std::string>& policy_names();

/// Of a job under `policy`; none for a job that is unaware.
cc::Augmentation augmentation_of(const Policy& policy, const MltcpSettings& mltcp, const workload::Job& job);

}  // namespace mltcp::experiment
