// The table of a sweep: a row for each point and policy, over the seeds and the jobs.
//
// A job's slow-down is its time by the isolated one's. A seed's value is the mean over its jobs, unaware ones left out
// where there are others; what stands in the
// table is the mean over the seeds, with a 95% confidence interval of Student's t where there are several. A gain is
// how many times faster than under policy fair of the same point and seed: fair's time by this one's, job by job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mltcp/experiment/results/estimate.h"
#include "mltcp/experiment/results/table.h"
#include "mltcp/experiment/sweep/sweep_run.h"

namespace mltcp::experiment {

struct SweepRow {
  std::string policy;
  std::size_t jobs = 0;
  std::size_t seeds = 0;  ///< with a result
  Estimate slowdown;      ///< of the mean over all iterations
  Estimate second_half;   ///< slow-down of the later half of the iterations
  double second_half_worst_seed = 0;
  double second_half_worst_job = 0;  ///< of any seed
  Estimate p99;                      ///< slow-down of the 99th percentile of the iterations
  Estimate second_half_p99;          ///< the same of their later half
  std::size_t interleaved = 0;       ///< seeds in which all jobs interleave
  /// Of these seeds, the iteration from which on the last of the jobs does: median (of an even number, the mean of the
  /// two in the middle) and worst.
  std::optional<double> interleaved_median;
  std::optional<std::uint64_t> interleaved_worst;
  std::optional<Estimate> gain;              ///< of the mean iteration time; without policy fair, nothing
  std::optional<Estimate> gain_p99;          ///< of the 99th percentile
  std::optional<Estimate> second_half_gain;  ///< as `gain`, of the later half of the iterations
  std::optional<Estimate> second_half_gain_p99;
  // Means over the seeds.
  double utilization = 0;
  double dropped_packets = 0;
  double marked_packets = 0;
  double retransmitted_packets = 0;
  Bytes max_queue_bytes = 0;  ///< of any seed
  bool same = false;          ///< several seeds, and each gave the same times
};

/// The rows of a point, in the order of its policies, from the results of its seeds.
std::vector<SweepRow> rows_of(std::span<const Results> seeds);

struct SweepTable {
  struct Point {
    std::vector<SweepRow> rows;
    std::vector<std::pair<std::uint64_t, std::string>> failures;  ///< seed and reason
    std::size_t missing = 0;                                      ///< seeds without a record
  };
  std::vector<Point> points;     ///< as those of the sweep
  std::size_t missing = 0;       ///< runs; points may share one
  std::size_t other_builds = 0;  ///< records made by another build of the program
};

/// From the records in `folder`, of which it holds those of one point at a time.
SweepTable tabulate(const Sweep& sweep, const std::filesystem::path& folder, const std::string& build);

/// The table as rows of cells, the header first. Factors, policies and columns that are the same in all rows, or say
/// nothing, are left out.
Cells cells_of(const Sweep& sweep, const SweepTable& table);
/// All numbers of all rows, RFC 4180.
std::string to_csv(const Sweep& sweep, const SweepTable& table);
/// "mltcp.sweep/1": see docs/sweep.md.
std::string to_json(const Sweep& sweep, const SweepTable& table, const std::optional<Provenance>& provenance = {});

}  // namespace mltcp::experiment
