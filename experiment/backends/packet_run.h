// One run: jobs of an experiment on a fresh network, under one policy, until all have recorded their iterations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mltcp/experiment/backends/datapath.h"
#include "mltcp/experiment/backends/run_plan.h"
#include "mltcp/experiment/engine/job_driver.h"
#include "mltcp/experiment/engine/running_job.h"
#include "mltcp/experiment/files/experiment.h"
#include "mltcp/experiment/results/results.h"

namespace mltcp::experiment {

/// What each job of `plan` is driven with, one worker each. `real_time`, `real_payload`: as of the datapath.
std::vector<JobDriver::Settings> driver_settings(const Experiment& experiment, const RunPlan& plan, bool real_time,
                                                 bool real_payload);

/// For how long no job may end an iteration, before a run is given up. `settings` are those of all jobs.
Nanos patience_with(const Experiment& experiment, std::span<const JobDriver::Settings> settings);
/// What to say when it is.
std::string lost_patience(const RunPlan& plan, Nanos patience);

/// Drives the jobs over packets. `tick` is told the share of the iterations that are done. Without statistics. Throws
/// as run_experiment() does.
Run run_once(const Experiment& experiment, const RunPlan& plan, PacketDatapath& factory,
             const std::function<void(double)>& tick);

}  // namespace mltcp::experiment
