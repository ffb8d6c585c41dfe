// Runs an experiment: each job alone to know what isolated means, then all jobs together under each policy.
#pragma once

#include <functional>
#include <string>

#include "mltcp/experiment/experiment_file.h"
#include "mltcp/experiment/results.h"
#include "mltcp/experiment/testbed.h"

namespace mltcp::experiment {

/// The policies that this version can run.
const std::vector<std::string>& available_policies();

/// The network that `experiment` runs on: its bottleneck and one pair of hosts a job.
fabric::DumbbellConfig network_of(const Experiment& experiment);

/// Told how far the work is: `fraction` from 0 to 1, and what is being done ("policy mltcp").
using Progress = std::function<void(double fraction, const std::string& what)>;

/// Does all runs of `experiment`. Throws InputError if an algorithm can't run there, RunError if a job can't go on
/// or makes no progress. Runs in virtual time give the same results from the same experiment, bit for bit.
Results run_experiment(const Experiment& experiment, TestbedFactory& factory, const Progress& progress = {});

}  // namespace mltcp::experiment
