// Joins the series of one run that several processes have recorded, each of its own connections and links: the hosts of
// an experiment, and the switches between them.
#pragma once

#include <vector>

#include "mltcp/lab/experiment/series/series.h"

namespace mltcp::experiment {

/// Adds the connections and links of `part` to `whole`, in the rows of `whole`, whose times are relative to the same
/// time 0. A row gets the state of the latest row of `part` up to its time. Its bounds cover the rows of `part` since
/// the previous row, or that state alone if there are none. Later rows of `part` count towards the last row, whose time
/// becomes theirs. Before the first row of `part`, its states are 0. `whole` must have a row.
void join(RunSeries& whole, const RunSeries& part);

/// All parts, in the rows of the part with the longest interval, which also provides the run's names. An empty series
/// if no part has rows.
RunSeries joined(const std::vector<RunSeries>& parts);

}  // namespace mltcp::experiment
