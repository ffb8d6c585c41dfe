// Streams of jobs that arrive at a cluster: drawn at random, or from a file.
//
// Drawn: a Poisson process (exponential gaps, all independent), the usual model of independent users. Each job's type
// is drawn by weight, its workers and its batch from lists, and its iterations so that their logarithm is uniform:
// durations in clusters span orders of magnitude (Hu et al., "Characterization and prediction of deep learning
// workloads in large-scale GPU datacenters", SC 2021). What a job is and when it comes are drawn from streams of their
// own, so that another rate brings the same jobs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::workload {

struct Arrival {
  Nanos at;
  std::uint32_t type = 0;  ///< index of the mix, or of the names of a file
  std::uint32_t workers = 2;
  std::uint32_t batch = 0;  ///< samples; 0 = the type's default
  std::uint32_t iterations = 1;
  bool operator==(const Arrival&) const = default;
};

/// What jobs of one type are drawn from.
struct TypeChoices {
  double weight = 1;                      ///< above 0, relative to those of the other types
  std::vector<std::uint32_t> workers{2};  ///< one of these, each as likely; a number twice is twice as likely
  std::vector<std::uint32_t> batches{0};  ///< the same
  std::uint32_t least_iterations = 1;     ///< 1 or more
  std::uint32_t most_iterations = 1;      ///< inclusive

  /// Of a job's iterations, if they weren't whole.
  [[nodiscard]] double mean_iterations() const;
};

/// `count` jobs in the order of their arrival, the first `at_start` of them at time 0, the others a Poisson process of
/// mean gap `gap` that begins then. `mix` has a type at least, with valid numbers.
std::vector<Arrival> draw_arrivals(std::span<const TypeChoices> mix, std::uint32_t count, std::uint32_t at_start,
                                   Nanos gap, std::uint64_t seed);

/// A file of arrivals, CSV with a line of column names, in any order of columns and of lines:
///
///   arrival,job,workers,iterations,batch        arrival: a time with its unit; job: what the caller makes of the text
///   0 s,VGG16,8,500,128                         batch may be left out, as a column or in a line: the default
///   1.5 s,traces/resnet50.txt,4,200,
///
/// Empty lines and what follows a # are skipped.
struct ArrivalFile {
  struct Row {
    Arrival arrival;  ///< its type is an index of `jobs`
    std::uint32_t line = 0;
  };
  std::vector<std::string> jobs;  ///< distinct, in the order of their first line
  std::vector<Row> rows;          ///< by arrival; those of one time in the order of the file
};
/// Throws InputError "FILE:LINE: COLUMN: cause; cure".
ArrivalFile load_arrivals(const std::filesystem::path& path);
/// The same from memory; `file` stands in messages.
ArrivalFile parse_arrivals(std::string_view text, const std::string& file);

}  // namespace mltcp::workload
