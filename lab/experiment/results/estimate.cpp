// A mean and its confidence interval (see estimate.h).
#include "mltcp/lab/experiment/results/estimate.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace mltcp::experiment {
namespace {

// Returns the 97.5% quantile of Student's t distribution. Up to 10 degrees of freedom, the quantile is from a table.
// For n > 10, it is from the expansion of Cornish and Fisher in 1/n (Abramowitz and Stegun, 26.7.5), which is then
// exact to four digits.
double student_t(std::size_t degrees) {
  constexpr std::array<double, 10> table{12.7062, 4.3027, 3.1824, 2.7764, 2.5706,
                                         2.4469,  2.3646, 2.3060, 2.2622, 2.2281};
  if (degrees <= table.size()) return table[degrees - 1];
  constexpr double z = 1.959964;
  constexpr double z2 = z * z;
  const auto n = static_cast<double>(degrees);
  return z * (1 + (z2 + 1) / (4 * n) + ((5 * z2 + 16) * z2 + 3) / (96 * n * n) +
              (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * n * n * n) +
              ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / (92160 * n * n * n * n));
}

}  // namespace

Estimate estimate_of(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  Estimate estimate;
  for (const double value : values) estimate.mean += value;
  estimate.mean /= count;
  if (values.size() < 2) return estimate;
  double squares = 0;
  for (const double value : values) squares += (value - estimate.mean) * (value - estimate.mean);
  estimate.ci95 = student_t(values.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return estimate;
}

}  // namespace mltcp::experiment
