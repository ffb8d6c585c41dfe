// The HTML report of a result file: compares each policy with fair sharing, and shows the use of the link over time
// under each policy.
//
// The page is a single file that loads nothing: style, script and data are embedded, and a Content-Security-Policy
// forbids loading anything else. Titles, captions and tables are plain HTML, readable without JavaScript.
// page/charts.js draws the charts, which can be saved as SVG, PNG or CSV, from data reduced to what a page can show
// (internal/report_charts.h).
#pragma once

#include <string>

#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/series/series_file.h"

namespace mltcp::experiment {

/// Renders the page, also for empty results. All names are escaped. Equal results give identical bytes. `series` may be
/// null. The page shows only series that belong to a run of `results` (see belongs()).
std::string render_report(const Results& results, const SeriesFile* series = nullptr);

}  // namespace mltcp::experiment
