// Reader of a single job as TOML from an untrusted source. The text is either a [[job]] of an experiment file
// (docs/reference/experiment-job.md), as `mltcp inspect --toml` prints it, or only the keys of a job. The reader
// refuses keys that name other files (a trace, a profile) or that load code (congestion control in a shared object).
#pragma once

#include <string>
#include <string_view>

#include "mltcp/lab/workload/job.h"

namespace mltcp::experiment {

/// Parses a job. Throws InputError "WHERE:LINE: KEY: cause; cure". The name may be missing. Job::rate is 0 if the text
/// omits it.
workload::Job parse_job(std::string_view text, const std::string& where);

}  // namespace mltcp::experiment
