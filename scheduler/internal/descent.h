// Good shifts for more jobs and links than can be searched: each job in turn goes where it is best given the others,
// until none gets better or the work allowed is done (coordinate descent). The excess along one job's shift is
// piecewise linear on every link (circle.h), so that its best shift is found exactly, over all of its links at once.
//
// Unlike the search of solve(), links keep perimeters of their own, which are shorter than that of all jobs together.
#pragma once

#include <cstdint>
#include <vector>

#include "mltcp/scheduler/problem.h"

namespace mltcp::scheduler::internal {

/// Shifts for a problem without pinned jobs. `start` has a shift or -1 for each job, or is empty; those without are put
/// in one after the other, largest first, and then all are improved, beginning with these, until about so many meetings
/// of steps have been examined. All are placed in any case. `centred`: at last each is moved into the middle of the
/// shifts that are as good, for up to a quarter of that work more.
std::vector<Nanos> descend(const Problem& problem, const Slots& slots, const std::vector<Nanos>& start,
                           double max_meetings, bool centred = false);

}  // namespace mltcp::scheduler::internal
