// Finds good shifts for more jobs and links than the search can handle, by coordinate descent: each job in turn moves
// to its best shift given the others, until none improves or the work limit is reached. The excess as a function of one
// job's shift is piecewise linear on every link (circle.h), so its best shift is found exactly, over all of its links
// at once.
//
// Unlike the search of solve(), links keep perimeters of their own, which are shorter than that of all jobs together.
#pragma once

#include <cstdint>
#include <vector>

#include "mltcp/scheduler/problem.h"

namespace mltcp::scheduler::internal {

/// Shifts for a problem without pinned jobs. `start` has a shift or -1 for each job, or is empty. Jobs without a shift
/// are inserted one by one, largest first. Then all are improved, beginning with these, until about `max_meetings`
/// meetings of steps have been examined. All jobs are placed in any case. `centred`: at the end, each job is moved to
/// the middle of its equally good shifts, with up to a quarter more work.
std::vector<Nanos> descend(const Problem& problem, const Slots& slots, const std::vector<Nanos>& start,
                           double max_meetings, bool centred = false);

}  // namespace mltcp::scheduler::internal
