// Finds good shifts for more jobs and links than the search can handle, by coordinate descent: each job in turn moves
// to its best shift, given all other jobs, until no job improves or the work limit is reached. The excess as a function
// of one job's shift is piecewise linear on every link (circle.h), so its best shift is found exactly, over all of its
// links at once.
//
// Each link has the perimeter of its own jobs. The search of solve() uses the perimeter of all jobs for every link,
// which is longer.
#pragma once

#include <cstdint>
#include <vector>

#include "mltcp/scheduler/problem.h"

namespace mltcp::scheduler::internal {

/// Returns shifts for a problem without pinned jobs. `start` is empty, or contains the initial shift of each job and -1
/// for jobs without one. Jobs without an initial shift are inserted one by one, largest first. Then jobs move, the
/// inserted jobs first, until no move improves the score or about `max_meetings` meetings of steps have been examined.
/// All jobs are placed even beyond this limit. If `centred` is true, each job finally moves to the middle of its
/// equally good shifts, with up to a quarter more work.
std::vector<Nanos> descend(const Problem& problem, const Slots& slots, const std::vector<Nanos>& start,
                           double max_meetings, bool centred = false);

}  // namespace mltcp::scheduler::internal
