// The revised simplex method (Dantzig and Orchard-Hays, 1954) in doubles, for the prices of small linear programs. The
// result is a proposal, which the caller evaluates exactly.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace mltcp::scheduler::internal {

/// Minimise costs * x subject to matrix * x = needed and x >= 0.
class LinearProgram {
 public:
  /// A column with one entry that is not 0.
  struct Single {
    std::size_t row;
    double entry;
    double cost;
  };

  /// The first `full` columns have entries and costs of 0 until they are set; then come `singles`.
  LinearProgram(std::size_t rows, std::size_t full, std::vector<Single> singles)
      : needed(rows, 0.0), costs(full, 0.0), singles_(std::move(singles)), matrix_(full * rows, 0.0) {}

  std::vector<double> needed;  ///< by row
  std::vector<double> costs;   ///< of full columns
  double& entry(std::size_t row, std::size_t full_column) { return matrix_[row * costs.size() + full_column]; }

  /// The price of each row at the optimum, or after 500 steps. `basis` has as many columns as there are rows; they must
  /// be linearly independent with x >= 0. Prices are not finite if they are dependent.
  [[nodiscard]] std::vector<double> prices(std::vector<std::size_t> basis) const;

 private:
  using Matrix = std::vector<std::vector<double>>;

  [[nodiscard]] std::size_t rows() const { return needed.size(); }
  [[nodiscard]] double entry_of(std::size_t row, std::size_t column) const;
  [[nodiscard]] double cost_of(std::size_t column) const;
  [[nodiscard]] Matrix inverse_of(const std::vector<std::size_t>& basis) const;
  /// The column that reduces the costs most per unit; the number of columns if none does.
  [[nodiscard]] std::size_t entering(const std::vector<double>& prices, std::vector<double>& reduced) const;

  std::vector<Single> singles_;
  std::vector<double> matrix_;  ///< of full columns, by row
};

}  // namespace mltcp::scheduler::internal
