// Tables of the results page, as HTML that is readable without scripts. This header is not installed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "mltcp/lab/experiment/report/internal/report_view.h"

namespace mltcp::experiment {

/// Returns a table cell with the job's name, and with its colour if jobs are distinguished by colour.
std::string job_cell(const View& view, const std::string& name);
/// Returns the table of iteration times, with one row per job and policy.
std::string iterations_table(const View& view);
/// Returns the table of the link and the transport, with one row per policy.
std::string transport_table(const View& view);
std::string jobs_table(const View& view);
/// Returns a table of the jobs with the largest slow-downs, at most five per policy.
std::string worst_table(const View& view);
/// Returns a table with one row per rank, for all jobs that have ranks; empty if there are none.
std::string ranks_table(const View& view);
/// links_table() returns a table of the most heavily used links; empty if the results have no links. links_data()
/// returns the data with which charts.js shows any link.
std::string links_table(const View& view);
nlohmann::json links_data(const View& view);

}  // namespace mltcp::experiment
