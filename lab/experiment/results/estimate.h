// A mean of several measurements with its confidence interval.
#pragma once

#include <optional>
#include <span>

namespace mltcp::experiment {

/// A mean over seeds, and half the width of its 95% confidence interval, which a single seed does not have.
struct Estimate {
  double mean = 0;
  std::optional<double> ci95;
};
/// Requires at least one value.
Estimate estimate_of(std::span<const double> values);

}  // namespace mltcp::experiment
