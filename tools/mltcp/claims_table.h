// Tables of what jobs claim about their iterations (transport/job_claims.h).
#pragma once

#include <string>
#include <vector>

#include "mltcp/transport/job_claims.h"

namespace mltcp::tools {

/// Returns a table with a line for each of the first jobs of `claims`. If there are more jobs, the last line gives
/// their number.
std::string claims_table(const std::vector<JobClaim>& claims);

/// Returns warnings about jobs that claim more progress than their traffic shows.
std::vector<std::string> warnings_of(const std::vector<JobClaim>& claims);

}  // namespace mltcp::tools
