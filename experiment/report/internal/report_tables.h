// The tables of the page of results. Each is HTML that reads without a script. Not installed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "mltcp/experiment/report/internal/report_view.h"

namespace mltcp::experiment {

/// A job's name with its colour, where colours tell jobs apart.
std::string job_cell(const View& view, const std::string& name);
/// A row a job and policy.
std::string iterations_table(const View& view);
/// A row a policy.
std::string transport_table(const View& view);
std::string jobs_table(const View& view);
/// For each policy the jobs that it slowed down most, five at most.
std::string worst_table(const View& view);
/// A row a rank, of all jobs that have some; empty where none has.
std::string ranks_table(const View& view);
/// The links used most, and what charts.js needs to show any; empty where the results have no links.
std::string links_table(const View& view);
nlohmann::json links_data(const View& view);

}  // namespace mltcp::experiment
