// A lower bound on excess that uses how long each job has each level of demand, but not when.
//
// At any time the jobs of a link are in some configuration: each job is at one of the levels of its demand. Shifts
// determine the share of the perimeter that each configuration lasts; the shares of each job's levels are given. So the
// excess is at least the value of a linear program over configurations, as in the configuration relaxation of bin
// packing (Gilmore and Gomory, 1961):
//
//   minimise  sum over configurations K of share(K) * f(sum of K's levels),
//   so that   each level of each job lasts as long as it does, and the shares add up to 1.
//
// Results for few jobs exclude shares that no shifts can give. A set T of jobs (a pair, a triple) alone has an excess
// of at least E(T), so that
//
//             sum over K of share(K) * f(sum of the levels of K's jobs in T) >= E(T).
//
// And the time that two jobs are at given levels or above at once has a minimum and a maximum, found by moving one of
// them past the other:
//
//             least <= sum of share(K) over the K in which both are <= most.
//
// This bound is at least as good as the bound by area and the sum of E over disjoint sets. It also covers bursts above
// half of the capacity, of which no two fit together at any time. For any prices phi of levels and weights mu >= 0 of
// sets, with kappa = max over K of [phi(K) + sum of mu(T) f(K in T) - f(K)],
//
//   excess >= sum over levels of phi * its time + sum of mu(T) E(T) - kappa * perimeter,
//
// which is evaluated in integers, so the simplex method that finds good prices may compute in doubles. If there are too
// many jobs for one program, there are several, whose bounds add up, as excess is superadditive.
#pragma once

#include <cstdint>
#include <vector>

#include "mltcp/scheduler/internal/search.h"

namespace mltcp::scheduler::internal {

class ConfigurationBound {
 public:
  /// A set of jobs (one bit for each of the lowest 64) whose excess alone is at least `least`. Only for one link.
  struct Set {
    std::uint64_t jobs = 0;
    Int128 least = 0;
    Int128 weight = 0;
  };
  /// The time that two jobs are at these levels or above at once is from `least` to `most`.
  struct Overlap {
    std::uint32_t jobs[2];
    std::int64_t levels[2];
    std::int64_t least = 0;
    std::int64_t most = 0;
  };
  ConfigurationBound(const Model& model, const std::vector<Set>& sets, const std::vector<Overlap>& overlaps = {});

  [[nodiscard]] Int128 root() const { return root_; }

 private:
  static constexpr std::size_t kMaxConfigurations = 2'048;
  static constexpr std::size_t kMaxItems = 60;  // of a block; one bit each
  static constexpr int kFraction = 20;          // maximum bits of prices and weights after the point

  /// A job at one of its levels above 0.
  struct Item {
    std::uint32_t job;
    std::int64_t level;
    std::int64_t time;  // on the perimeter
    Int128 price = 0;
  };
  /// Configurations with an item of both sets last from `least` to `most`.
  struct Meeting {
    std::uint64_t items[2];
    std::int64_t least;
    std::int64_t most;
    Int128 price;
    [[nodiscard]] bool within(std::uint64_t configuration) const {
      return (configuration & items[0]) != 0 && (configuration & items[1]) != 0;
    }
  };
  struct Block {
    std::uint32_t link;
    std::vector<Item> items;  // adjacent for each job, highest first
    std::vector<Set> sets;
    std::vector<Meeting> meetings;
    int fraction = 0;  // bits of prices and weights after the point
  };
  struct Configuration {
    std::uint64_t items;
    std::int64_t sum;
    Int128 price;
  };

  /// Levels of a job on a link, highest first.
  [[nodiscard]] std::vector<Item> items_of(std::uint32_t job, const Curve& curve) const;
  void fill_blocks();
  /// Adds the sets and overlaps of the block's jobs to the block.
  static void relate(Block& block, const std::vector<Set>& sets, const std::vector<Overlap>& overlaps);
  /// False if the numbers are too large for a bound in 128 bits.
  bool set_fraction(Block& block) const;
  void set_prices(Block& block) const;
  /// The bound at the block's prices, scaled by its fraction.
  [[nodiscard]] Int128 value_of(const Block& block) const;

  [[nodiscard]] static std::vector<Configuration> configurations(const std::vector<Item>& items);
  /// The sequence of configurations if all jobs start together and go through their levels from the highest down: one
  /// more than items. They alone determine the time of each item.
  [[nodiscard]] static std::vector<std::uint64_t> all_at_once(const std::vector<Item>& items);
  /// The sum of the levels of the jobs of a set.
  [[nodiscard]] static std::int64_t sum_in(const Block& block, std::uint64_t items, std::uint64_t jobs);

  const Model& model_;
  Int128 root_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace mltcp::scheduler::internal
