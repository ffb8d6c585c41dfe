// A lower bound on excess that knows how much of the time each job asks for what, but not when.
//
// At any time the jobs of a link are in some configuration: each one at one of the levels of its demand. Shifts decide
// for what share of the perimeter each configuration lasts; each job's own shares are given. So the excess is at least
// the value of a linear program over configurations, as in the configuration relaxation of bin packing (Gilmore and
// Gomory, 1961):
//
//   minimise  sum over configurations K of share(K) * f(sum of K's levels),
//   so that   each level of each job lasts as long as it does, and the shares add up to 1.
//
// Shifts that no order of time allows are kept out by what is known of few jobs: a set T of them (a pair, a triple) has
// an excess of at least E(T) by itself, so that
//
//             sum over K of share(K) * f(sum of the levels of K's jobs in T) >= E(T).
//
// And for how long two jobs are at levels of theirs, or above, at once has a least and a greatest value, which are
// found by moving one of them past the other:
//
//             least <= sum of share(K) over the K in which both are <= most.
//
// This dominates the bound by area and the sum of E over disjoint sets, and sees what those can't: that bursts above
// half of the capacity don't fit together, whenever they come. For whatever prices phi of levels and weights mu >= 0 of
// sets, with kappa = max over K of [phi(K) + sum of mu(T) f(K in T) - f(K)],
//
//   excess >= sum over levels of phi * its time + sum of mu(T) E(T) - kappa * perimeter,
//
// which is evaluated in integers. So the simplex method that finds good prices may compute in
// doubles. Jobs that are too many for one program make several, whose bounds add up, as excess is superadditive.
#pragma once

#include <cstdint>
#include <vector>

#include "mltcp/scheduler/internal/search.h"

namespace mltcp::scheduler::internal {

class ConfigurationBound {
 public:
  /// Jobs, the lowest 64 of which have a bit each, whose excess by themselves is at least so much. For one link only.
  struct Set {
    std::uint64_t jobs = 0;
    Int128 least = 0;
    Int128 weight = 0;
  };
  /// Two jobs that ask for these levels or more at once, which lasts at least and at most so long.
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
  static constexpr std::size_t kMaxItems = 60;  // of a block; they have a bit each
  static constexpr int kFraction = 20;          // most bits of prices and weights after the point

  /// A job at one of its levels above 0.
  struct Item {
    std::uint32_t job;
    std::int64_t level;
    std::int64_t time;  // on the perimeter
    Int128 price = 0;
  };
  /// Configurations with an item of either kind last at least or at most so long.
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
    std::vector<Item> items;  // those of a job follow each other, highest first
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
  /// Gives the block those of the sets and overlaps that are about its jobs.
  static void relate(Block& block, const std::vector<Set>& sets, const std::vector<Overlap>& overlaps);
  /// False where the numbers are too large for a bound in 128 bits.
  bool set_fraction(Block& block) const;
  void set_prices(Block& block) const;
  /// The bound at the block's prices, scaled by its fraction.
  [[nodiscard]] Int128 value_of(const Block& block) const;

  [[nodiscard]] static std::vector<Configuration> configurations(const std::vector<Item>& items);
  /// The configurations that follow each other when all jobs start together and go through their levels from the
  /// highest down: one more than there are items, each of them given its time by these alone.
  [[nodiscard]] static std::vector<std::uint64_t> all_at_once(const std::vector<Item>& items);
  /// Of the jobs of a set.
  [[nodiscard]] static std::int64_t sum_in(const Block& block, std::uint64_t items, std::uint64_t jobs);

  const Model& model_;
  Int128 root_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace mltcp::scheduler::internal
