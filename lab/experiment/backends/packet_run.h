// Settings of an experiment's jobs at packet level, and when a run is given up.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/backends/run_plan.h"
#include "mltcp/lab/experiment/engine/job_spec.h"
#include "mltcp/lab/experiment/files/experiment.h"

namespace mltcp::experiment {

/// The specification of each job of `plan`. `real_time` and `real_payload` are those of the datapath. Workers are
/// filled in only for a topology.
std::vector<JobSpec> job_specs(const Experiment& experiment, const RunPlan& plan, bool real_time, bool real_payload);

/// If no job ends an iteration for this long, the run is given up. `specs` are those of all jobs.
Nanos patience_with(const Experiment& experiment, std::span<const JobSpec> specs);
/// The error message for this case.
std::string lost_patience(const RunPlan& plan, Nanos patience);

}  // namespace mltcp::experiment
