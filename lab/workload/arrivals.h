// Streams of jobs that arrive at a cluster, either random or from a file.
//
// Random arrivals are a Poisson process (independent exponential gaps), the usual model of independent users. The type
// of a job is drawn by weight. The number of workers and the batch size of a job are drawn from lists. The number of
// iterations is drawn log-uniformly, because durations in clusters span orders of magnitude (Hu et al.,
// "Characterization and prediction of deep learning workloads in large-scale GPU datacenters", SC 2021). Jobs and
// arrival times are drawn from different random streams. So with the same seed, different arrival rates give the same
// jobs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::workload {

struct Arrival {
  Nanos at;
  std::uint32_t type = 0;        ///< index of the job's type in the mix, or in ArrivalFile::jobs
  std::uint32_t workers = 2;     ///< number of hosts; a job on one host uses no network
  std::uint32_t batch = 0;       ///< batch size in samples; 0: the type's default
  std::uint32_t iterations = 1;  ///< number of iterations; 0 for a job on one host
  std::uint32_t gpus = 0;        ///< number of GPUs of the job, summed over its hosts; 0: one per host
  Nanos length{};                ///< time for which the job ran, if the job is from a table (job_table.h)

  [[nodiscard]] std::uint32_t all_gpus() const { return gpus == 0 ? workers : gpus; }
  /// Returns the number of GPUs on each host of the job, rounded up.
  [[nodiscard]] std::uint32_t gpus_per_worker() const { return (all_gpus() + workers - 1) / workers; }
  bool operator==(const Arrival&) const = default;
};

/// The distributions from which jobs of one type are drawn.
struct TypeChoices {
  double weight = 1;  ///< weight relative to the weights of the other types; above 0
  /// Numbers of workers, drawn uniformly; a number listed twice is twice as likely.
  std::vector<std::uint32_t> workers{2};
  std::vector<std::uint32_t> batches{0};  ///< batch sizes in samples, drawn like `workers`; 0: the type's default
  std::uint32_t min_iterations = 1;       ///< minimum number of iterations; 1 or more
  std::uint32_t max_iterations = 1;       ///< maximum number of iterations, inclusive

  /// Returns the mean number of iterations of a job, without the rounding to integers.
  [[nodiscard]] double mean_iterations() const;
};

/// Draws `count` jobs in the order of their arrival. The first `at_start` jobs arrive at time 0. All other jobs arrive
/// by a Poisson process in which the mean time between arrivals is `gap`. `mix` must contain at least one type, and its
/// numbers must be valid.
std::vector<Arrival> draw_arrivals(std::span<const TypeChoices> mix, std::uint32_t count, std::uint32_t at_start,
                                   Nanos gap, std::uint64_t seed);

/// Draws a type and a batch size for each job of a table, because tables contain neither types nor batch sizes. Draws
/// in the order of `jobs`, from a separate random stream.
void draw_types(std::span<const TypeChoices> mix, std::uint64_t seed, std::span<Arrival> jobs);

/// A file of arrivals: CSV whose first line contains the names of the columns. Columns, and the other lines, may be in
/// any order.
///
///   arrival,job,workers,iterations,batch        arrival: a time with its unit; job: text for the caller to interpret
///   0 s,VGG16,8,500,128                         batch may be missing in a line or as a column: the job's default
///   1.5 s,traces/resnet50.txt,4,200,
///
/// Empty lines and text after a # are skipped.
struct ArrivalFile {
  struct Row {
    Arrival arrival;  ///< the arrival; its `type` is an index in `jobs`
    std::uint32_t line = 0;
  };
  std::vector<std::string> jobs;  ///< distinct texts of the column `job`, in order of first appearance
  std::vector<Row> rows;          ///< in order of arrival; rows with equal times are in the order of the file
};
/// Parses the text of a file of arrivals. `file` is the name for messages. Throws InputError "FILE:LINE: COLUMN: cause;
/// cure".
ArrivalFile parse_arrivals(std::string_view text, const std::string& file);

}  // namespace mltcp::workload
