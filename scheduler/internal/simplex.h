// Computes the prices of small linear programs by the revised simplex method (Dantzig and Orchard-Hays, 1954) in
// doubles. Rounding errors do no harm, because the caller evaluates the prices exactly.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace mltcp::scheduler::internal {

/// The linear program: minimise costs * x subject to matrix * x = needed and x >= 0.
class LinearProgram {
 public:
  /// A column with one entry that is not 0.
  struct Single {
    std::size_t row;
    double entry;
    double cost;
  };

  /// The program has `full` columns, whose entries and costs are 0 until they are set, followed by the columns
  /// `singles`.
  LinearProgram(std::size_t rows, std::size_t full, std::vector<Single> singles)
      : needed(rows, 0.0), costs(full, 0.0), singles_(std::move(singles)), matrix_(full * rows, 0.0) {}

  std::vector<double> needed;  ///< right-hand side of each row
  std::vector<double> costs;   ///< cost of each full column
  double& entry(std::size_t row, std::size_t full_column) { return matrix_[row * costs.size() + full_column]; }

  /// Returns the price of each row at the optimum, or after 500 steps. `basis` is the first basis: as many columns as
  /// there are rows, linearly independent, with a solution x >= 0. If the columns are dependent, prices are not finite.
  [[nodiscard]] std::vector<double> prices(std::vector<std::size_t> basis) const;

 private:
  using Matrix = std::vector<std::vector<double>>;

  [[nodiscard]] std::size_t rows() const { return needed.size(); }
  [[nodiscard]] double entry_of(std::size_t row, std::size_t column) const;
  [[nodiscard]] double cost_of(std::size_t column) const;
  [[nodiscard]] Matrix inverse_of(const std::vector<std::size_t>& basis) const;
  /// Returns the column that reduces the costs most per unit of x, or the number of columns if none reduces them.
  [[nodiscard]] std::size_t entering(const std::vector<double>& prices, std::vector<double>& reduced) const;

  std::vector<Single> singles_;
  std::vector<double> matrix_;  ///< entries of the full columns, row by row
};

}  // namespace mltcp::scheduler::internal
