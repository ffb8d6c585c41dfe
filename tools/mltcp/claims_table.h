// What jobs claim of their iterations (transport/job_claims.h), as a table for people.
#pragma once

#include <string>
#include <vector>

#include "mltcp/transport/job_claims.h"

namespace mltcp::tools {

/// The first jobs of `claims`, a line each, and how many more there are.
std::string claims_table(const std::vector<JobClaim>& claims);

/// Warnings about jobs that claim more progress than their traffic shows.
std::vector<std::string> warnings_of(const std::vector<JobClaim>& claims);

}  // namespace mltcp::tools
