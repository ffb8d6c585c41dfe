// One run: jobs of an experiment on a fresh network, under one policy, until all have recorded their iterations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mltcp/experiment/experiment_file.h"
#include "mltcp/experiment/job_driver.h"
#include "mltcp/experiment/results.h"
#include "mltcp/experiment/running_job.h"
#include "mltcp/experiment/testbed.h"

namespace mltcp::experiment {

/// The network that `experiment` runs on: its bottleneck and one pair of hosts a job.
fabric::DumbbellConfig network_of(const Experiment& experiment);

/// How often RunPlan::between is called, unless something else is said.
inline constexpr Nanos kSlice{50'000'000};

struct RunPlan {
  std::string policy;
  std::vector<workload::Job> jobs;
  std::uint32_t iterations = 0;
  std::uint32_t first_number = 0;  ///< of `jobs`; the others count on
  /// The plan of each job, its times counted from the experiment's time 0; empty: no job has one.
  std::vector<std::optional<PhasePlan>> slots;
  Nanos usage_bin;  ///< of the links' meters at first; 0: as the testbed likes it
  /// Called before the jobs start and then every `slice`, while time stands still: in the order of `jobs`. Datapath
  /// hosts takes kSlice.
  std::function<void(std::span<RunningJob* const> running, Nanos epoch, Nanos now)> between;
  Nanos slice = kSlice;
  /// Called in the end, for what the links' meters say; those of links that nobody has used may be missing.
  std::function<void(std::span<const Testbed::LinkView> links, Nanos epoch)> finished;

  [[nodiscard]] std::uint32_t iterations_of(const workload::Job& job) const {
    return job.iterations > 0 ? job.iterations : iterations;
  }
};

/// What `policy` makes of the job's gain. Throws InputError for a policy that this version can't run.
cc::Augmentation augmentation_of(const std::string& policy, const Experiment& experiment, const workload::Job& job);

/// What each job of `plan` is driven with, one worker each. `real_time`, `real_payload`: as of the datapath.
std::vector<JobDriver::Settings> driver_settings(const Experiment& experiment, const RunPlan& plan, bool real_time,
                                                 bool real_payload);

/// For how long no job may end an iteration, before a run is given up. `settings` are those of all jobs.
Nanos patience_with(const Experiment& experiment, std::span<const JobDriver::Settings> settings);
/// What to say when it is.
std::string lost_patience(const RunPlan& plan, Nanos patience);

/// Drives the jobs over packets. `tick` is told the share of the iterations that are done. Without statistics. Throws
/// as run_experiment() does.
Run run_once(const Experiment& experiment, const RunPlan& plan, TestbedFactory& factory,
             const std::function<void(double)>& tick);

}  // namespace mltcp::experiment
