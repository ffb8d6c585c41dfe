// Creates job specifications at packet level, and decides when a run is given up.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/backends/run_plan.h"
#include "mltcp/lab/experiment/engine/job_spec.h"
#include "mltcp/lab/experiment/files/experiment.h"

namespace mltcp::experiment {

/// Returns the specification of each job of `plan`. `real_time` and `real_payload` describe the datapath. Fills in
/// workers only if the experiment has a topology.
std::vector<JobSpec> job_specs(const Experiment& experiment, const RunPlan& plan, bool real_time, bool real_payload);

/// Returns the patience of a run: the run is given up if no job finishes an iteration for this long. `specs` contains
/// all jobs of the run.
Nanos patience_with(const Experiment& experiment, std::span<const JobSpec> specs);
/// Returns the error message for a run that is given up after `patience` without a finished iteration.
std::string lost_patience(const RunPlan& plan, Nanos patience);

}  // namespace mltcp::experiment
