// A job's ideal demand on a link. A transfer begins at its time in the iteration, or later if the previous transfer is
// not yet complete. It takes only the time that the link's rate requires.
#pragma once

#include <cstddef>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/job.h"
#include "mltcp/scheduler/demand.h"

namespace mltcp::experiment {

/// Maximum number of bursts per iteration. If an iteration has more, bursts are merged where merging changes the demand
/// least, and a warning is given.
inline constexpr std::size_t kMaxBursts = 100;

/// Merges adjacent bursts until there are at most `max`. Returns whether bursts were merged.
bool limit_bursts(std::vector<scheduler::Burst>& bursts, std::size_t max = kMaxBursts);

/// Returns the transfers of an iteration as a demand. If there are more than kMaxBursts bursts, some are merged with
/// neighbours at their mean rate. `joined` may be null; otherwise it is set to whether bursts were merged.
scheduler::Demand demand_of(const workload::Job& job, Rate link, bool* joined = nullptr);

/// Returns the demand of one of the job's workers on a link, for iterations of length `period`.
scheduler::Demand demand_of(const workload::Job& job, Nanos period);

}  // namespace mltcp::experiment
