// Series of one run that several have recorded, each of its own connections and links, as one: those of hosts of an
// experiment, and of the switches between them.
#pragma once

#include <vector>

#include "mltcp/lab/experiment/series/series.h"

namespace mltcp::experiment {

/// Adds the connections and links of `part` to `whole`, in the rows of `whole`, whose times are relative to the same
/// time 0. A row is the state of the latest row of `part` by then, with the bounds of those since the row before, or of
/// that state alone where there are none; what comes behind the last row counts to that one. Before its first row
/// `part` has states of 0. `whole` has a row.
void join(RunSeries& whole, const RunSeries& part);

/// All parts in the rows of that which has the widest, which says what the run is called, too; none is no series.
RunSeries joined(const std::vector<RunSeries>& parts);

}  // namespace mltcp::experiment
