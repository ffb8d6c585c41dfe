// Jobs of an experiment over packets: what each is driven with, and how long is too long.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/backends/run_plan.h"
#include "mltcp/experiment/engine/job_spec.h"
#include "mltcp/experiment/files/experiment.h"

namespace mltcp::experiment {

/// What each job of `plan` is driven with. `real_time`, `real_payload`: as of the datapath. Of its workers only the
/// topology's, if there is one, are known here.
std::vector<JobSpec> job_specs(const Experiment& experiment, const RunPlan& plan, bool real_time, bool real_payload);

/// For how long no job may end an iteration, before a run is given up. `specs` are those of all jobs.
Nanos patience_with(const Experiment& experiment, std::span<const JobSpec> specs);
/// What to say when it is.
std::string lost_patience(const RunPlan& plan, Nanos patience);

}  // namespace mltcp::experiment
