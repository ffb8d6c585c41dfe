// The fluid limit of jobs on one link under MLTCP: at every moment the sending jobs share the link in the ratio of
// their F, as if congestion control converged instantly.
//
// For two identical jobs, HotNets'24 (doi 10.1145/3696348.3696878) derives how far their starts move apart per
// iteration: shift(d) = S d (aT - d) / (aT I + d S). T is the period: the time of an iteration of a job that has the
// link to itself. The other symbols are: a, the fraction of T that is communication; d, the offset between the starts
// (0 <= d <= aT); F(x) = S x + I, the aggressiveness.
#pragma once

#include <span>
#include <vector>

#include "mltcp/cc/aggressiveness.h"

namespace mltcp::cc {

struct FluidPair {
  double period = 1.0;       ///< T: duration of an iteration without other jobs, in any unit of time; above 0
  double up_fraction = 0.5;  ///< a: fraction of the period that is communication, in (0, 1)
  struct Linear {
    double slope = 1.75;  ///< 0 is fair sharing
    double intercept = 0.25;
  } function;

  /// Returns by how much the offset grows in an iteration that starts at offset `delta`; 0 if the communication phases
  /// do not overlap.
  [[nodiscard]] double shift(double delta) const;
  /// Returns the length of an iteration of the job that starts first, if the iteration starts at offset `delta`; in the
  /// unit of `period`. If the communication phases overlap, the iteration is longer than `period`.
  [[nodiscard]] double first_job_iteration(double delta) const;
  /// Returns the offsets at the start of iterations 0 to `iterations`. The first one is `delta`.
  [[nodiscard]] std::vector<double> trajectory(double delta, int iterations) const;
};

/// A job that alternates between computing and sending. All times are in one unit of the caller's choice.
struct FluidJob {
  double compute = 0.5;      ///< above 0
  double communicate = 0.5;  ///< time of communication if the job is alone on the link; above 0
  double start = 0;          ///< start of the first iteration; 0 or later
};

/// Returns the lengths of the first `iterations` iterations of each job when all jobs share a link. F = 1 is fair
/// sharing. Integrates with a second-order method in steps of 1/2000 of the shortest communication phase.
std::vector<std::vector<double>> fluid_iterations(std::span<const FluidJob> jobs, const Aggressiveness& function,
                                                  int iterations);

}  // namespace mltcp::cc
