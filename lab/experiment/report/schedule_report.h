// The HTML page of a schedule. It shows the circles of each link's jobs before and after rotation, the jobs' demand
// over the length of these circles, and a cluster's links coloured by score.
//
// The page is a single file that loads nothing, as in report.h. Texts and tables are plain HTML, readable without
// JavaScript. page/schedule.js draws only the selected link, so that a page with a thousand links opens quickly.
#pragma once

#include <string>

#include "mltcp/lab/experiment/fit/compatibility.h"

namespace mltcp::experiment {

/// Renders the page. All names are escaped. Equal schedules give identical bytes.
std::string render_schedule(const ScheduleResult& schedule);

}  // namespace mltcp::experiment
