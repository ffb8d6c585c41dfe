// The table of a sweep: one row for each point and policy, over all seeds and jobs.
//
// The slow-down of a job is its iteration time divided by its isolated iteration time. The value of a seed is the mean
// over the jobs of the run with this seed. Unaware jobs are left out, unless all jobs are unaware. The table shows the
// mean over the seeds, with a 95% confidence interval of Student's t if there are several seeds. The gain of a policy
// is its speed-up over policy fair at the same point and with the same seed. For each job, it is the iteration time
// under fair divided by the iteration time under the policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mltcp/lab/experiment/results/estimate.h"
#include "mltcp/lab/experiment/results/table.h"
#include "mltcp/lab/experiment/sweep/sweep_run.h"

namespace mltcp::experiment {

struct SweepRow {
  std::string policy;
  std::size_t jobs = 0;
  std::size_t seeds = 0;  ///< number of seeds with a result
  Estimate slowdown;      ///< slow-down of the mean iteration time
  Estimate second_half;   ///< slow-down of the mean iteration time in the second half of the iterations
  double second_half_worst_seed = 0;
  double second_half_worst_job = 0;  ///< maximum over jobs and seeds
  Estimate p99;                      ///< slow-down of the 99th percentile of iteration times
  Estimate second_half_p99;          ///< slow-down of the 99th percentile in the second half of the iterations
  std::size_t interleaved = 0;       ///< number of seeds in which all jobs interleave
  /// Median and maximum of the iteration from which on all jobs interleave, over the seeds in which all jobs
  /// interleave. With an even number of these seeds, the median is the mean of the two middle values.
  std::optional<double> interleaved_median;
  std::optional<std::uint64_t> interleaved_worst;
  std::optional<Estimate> gain;              ///< gain in mean iteration time; empty if policy fair did not run
  std::optional<Estimate> gain_p99;          ///< gain in the 99th percentile
  std::optional<Estimate> second_half_gain;  ///< gain in the mean of the second half of the iterations
  std::optional<Estimate> second_half_gain_p99;
  // The next four numbers are means over the seeds.
  double utilization = 0;
  double dropped_packets = 0;
  double marked_packets = 0;
  double retransmitted_packets = 0;
  Bytes max_queue_bytes = 0;  ///< maximum over the seeds
  bool same = false;          ///< true if there are several seeds, and all gave the same times
};

/// Returns the rows of a point, one for each policy. `seeds` contains the results of the point, one for each seed.
std::vector<SweepRow> rows_of(std::span<const Results> seeds);

struct SweepTable {
  struct Point {
    std::vector<SweepRow> rows;
    std::vector<std::pair<std::uint64_t, std::string>> failures;  ///< seed and reason of each failed run
    std::size_t missing = 0;                                      ///< number of seeds whose run has no record
  };
  std::vector<Point> points;     ///< in the order of the sweep's points
  std::size_t missing = 0;       ///< number of missing runs; a run shared by points counts once
  std::size_t other_builds = 0;  ///< number of records whose build is not the `build` given to tabulate()
};

/// Reads the records in `folder`. Reads one point at a time to save memory.
SweepTable tabulate(const Sweep& sweep, const std::filesystem::path& folder, const std::string& build);

/// Returns the table as rows of cells, with the header first. Omits factors, policies and columns that are constant or
/// empty.
Cells cells_of(const Sweep& sweep, const SweepTable& table);
/// Returns all numbers of all rows as CSV (RFC 4180).
std::string to_csv(const Sweep& sweep, const SweepTable& table);
/// Returns the file "mltcp.sweep/1" (see docs/reference/sweep-file.md).
std::string to_json(const Sweep& sweep, const SweepTable& table, const std::optional<Provenance>& provenance = {});

}  // namespace mltcp::experiment
