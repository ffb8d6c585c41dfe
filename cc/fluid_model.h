// The fluid limit of jobs on one link under MLTCP: at every moment the sending jobs share the link in the ratio of
// their F, as if congestion control converged instantly.
//
// For two identical jobs there is a closed form for how far their starts move apart per iteration. Period T (compute
// plus communication alone), communication fraction a, starts offset by d (0 <= d <= aT), aggressiveness F(x) = S x +
// I. HotNets'24 (doi 10.1145/3696348.3696878) derives shift(d) = S d (aT - d) / (aT I + d S).
#pragma once

#include <span>
#include <vector>

#include "mltcp/cc/aggressiveness.h"

namespace mltcp::cc {

struct FluidPair {
  double period = 1.0;       ///< T, in any unit of time; above 0
  double up_fraction = 0.5;  ///< a, in (0, 1)
  struct Linear {
    double slope = 1.75;  ///< 0 is fair sharing
    double intercept = 0.25;
  } function;

  /// How much the offset grows in an iteration that starts at offset `delta`; 0 once the phases do not overlap.
  [[nodiscard]] double shift(double delta) const;
  /// Length of the earlier job's iteration that starts at offset `delta`, in periods. The communication phases overlap,
  /// and share the link, for aT - delta.
  [[nodiscard]] double first_job_iteration(double delta) const;
  /// Offsets at the start of iterations 0..iterations.
  [[nodiscard]] std::vector<double> trajectory(double delta, int iterations) const;
};

/// A job that alternates between computing and sending. All times are in one unit of the caller's choice.
struct FluidJob {
  double compute = 0.5;      ///< above 0
  double communicate = 0.5;  ///< communication time alone on the link; above 0
  double start = 0;          ///< start of the first iteration; 0 or later
};

/// The lengths of the first `iterations` iterations of each job when they share a link; F = 1 is fair sharing.
/// Integrated in steps of 1/2000 of the shortest communication phase, second order.
std::vector<std::vector<double>> fluid_iterations(std::span<const FluidJob> jobs, const Aggressiveness& function,
                                                  int iterations);

}  // namespace mltcp::cc
