// The HTML report of a result file: one page that says whether a policy did better or worse than fair sharing, and
// shows who used the link when, under each policy.
//
// The page is a single file that loads nothing: style, script and data are in it, and a Content-Security-Policy forbids
// the rest. Titles, captions and tables are plain HTML computed here, so that they read without JavaScript; the charts
// are drawn by experiment/report/charts.js from numbers that are cut down here to what a page can show
// (internal/report_charts.h), and its reader can save each as SVG, PNG or CSV.
#pragma once

#include <string>

#include "mltcp/experiment/results/results.h"

namespace mltcp::experiment {

/// The page. All names are escaped, whatever they hold. Any results give a page, also none at all. The same results
/// give the same bytes.
std::string render_report(const Results& results);

}  // namespace mltcp::experiment
