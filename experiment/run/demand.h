// What a job asks of a link, ideally: each transfer where it stands in the iteration, queued behind the one before it
// if they overlap; nothing but the link takes time.
#pragma once

#include <cstddef>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/scheduler/demand.h"
#include "mltcp/workload/job.h"

namespace mltcp::experiment {

/// Bursts of an iteration; with more, those are joined that this changes least, and a warning says so.
inline constexpr std::size_t kMostBursts = 100;

/// Joins neighbours until there are kMostBursts at most; returns whether there were more.
bool limit_bursts(std::vector<scheduler::Burst>& bursts);

/// The transfers of an iteration as a demand of at most kMostBursts bursts: where there are more, neighbours are joined
/// into one of their mean rate. `joined`, if given, is set to whether that was so.
scheduler::Demand demand_of(const workload::Job& job, Rate link, bool* joined = nullptr);

/// What a job asks of a link with one of its workers, if an iteration takes `period`.
scheduler::Demand demand_of(const workload::Job& job, Nanos period);

}  // namespace mltcp::experiment
