// A lower bound of the excess. It uses how long the demand of each job is at each level, but not when.
//
// At any time, each job of a link is at one level of its demand. The levels of all jobs at one time are called a
// configuration. The shifts determine the share of the perimeter for which each configuration lasts. The shares of the
// levels of each job are given by its demand. So the excess is at least the value of a linear program over
// configurations, as in the configuration relaxation of bin packing (Gilmore and Gomory, 1961):
//
//   minimise  sum over configurations K of share(K) * f(sum of K's levels),
//   so that   each level of each job lasts for its given share, and the shares add up to 1.
//
// Bounds for pairs and triples of jobs exclude shares that no shifts can produce. If a set T of jobs has an excess of
// at least E(T) without all other jobs, then
//
//             sum over K of share(K) * f(sum of the levels of K's jobs in T) >= E(T).
//
// The time for which two jobs are simultaneously at or above given levels has a minimum and a maximum over all shifts:
//
//             least <= sum of share(K) over the K in which both are <= most.
//
// This bound is at least as good as the bound by area and the sum of E over disjoint sets. It also accounts for bursts
// above half of the capacity, of which no two fit together. For any prices phi of levels and weights mu >= 0 of sets,
// with kappa = max over K of [phi(K) + sum of mu(T) f(K in T) - f(K)],
//
//   excess >= sum over levels of phi * its time + sum of mu(T) E(T) - kappa * perimeter.
//
// This bound is evaluated in integers, so the simplex method, which only proposes the prices, may compute in doubles.
// If there are too many jobs for one linear program, they are split into blocks with one program each. The bounds of
// the blocks add up, because excess is superadditive.
#pragma once

#include <cstdint>
#include <vector>

#include "mltcp/scheduler/internal/search.h"

namespace mltcp::scheduler::internal {

class ConfigurationBound {
 public:
  /// A set of jobs whose excess is at least `min` without all other jobs. `jobs` has one bit for each of the jobs 0
  /// to 63. Sets are valid only for models with one link.
  struct Set {
    std::uint64_t jobs = 0;
    Int128 min = 0;
    Int128 weight = 0;
  };
  /// The time during which both jobs are at or above their `levels` is at least `min` and at most `max`.
  struct Overlap {
    std::uint32_t jobs[2];
    std::int64_t levels[2];
    std::int64_t min = 0;
    std::int64_t max = 0;
  };
  ConfigurationBound(const Model& model, const std::vector<Set>& sets, const std::vector<Overlap>& overlaps = {});

  [[nodiscard]] Int128 root() const { return root_; }

 private:
  static constexpr std::size_t kMaxConfigurations = 2'048;
  static constexpr std::size_t kMaxItems = 60;  // maximum number of items of a block; each item has one bit
  static constexpr int kFraction = 20;          // maximum number of fractional bits of prices and weights

  /// A level above 0 of the demand of a job.
  struct Item {
    std::uint32_t job;
    std::int64_t level;
    std::int64_t time;  // time at this level on the perimeter
    Int128 price = 0;
  };
  /// An overlap as a constraint: all configurations that contain an item of items[0] and an item of items[1] last
  /// together for a time from `min` to `max`.
  struct Meeting {
    std::uint64_t items[2];
    std::int64_t min;
    std::int64_t max;
    Int128 price;
    [[nodiscard]] bool within(std::uint64_t configuration) const {
      return (configuration & items[0]) != 0 && (configuration & items[1]) != 0;
    }
  };
  struct Block {
    std::uint32_t link;
    std::vector<Item> items;  // all items of a job are adjacent, highest level first
    std::vector<Set> sets;
    std::vector<Meeting> meetings;
    int fraction = 0;  // number of fractional bits of prices and weights
  };
  struct Configuration {
    std::uint64_t items;
    std::int64_t sum;
    Int128 price;
  };

  /// Returns the items of a job on the link of `curve`, highest level first.
  [[nodiscard]] std::vector<Item> items_of(std::uint32_t job, const Curve& curve) const;
  void fill_blocks();
  /// Adds to the block those sets and overlaps whose jobs are all in the block.
  static void relate(Block& block, const std::vector<Set>& sets, const std::vector<Overlap>& overlaps);
  /// Sets Block::fraction. Returns false if the numbers are too large to compute the bound in 128 bits.
  bool set_fraction(Block& block) const;
  void set_prices(Block& block) const;
  /// Returns the bound with the prices of the block, multiplied by 2^fraction.
  [[nodiscard]] Int128 value_of(const Block& block) const;

  [[nodiscard]] static std::vector<Configuration> configurations(const std::vector<Item>& items);
  /// Returns the sequence of configurations that occurs if all jobs start at the same time and go through their levels
  /// from the highest level down. It has one configuration more than there are items. The times of the items determine
  /// the shares of these configurations, so they can be part of the first basis.
  [[nodiscard]] static std::vector<std::uint64_t> all_at_once(const std::vector<Item>& items);
  /// Returns the sum of the levels of those `items` whose jobs are in the set `jobs`.
  [[nodiscard]] static std::int64_t sum_in(const Block& block, std::uint64_t items, std::uint64_t jobs);

  const Model& model_;
  Int128 root_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace mltcp::scheduler::internal
