// What one run is to do: which jobs, under which policy, in which slots, and who is told what on the way.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/engine/job_network.h"
#include "mltcp/experiment/engine/running_job.h"
#include "mltcp/experiment/files/experiment.h"
#include "mltcp/fabric/dumbbell.h"
#include "mltcp/transport/phase_gate.h"
#include "mltcp/workload/job.h"

namespace mltcp::experiment {

/// How often RunPlan::between is called, unless something else is said.
inline constexpr Nanos kSlice{50'000'000};

struct RunPlan {
  std::string policy;  ///< see policy_named()
  std::vector<workload::Job> jobs;
  std::uint32_t iterations = 0;
  std::uint32_t first_number = 0;  ///< of `jobs`; the others count on
  /// The plan of each job, its times counted from the experiment's time 0; empty: no job has one.
  std::vector<std::optional<PhasePlan>> slots;
  Nanos usage_bin;  ///< of the links' meters at first; 0: as the network likes it
  /// Called before the jobs start and then every `slice`, while time stands still: in the order of `jobs`. Datapath
  /// hosts takes kSlice.
  std::function<void(std::span<RunningJob* const> running, Nanos epoch, Nanos now)> between;
  Nanos slice = kSlice;
  /// Called in the end, for what the links' meters say; those of links that nobody has used may be missing.
  std::function<void(std::span<const JobNetwork::LinkView> links, Nanos epoch)> finished;

  [[nodiscard]] std::uint32_t iterations_of(const workload::Job& job) const {
    return job.iterations > 0 ? job.iterations : iterations;
  }
};

/// The network that `experiment` runs on: its bottleneck and one pair of hosts a job.
fabric::DumbbellConfig network_of(const Experiment& experiment);

/// What an iteration of the job costs whoever runs it, for telling how far the work is: in virtual time the bytes that
/// it sends, in real time the nanoseconds that it takes when nothing is in its way. 1 or more.
double work_of(const workload::Job& job, const Experiment& experiment, bool real_time);

}  // namespace mltcp::experiment
