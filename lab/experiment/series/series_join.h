// Joins the series of one run that several processes have recorded: the hosts of an experiment, and the switches
// between them. Each process has recorded its own connections and links.
#pragma once

#include <vector>

#include "mltcp/lab/experiment/series/series.h"

namespace mltcp::experiment {

/// Adds the connections and links of `part` to `whole`, in the rows of `whole`. Times of both must be relative to the
/// same time 0. A row of `whole` gets the state of the latest row of `part` that is not later. Before the first row of
/// `part`, this state is 0. The bounds of a row cover the rows of `part` since the previous row, or only this state if
/// there are none. Rows of `part` after the last row of `whole` count towards the last row, which gets their latest
/// time. `whole` must have a row.
void join(RunSeries& whole, const RunSeries& part);

/// Returns all parts joined, in the rows of the part with the longest interval. This part also provides the names of
/// the run. Returns an empty series if no part has rows.
RunSeries joined(const std::vector<RunSeries>& parts);

}  // namespace mltcp::experiment
