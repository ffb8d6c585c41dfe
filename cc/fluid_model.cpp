// The fluid limit of two identical jobs (see fluid_model.h).
#include "mltcp/cc/fluid_model.h"

namespace mltcp::cc {

double FluidPair::shift(double delta) const {
  const double up = up_fraction * period;
  if (delta <= 0 || delta >= up) return 0;
  return function.slope * delta * (up - delta) / (up * function.intercept + delta * function.slope);
}

double FluidPair::first_job_iteration(double delta) const {
  const double up = up_fraction * period;
  if (delta >= up) return period;
  // Under fair sharing the first job sends `delta` alone and the rest at half the rate: it ends up - delta late.
  // Every bit of shift is time that it gained on the other.
  return period + (up - delta) - shift(delta);
}

std::vector<double> FluidPair::trajectory(double delta, int iterations) const {
  std::vector<double> offsets{delta};
  for (int i = 0; i < iterations; ++i) {
    delta += shift(delta);
    offsets.push_back(delta);
  }
  return offsets;
}

}  // namespace mltcp::cc
