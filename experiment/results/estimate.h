// A mean of several measurements, and how sure it is.
#pragma once

#include <optional>
#include <span>

namespace mltcp::experiment {

/// A mean over seeds and half the width of its confidence interval, which a single seed doesn't have.
struct Estimate {
  double mean = 0;
  std::optional<double> ci95;
};
/// Of at least one value.
Estimate estimate_of(std::span<const double> values);

}  // namespace mltcp::experiment
