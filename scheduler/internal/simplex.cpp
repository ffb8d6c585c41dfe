// Implements the revised simplex method (see simplex.h).
#include "mltcp/scheduler/internal/simplex.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mltcp::scheduler::internal {
namespace {

constexpr int kMaxSteps = 500;
constexpr double kTiny = 1e-9;

}  // namespace

double LinearProgram::entry_of(std::size_t row, std::size_t column) const {
  if (column < costs.size()) return matrix_[row * costs.size() + column];
  const Single& single = singles_[column - costs.size()];
  return single.row == row ? single.entry : 0;
}

double LinearProgram::cost_of(std::size_t column) const {
  return column < costs.size() ? costs[column] : singles_[column - costs.size()].cost;
}

LinearProgram::Matrix LinearProgram::inverse_of(const std::vector<std::size_t>& basis) const {
  Matrix left(rows(), std::vector<double>(rows()));
  Matrix inverse = left;
  for (std::size_t r = 0; r < rows(); ++r) {
    for (std::size_t c = 0; c < rows(); ++c) left[r][c] = entry_of(r, basis[c]);
    inverse[r][r] = 1;
  }
  for (std::size_t c = 0; c < rows(); ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c + 1; r < rows(); ++r)
      if (std::abs(left[r][c]) > std::abs(left[pivot][c])) pivot = r;
    std::swap(left[c], left[pivot]);
    std::swap(inverse[c], inverse[pivot]);
    for (std::size_t r = 0; r < rows(); ++r) {
      const double factor = r == c ? 1 - 1 / left[c][c] : left[r][c] / left[c][c];
      if (factor == 0) continue;
      for (std::size_t k = 0; k < rows(); ++k) {
        left[r][k] -= factor * left[c][k];
        inverse[r][k] -= factor * inverse[c][k];
      }
    }
  }
  return inverse;
}

std::size_t LinearProgram::entering(const std::vector<double>& prices, std::vector<double>& reduced) const {
  const std::size_t full = costs.size();
  reduced = costs;
  for (std::size_t r = 0; r < rows(); ++r) {
    if (prices[r] == 0) continue;
    const double* row = &matrix_[r * full];
    for (std::size_t k = 0; k < full; ++k) reduced[k] -= prices[r] * row[k];
  }
  std::size_t best = full + singles_.size();
  double min = -kTiny;
  const auto consider = [&](std::size_t column, double value) {
    if (value >= min) return;
    min = value;
    best = column;
  };
  for (std::size_t k = 0; k < full; ++k) consider(k, reduced[k]);
  for (std::size_t k = 0; k < singles_.size(); ++k)
    consider(full + k, singles_[k].cost - prices[singles_[k].row] * singles_[k].entry);
  return best;
}

std::vector<double> LinearProgram::prices(std::vector<std::size_t> basis) const {
  Matrix inverse = inverse_of(basis);
  std::vector<double> x(rows(), 0.0);  // values of the columns in the basis
  for (std::size_t r = 0; r < rows(); ++r)
    for (std::size_t k = 0; k < rows(); ++k) x[r] += inverse[r][k] * needed[k];

  std::vector<double> result(rows());
  std::vector<double> direction(rows());
  std::vector<double> reduced(costs.size());
  for (int step = 0;; ++step) {
    std::ranges::fill(result, 0.0);
    for (std::size_t r = 0; r < rows(); ++r) {
      const double cost = cost_of(basis[r]);
      if (cost == 0) continue;
      for (std::size_t c = 0; c < rows(); ++c) result[c] += cost * inverse[r][c];
    }
    const std::size_t column = entering(result, reduced);
    if (step == kMaxSteps || column == costs.size() + singles_.size()) return result;

    std::ranges::fill(direction, 0.0);
    for (std::size_t k = 0; k < rows(); ++k)
      if (const double value = entry_of(k, column); value != 0)
        for (std::size_t r = 0; r < rows(); ++r) direction[r] += inverse[r][k] * value;
    std::size_t leaving = rows();
    double max = 0;
    for (std::size_t r = 0; r < rows(); ++r) {
      if (direction[r] <= kTiny) continue;
      const double ratio = std::max(x[r], 0.0) / direction[r];
      if (leaving == rows() || ratio < max) {
        max = ratio;
        leaving = r;
      }
    }
    if (leaving == rows()) return result;

    const double pivot = direction[leaving];
    for (double& value : inverse[leaving]) value /= pivot;
    x[leaving] /= pivot;
    for (std::size_t r = 0; r < rows(); ++r) {
      if (r == leaving || direction[r] == 0) continue;
      for (std::size_t k = 0; k < rows(); ++k) inverse[r][k] -= direction[r] * inverse[leaving][k];
      x[r] -= direction[r] * x[leaving];
    }
    basis[leaving] = column;
  }
}

}  // namespace mltcp::scheduler::internal
