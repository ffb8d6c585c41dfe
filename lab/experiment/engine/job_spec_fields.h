// The fields of a job's specification that are sent to hosts (see base/fields.h).
#pragma once

#include "mltcp/base/fields.h"
#include "mltcp/lab/experiment/engine/job_spec.h"
#include "mltcp/lab/workload/job_fields.h"
#include "mltcp/transport/types_fields.h"

namespace mltcp::experiment {

constexpr auto fields_of(const JobSpec* /*type*/) {
  return list_of<JobSpec>(field("job", &JobSpec::job), field("number", &JobSpec::number),
                          left_out(&JobSpec::workers),  // hosts run ranks, whose addresses are sent separately
                          field("iterations", &JobSpec::iterations, workload::WholeKey{1, workload::kMaxIterations}),
                          field("stop_when_done", &JobSpec::stop_when_done), field("seed", &JobSpec::seed),
                          left_out(&JobSpec::augmentation),  // each host derives it from the policy
                          field("connection", &JobSpec::connection),
                          left_out(&JobSpec::real_payload),  // `real_payload` is always true between hosts
                          field("learn_iterations", &JobSpec::learn_iterations),
                          left_out(&JobSpec::pacing_quantum),  // each host sets its own value
                          // Each host sets `unpredictable`.
                          field("catch_up", &JobSpec::catch_up), left_out(&JobSpec::unpredictable));
}

}  // namespace mltcp::experiment
