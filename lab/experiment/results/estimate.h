// A mean of several measurements with its confidence interval.
#pragma once

#include <optional>
#include <span>

namespace mltcp::experiment {

/// A mean over seeds, and half the width of its 95% confidence interval. A single seed has no interval (nullopt).
struct Estimate {
  double mean = 0;
  std::optional<double> ci95;
};
/// Returns the estimate from `values`, which must not be empty.
Estimate estimate_of(std::span<const double> values);

}  // namespace mltcp::experiment
