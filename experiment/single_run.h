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
#include "mltcp/experiment/testbed.h"

namespace mltcp::experiment {

/// The network that `experiment` runs on: its bottleneck and one pair of hosts a job.
fabric::DumbbellConfig network_of(const Experiment& experiment);

struct RunPlan {
  std::string policy;
  std::vector<workload::Job> jobs;
  std::uint32_t iterations = 0;
  std::uint32_t first_number = 0;  ///< of `jobs`; the others count on
  /// The plan of each job, its times counted from the experiment's time 0; empty: no job has one.
  std::vector<std::optional<PhasePlan>> slots;
  Nanos usage_bin;  ///< of the links' meters at first; 0: as the testbed likes it
  /// Called before the jobs start and then every 50 ms of the testbed's time, while it stands still.
  std::function<void(std::span<const std::unique_ptr<JobDriver>> drivers, Nanos epoch, Nanos now)> between;
  /// Called in the end, for what the links' meters say.
  std::function<void(const Testbed& testbed, Nanos epoch)> finished;

  [[nodiscard]] std::uint32_t iterations_of(const workload::Job& job) const {
    return job.iterations > 0 ? job.iterations : iterations;
  }
};

/// `tick` is told the share of the iterations that are done. Without statistics. Throws as run_experiment() does.
Run run_once(const Experiment& experiment, const RunPlan& plan, TestbedFactory& factory,
             const std::function<void(double)>& tick);

}  // namespace mltcp::experiment
