// Tables of the results page, as HTML that is readable without scripts. Not installed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "mltcp/lab/experiment/report/internal/report_view.h"

namespace mltcp::experiment {

/// A job's name, with its colour if jobs are distinguished by colour.
std::string job_cell(const View& view, const std::string& name);
/// One row per job and policy.
std::string iterations_table(const View& view);
/// One row per policy.
std::string transport_table(const View& view);
std::string jobs_table(const View& view);
/// For each policy the jobs with the largest slow-downs, five at most.
std::string worst_table(const View& view);
/// One row per rank, of all jobs that have ranks; empty if there are none.
std::string ranks_table(const View& view);
/// The most heavily used links, and the data with which charts.js shows any link; empty if the results have no links.
std::string links_table(const View& view);
nlohmann::json links_data(const View& view);

}  // namespace mltcp::experiment
