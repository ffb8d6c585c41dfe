// Converts the transport's counters and claims to rows of a snapshot.
#pragma once

#include <vector>

#include "mltcp/endpoint/live/snapshot.h"
#include "mltcp/transport/job_claims.h"

namespace mltcp::live {

/// Adds one row for each claim to `shown`, in the order of `claims`.
void add_claims(const std::vector<JobClaim>& claims, Snapshot& shown);

/// Adds the counters of a shard to the counters of its port.
void add_packets(const ShardStats& stats, PortView& port);

}  // namespace mltcp::live
