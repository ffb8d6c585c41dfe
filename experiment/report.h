// The HTML report of a result file: one page that shows who used the link when, under each policy.
//
// The page is a single file that loads nothing: style, script (ours and the chart library uPlot) and data are in
// it, and a Content-Security-Policy forbids the rest. Titles, captions and tables are plain HTML computed here, so
// that they read without JavaScript; the charts are drawn by experiment/report/report.js from the same data.
#pragma once

#include <string>

#include "mltcp/experiment/results.h"

namespace mltcp::experiment {

/// The page. All names are escaped, whatever they hold. Any results give a page, also none at all. The same results
/// give the same bytes.
std::string render_report(const Results& results);

}  // namespace mltcp::experiment
