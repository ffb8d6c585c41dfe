// Reader of a single job as TOML from an untrusted source: a [[job]] of an experiment file
// (docs/reference/experiment-job.md), as `mltcp inspect --toml` prints it, or only its keys. Keys that name other files
// (a trace, a profile) or load code (a congestion control in a shared object) are refused.
#pragma once

#include <string>
#include <string_view>

#include "mltcp/lab/workload/job.h"

namespace mltcp::experiment {

/// Throws InputError "WHERE:LINE: KEY: cause; cure". The name may be missing; Job::rate is 0 if the text omits it.
workload::Job parse_job(std::string_view text, const std::string& where);

}  // namespace mltcp::experiment
