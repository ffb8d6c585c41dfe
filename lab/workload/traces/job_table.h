// Tables of jobs that ran on a cluster, as published by operators. They state when each job was submitted, on how many
// GPUs it ran, and for how long. They do not describe the computation or communication of a job.
//
//   Helios   cluster_log.csv, one line per job: submit_time, start_time, end_time, gpu_num, state, vc and more (Hu et
//            al., "Characterization and prediction of deep learning workloads in large-scale GPU datacenters", SC 2021)
//   Philly   cluster_job_log, a JSON array: submitted_time, status, vc and attempts. Each attempt has start_time,
//            end_time and the GPUs of its servers (Jeon et al., "Analysis of large-scale multi-tenant GPU clusters for
//            DNN training workloads", ATC 2019)
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

/// Selects the jobs to read. All other jobs are left out.
struct JobTableOptions {
  std::optional<Nanos> from;        ///< earliest time of submission, since 1970; empty: no limit
  std::optional<Nanos> to;          ///< the time of submission must be before this time; empty: no limit
  std::vector<std::string> vcs;     ///< virtual clusters to read; all if empty
  std::vector<std::string> states;  ///< states to read, spelled as in the table; all if empty
};

struct JobTable {
  struct Row {
    Nanos submitted;         ///< time of submission, since 1970
    Nanos ran;               ///< running time, above 0; Philly: sum over all attempts
    std::uint32_t gpus = 0;  ///< number of GPUs, at least 1; Philly: those of the longest attempt
  };
  std::vector<Row> jobs;  ///< sorted by time of submission; jobs with equal times are in the order of the table
  std::vector<std::string> warnings;  ///< one line each, e.g. how many jobs were left out, and why
};

/// Converts "2020-06-01 12:00:00" or "2020-06-01" to the time since 1970. Returns an empty value for any other text,
/// and for years before 2000 or after 2099.
std::optional<Nanos> time_of_table(std::string_view text);

/// Returns whether `text` begins like a Helios or a Philly table.
bool is_job_table(std::string_view text);

/// Parses a table. `file` is used in messages. Throws InputError "FILE:LINE: cause; cure" if the text is not a table of
/// jobs, or "FILE: cause; cure" if no job is selected. For a Philly table the message states the byte instead of the
/// line.
JobTable parse_job_table(std::string_view text, const std::string& file, const JobTableOptions& options);

}  // namespace mltcp::workload
