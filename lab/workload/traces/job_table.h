// Tables of jobs that ran on a cluster, as published by operators: when each job was submitted, on how many GPUs it
// ran, and for how long. They do not have a job's computation or communication.
//
//   Helios   cluster_log.csv, a job a line: submit_time, start_time, end_time, gpu_num, state, vc and more (Hu et al.,
//            "Characterization and prediction of deep learning workloads in large-scale GPU datacenters", SC 2021)
//   Philly   cluster_job_log, a JSON array: submitted_time, status, vc and attempts, each with start_time, end_time and
//            the GPUs of its servers (Jeon et al., "Analysis of large-scale multi-tenant GPU clusters for DNN training
//            workloads", ATC 2019)
//
// Times have no time zone and are not converted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::workload {

/// Which jobs to read; all others are left out.
struct JobTableOptions {
  std::optional<Nanos> from;        ///< submitted at this time, since 1970, or later
  std::optional<Nanos> to;          ///< submitted before this time
  std::vector<std::string> vcs;     ///< virtual clusters; empty: all
  std::vector<std::string> states;  ///< as in the table; empty: all, since failed jobs occupied GPUs, too
};

struct JobTable {
  struct Row {
    Nanos submitted;         ///< since 1970
    Nanos ran;               ///< above 0; Philly: all attempts together
    std::uint32_t gpus = 0;  ///< 1 or more; Philly: those of the longest attempt
  };
  std::vector<Row> jobs;              ///< by time of submission; equal times in the order of the table
  std::vector<std::string> warnings;  ///< how many jobs were left out, and why
};

/// "2020-06-01 12:00:00" or "2020-06-01", since 1970; empty for anything else and for years before 2000 or after 2099.
std::optional<Nanos> time_of_table(std::string_view text);

/// Whether the text begins like one of these tables.
bool is_job_table(std::string_view text);

/// Throws InputError "FILE:LINE: cause; cure", or with the byte, if the text is no such table, or if no job is left.
JobTable parse_job_table(std::string_view text, const std::string& file, const JobTableOptions& options);

}  // namespace mltcp::workload
