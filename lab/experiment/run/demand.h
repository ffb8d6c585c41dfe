// A job's ideal demand on a link: each transfer at its place in the iteration, queued behind the previous one if they
// overlap; nothing but the link takes time.
#pragma once

#include <cstddef>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/job.h"
#include "mltcp/scheduler/demand.h"

namespace mltcp::experiment {

/// Maximum number of bursts per iteration. If there are more, those whose merging changes the demand least are merged,
/// with a warning.
inline constexpr std::size_t kMaxBursts = 100;

/// Merges adjacent bursts until there are at most `most`; returns whether there were more.
bool limit_bursts(std::vector<scheduler::Burst>& bursts, std::size_t most = kMaxBursts);

/// The transfers of an iteration as a demand of at most kMaxBursts bursts; further ones are merged with neighbours at
/// their mean rate. `joined`, if given, is set to whether that happened.
scheduler::Demand demand_of(const workload::Job& job, Rate link, bool* joined = nullptr);

/// The demand of one of the job's workers on a link, if an iteration takes `period`.
scheduler::Demand demand_of(const workload::Job& job, Nanos period);

}  // namespace mltcp::experiment
