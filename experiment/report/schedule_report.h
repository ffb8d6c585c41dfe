// The HTML page of a schedule: the circles of each link's jobs before and after rotation, their demand over the
// perimeter, and a cluster's links coloured by score.
//
// The page is a single file that loads nothing, as that of report.h. Sentences and tables are plain HTML and read
// without JavaScript; experiment/report/schedule.js draws the link that is chosen, and no other, so that a page of a
// thousand links opens at once.
#pragma once

#include <string>

#include "mltcp/experiment/fit/compatibility.h"

namespace mltcp::experiment {

/// The page. All names are escaped, whatever they hold. The same schedule gives the same bytes.
std::string render_schedule(const ScheduleResult& schedule);

}  // namespace mltcp::experiment
