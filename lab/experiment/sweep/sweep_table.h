// The table of a sweep: one row for each point and policy, over all seeds and jobs.
//
// A job's slow-down is its iteration time divided by that in isolation. A seed's value is the mean over its jobs,
// without unaware ones if there are others. The table shows the mean over the seeds, with a 95% confidence interval of
// Student's t if there are several. A gain is the speed-up over policy fair of the same point and seed: fair's time
// divided by this policy's, job by job.
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
  Estimate slowdown;      ///< of the mean over all iterations
  Estimate second_half;   ///< of the mean over the second half of the iterations
  double second_half_worst_seed = 0;
  double second_half_worst_job = 0;  ///< maximum over jobs and seeds
  Estimate p99;                      ///< of the 99th percentile of all iterations
  Estimate second_half_p99;          ///< of the 99th percentile of the second half
  std::size_t interleaved = 0;       ///< number of seeds in which all jobs interleave
  /// Over these seeds: from which iteration on all jobs are interleaved; median (of an even number of seeds, the mean
  /// of the two middle values) and maximum.
  std::optional<double> interleaved_median;
  std::optional<std::uint64_t> interleaved_worst;
  std::optional<Estimate> gain;              ///< in mean iteration time; empty without policy fair
  std::optional<Estimate> gain_p99;          ///< in the 99th percentile
  std::optional<Estimate> second_half_gain;  ///< in the mean of the second half of the iterations
  std::optional<Estimate> second_half_gain_p99;
  // Means over the seeds.
  double utilization = 0;
  double dropped_packets = 0;
  double marked_packets = 0;
  double retransmitted_packets = 0;
  Bytes max_queue_bytes = 0;  ///< maximum over the seeds
  bool same = false;          ///< there are several seeds, and all gave the same times
};

/// The rows of a point, by policy, from the results of its seeds.
std::vector<SweepRow> rows_of(std::span<const Results> seeds);

struct SweepTable {
  struct Point {
    std::vector<SweepRow> rows;
    std::vector<std::pair<std::uint64_t, std::string>> failures;  ///< seed and reason
    std::size_t missing = 0;                                      ///< number of seeds without a record
  };
  std::vector<Point> points;     ///< in the order of the sweep's points
  std::size_t missing = 0;       ///< number of missing runs; points may share a run
  std::size_t other_builds = 0;  ///< number of records written by another build of the program
};

/// Reads the records in `folder`, one point at a time to save memory.
SweepTable tabulate(const Sweep& sweep, const std::filesystem::path& folder, const std::string& build);

/// The table as rows of cells, header first. Factors, policies and columns that are constant or empty are left out.
Cells cells_of(const Sweep& sweep, const SweepTable& table);
/// All numbers of all rows as CSV (RFC 4180).
std::string to_csv(const Sweep& sweep, const SweepTable& table);
/// "mltcp.sweep/1": see docs/reference/sweep-file.md.
std::string to_json(const Sweep& sweep, const SweepTable& table, const std::optional<Provenance>& provenance = {});

}  // namespace mltcp::experiment
