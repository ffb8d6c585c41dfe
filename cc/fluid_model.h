// The fluid limit of two identical jobs on one link under MLTCP: how far their starts move apart per iteration.
//
// Period T (compute plus up phase alone), up-phase fraction a, starts offset by d (0 <= d <= aT), aggressiveness
// F(x) = S x + I. The shares of two flows are in the ratio of their F. HotNets'24 (doi 10.1145/3696348.3696878)
// derives shift(d) = S d (aT - d) / (aT I + d S).
#pragma once

#include <vector>

namespace mltcp::cc {

struct FluidPair {
  double period = 1.0;       ///< T, in any unit of time; above 0
  double up_fraction = 0.5;  ///< a, in (0, 1)
  struct Linear {
    double slope = 1.75;  ///< 0 is fair sharing
    double intercept = 0.25;
  } function;

  /// How much the offset grows in the iteration that starts at offset `delta` (0 once the phases are apart).
  [[nodiscard]] double shift(double delta) const;
  /// Length of the earlier job's iteration that starts at offset `delta`, in periods. The later job's up phase
  /// overlaps it for aT - delta, in which the link is shared.
  [[nodiscard]] double first_job_iteration(double delta) const;
  /// Offsets at the start of iterations 0..iterations.
  [[nodiscard]] std::vector<double> trajectory(double delta, int iterations) const;
};

}  // namespace mltcp::cc
