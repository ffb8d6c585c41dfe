// Converts the transport's counters and claims to rows of a snapshot.
#pragma once

#include <vector>

#include "mltcp/endpoint/live/snapshot.h"
#include "mltcp/transport/job_claims.h"

namespace mltcp::live {

/// In the order in which they are shown.
void add_claims(const std::vector<JobClaim>& claims, Snapshot& shown);

/// Adds a shard's counters to its port's.
void add_packets(const ShardStats& stats, PortView& port);

}  // namespace mltcp::live
