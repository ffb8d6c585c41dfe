// Streams of jobs arriving at a cluster: random, or from a file.
//
// Random: a Poisson process (independent exponential gaps), the usual model of independent users. Each job's type is
// drawn by weight, its numbers of workers and batch size from lists, and its iterations log-uniformly, since durations
// in clusters span orders of magnitude (Hu et al., "Characterization and prediction of deep learning workloads in
// large-scale GPU datacenters", SC 2021). Jobs and arrival times are drawn from different streams, so that the jobs do
// not depend on the arrival rate.
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
  std::uint32_t type = 0;        ///< index in the mix, or in ArrivalFile::jobs
  std::uint32_t workers = 2;     ///< hosts; a job of one uses no network
  std::uint32_t batch = 0;       ///< batch size in samples; 0 = the type's default
  std::uint32_t iterations = 1;  ///< 0 for a job on one host
  std::uint32_t gpus = 0;        ///< on all its hosts together; 0 = one each
  Nanos length{};                ///< for a job of a table (job_table.h): how long it ran

  [[nodiscard]] std::uint32_t all_gpus() const { return gpus == 0 ? workers : gpus; }
  /// GPUs on each of its hosts, rounded up.
  [[nodiscard]] std::uint32_t gpus_per_worker() const { return (all_gpus() + workers - 1) / workers; }
  bool operator==(const Arrival&) const = default;
};

/// The distributions for jobs of one type.
struct TypeChoices {
  double weight = 1;                      ///< above 0, relative to those of the other types
  std::vector<std::uint32_t> workers{2};  ///< drawn uniformly; a number listed twice is twice as likely
  std::vector<std::uint32_t> batches{0};  ///< drawn like `workers`
  std::uint32_t min_iterations = 1;       ///< 1 or more
  std::uint32_t max_iterations = 1;       ///< inclusive

  /// Mean number of iterations of a job, ignoring rounding to integers.
  [[nodiscard]] double mean_iterations() const;
};

/// Draws `count` jobs in the order of their arrival: the first `at_start` at time 0, the others by a Poisson process
/// with mean gap `gap` from then on. `mix` must have at least one type, with valid numbers.
std::vector<Arrival> draw_arrivals(std::span<const TypeChoices> mix, std::uint32_t count, std::uint32_t at_start,
                                   Nanos gap, std::uint64_t seed);

/// Draws a type and a batch size for each job of a table, which has neither: in the order of `jobs`, from separate
/// random streams.
void draw_types(std::span<const TypeChoices> mix, std::uint64_t seed, std::span<Arrival> jobs);

/// A file of arrivals, CSV with a line of column names, in any order of columns and of lines:
///
///   arrival,job,workers,iterations,batch        arrival: a time with its unit; job: text for the caller to interpret
///   0 s,VGG16,8,500,128                         batch may be left out, as a column or in a line: the default
///   1.5 s,traces/resnet50.txt,4,200,
///
/// Empty lines and text after a # are skipped.
struct ArrivalFile {
  struct Row {
    Arrival arrival;  ///< its type is an index in `jobs`
    std::uint32_t line = 0;
  };
  std::vector<std::string> jobs;  ///< distinct, in order of first appearance
  std::vector<Row> rows;          ///< by arrival time; equal times in the order of the file
};
/// `file` is used in messages. Throws InputError "FILE:LINE: COLUMN: cause; cure".
ArrivalFile parse_arrivals(std::string_view text, const std::string& file);

}  // namespace mltcp::workload
