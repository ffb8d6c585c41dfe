// What one run of an experiment is: which jobs, under which policy, for how long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mltcp/cc/augmentation.h"
#include "mltcp/experiment/experiment_file.h"
#include "mltcp/workload/job.h"

namespace mltcp::experiment {

struct RunPlan {
  std::string policy;
  std::vector<workload::Job> jobs;
  std::uint32_t iterations = 0;
  std::uint32_t first_number = 0;  ///< of `jobs`; the others count on
  [[nodiscard]] std::uint32_t iterations_of(const workload::Job& job) const {
    return job.iterations > 0 ? job.iterations : iterations;
  }
};

/// What `policy` makes of the job's gain. Throws InputError for a policy that this version can't run.
cc::Augmentation augmentation_of(const std::string& policy, const Experiment& experiment, const workload::Job& job);

}  // namespace mltcp::experiment
